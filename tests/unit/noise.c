// SPDX-License-Identifier: LGPL-2.1-or-later
/* What is beyond the noise: made-up recordings that are alike, and such that are not. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "analysis/noise.h"

#define SLICES 64
#define SEEDS  1000

/* About a normal distribution: a sum of 12. */
static double some_value(double mean, double scatter)
{
	double sum = -6;

	for (size_t i = 0; i < 12; i++)
		sum += (double)rand() / RAND_MAX;
	return mean + scatter * sum;
}

static enum noise_verdict compare(double mean_a, double mean_b, double scatter)
{
	double a[SLICES], b[SLICES];

	for (size_t i = 0; i < SLICES; i++) {
		a[i] = some_value(mean_a, scatter);
		b[i] = some_value(mean_b, scatter);
	}
	return noise_compare(a, SLICES, b, SLICES).verdict;
}

/* Of recordings that are alike, about 1 in 100 is said to differ; of those that differ by eight times what
 * the means scatter, none is missed. */
static void test_verdicts(void **state)
{
	size_t wrong = 0;

	srand(1);
	for (size_t i = 0; i < SEEDS; i++)
		wrong += compare(100, 100, 20) != NOISE_SAME;
	assert_true(wrong <= 25);
	for (size_t i = 0; i < SEEDS; i++) {
		double by = 8 * 20 * sqrt(2.0 / SLICES) * (i % 2 ? 1 : -1);

		assert_int_equal(compare(100, 100 + by, 20), by > 0 ? NOISE_MORE : NOISE_LESS);
	}
}

static void test_plain(void **state)
{
	double five[SLICES], six[SLICES], once[SLICES] = { [7] = 1 }, never[SLICES] = { 0 };
	struct noise_answer n;

	for (size_t i = 0; i < SLICES; i++) {
		five[i] = 5;
		six[i] = 6;
	}
	n = noise_compare(five, SLICES, six, SLICES);
	assert_true(n.a == 5 && n.b == 6 && n.low == 1 && n.high == 1);
	assert_int_equal(n.verdict, NOISE_MORE);
	assert_int_equal(noise_compare(six, SLICES, five, SLICES).verdict, NOISE_LESS);
	assert_int_equal(noise_compare(five, SLICES, five, SLICES).verdict, NOISE_SAME);
	/* that it came once says nothing */
	assert_int_equal(noise_compare(once, SLICES, never, SLICES).verdict, NOISE_SAME);
	assert_int_equal(noise_compare(five, SLICES, six, NOISE_SLICES_MIN - 1).verdict, NOISE_UNKNOWN);
	assert_true(noise_compare(five, SLICES, six, 0).b == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_verdicts),
		cmocka_unit_test(test_plain),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
