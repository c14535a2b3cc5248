// SPDX-License-Identifier: GPL-2.0-only
/* Jobs by several threads: each is done once, and waited for. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/workers.h"

#define N 5

struct work {
	struct workers *c;
	pthread_barrier_t all, second; /* everybody's; of the second stage, and the test's */
	pthread_t threads[N];
	atomic_int before, after;
};

static void meet(void *ctx, size_t i)
{
	struct work *w = ctx;

	w->threads[i] = pthread_self();
	w->before++;
	pthread_barrier_wait(&w->all); /* for ever if it were one after the other */
}

static void in_stages(void *ctx, size_t i)
{
	struct work *w = ctx;

	if (i == N - 1) /* is through before it was anywhere */
		return;
	w->before++;
	workers_reach(w->c, i, 1);
	pthread_barrier_wait(&w->second);
	w->after++;
}

static int setup(void **state)
{
	struct work *w = calloc(1, sizeof(*w));

	pthread_barrier_init(&w->all, NULL, N);
	pthread_barrier_init(&w->second, NULL, N); /* N - 1 members and the test */
	*state = w;
	return workers_new(&w->c, N);
}

static int teardown(void **state)
{
	struct work *w = *state;

	workers_free(w->c);
	pthread_barrier_destroy(&w->all);
	pthread_barrier_destroy(&w->second);
	free(w);
	return 0;
}

static void all_work_at_a_time(void **state)
{
	struct work *w = *state;

	workers_begin(w->c, meet, w);
	workers_finish(w->c);
	assert_int_equal(w->before, N);
}

static void they_stay_the_same(void **state)
{
	struct work *w = *state;
	pthread_t first[N];

	workers_begin(w->c, meet, w);
	workers_finish(w->c);
	memcpy(first, w->threads, sizeof(first));
	for (int i = 0; i < 20; i++) {
		workers_begin(w->c, meet, w);
		workers_finish(w->c);
	}
	assert_int_equal(w->before, 21 * N);
	for (int i = 0; i < N; i++)
		assert_true(pthread_equal(first[i], w->threads[i]));
}

static void stages_are_waited_for(void **state)
{
	struct work *w = *state;

	workers_begin(w->c, in_stages, w);
	workers_await(w->c, 1);
	assert_int_equal(w->before, N - 1);
	assert_int_equal(w->after, 0); /* each of them waits for us */
	pthread_barrier_wait(&w->second);
	workers_finish(w->c);
	assert_int_equal(w->after, N - 1);
}

/* A job that nobody has waited for is waited for by workers_free. */
static void the_last_job_is_done(void **state)
{
	struct work *w = *state;

	workers_begin(w->c, meet, w);
	workers_free(w->c);
	w->c = NULL;
	assert_int_equal(w->before, N);
}

static void nobody(void **state)
{
	struct workers *c;

	assert_int_equal(workers_new(&c, 0), 0);
	workers_begin(c, meet, NULL);
	workers_await(c, 1);
	workers_finish(c);
	workers_free(c);
	workers_free(NULL);
}

static void count(void *ctx)
{
	++*(atomic_int *)ctx;
}

static void errands_are_done_by_who_has_time(void **state)
{
	atomic_int a = 0, b = 0;
	struct errand one = { 0 }, two = { 0 };

	assert_false(errands_help());
	errand_finish(&one); /* there is none */
	errand_begin(&one, count, &a);
	errand_begin(&two, count, &b);
	assert_int_equal(a + b, 0);
	errand_finish(&one); /* nobody has begun it */
	assert_int_equal(a, 1);
	assert_int_equal(b, 0);
	assert_true(errands_help());
	assert_int_equal(b, 1);
	assert_false(errands_help());
	errand_finish(&two);
	errand_begin(&one, count, &a);
	errand_finish(&one);
	assert_int_equal(a, 2);
	assert_int_equal(b, 1);
}

static void a_dropped_errand_is_not_done(void **state)
{
	atomic_int a = 0;
	struct errand e = { 0 };

	errand_drop(&e); /* there is none */
	errand_begin(&e, count, &a);
	errand_drop(&e);
	assert_false(errands_help());
	errand_finish(&e);
	assert_int_equal(a, 0);
}

static void errands_may_be_many(void **state)
{
	atomic_int done[500] = { 0 };
	struct errand e[500] = { 0 };

	for (int i = 0; i < 500; i++)
		errand_begin(&e[i], count, &done[i]);
	for (int i = 0; i < 5; i++)
		assert_true(errands_help());
	errand_drop(&e[499]);
	for (int i = 0; i < 500; i++)
		errand_finish(&e[i]);
	assert_false(errands_help());
	for (int i = 0; i < 499; i++)
		assert_int_equal(done[i], 1);
	assert_int_equal(done[499], 0);
}

static void a_pool_gives_what_was_put(void **state)
{
	struct pool pool = { 0 };
	int v[POOL_MAX + 1], taken = 0;

	assert_null(pool_take(&pool));
	assert_null(pool_put(&pool, NULL));
	for (int i = 0; i < POOL_MAX; i++)
		assert_null(pool_put(&pool, &v[i]));
	assert_non_null(pool_put(&pool, &v[POOL_MAX])); /* it is full */
	for (int *one; (one = pool_take(&pool)); taken++)
		assert_true(one >= v && one <= &v[POOL_MAX]);
	assert_int_equal(taken, POOL_MAX);
}

struct slow {
	pthread_barrier_t begun;
	atomic_int done;
};

static void take_long(void *ctx)
{
	struct slow *s = ctx;

	pthread_barrier_wait(&s->begun);
	usleep(20000);
	s->done = 1;
}

static void help(void *ctx, size_t i)
{
	errands_help();
}

static void wait_for_a_slow_errand(struct work *w, void (*wait)(struct errand *e))
{
	struct slow s = { .done = 0 };
	struct errand e = { 0 };

	pthread_barrier_init(&s.begun, NULL, 2);
	errand_begin(&e, take_long, &s);
	workers_begin(w->c, help, NULL);
	pthread_barrier_wait(&s.begun);
	wait(&e);
	assert_int_equal(s.done, 1);
	workers_finish(w->c);
	pthread_barrier_destroy(&s.begun);
}

static void an_errand_that_runs_is_waited_for(void **state)
{
	wait_for_a_slow_errand(*state, errand_finish);
	wait_for_a_slow_errand(*state, errand_drop);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(errands_are_done_by_who_has_time),
		cmocka_unit_test(a_dropped_errand_is_not_done),
		cmocka_unit_test(errands_may_be_many),
		cmocka_unit_test_setup_teardown(an_errand_that_runs_is_waited_for, setup, teardown),
		cmocka_unit_test_setup_teardown(all_work_at_a_time, setup, teardown),
		cmocka_unit_test_setup_teardown(they_stay_the_same, setup, teardown),
		cmocka_unit_test_setup_teardown(stages_are_waited_for, setup, teardown),
		cmocka_unit_test_setup_teardown(the_last_job_is_done, setup, teardown),
		cmocka_unit_test(nobody),
		cmocka_unit_test(a_pool_gives_what_was_put),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
