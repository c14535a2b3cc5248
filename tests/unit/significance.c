// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Beyond the noise or not: recordings of made-up processes whose truth is known. A sample of seeds;
 * HYPTRACE_DIFF_SEEDS=N takes N of each and prints the table of hyptrace-diff(1) (`make diff-nulls`).
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ask/states/series.h"

#define SLICES 64
#ifdef __SANITIZE_ADDRESS__ /* the plain program has them all */
#define SAMPLE 12
#else
#define SAMPLE 40
#endif

/* ---- processes ------------------------------------------------------------------------- */

static uint64_t seed;

/* From 0 to below 1: splitmix64. */
static double any(void)
{
	uint64_t z = seed += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return (double)((z ^ z >> 31) >> 11) * 0x1p-53;
}

static double wait(double mean)
{
	return -mean * log(1 - any());
}

static double normal(void)
{
	return sqrt(wait(2)) * cos(2 * M_PI * any());
}

static void put(double *v, double length, double at, double what)
{
	double slice = floor(at / length * SLICES);

	if (slice >= 0 && slice < SLICES)
		v[(size_t)slice] += what;
}

/* Events at that rate, from and to within the recording. */
static void events(double *v, double length, double from, double to, double rate)
{
	for (double at = from + wait(1 / rate); at < to; at += wait(1 / rate))
		put(v, length, at, 1);
}

static void steady(double *v, double length, double factor)
{
	events(v, length, 0, length, 1000 * factor);
}

static void rare(double *v, double length, double factor)
{
	events(v, length, 0, length, 2 * factor);
}

/* Bursts of on seconds, in all or in the mean, with pauses of off seconds in the mean. */
static void bursts(double *v, double length, double factor, double on, double off, bool equal)
{
	double at = -10 * any() * (on + off);

	while (at < length) {
		double end = at + (equal ? on : wait(on));

		if (end > 0)
			events(v, length, at < 0 ? 0 : at, end < length ? end : length, 2000 * factor);
		at = end + wait(off);
	}
}

static void bursts_150(double *v, double length, double factor)
{
	bursts(v, length, factor, 0.15, 0.25, false);
}

static void bursts_250(double *v, double length, double factor)
{
	bursts(v, length, factor, 0.25, 0.25, true);
}

static void bursts_few(double *v, double length, double factor)
{
	bursts(v, length, factor, 0.25, 2.5, true);
}

/* A rate of 500 that wanders by 30 %; memory in seconds (Ornstein and Uhlenbeck's process). */
static void drift(double *v, double length, double factor, double memory)
{
	const size_t n = 2048;
	double step = length / (double)n, keep = exp(-step / memory), x = normal();

	for (size_t i = 0; i < n; i++) {
		double mean = 500 * factor * exp(0.3 * x) * step;

		put(v, length, ((double)i + 0.5) * step, mean + sqrt(mean) * normal());
		x = keep * x + sqrt(1 - keep * keep) * normal();
	}
}

static void drift_1(double *v, double length, double factor)
{
	drift(v, length, factor, 1);
}

static void drift_5(double *v, double length, double factor)
{
	drift(v, length, factor, 5);
}

/* A rate that goes up and down by 30 % in 10 s, from any point on. */
static void wave(double *v, double length, double factor)
{
	const size_t n = 2048;
	double step = length / (double)n, phase = any();

	for (size_t i = 0; i < n; i++) {
		double at = ((double)i + 0.5) * step;
		double mean = 500 * factor * (1 + 0.3 * sin(2 * M_PI * (at / 10 + phase))) * step;

		put(v, length, at, mean + sqrt(mean) * normal());
	}
}

/* The time of 300 things a second, each 100 us or more: Pareto's distribution, without a variance. */
static void heavy(double *v, double length, double factor)
{
	double slice = length / SLICES;

	for (double at = wait(1.0 / 300); at < length; at += wait(1.0 / 300)) {
		double left = 1e-4 * factor * pow(1 - any(), -1 / 1.5);

		for (size_t i = (size_t)(at / slice); i < SLICES && left > 0; i++) {
			double from = at > (double)i * slice ? at : (double)i * slice;
			double ns = fmin(left, (double)(i + 1) * slice - from);

			v[i] += ns;
			left -= ns;
		}
	}
}

/* A timer, from any point on. */
static void ticks(double *v, double length, double factor)
{
	double period = 0.004 / factor;

	for (double at = any() * period; at < length; at += period)
		put(v, length, at, 1);
}

/*
 * memory: seconds after which the process has forgotten itself. From 4 of them on no more than 2 of a hundred
 * equal figures may be called different, from 200 on none undecided.
 */
static const struct process {
	const char *name;
	void (*make)(double *v, double length, double factor);
	double memory;
} processes[] = {
	{ "steady", steady, 0.001 },
	{ "ticks", ticks, 0.004 },
	{ "rare", rare, 0.5 },
	{ "bursts of 150 ms", bursts_150, 0.1 },
	{ "bursts of 250 ms", bursts_250, 0.13 },
	{ "few bursts", bursts_few, 0.25 },
	{ "drift over 1 s", drift_1, 1 },
	{ "drift over 5 s", drift_5, 5 },
	{ "waves of 10 s", wave, 2.5 },
	{ "heavy tail", heavy, 0.003 },
};

static const double lengths[][2] = { { 1, 1 }, { 3, 3 }, { 10, 10 }, { 30, 30 }, { 60, 60 }, { 3, 30 } };

/* ---- verdicts --------------------------------------------------------------------------- */

/* A's and B's length; B has factor times as much. */
static enum verdict judge(const struct process *p, const double length[2], double factor)
{
	double v[2][SLICES] = { { 0 } };
	struct slice_series s[2];

	for (size_t i = 0; i < 2; i++) {
		p->make(v[i], length[i], i ? factor : 1);
		for (size_t k = 0; k < SLICES; k++)
			v[i][k] *= SLICES / length[i];
		s[i] = (struct slice_series){ v[i], SLICES, length[i], NULL };
	}
	return significance_of(&s[0], &s[1]).verdict;
}

struct count {
	size_t n, v[VERDICT_MORE + 1];
};

static struct count judge_all(const struct process *p, const double length[2], double factor, size_t n)
{
	struct count c = { n, { 0 } };

	for (seed = 1000; seed < 1000 + n; seed++) {
		uint64_t this = seed;

		seed *= 0x2545f4914f6cdd1d;
		c.v[judge(p, length, factor)]++;
		seed = this;
	}
	return c;
}

static double percent(const struct count *c, size_t n)
{
	return 100.0 * (double)n / (double)c->n;
}

static size_t wanted_seeds(size_t sample)
{
	const char *env = getenv("HYPTRACE_DIFF_SEEDS");

	return env ? strtoul(env, NULL, 10) : sample;
}

/* No more than 2 % of n, and three times as much as chance adds to it. */
static double allowed(size_t n)
{
	return 2 + 300 * sqrt(0.02 * 0.98 / (double)n);
}

static void test_nulls(void **state)
{
	size_t n = wanted_seeds(SAMPLE), bad = 0;
	bool print = n > SAMPLE;

	if (print)
		printf("%-18s %7s %10s %10s %6s %6s %6s\n", "process", "seconds", "different", "too short",
		       "+5 %", "+10 %", "+30 %");
	for (size_t i = 0; i < sizeof(processes) / sizeof(*processes); i++) {
		const struct process *p = &processes[i];

		for (size_t k = 0; k < sizeof(lengths) / sizeof(*lengths); k++) {
			const double *l = lengths[k];
			struct count c = judge_all(p, l, 1, n);
			double different = percent(&c, c.v[VERDICT_LESS] + c.v[VERDICT_MORE]),
			       undecided = percent(&c, c.v[VERDICT_UNKNOWN]);
			bool long_enough = l[0] >= 4 * p->memory, long_run = l[0] >= 200 * p->memory,
			     wrong = (long_enough && different > allowed(n)) ||
				     (long_run && undecided > allowed(n));

			bad += wrong;
			if (!print && wrong)
				print_message("%s, %g and %g s: %g %% different, %g %% too short\n", p->name,
					      l[0], l[1], different, undecided);
			if (!print)
				continue;
			printf("%-18s %3g/%-3g %8.1f %% %8.1f %%", p->name, l[0], l[1], different, undecided);
			for (size_t m = 0; m < 3; m++) {
				c = judge_all(p, l, (const double[]){ 1.05, 1.1, 1.3 }[m], n);
				printf(" %4.0f %%", percent(&c, c.v[VERDICT_MORE]));
			}
			printf("%s\n", wrong	     ? " wrong"
				       : long_enough ? ""
						     : " shorter than the process remembers");
			fflush(stdout);
		}
	}
	assert_int_equal(bad, 0);
}

/* The time that so many events take: each 2 with a deviation of 1, or 1 and more by Pareto's distribution. */
static double cost(double events, bool tail)
{
	double sum = 0;

	if (!tail)
		return 2 * events + sqrt(events) * normal();
	for (double i = 0; i < events; i++)
		sum += pow(1 - any(), -1 / 1.5);
	return sum;
}

/* Events cost alike in A and B: their rate, half as much again in B, makes no difference. */
static void test_nulls_per_event(void **state)
{
	size_t n = wanted_seeds(SAMPLE), bad = 0;

	for (size_t i = 0; i < 4 * sizeof(processes) / sizeof(*processes); i++) {
		const struct process *p = &processes[i / 4];
		const double *l = lengths[i % 2 ? 2 : 0];
		struct count c = { n, { 0 } };

		for (size_t k = 0; k < n && p->make != heavy; k++) {
			double per[2][SLICES] = { { 0 } }, v[2][SLICES], all[2] = { 0 };
			struct slice_series s[2];

			seed = (1000 + k) * 0x2545f4914f6cdd1d;
			for (size_t at = 0; at < 2; at++) {
				p->make(per[at], l[at], at ? 1.5 : 1);
				for (size_t j = 0; j < SLICES; j++) {
					per[at][j] = fmax(0, floor(per[at][j] + 0.5));
					v[at][j] = cost(per[at][j], i % 4 / 2);
					all[at] += per[at][j];
				}
				s[at] = (struct slice_series){ v[at], SLICES, all[at], per[at] };
			}
			c.v[all[0] > 0 && all[1] > 0 ? significance_of(&s[0], &s[1]).verdict
						     : VERDICT_SAME]++;
		}
		if (percent(&c, c.v[VERDICT_LESS] + c.v[VERDICT_MORE]) > allowed(n)) {
			bad++;
			print_message("%s, %g s, costs %zu: %zu more, %zu less\n", p->name, l[0], i % 4 / 2,
				      c.v[VERDICT_MORE], c.v[VERDICT_LESS]);
		}
	}
	assert_int_equal(bad, 0);
}

/* Changes that are found, and how often: figures of hyptrace-diff(1), less what chance takes. */
static void test_power(void **state)
{
	static const struct {
		const char *name;
		double seconds, factor, percent;
	} rows[] = {
		{ "steady", 60, 1.05, 90 },    { "steady", 10, 1.1, 90 }, { "steady", 3, 1.3, 85 },
		{ "steady", 3, 0.7, 85 },      { "ticks", 3, 1.05, 99 },  { "bursts of 250 ms", 60, 1.3, 55 },
		{ "heavy tail", 60, 1.3, 60 },
	};
	size_t n = wanted_seeds(2 * SAMPLE);

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++)
		for (size_t k = 0; k < sizeof(processes) / sizeof(*processes); k++) {
			struct count c;
			size_t found;

			if (strcmp(processes[k].name, rows[i].name) != 0)
				continue;
			c = judge_all(&processes[k], (const double[]){ rows[i].seconds, rows[i].seconds },
				      rows[i].factor, n);
			found = c.v[rows[i].factor > 1 ? VERDICT_MORE : VERDICT_LESS];
			if (percent(&c, found) < rows[i].percent)
				fail_msg("%s x %g in %g s: %zu of %zu found", rows[i].name, rows[i].factor,
					 rows[i].seconds, found, c.n);
		}
}

/* Figures that can be computed by hand. */
static void test_plain(void **state)
{
	double v5[SLICES], v6[SLICES], v1[SLICES] = { [7] = 1 }, v0[SLICES] = { 0 }, rise[SLICES],
				       more[SLICES];
	const struct slice_series five = { v5, SLICES, 3, NULL }, six = { v6, SLICES, 30, NULL },
				  once = { v1, SLICES, 3, NULL }, never = { v0, SLICES, 3, NULL },
				  few = { v6, SIGNIFICANCE_SLICES_MIN - 1, 3, NULL },
				  rising = { rise, SLICES, 3, NULL }, higher = { more, SLICES, 3, NULL };
	struct significance n;

	for (size_t i = 0; i < SLICES; i++) {
		v5[i] = 5;
		v6[i] = 6;
		rise[i] = 100 + (double)i;
		more[i] = 120 + (double)i;
	}
	n = significance_of(&five, &six);
	assert_true(n.a == 5 && n.b == 6 && fabs(n.low - 1) < 0.001 && fabs(n.high - 1) < 0.001);
	assert_int_equal(n.verdict, VERDICT_MORE);
	assert_int_equal(significance_of(&six, &five).verdict, VERDICT_LESS);
	assert_int_equal(significance_of(&five, &five).verdict, VERDICT_SAME);
	for (size_t i = 0; i < SLICES; i++)
		v6[i] = 5 + 1e-6; /* clocks differ by more */
	assert_int_equal(significance_of(&five, &six).verdict, VERDICT_SAME);
	/* that it came once says nothing */
	assert_int_equal(significance_of(&once, &never).verdict, VERDICT_SAME);
	assert_int_equal(significance_of(&five, &few).verdict, VERDICT_UNKNOWN);
	/* 20 more of what rose by 64 within each recording, and 2,000 more */
	n = significance_of(&rising, &higher);
	assert_int_equal(n.verdict, VERDICT_UNKNOWN);
	assert_true(n.low < 0 && n.high > 20);
	for (size_t i = 0; i < SLICES; i++)
		more[i] += 1980;
	assert_int_equal(significance_of(&rising, &higher).verdict, VERDICT_MORE);
}

/* Of each event the figure is steady, whatever the events' own rate does: 2, and a tenth more. */
static void test_per_event(void **state)
{
	double rate[SLICES], slow[SLICES], two[SLICES], some_more[SLICES];
	struct slice_series a = { two, SLICES, 3, NULL }, b = { some_more, SLICES, 3, NULL };
	struct significance n;

	for (size_t i = 0; i < SLICES; i++) {
		rate[i] = 100 + (double)i;
		slow[i] = 80 + (double)i * (double)i / 100;
		two[i] = 2 * rate[i] + (i % 2 ? 1 : -1);
		some_more[i] = 2.2 * slow[i] + (i % 2 ? 1 : -1);
	}
	assert_int_equal(significance_of(&a, &b).verdict, VERDICT_UNKNOWN);
	a.per = rate;
	b.per = slow;
	n = significance_of(&a, &b);
	assert_true(fabs(n.a - 2) < 1e-9 && fabs(n.b - 2.2) < 1e-9);
	assert_true(n.low > 0.15 && n.high < 0.25);
	assert_int_equal(n.verdict, VERDICT_MORE);
	assert_int_equal(significance_of(&b, &a).verdict, VERDICT_LESS);
	assert_int_equal(significance_of(&a, &a).verdict, VERDICT_SAME);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nulls),		cmocka_unit_test(test_power),
		cmocka_unit_test(test_plain),		cmocka_unit_test(test_per_event),
		cmocka_unit_test(test_nulls_per_event),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
