// SPDX-License-Identifier: LGPL-2.1-or-later
/* The longest of many stretches, their sums by slices, and what perf's +- is made of. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#include "ask/states/tally.h"
#include "base/array.h"

static struct span stretch(uint64_t from, uint64_t ns, uint64_t kind)
{
	return (struct span){ .from = from, .to = from + ns, .why = kind, .kind = SPAN_VISIT };
}

static int longer_first(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x > *y ? -1 : *x < *y;
}

/* Of any order the longest are kept, the longest first. */
static void test_longest(void **state)
{
	uint64_t all[5000];
	struct tally s;

	(void)state;
	for (size_t most = 0; most <= 17; most++) {
		assert_int_equal(tally_open(&s, most, 0), 0);
		srand((unsigned int)most);
		for (size_t i = 0; i < 5000; i++) {
			struct span y = stretch(i, all[i] = (uint64_t)rand() % 1000, 0);

			assert_int_equal(tally_add(&s, &y), 0);
		}
		qsort(all, 5000, sizeof(all[0]), longer_first);
		assert_int_equal(s.n_longest[SPAN_VISIT], most);
		assert_int_equal(s.n_longest[SPAN_EXIT], 0);
		for (size_t i = 0; i < most; i++)
			assert_int_equal(s.longest[SPAN_VISIT][i].to - s.longest[SPAN_VISIT][i].from, all[i]);
		tally_release(&s);
	}
}

/* Of the same length the first. */
static void test_longest_same(void **state)
{
	struct tally s;

	(void)state;
	assert_int_equal(tally_open(&s, 2, 0), 0);
	for (uint64_t i = 10; i-- > 0;) {
		struct span y = stretch(i, 5, 0);

		assert_int_equal(tally_add(&s, &y), 0);
	}
	assert_int_equal(s.longest[SPAN_VISIT][0].from, 0);
	assert_int_equal(s.longest[SPAN_VISIT][1].from, 1);
	tally_release(&s);
}

static void test_slices(void **state)
{
	const struct span v[] = { stretch(1000, 10, 1), stretch(1095, 10, 1), stretch(1095, 250, 2),
				  stretch(1200, 0, 2), stretch(900, 500, 1) };
	struct tally s;

	(void)state;
	assert_int_equal(tally_open(&s, 0, 100), 0);
	tally_begin(&s, 1000);
	tally_begin(&s, 5000);
	for (size_t i = 0; i < ARRAY_SIZE(v); i++)
		assert_int_equal(tally_add(&s, &v[i]), 0);
	assert_int_equal(s.origin, 1000);
	assert_int_equal(s.n_rows, 2);
	assert_int_equal(s.n_slices, 4);
	assert_int_equal(s.rows[0].cells[0].ns, 15);
	assert_int_equal(s.rows[0].cells[0].n, 2);
	assert_int_equal(s.rows[0].cells[1].ns, 5);
	assert_int_equal(s.rows[0].cells[1].n, 0);
	assert_int_equal(s.rows[1].cells[0].ns, 5);
	assert_int_equal(s.rows[1].cells[1].ns, 100);
	assert_int_equal(s.rows[1].cells[2].ns, 100);
	assert_int_equal(s.rows[1].cells[2].n, 1);
	assert_int_equal(s.rows[1].cells[3].ns, 45);
	assert_int_equal(s.beyond, 1); /* it began before there was anything */
	tally_release(&s);
}

/* More slices and kinds than there is room for are counted, not kept. */
static void test_slices_beyond(void **state)
{
	struct tally s;

	(void)state;
	assert_int_equal(tally_open(&s, 0, 1), 0);
	tally_begin(&s, 0);
	for (uint64_t i = 0; i < TALLY_ROWS_MAX + 5; i++) {
		struct span y = stretch(i, 1, i);

		assert_int_equal(tally_add(&s, &y), 0);
	}
	assert_int_equal(s.n_rows, TALLY_ROWS_MAX);
	assert_int_equal(s.beyond, 5);
	for (uint64_t from = TALLY_SLICES_MAX - 2; from < TALLY_SLICES_MAX + 1; from++) {
		struct span y = stretch(from, 1, 0);

		assert_int_equal(tally_add(&s, &y), 0);
	}
	assert_int_equal(s.beyond, 7);
	assert_int_equal(s.n_slices, TALLY_SLICES_MAX);
	tally_release(&s);
}

static void test_sums(void **state)
{
	struct sums a = { 0 }, b = { 0 }, none = { 0 };

	(void)state;
	assert_float_equal(sums_mean(&a), 0, 0);
	assert_float_equal(sums_error(&a), 0, 0);
	sums_add(&a, 10);
	assert_float_equal(sums_error(&a), 0, 0);
	sums_add(&a, 20);
	sums_add(&b, 30);
	sums_add(&b, 5);
	sums_join(&a, &b);
	sums_join(&a, &none);
	assert_int_equal(a.n, 4);
	assert_int_equal(a.sum, 65);
	assert_int_equal(a.min, 5);
	assert_int_equal(a.max, 30);
	/* 10 20 30 5: variance 122.9167, of the mean a quarter of it */
	assert_float_equal(sums_error(&a), 5.54339 / 16.25, 1e-5);
	sums_join(&none, &a);
	assert_int_equal(none.min, 5);
	sums_add(&none, UINT64_MAX);
	assert_int_equal(none.sum, UINT64_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_longest), cmocka_unit_test(test_longest_same),
		cmocka_unit_test(test_slices),	cmocka_unit_test(test_slices_beyond),
		cmocka_unit_test(test_sums),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
