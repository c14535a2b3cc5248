// SPDX-License-Identifier: GPL-2.0-only
/* Limits of watch --dump-when, and the values that are compared with them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

#include "record/watch/watcher.h"

#define MS 1000000ull

static struct watch_vcpu vcpus[] = { { 112, 0, "A" }, { 113, 1, "A" } };
static struct watch_sum sums[] = {
	{ .kind = WATCH_STOLEN, .pid = 112, .last = { .n = 3, .ns = 100 * MS, .buckets[7] = 3 } },
	/* 99 of 100 below 16.8 ms, evenly in the bucket from 4.19 ms on */
	{ .kind = WATCH_WAKEUP, .pid = 112, .last = { .n = 100, .buckets[7] = 99, .buckets[12] = 1 } },
	{ .kind = WATCH_STOLEN, .pid = 113, .last = { .n = 3, .ns = 250 * MS, .buckets[5] = 3 } },
	{ .kind = WATCH_WAKEUP, .pid = 113, .last = { .n = 0 } },
	/* WFx, which does not count, and an abort */
	{ .kind = WATCH_EXIT, .pid = 113, .word = "ec", .code = 1, .last = { .n = 9, .buckets[9] = 9 } },
	{ .kind = WATCH_EXIT, .pid = 113, .word = "ec", .code = 0x24, .last = { .n = 3, .buckets[7] = 3 } },
};

static bool holds(struct breach *b, const char *text, struct watcher *w, char worst[300])
{
	assert_int_equal(breach_parse(b, text), 0);
	return breach_holds(b, w, 1, worst);
}

static void test_values(void **state)
{
	struct watcher w = {
		.vcpus = vcpus, .n_vcpus = 2, .sums = { .v = sums, .n = 6 }, .interval = 1000 * MS
	};
	struct breach b;
	char worst[300];

	assert_true(holds(&b, "stolen > 24.9%", &w, worst));
	assert_string_equal(worst, "A:1 25.0 %");
	assert_false(holds(&b, "stolen > 25%", &w, worst));
	assert_true(holds(&b, " wakeup_p99>16.7ms ", &w, worst));
	assert_string_equal(worst, "A:0 16.777 ms");
	assert_false(holds(&b, "wakeup_p99 > 17ms", &w, worst));
	assert_true(holds(&b, "stolen_p99 > 16ms", &w, worst));
	assert_string_equal(worst, "A:0 16.651 ms");
	assert_false(holds(&b, "stolen_p99 > 17ms", &w, worst));
	assert_true(holds(&b, "exit_p99 > 16ms", &w, worst));
	assert_string_equal(worst, "A:1 16.651 ms");
	assert_false(holds(&b, "exit_p99 > 17ms", &w, worst));
	assert_false(holds(&b, "hyp > 0%", &w, worst));
	w.hyp.n = 2;
	w.hyp.shares[0][1] = 0.02;
	w.hyp.shares[1][1] = 0.01;
	assert_true(holds(&b, "hyp > 2.9%", &w, worst));
	assert_string_equal(worst, "3.0 %");
	w.sums.n = 0;
	assert_false(holds(&b, "stolen > 0%", &w, worst));
}

static void test_time(void **state)
{
	struct watcher w = {
		.vcpus = vcpus, .n_vcpus = 2, .sums = { .v = sums, .n = 6 }, .interval = 1000 * MS
	};
	struct breach b;
	char worst[300];

	assert_int_equal(breach_parse(&b, "stolen>20%for3s"), 0);
	assert_int_equal(b.lasts, 3000 * MS);
	assert_int_equal(breach_parse(&b, "stolen > 20% for 2s"), 0);
	assert_false(breach_holds(&b, &w, 1000 * MS, worst));
	assert_false(breach_holds(&b, &w, 2999 * MS, worst));
	assert_true(breach_holds(&b, &w, 3000 * MS, worst));
	/* a look in which it does not hold begins it anew */
	w.interval *= 2;
	assert_false(breach_holds(&b, &w, 4000 * MS, worst));
	w.interval /= 2;
	assert_false(breach_holds(&b, &w, 5000 * MS, worst));
	assert_true(breach_holds(&b, &w, 7000 * MS, worst));
}

static void test_refused(void **state)
{
	static const char *const wrong[] = { "",	   "stolen",	      "stolen > ",
					     "stolen > 5", "stolen > 5ms",    "stolen < 5%",
					     "exits > 5%", "wakeup_p99 > 5%", "hyp > 5% for",
					     "hyp > 5% f", "hyp > 5% for 2",  "hyp > 5% for 1s x" };
	struct breach b;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		assert_int_equal(breach_parse(&b, wrong[i]), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_values), cmocka_unit_test(test_time),
					    cmocka_unit_test(test_refused) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
