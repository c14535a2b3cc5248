// SPDX-License-Identifier: LGPL-2.1-or-later
/* Tests file/dat/options.h: made-up clocks with known errors, whose bounds contain the truth; damaged samples.
 */
#include "base/array.h"
#include "file/dat/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <cmocka.h>

#define SECOND 1000000000

static int64_t between(int64_t from, int64_t to)
{
	return from +
	       (int64_t)(((uint64_t)lrand48() << 31 | (uint64_t)lrand48()) % (uint64_t)(to - from + 1));
}

/* The system's clock when the trace clock shows t: wrong by `error` at 0, by `drift` ppm more, set at `at`.
 */
struct made_clock {
	int64_t utc, rate, error, drift, step, at; /* rate: ppm of UTC against the trace clock */
};

static int64_t truth_at(const struct made_clock *c, int64_t t)
{
	return c->utc + t + t / 1000 * c->rate / 1000;
}

static int64_t shown_at(const struct made_clock *c, int64_t t)
{
	return truth_at(c, t) + c->error + t / 1000 * c->drift / 1000 + (t >= c->at ? c->step : 0);
}

static void test_truth(void **state)
{
	uint64_t inside = 0, all = 0;

	srand48(29);
	for (int i = 0; i < 2000; i++) {
		int64_t length = between(SECOND, 3600ll * SECOND), begin = between(0, 1000ll * SECOND);
		struct made_clock c = { .utc = between(17, 19) * 100000000 * SECOND,
					.rate = between(-300, 300),
					.error = between(-5000000, 5000000),
					.drift = between(-499, 499),
					.at = begin + between(1, length - 1) };
		struct wall w = { .n = 2 };

		if (i %
		    2) { /* the clocks boot, mono and tai go as the system's clock does, unless it is set */
			c.rate = -c.drift;
			c.step = i % 3 ? 0 : between(-SECOND, SECOND);
		}
		for (size_t k = 0; k < 2; k++) {
			int64_t t = begin + (k ? length : 0), slack = between(0, 500);
			int64_t error = shown_at(&c, t) - truth_at(&c, t);

			w.v[k] = (struct wall_sample){ .trace = (uint64_t)t,
						       .utc = (uint64_t)shown_at(&c,
										 t + between(-slack, slack)),
						       .slack = (uint64_t)slack,
						       .max_error = (uint64_t)(error < 0 ? -error : error) };
		}
		if (i % 5 == 1) /* one of the samples has no statement of the kernel's */
			w.v[i % 2].max_error = WALL_NO_ERROR;
		for (int k = 0; k <= 50; k++) {
			int64_t t = k < 2 ? begin + k * length : begin + between(0, length), off;
			uint64_t bound;

			off = (int64_t)wall_at(&w, (uint64_t)t, &bound) - truth_at(&c, t);
			assert_true(bound < 8ull * SECOND);
			/* the truth above is rounded to us */
			assert_true((off < 0 ? -off : off) <= (int64_t)bound + 3000);
			inside += (off < 0 ? -off : off) * 100 < (int64_t)bound;
			all++;
		}
	}
	assert_true(inside < all / 2); /* bounds are no excuses */
}

static void test_unknown(void **state)
{
	struct wall w = { .v = { { 1000, 5000, 1, 7, 3, 37 }, { 2001000, 2005400, 2, 9, 3, 37 } }, .n = 2 };
	uint64_t bound;

	assert_int_equal(wall_at(&w, 1000, &bound), 5000);
	assert_int_equal(bound, 2 + 400 + 7);
	assert_int_equal(wall_at(&w, 1001000, &bound), 1005200);
	assert_int_equal(bound, 2 + 400 + 7 + 500);
	assert_int_equal(wall_at(&w, 2001000, &bound), 2005400);
	assert_int_equal(bound, 2 + 400 + 9);
	/* before and after the samples the clock may have been set */
	assert_int_equal(wall_at(&w, 999, &bound), 4999);
	assert_true(bound == UINT64_MAX);
	assert_int_equal(wall_at(&w, 2001001, &bound), 2005401);
	assert_true(bound == UINT64_MAX);
	w.v[0].max_error = w.v[1].max_error = WALL_NO_ERROR;
	assert_int_equal(wall_at(&w, 1001000, &bound), 1005200);
	assert_true(bound == UINT64_MAX);
	w.n = 1; /* of a recorder that was killed */
	assert_int_equal(wall_at(&w, 1000, &bound), 5000);
	assert_true(bound == UINT64_MAX);
}

static void test_damaged(void **state)
{
	struct wall_sample v[3] = { { 5, 6, 0, 0, 0, 0 }, { 7, 8, 0, 0, 0, 0 } };
	struct wall w;

	assert_int_equal(wall_decode(v, sizeof(*v), &w), 0);
	assert_int_equal(wall_decode(v, 2 * sizeof(*v), &w), 0);
	assert_int_equal(w.n, 2);
	assert_int_equal(wall_decode(v, 0, &w), -EBADMSG);
	assert_int_equal(wall_decode(v, sizeof(*v) + 8, &w), -EBADMSG);
	assert_int_equal(wall_decode(v, sizeof(v), &w), -EBADMSG);
	assert_int_equal(w.n, 0);
	v[1].trace = 4;
	assert_int_equal(wall_decode(v, 2 * sizeof(*v), &w), -EBADMSG);
	v[1] = (struct wall_sample){ .trace = 9, .utc = 1ull << 62 };
	assert_int_equal(wall_decode(v, 2 * sizeof(*v), &w), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_truth),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
