// SPDX-License-Identifier: LGPL-2.1-or-later
/* Runs of records are seen in order, worked on side by side, and given back in order. */
#include "dat-fixture.h"
#include "one-core.h"

#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "read/timeline.h"

#define RECORDS 40000

static int cores; /* that the machine seems to have; 0: as many as it has */

int sched_getaffinity(pid_t pid, size_t size, cpu_set_t *set)
{
	long n = cores ? 0 : syscall(SYS_sched_getaffinity, pid, size, set);

	if (n < 0)
		return -1;
	memset((uint8_t *)set + n, 0, size - (size_t)n);
	for (int i = 0; i < cores; i++)
		CPU_SET(i, set);
	return 0;
}

struct job_state {
	uint64_t before_ts, after_ts; /* of the last record that each has seen */
	size_t before, after;	      /* records */
	size_t runs;
	atomic_int owns, at_work, most;
	size_t fail_before, fail_work, fail_after; /* at that run; 0: never */
	uint64_t first_ts;
	atomic_size_t first; /* runs */
	size_t fail_first;
	bool beside; /* another thread was at first() while one was at after() */
};

/* Waits until another thread has gone on to the next run there, or for 50 ms: it has. */
static bool goes_on(const atomic_size_t *runs)
{
	size_t before = *runs;

	for (int i = 0; i < 50 && *runs == before && pipeline_workers() > 1; i++)
		usleep(1000);
	return *runs != before;
}

static int see(void *ctx, struct pipeline_run *run)
{
	struct job_state *s = ctx;

	if (!run->own) {
		run->own = malloc(1);
		s->owns++;
	}
	assert_int_equal(run->out.len, 0);
	for (size_t i = 0; i < run->records.n; i++) {
		assert_true(run->records.v[i].ts > s->before_ts);
		s->before_ts = run->records.v[i].ts;
	}
	s->before += run->records.n;
	s->runs++;
	buf_add(&run->out, &s->runs, sizeof(s->runs)); /* the job's own mark */
	return s->runs == s->fail_before ? -EDOM : 0;
}

static int toil(void *ctx, struct pipeline_run *run)
{
	struct job_state *s = ctx;
	int n = ++s->at_work, most = s->most;
	size_t number;

	while (n > most && !atomic_compare_exchange_weak(&s->most, &most, n))
		;
	assert_true(run->worker < pipeline_workers());
	memcpy(&number, run->out.data, sizeof(number));
	usleep(number % 3 * 2000); /* they end in another order than they began in */
	s->at_work--;
	return number == s->fail_work ? -ERANGE : 0;
}

static int give_back(void *ctx, struct pipeline_run *run)
{
	struct job_state *s = ctx;

	for (size_t i = 0; i < run->records.n; i++) {
		assert_true(run->records.v[i].ts > s->after_ts);
		s->after_ts = run->records.v[i].ts;
	}
	s->after += run->records.n;
	if (s->fail_after && !--s->fail_after)
		return -EPIPE;
	return 0;
}

static int order(void *ctx, struct pipeline_run *run, size_t number)
{
	struct job_state *s = ctx;

	assert_int_equal(number, 0);
	for (size_t i = 0; i < run->records.n; i++) {
		assert_true(run->records.v[i].ts > s->first_ts);
		s->first_ts = run->records.v[i].ts;
	}
	return ++s->first == s->fail_first ? -EXDEV : 0;
}

static int give_back_late(void *ctx, struct pipeline_run *run)
{
	struct job_state *s = ctx;

	s->beside = s->beside || goes_on(&s->first);
	assert_true(s->first * MERGE_RUN_MAX > s->after);
	return give_back(ctx, run);
}

static void let_go(void *own)
{
	free(own);
}

static const struct pipeline_job job = { .before = see, .work = toil, .after = give_back, .release = let_go };

static const struct pipeline_job two_turns = {
	.before = see, .work = toil, .first = order, .n_firsts = 1, .after = give_back_late, .release = let_go
};

/* ctx of a job with several first(). */
struct firsts_state {
	struct job_state s; /* see() and toil() take it for their ctx */
	struct one_first {
		uint64_t ts; /* of the last record */
		atomic_int at_it;
		atomic_size_t runs;
	} v[3];
	size_t fail_number, fail_run; /* fail_run 0: none fails */
	atomic_int finishing, most;   /* calls of finish() at a time */
	size_t fail_finish;	      /* at that run; 0: never */
	bool beside;		      /* another thread was at number 1 while one was at number 0 */
};

static int order_several(void *ctx, struct pipeline_run *run, size_t number)
{
	struct firsts_state *f = ctx;
	struct one_first *one = &f->v[number];

	assert_true(number < ARRAY_SIZE(f->v));
	assert_int_equal(one->at_it++, 0);
	if (!number && !f->beside)
		f->beside = goes_on(&f->v[1].runs);
	for (size_t i = 0; i < run->records.n; i++) {
		assert_true(run->records.v[i].ts > one->ts);
		one->ts = run->records.v[i].ts;
	}
	one->at_it--;
	return ++one->runs == f->fail_run && number == f->fail_number ? -EXDEV : 0;
}

static int finish_several(void *ctx, struct pipeline_run *run)
{
	struct firsts_state *f = ctx;
	int n = ++f->finishing, most = f->most;
	size_t number;

	while (n > most && !atomic_compare_exchange_weak(&f->most, &most, n))
		;
	for (size_t i = 0; i < ARRAY_SIZE(f->v); i++)
		assert_true(f->v[i].ts >= run->records.v[run->records.n - 1].ts);
	usleep(3000);
	memcpy(&number, run->out.data, sizeof(number));
	assert_int_equal(run->out.len, sizeof(number));
	buf_add(&run->out, "x", 1);
	f->finishing--;
	return number == f->fail_finish ? -EILSEQ : 0;
}

static int give_back_several(void *ctx, struct pipeline_run *run)
{
	struct firsts_state *f = ctx;

	assert_int_equal(run->out.len, sizeof(size_t) + 1); /* it is finished */
	return give_back(&f->s, run);
}

static const struct pipeline_job several_firsts = { .before = see,
						    .work = toil,
						    .first = order_several,
						    .n_firsts = 3,
						    .finish = finish_several,
						    .after = give_back_several,
						    .release = let_go };

static int work_with(struct fixture *x, const struct pipeline_job *of, void *ctx)
{
	char *path = x->path;
	struct timeline *t;
	struct inputs in;
	int ret;

	assert_int_equal(inputs_open(&in, &path, 1, 0, NULL), 0);
	assert_int_equal(inputs_load(&in, NULL), 0);
	assert_int_equal(timeline_open(&t, &in, NULL, NULL, NULL), 0);
	ret = pipeline_work(t, of, ctx);
	timeline_close(t);
	inputs_release(&in);
	return ret;
}

static int work_on(struct fixture *x, struct job_state *s)
{
	int ret = work_with(x, &job, s);

	assert_int_equal(s->at_work, 0);
	return ret;
}

static void make_file(struct fixture *x)
{
	struct pages *top = add_buffer(x, "", 4096, 2);

	for (int i = 0; i < RECORDS; i++)
		add_entry(&top[i / 3 % 2], 1000 + 10 * (uint64_t)i, 87);
	dat_from_spool(x);
	assert_int_equal(write_dat(x), 0);
}

static void test_order(void **state)
{
	struct fixture *x = *state;
	struct job_state s = { 0 };

	make_file(x);
	assert_int_equal(work_on(x, &s), 0);
	assert_int_equal(s.before, RECORDS);
	assert_int_equal(s.after, RECORDS);
	assert_true(s.runs > 10);
	if (pipeline_workers() > 1)
		assert_true(s.most > 1);
	assert_true((size_t)s.owns <= PIPELINE_SLOTS * pipeline_workers());
}

/* Two functions in order: the one goes on while the other is at an earlier run. */
static void test_two_turns(void **state)
{
	struct fixture *x = *state;
	struct job_state s = { 0 }, fail = { .fail_first = 5 }, both = { .fail_first = 5, .fail_after = 3 };
	cpu_set_t all;

	make_file(x);
	assert_int_equal(work_with(x, &two_turns, &s), 0);
	assert_int_equal(s.after, RECORDS);
	assert_int_equal(s.first, s.runs);
	assert_int_equal(s.beside, pipeline_workers() > 1);
	assert_int_equal(work_with(x, &two_turns, &fail), -EXDEV);
	assert_int_equal(fail.first, 5);
	assert_int_equal(fail.after, 4 * MERGE_RUN_MAX);
	assert_int_equal(work_with(x, &two_turns, &both), -EPIPE);
	assert_int_equal(both.after, 3 * MERGE_RUN_MAX);
	all = stay_on_one_core();
	s = (struct job_state){ 0 };
	assert_int_equal(work_with(x, &two_turns, &s), 0);
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
	assert_int_equal(s.after, RECORDS);
}

/* Each number's calls are in order; two numbers are at it at a time; a run is finished when all have been,
 * two at a time. */
static void test_several_firsts(void **state)
{
	struct fixture *x = *state;
	struct firsts_state fail = { .fail_finish = 7 };
	cpu_set_t all;

	make_file(x);
	for (size_t number = 0; number < 3; number++) {
		struct firsts_state f = { .fail_number = number, .fail_run = 5 }, well = { 0 };

		assert_int_equal(work_with(x, &several_firsts, &well), 0);
		assert_int_equal(well.s.after, RECORDS);
		if (pipeline_workers() > 1)
			assert_true(well.most > 1);
		assert_int_equal(well.beside, pipeline_workers() > 1);
		for (size_t i = 0; i < ARRAY_SIZE(well.v); i++)
			assert_int_equal(well.v[i].runs, well.s.runs);
		assert_int_equal(work_with(x, &several_firsts, &f), -EXDEV);
		assert_int_equal(f.v[number].runs, 5);
		assert_int_equal(f.s.after, 4 * MERGE_RUN_MAX);
	}
	assert_int_equal(work_with(x, &several_firsts, &fail), -EILSEQ);
	assert_int_equal(fail.s.after, 6 * MERGE_RUN_MAX);
	all = stay_on_one_core();
	for (size_t number = 0; number < 3; number++) {
		struct firsts_state f = { .fail_number = number, .fail_run = 5 };

		assert_int_equal(work_with(x, &several_firsts, &f), -EXDEV);
		assert_int_equal(f.s.after, 4 * MERGE_RUN_MAX);
	}
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
}

/* One core only: all is done, one after the other. */
static void test_alone(void **state)
{
	struct fixture *x = *state;
	struct job_state s = { 0 };
	cpu_set_t all;

	make_file(x);
	all = stay_on_one_core();
	assert_int_equal(pipeline_workers(), 1);
	assert_int_equal(work_on(x, &s), 0);
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
	assert_int_equal(s.most, 1);
	assert_int_equal(s.after, RECORDS);
}

/* What went before a failure is given back, nothing behind it. */
static void test_failures(void **state)
{
	struct fixture *x = *state;
	struct job_state before = { .fail_before = 5 }, work = { .fail_work = 5 },
			 after = { .fail_after = 5 };
	const size_t four = (size_t)4 * MERGE_RUN_MAX;

	make_file(x);
	assert_int_equal(work_on(x, &before), -EDOM);
	assert_int_equal(before.after, four);
	assert_int_equal(before.runs, 5);
	assert_int_equal(work_on(x, &work), -ERANGE);
	assert_int_equal(work.after, four);
	assert_int_equal(work_on(x, &after), -EPIPE);
	assert_int_equal(after.after, four + MERGE_RUN_MAX);
	assert_true(after.runs < RECORDS / MERGE_RUN_MAX);
}

static int quick(void *ctx, struct pipeline_run *run)
{
	return 0;
}

/* More threads than cores: none waits forever, and few are woken for what another does. */
static void test_many_threads(void **state)
{
	static const struct pipeline_job quick_firsts = { .run = 64,
							  .before = see,
							  .work = quick,
							  .first = order_several,
							  .n_firsts = 3,
							  .after = give_back,
							  .release = let_go };
	struct fixture *x = *state;
	struct rusage begin, end;
	size_t runs = 0;

	make_file(x);
	cores = 16;
	alarm(300);
	getrusage(RUSAGE_SELF, &begin);
	for (int i = 0; i < 20; i++) {
		struct firsts_state f = { .beside = true };

		assert_int_equal(work_with(x, &quick_firsts, &f), 0);
		assert_int_equal(f.s.after, RECORDS);
		runs += f.s.runs;
	}
	getrusage(RUSAGE_SELF, &end);
	alarm(0);
	cores = 0;
	assert_true(end.ru_nvcsw - begin.ru_nvcsw < 6 * (long)runs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_order, setup, teardown),
		cmocka_unit_test_setup_teardown(test_two_turns, setup, teardown),
		cmocka_unit_test_setup_teardown(test_several_firsts, setup, teardown),
		cmocka_unit_test_setup_teardown(test_alone, setup, teardown),
		cmocka_unit_test_setup_teardown(test_failures, setup, teardown),
		cmocka_unit_test_setup_teardown(test_many_threads, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
