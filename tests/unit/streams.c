// SPDX-License-Identifier: LGPL-2.1-or-later
/* Streams on their own show what the merge shows, in whatever order. */
#include "captures.h"
#include "one-core.h"

#include <stdatomic.h>

#include "read/timeline.h"

struct seen {
	struct opened o;
	atomic_size_t n, runs;
	_Atomic uint64_t sum;
	size_t fail; /* at that run; 0: never */
};

/* Of a record's all; sums of it tell whether the same records were seen, in whatever order. */
static uint64_t record_sum(const struct merge_record *m)
{
	uint64_t sum = m->ts * 31 + m->raw;

	sum = sum * 31 + m->stream;
	sum = sum * 31 + (uint64_t)m->missed;
	for (size_t i = 0; i < m->len; i++)
		sum = sum * 31 + m->data[i];
	return sum;
}

static int see_run(void *ctx, const struct merge_run *run, size_t worker)
{
	struct seen *s = ctx;

	assert_true(worker < pipeline_workers());
	for (size_t i = 0; i < run->n; i++) {
		assert_int_equal(run->v[i].stream, run->v[0].stream);
		s->sum += record_sum(&run->v[i]);
	}
	s->n += run->n;
	return ++s->runs == s->fail ? -EDOM : 0;
}

static void check_streams(size_t first, size_t n)
{
	struct seen s = { 0 };
	struct merge_run run = { 0 };
	uint64_t sum = 0, damaged;
	size_t records = 0;

	open_captures(&s.o, first, n);
	while (merge_take(s.o.t->merge, &run) == 1)
		for (size_t i = 0; i < run.n; i++, records++)
			sum += record_sum(&run.v[i]);
	damaged = merge_damaged(s.o.t->merge);
	merge_run_release(&run);
	close_captures(&s.o);
	open_captures(&s.o, first, n);
	assert_int_equal(streams_work(s.o.t, see_run, &s), 0);
	assert_int_equal(s.n, records);
	assert_int_equal(s.sum, sum);
	assert_int_equal(merge_damaged(s.o.t->merge), damaged);
	close_captures(&s.o);
}

static void test_streams(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(captures); i++)
		check_streams(i, 1);
	check_streams(0, ARRAY_SIZE(captures));
}

static void test_one_core(void **state)
{
	cpu_set_t all = stay_on_one_core();

	check_streams(0, 2);
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
}

static void test_failure(void **state)
{
	struct seen s = { .fail = 3 };

	open_captures(&s.o, 0, ARRAY_SIZE(captures));
	assert_int_equal(streams_work(s.o.t, see_run, &s), -EDOM);
	assert_true(s.runs < 3 + pipeline_workers());
	close_captures(&s.o);
}

/* A page that is damaged: what is behind it is seen, and it is counted once. */
static void test_damage(void **state)
{
	struct fixture *x = *state;
	struct pages *top = add_buffer(x, "", 4096, 2);
	struct seen s = { 0 };
	char *path = x->path;

	for (int i = 0; i < 3000; i++)
		add_entry(&top[i % 2], 1000 + 10 * (uint64_t)i, 87);
	/* the commit of CPU 1's second page */
	assert_int_equal(pwrite(top[1].fd, &(uint64_t){ 1 << 20 }, 8, 4096 + 8), 8);
	dat_from_spool(x);
	assert_int_equal(write_dat(x), 0);
	assert_int_equal(inputs_open(&s.o.in, &path, 1, 0, NULL), 0);
	assert_int_equal(inputs_load(&s.o.in, NULL), 0);
	assert_int_equal(timeline_open(&s.o.t, &s.o.in, NULL, NULL, NULL), 0);
	assert_int_equal(streams_work(s.o.t, see_run, &s), 0);
	assert_int_equal(merge_damaged(s.o.t->merge), 1);
	assert_true(s.n < 3000 && s.n > 2500);
	close_captures(&s.o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_streams),
		cmocka_unit_test(test_one_core),
		cmocka_unit_test(test_failure),
		cmocka_unit_test_setup_teardown(test_damage, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
