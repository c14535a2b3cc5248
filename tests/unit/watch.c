// SPDX-License-Identifier: GPL-2.0-only
/* When tracing was off between regions, by what their events left in an instance on a FAKE tracefs. */
#include "record/tracefs/instance.h"
#include "fake-tracefs.h"

#include <errno.h>

#include "file/dat/page.h"
#include "base/array.h"

enum { START = 62, STOP = 61, OTHER = 7 };

static struct fake fake;
static struct undo *undo;
static const struct watch watch = { "instances/w", START, STOP };
static char raw[2][64];

static int put_page(void *ctx, const void *page, size_t size)
{
	struct buf *out = ctx;

	buf_add(out, page, size);
	return 0;
}

struct moment {
	uint64_t ts;
	uint16_t id; /* 0: so many are lost before the next one */
};

/* What a CPU's trace_pipe_raw gives. */
static void put_cpu(unsigned int cpu, const struct moment *v, size_t n)
{
	struct buf out = { 0 };
	struct page_writer w;

	assert_int_equal(page_writer_init(&w, 4096, put_page, &out), 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(v[i].id ? page_write(&w, v[i].ts, &v[i].id, sizeof(v[i].id))
					 : page_write_lost(&w, v[i].ts),
				 0);
	page_flush(&w, true);
	assert_int_equal(write_file_at(fake.fd, raw[cpu], out.data ? (char *)out.data : "", out.len), 0);
	page_writer_release(&w);
	buf_release(&out);
}

/* "FROM-TO ..." */
static void expect(const struct watch *w, bool whole, const char *expected)
{
	struct pauses p = { 0 };
	struct buf out = { 0 };
	bool all = !whole;

	fake_put(&fake, "instances/w/tracing_on", "1");
	assert_int_equal(watch_read(w, undo, &p, &all), 0);
	assert_string_equal(fake_get(&fake, "instances/w/tracing_on"), "0\n");
	assert_int_equal(all, whole);
	buf_addstr(&out, "");
	for (size_t i = 0; i < p.n; i++)
		buf_printf(&out, "%s%llu-%llu", i ? " " : "", (unsigned long long)p.v[i].from,
			   (unsigned long long)p.v[i].to);
	assert_string_equal(out.len ? buf_str(&out) : "", expected);
	buf_release(&out);
	pauses_release(&p);
}

#define PUT(cpu, ...)                                                                                        \
	do {                                                                                                 \
		const struct moment v[] = { __VA_ARGS__ };                                                   \
		put_cpu(cpu, v, ARRAY_SIZE(v));                                                              \
	} while (0)

/* The CPUs' events in one order; what changes nothing, and others' events, do nothing. */
static void test_moments(void **state)
{
	PUT(0, { 100, START }, { 150, OTHER }, { 300, START }, { 800, STOP });
	PUT(1, { 50, STOP }, { 200, STOP }, { 400, START }, { 900, START }, { 950, STOP });
	expect(&watch, true, "200-300 800-900");
}

/* Before the first region nothing was recorded that a pause could be measured across. */
static void test_one_region(void **state)
{
	PUT(0, { 100, START }, { 800, STOP });
	put_cpu(1, NULL, 0);
	expect(&watch, true, "");
}

/* What was lost may have been anything, on all CPUs. */
static void test_lost(void **state)
{
	PUT(0, { 100, START }, { 150, STOP }, { 5, 0 }, { 500, STOP }, { 600, START });
	PUT(1, { 200, START }, { 700, STOP }, { 900, START });
	expect(&watch, false, "0-600 700-900");
	PUT(0, { 5, 0 }, { 500, STOP });
	PUT(1, { 100, START });
	expect(&watch, false, "0-500");
}

/* A line in trace_marker that ends a region is in no other instance. */
static void test_unseen_stop(void **state)
{
	const struct watch start_only = { "instances/w", START, 0 };

	PUT(0, { 100, START }, { 5000000, START });
	PUT(1, { 5000100, START }, { 9000000, START });
	expect(&start_only, true, "4000000-5000000 5000000-5000100 8000000-9000000");
}

static void test_text(void **state)
{
	char *text = watch_text(&watch);
	struct watch w;

	assert_string_equal(text, "62 61 instances/w");
	assert_int_equal(watch_parse(&w, text), 0);
	assert_memory_equal(&w, &watch, sizeof(w));
	assert_int_equal(watch_parse(&w, "62 61 ../../etc"), -EINVAL);
	assert_string_equal(w.path, "");
	assert_int_equal(watch_parse(&w, "x"), -EINVAL);
	free(text);
}

/* What cannot be read may have been off all the time. */
static void test_unknown(void **state)
{
	const struct watch none = { 0 }, gone = { "instances/gone", START, STOP };
	const struct watch *const bad[] = { &none, &gone };

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct pauses p = { 0 };
		bool whole = true;

		assert_true(watch_read(bad[i], undo, &p, &whole) < 0);
		assert_false(whole);
		assert_int_equal(p.n, 1);
		assert_true(!p.v[0].from && p.v[0].to == UINT64_MAX);
		pauses_release(&p);
	}
}

static int group_setup(void **state)
{
	struct buf header = { 0 };

	fake_open(&fake);
	assert_int_equal(read_file("tests/data/formats/header_page", 1 << 16, &header), 0);
	fake_put(&fake, "events/header_page", buf_str(&header));
	buf_release(&header);
	for (unsigned int cpu = 0; cpu < 2; cpu++) {
		snprintf(raw[cpu], sizeof(raw[cpu]), "instances/w/per_cpu/cpu%u/trace_pipe_raw", cpu);
		fake_put(&fake, raw[cpu], "");
	}
	assert_int_equal(undo_open(&undo, fake.dir, AT_FDCWD, NULL, &fake.to), 0);
	return 0;
}

static int group_teardown(void **state)
{
	undo_free(undo);
	fake_close(&fake);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_moments), cmocka_unit_test(test_one_region),
		cmocka_unit_test(test_lost),	cmocka_unit_test(test_unseen_stop),
		cmocka_unit_test(test_text),	cmocka_unit_test(test_unknown),
	};

	return cmocka_run_group_tests_name("watch", tests, group_setup, group_teardown);
}
