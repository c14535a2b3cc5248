// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Anchors against a made-up truth, as in sync.c: they narrow, never widen, and
 * wrong ones do no harm.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "sync-gen.h"

#define SEEDS 30

static void without(struct sync_input *in)
{
	in->n_idles = in->n_sleeps = in->n_ticks = in->n_raises = 0;
}

/* Windows wider than what anchors tell: events come late behind entries, and end early. */
static void make(struct gen *g, uint64_t seed)
{
	gen_usual(g, seed, true);
	gen_clocks(g, 200, 0, 0);
	g->anchors = true;
	g->first = g->last = 15e3;
}

struct both {
	struct sync_result with, without;
	double worst;
	bool right;
};

static void solve_both(struct gen *g, struct both *b)
{
	struct sync_input in = g->in;

	assert_int_equal(sync_solve(&in, &b->with, NULL), 0);
	b->right = gen_right(g, &b->with, &b->worst);
	without(&in);
	assert_int_equal(sync_solve(&in, &b->without, NULL), 0);
	assert_int_equal(b->without.anchors, 0);
	assert_int_equal(b->with.class, b->without.class);
	/* never wider */
	if (b->with.n_knots)
		assert_true(sync_median_bound(&b->with) <= sync_median_bound(&b->without) + 1);
}

static void release_both(struct gen *g, struct both *b)
{
	sync_result_release(&b->with);
	sync_result_release(&b->without);
	gen_release(g);
}

static void test_windows(void **state)
{
	double with = 0, less = 0;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct gen g;
		struct both b;

		make(&g, seed);
		gen_make(&g);
		solve_both(&g, &b);
		assert_true(b.right);
		assert_int_equal(b.with.anchors_dropped, 0);
		if (b.with.n_knots) {
			with += (double)sync_median_bound(&b.with);
			less += (double)sync_median_bound(&b.without);
		}
		release_both(&g, &b);
	}
	fprintf(stderr, "# mean of the median bounds: %.1f us, without anchors %.1f us\n",
		with / SEEDS / 1e3, less / SEEDS / 1e3);
	assert_true(with < less * 0.8);
}

/* Entries were not recorded: anchors narrow what a ping told. */
static void test_exits(void **state)
{
	double with = 0, less = 0;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct gen g;
		struct both b;

		make(&g, seed);
		g.no_entries = true;
		gen_make(&g);
		g.in.prior = (struct sync_prior){ true, g.guest0,
						  g.offset0 + (int64_t)(gen_u64(&g) % 300000) -
							  150000,
						  151000 };
		g.in.max_rate = 3e-4;
		solve_both(&g, &b);
		assert_int_equal(b.with.class, SYNC_PING);
		assert_string_equal(b.with.method, "ping");
		if (!b.right)
			fprintf(stderr, "# seed %u off by %.0f ns more\n", (unsigned int)seed,
				b.worst);
		assert_true(b.right);
		with += (double)sync_median_bound(&b.with);
		less += (double)sync_median_bound(&b.without);
		release_both(&g, &b);
	}
	fprintf(stderr, "# after pings: %.1f us, without anchors %.1f us\n", with / SEEDS / 1e3,
		less / SEEDS / 1e3);
	assert_true(with < less / 5);
}

/* Anchors that are not what they are taken for. */
static void wrong(double part, bool lost, unsigned int *bad, double *bound)
{
	*bad = 0;
	*bound = 0;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct gen g;
		struct both b;

		make(&g, seed);
		g.displaced_anchors = part;
		g.lost_windows = lost ? 0.1 : 0;
		gen_make(&g);
		solve_both(&g, &b);
		*bad += !b.right;
		*bound += b.with.n_knots ? (double)sync_median_bound(&b.with) / SEEDS : 0;
		release_both(&g, &b);
	}
	fprintf(stderr, "# %.0f %% of the anchors displaced%s: %u of %u wrong, %.1f us\n",
		part * 100, lost ? ", 10 % of the windows lost" : "", *bad, SEEDS, *bound / 1e3);
}

static void test_displaced(void **state)
{
	unsigned int bad;
	double bound;

	wrong(0.01, false, &bad, &bound);
	assert_int_equal(bad, 0);
	wrong(0.01, true, &bad, &bound);
	assert_int_equal(bad, 0);
	wrong(1, false, &bad, &bound);
	assert_int_equal(bad, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_windows),
		cmocka_unit_test(test_exits),
		cmocka_unit_test(test_displaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
