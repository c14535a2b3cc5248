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
#include "sync-opened.h"

#define DATA "tests/data/sync-anchors/" /* its README.md says how it was made */

#define SEEDS	   30
#define SEEDS_EACH 6 /* of each kind of calls and injections */

static void without(struct sync_input *in)
{
	in->n_guest_deeds = in->n_host_deeds = in->n_ticks = in->n_raises = 0;
}

/* Windows wider than what anchors tell: events come late behind entries, and end early. */
static void make(struct gen *g, uint64_t seed)
{
	gen_usual(g, seed, true);
	gen_clocks(g, 200, 0, 0);
	g->anchors = true;
	g->first = g->last = 15e3;
}

static int gen_by_gap(const void *a, const void *b)
{
	const struct sync_gap *x = a, *y = b;

	return x->a < y->a ? -1 : x->a > y->a;
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
	fprintf(stderr, "# mean of the median bounds: %.1f us, without anchors %.1f us\n", with / SEEDS / 1e3,
		less / SEEDS / 1e3);
	assert_true(with < less * 0.8);
}

/* Entries were not recorded: a ping tells what is known. */
static void make_pinged(struct gen *g)
{
	g->no_entries = true;
	gen_make(g);
	g->in.prior = (struct sync_prior){ true, g->guest0,
					   g->offset0 + (int64_t)(gen_u64(g) % 300000) - 150000, 151000 };
	g->in.max_rate = 3e-4;
}

static void test_exits(void **state)
{
	double with = 0, less = 0;

	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct gen g;
		struct both b;

		make(&g, seed);
		make_pinged(&g);
		solve_both(&g, &b);
		assert_int_equal(b.with.class, SYNC_PING);
		assert_string_equal(b.with.method, "ping");
		if (!b.right)
			fprintf(stderr, "# seed %u off by %.0f ns more\n", (unsigned int)seed, b.worst);
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
	fprintf(stderr, "# %.0f %% of the anchors displaced%s: %u of %u wrong, %.1f us\n", part * 100,
		lost ? ", 10 % of the windows lost" : "", *bad, SEEDS, *bound / 1e3);
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

/* Half of the raises are lost, in stretches of 20 that are marked: what follows one is no cause. */
static size_t lose_raises(struct gen *g, bool marked)
{
	struct sync_gap *gaps = calloc(g->n_raises + 1, sizeof(*gaps));
	size_t n = 0, n_gaps = 0;

	assert_non_null(gaps);
	for (size_t i = 0; i < g->n_raises; i++) {
		const struct sync_raise one = g->raises[i];

		if (i / 20 % 2 == 0)
			g->raises[n++] = one;
		else if (marked)
			gaps[n_gaps++] = (struct sync_gap){ one.time, one.time };
	}
	free(g->host_gaps);
	g->host_gaps = gaps;
	qsort(gaps, n_gaps, sizeof(*gaps), gen_by_gap);
	g->in.host_gaps = gaps;
	g->in.n_host_gaps = n_gaps;
	return n;
}

static void test_lost(void **state)
{
	unsigned int bad[2] = { 0 };

	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		for (int marked = 0; marked < 2; marked++) {
			struct gen g;
			struct both b;

			make(&g, seed);
			gen_make(&g);
			g.in.n_raises = lose_raises(&g, marked);
			g.in.n_guest_deeds = 0; /* timers alone */
			solve_both(&g, &b);
			bad[marked] += b.with.anchors_dropped > 0;
			assert_true(!marked || b.right);
			release_both(&g, &b);
		}
	assert_int_equal(bad[1], 0);
	assert_true(bad[0] > SEEDS / 2); /* or this test tells nothing */
}

/* ---- calls ------------------------------------------------------------------------------ */

struct calls {
	double untraced, unseen, displaced;
	bool twice;
	/* what comes of it */
	unsigned int bad;
	uint64_t used, dropped;
	double with, without;
};

static void calls(struct calls *c)
{
	for (uint64_t seed = 1; seed <= SEEDS_EACH; seed++) {
		struct gen g;
		struct both b;

		make(&g, seed);
		g.n_vcpus = 2; /* many of them call at once, and nothing can be told */
		g.calls = 0.1;
		g.untraced = c->untraced;
		g.unseen = c->unseen;
		g.displaced_anchors = c->displaced;
		g.twice = c->twice;
		make_pinged(&g);
		solve_both(&g, &b);
		c->bad += !b.right;
		c->used += b.with.anchors;
		c->dropped += b.with.anchors_dropped;
		c->with += (double)sync_median_bound(&b.with) / SEEDS_EACH;
		c->without += (double)sync_median_bound(&b.without) / SEEDS_EACH;
		release_both(&g, &b);
	}
	fprintf(stderr,
		"# calls, %.0f %% untraced, %.0f %% unseen, %.0f %% displaced%s: %u of %u wrong, "
		"%.1f us, without anchors %.1f us\n",
		c->untraced * 100, c->unseen * 100, c->displaced * 100,
		c->twice ? ", one more behind each" : "", c->bad, SEEDS_EACH, c->with / 1e3,
		c->without / 1e3);
	assert_int_equal(c->bad, 0);
}

static void test_calls(void **state)
{
	struct calls all = { .bad = 0 };

	calls(&all);
	assert_true(all.used > 0 && !all.dropped);
	assert_true(all.with < all.without / 5);
}

/* Calls that the guest did not trace, that the host lost, that are not what they seem. */
static void test_calls_wrong(void **state)
{
	struct calls some[] = { { .untraced = 0.02 },  { .untraced = 0.5 },
				{ .unseen = 0.1 },     { .untraced = 0.5, .unseen = 0.02 },
				{ .displaced = 0.01 }, { .displaced = 1 } };

	for (size_t i = 0; i < ARRAY_SIZE(some); i++)
		calls(&some[i]);
}

/* Each time a second one, always too late: it is not known which of the two it was. */
static void test_calls_twice(void **state)
{
	struct calls all = { .twice = true };

	calls(&all);
	assert_int_equal(all.used, 0);
}

/* ---- injections ------------------------------------------------------------------------- */

struct injections {
	double silent, displaced;
	bool lost; /* half of them, marked */
	/* what comes of it */
	unsigned int bad;
	uint64_t used;
	double with, without;
};

static void injections(struct injections *c)
{
	for (uint64_t seed = 1; seed <= SEEDS_EACH; seed++) {
		struct gen g;
		struct both b;

		make(&g, seed);
		g.injected = true;
		g.silent = c->silent;
		g.displaced_anchors = c->displaced;
		make_pinged(&g);
		if (c->lost)
			g.in.n_raises = lose_raises(&g, true);
		solve_both(&g, &b);
		c->bad += !b.right;
		c->used += b.with.anchors;
		c->with += (double)sync_median_bound(&b.with) / SEEDS_EACH;
		c->without += (double)sync_median_bound(&b.without) / SEEDS_EACH;
		release_both(&g, &b);
	}
	fprintf(stderr,
		"# injections, %.0f %% silent, %.0f %% displaced%s: %u of %u wrong, %.1f us, without "
		"anchors %.1f us\n",
		c->silent * 100, c->displaced * 100, c->lost ? ", half of them lost" : "", c->bad, SEEDS_EACH,
		c->with / 1e3, c->without / 1e3);
	assert_int_equal(c->bad, 0);
}

static void test_injections(void **state)
{
	struct injections all = { .bad = 0 }, lost = { .lost = true };

	injections(&all);
	assert_true(all.used > 0 && all.with < all.without / 5);
	injections(&lost);
	assert_true(lost.used > 0 && lost.with < lost.without / 2);
}

/* Some, or nearly all, come without: APICv. */
static void test_injections_wrong(void **state)
{
	struct injections some[] = { { .silent = 0.01 },
				     { .silent = 0.2 },
				     { .silent = 0.97 },
				     { .displaced = 0.01 },
				     { .displaced = 1 } };

	for (size_t i = 0; i < ARRAY_SIZE(some); i++)
		injections(&some[i]);
	assert_int_equal(some[1].used, 0);
	assert_int_equal(some[2].used, 0);
}

/* ---- real captures -------------------------------------------------------------------- */

/* The host's file as if that event had not been recorded. */
static void leave_out(struct sync_source *s, const char *first_line)
{
	struct dat_text *v = (struct dat_text *)s->formats; /* sync_source_reader's own copy */
	size_t n = 0;

	for (size_t i = 0; i < s->n_formats; i++)
		if (v[i].len < strlen(first_line) || memcmp(v[i].data, first_line, strlen(first_line)))
			v[n++] = v[i];
	assert_int_equal(n + 1, s->n_formats);
	s->n_formats = n;
}

/* What the exact method wrote when it was recorded: the truth. */
static void read_truth(const struct reader *guest, struct offset_shift *exact)
{
	const struct reader_option *o = reader_option(guest, DAT_TIME_SHIFT);

	assert_non_null(o);
	assert_int_equal(offset_shift_decode(o->data.data, o->data.len, exact), 0);
}

static int64_t truth_at(const struct offset_shift *exact, uint64_t t)
{
	return (int64_t)(offset_shift_apply(exact, 0, t) - t);
}

static void expect_truth(const struct sync_result *r, const struct offset_shift *exact)
{
	assert_true(r->n_knots > 1);
	for (size_t i = 0; i < r->n_knots; i++) {
		const struct sync_knot *k = &r->knots[i];
		int64_t off = truth_at(exact, k->time) - k->offset;

		assert_true(off <= (int64_t)k->bound && off >= -(int64_t)k->bound);
	}
}

/* With a ping of +- 500 us that is off by `off` itself; the median bound with anchors. */
static uint64_t solve_capture(struct sync_input *in, const struct sync_guest *g, int64_t off,
			      const struct offset_shift *exact)
{
	uint64_t middle = g->first + (g->last - g->first) / 2, bound;
	struct sync_result with, without_any;
	struct sync_input bare = *in;

	in->prior = (struct sync_prior){ true, middle, truth_at(exact, middle) + off, 500000 };
	bare.prior = in->prior;
	without(&bare);
	assert_int_equal(sync_solve(in, &with, NULL), 0);
	assert_int_equal(sync_solve(&bare, &without_any, NULL), 0);
	fprintf(stderr, "# prior %+lld us: %.1f us, without anchors %.1f us; %llu used, %llu dropped\n",
		(long long)off / 1000, (double)sync_median_bound(&with) / 1e3,
		(double)sync_median_bound(&without_any) / 1e3, (unsigned long long)with.anchors,
		(unsigned long long)with.anchors_dropped);
	assert_int_equal(with.class, SYNC_PING);
	assert_int_equal(without_any.class, SYNC_PING);
	assert_true(sync_median_bound(&with) * 2 < sync_median_bound(&without_any));
	assert_true(with.anchors > 0);
	expect_truth(&with, exact);
	bound = sync_median_bound(&with);
	sync_result_release(&with);
	sync_result_release(&without_any);
	return bound;
}

/* As if kvm_entry had not been recorded. */
static void expect_capture(const char *host_file, const char *guest_file, size_t deeds, size_t ticks,
			   uint64_t bound, int64_t known)
{
	struct opened host, guest;
	struct offset_shift exact;
	struct sync_input in;
	struct sync_guest g;
	struct sync_host h;
	int32_t *pids;

	open_one(&host, host_file);
	open_one(&guest, guest_file);
	leave_out(&host.source, "name: kvm_entry\n");
	assert_int_equal(sync_host_read(&h, &host.source, NULL), 0);
	assert_int_equal(sync_guest_read(&g, &guest.source, NULL), 0);
	assert_true(deeds ? h.n_deeds > deeds && g.n_deeds > deeds : !h.n_deeds && !g.n_deeds);
	assert_true(ticks ? h.n_raises > ticks && g.n_ticks > ticks : !h.n_raises && !g.n_ticks);
	read_truth(guest.reader, &exact);
	assert_true(!known || truth_at(&exact, g.first) == known);
	/* the threads are known by their names */
	assert_int_equal(sync_input_make(&in, &h, &g, NULL, 0, &pids), 0);
	for (int64_t off = -400000; off <= 400000; off += 200000)
		assert_true(solve_capture(&in, &g, off, &exact) < bound);
	free(pids);
	offset_shift_release(&exact);
	sync_guest_release(&g);
	sync_host_release(&h);
	close_one(&host);
	close_one(&guest);
}

static void test_capture(void **state)
{
	expect_capture(DATA "trace.dat", DATA "trace-Guest.dat", 200, 100, 80000, 0);
}

static void test_capture_ptp(void **state)
{
	expect_capture(DATA "ptp.dat", DATA "ptp-Guest.dat", 100, 0, 160000, 0);
}

static void test_capture_mmio(void **state)
{
	expect_capture(DATA "mmio.dat", DATA "mmio-Guest.dat", 200, 0, 250000, 0);
}

/* In ticks. The file's TIME_SHIFT is KVM's tsc-offset. */
static void test_capture_x86(void **state)
{
	expect_capture(DATA "x86.dat", DATA "x86-Guest.dat", 0, 500, 400000, 21756318337);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_windows),
		cmocka_unit_test(test_exits),
		cmocka_unit_test(test_displaced),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_calls),
		cmocka_unit_test(test_calls_wrong),
		cmocka_unit_test(test_calls_twice),
		cmocka_unit_test(test_injections),
		cmocka_unit_test(test_injections_wrong),
		cmocka_unit_test(test_capture),
		cmocka_unit_test(test_capture_ptp),
		cmocka_unit_test(test_capture_mmio),
		cmocka_unit_test(test_capture_x86),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
