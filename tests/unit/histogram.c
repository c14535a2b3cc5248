// SPDX-License-Identifier: LGPL-2.1-or-later
/* Histograms against the sorted values themselves. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "ask/states/histogram.h"
#include "base/array.h"

#define N 5000

/* Of all sizes: from a few bits to all. */
static uint64_t some_value(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005 + 1442695040888963407;
	return (*seed ^ *seed >> 29) >> (*seed >> 33) % 64;
}

static void fill(struct histogram *h, uint64_t *v, size_t n, uint64_t seed)
{
	for (size_t i = 0; i < n; i++) {
		v[i] = some_value(&seed);
		assert_int_equal(histogram_add(h, v[i]), 0);
	}
}

static void check_shares(const struct histogram *h, const uint64_t *sorted, size_t n)
{
	static const double shares[] = { 0, 0.01, 0.5, 0.9, 0.99, 0.999, 1 };

	for (size_t i = 0; i < ARRAY_SIZE(shares); i++) {
		double rank = ceil(shares[i] * (double)n);
		double true_value = (double)sorted[rank < 1 ? 0 : (size_t)rank - 1];
		double error = fabs((double)histogram_at(h, shares[i]) - true_value);

		assert_true(error <= true_value * HISTOGRAM_ERROR + 0.5);
	}
}

static void test_shares(void **state)
{
	static uint64_t v[N];

	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct histogram h = { 0 };

		fill(&h, v, N, seed);
		qsort(v, N, sizeof(*v), compare_u64);
		assert_int_equal(h.n, N);
		assert_int_equal(h.min, v[0]);
		assert_int_equal(h.max, v[N - 1]);
		check_shares(&h, v, N);
		histogram_release(&h);
	}
}

static void test_join(void **state)
{
	static uint64_t v[2 * N];
	struct histogram a = { 0 }, b = { 0 }, both = { 0 };

	fill(&a, v, N, 1);
	fill(&b, v + N, N, 2);
	for (size_t i = 0; i < 2 * (size_t)N; i++)
		assert_int_equal(histogram_add(&both, v[i]), 0);
	assert_int_equal(histogram_join(&a, &b), 0);
	assert_int_equal(a.n, both.n);
	assert_int_equal(a.sum, both.sum);
	assert_int_equal(a.min, both.min);
	assert_int_equal(a.max, both.max);
	for (double share = 0; share <= 1; share += 0.001)
		assert_int_equal(histogram_at(&a, share), histogram_at(&both, share));
	histogram_release(&a);
	histogram_release(&b);
	histogram_release(&both);
}

/* Buckets lie side by side, and hold what belongs there. */
static void test_buckets(void **state)
{
	struct histogram h = { 0 };
	uint64_t from, to, n, last = 0, sum = 0;
	size_t at = 0;

	for (unsigned int bit = 0; bit < 64; bit++)
		for (uint64_t i = 0; i < 3; i++)
			assert_int_equal(histogram_add(&h, (1ull << bit) + i - 1), 0);
	while (histogram_next(&h, &at, &from, &to, &n)) {
		assert_true(from <= to && (!sum || from > last));
		last = to;
		sum += n;
	}
	assert_int_equal(sum, h.n);
	assert_int_equal(h.n, 3 * 64);
	histogram_release(&h);
}

static void test_few(void **state)
{
	struct histogram h = { 0 };
	size_t at = 0;
	uint64_t v;

	assert_int_equal(histogram_at(&h, 0.5), 0);
	assert_true(histogram_mean(&h) == 0);
	assert_false(histogram_next(&h, &at, &v, &v, &v));
	assert_int_equal(histogram_add(&h, UINT64_MAX), 0);
	assert_int_equal(histogram_at(&h, 0.5), UINT64_MAX);
	assert_int_equal(histogram_add(&h, UINT64_MAX), 0);
	assert_int_equal(h.sum, UINT64_MAX);
	histogram_release(&h);
	for (uint64_t i = 0; i < 4; i++) /* 2, 4, 4, 6 */
		assert_int_equal(histogram_add(&h, (uint64_t[]){ 2, 4, 4, 6 }[i]), 0);
	assert_true(fabs(histogram_mean(&h) - 4) < 1e-9);
	histogram_release(&h);
}

/* Keys that programs read, in every command. */
static void test_columns(void **state)
{
	static const struct {
		const char *key;
		uint64_t value;
	} rows[DURATIONS] = { { "count", 4 },  { "total_ns", 15 }, { "min_ns", 2 },   { "avg_ns", 4 },
			      { "p50_ns", 3 }, { "p99_ns", 6 },	   { "p99_9_ns", 6 }, { "max_ns", 6 } };
	struct histogram h = { 0 };

	for (size_t i = 0; i < DURATIONS; i++)
		assert_int_equal(duration_value(&h, i), 0);
	for (uint64_t i = 0; i < 4; i++)
		assert_int_equal(histogram_add(&h, (uint64_t[]){ 2, 3, 4, 6 }[i]), 0);
	for (size_t i = 0; i < DURATIONS; i++) {
		assert_string_equal(duration_columns[i].key, rows[i].key);
		assert_int_equal(duration_value(&h, i), rows[i].value);
	}
	histogram_release(&h);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shares), cmocka_unit_test(test_join),    cmocka_unit_test(test_buckets),
		cmocka_unit_test(test_few),    cmocka_unit_test(test_columns),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
