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

/* Half of the raises are lost, in stretches of 20 that are marked: what follows one is no cause. */
static size_t lose_raises(struct gen *g, bool marked)
{
	struct sync_point *v = calloc(2 * g->n_raises + 2, sizeof(*v));
	size_t n = 0;

	assert_non_null(v);
	for (size_t i = 0; i < g->n_raises; i++) {
		struct sync_point one = g->raises[i];
		bool lost = i / 20 % 2;

		one.enter = !lost;
		if (!lost || marked)
			v[n++] = one;
	}
	free(g->raises);
	g->raises = v;
	g->in.raises = v;
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
			g.in.n_idles = 0; /* timers alone */
			solve_both(&g, &b);
			bad[marked] += b.with.anchors_dropped > 0;
			assert_true(!marked || b.right);
			release_both(&g, &b);
		}
	assert_int_equal(bad[1], 0);
	assert_true(bad[0] > SEEDS / 2); /* or this test tells nothing */
}

/* ---- a real capture ------------------------------------------------------------------- */

/* The host's file as if that event had not been recorded. */
static void leave_out(struct sync_source *s, const char *first_line)
{
	struct dat_text *v = (struct dat_text *)s->formats; /* sync_source_reader's own copy */
	size_t n = 0;

	for (size_t i = 0; i < s->n_formats; i++)
		if (v[i].len < strlen(first_line) ||
		    memcmp(v[i].data, first_line, strlen(first_line)))
			v[n++] = v[i];
	assert_int_equal(n + 1, s->n_formats);
	s->n_formats = n;
}

/* What the exact method wrote when it was recorded. */
static void expect_truth(const struct sync_result *r, const struct reader *guest)
{
	const struct reader_option *o = reader_option(guest, DAT_TIME_SHIFT);
	struct offset_shift exact;

	assert_non_null(o);
	assert_int_equal(offset_shift_decode(o->data.data, o->data.len, &exact), 0);
	for (size_t i = 0; i < r->n_knots; i++) {
		uint64_t t = r->knots[i].time;
		int64_t off = (int64_t)(offset_shift_apply(&exact, 0, t) - t) - r->knots[i].offset;

		assert_true(off <= (int64_t)r->knots[i].bound &&
			    off >= -(int64_t)r->knots[i].bound);
	}
	offset_shift_release(&exact);
}

/* vCPU 0 is thread 112, 1 is 113; the exact offset about the middle of it: README.md */
#define MIDDLE 26011844235
#define EXACT  35628444000

static void test_capture(void **state)
{
	const struct offset_vcpu vcpus[] = { { 0, 112 }, { 1, 113 } };
	struct sync_prior prior = { true, MIDDLE, EXACT, 0 };
	struct opened host, guest;
	struct sync_guest g;
	struct sync_host h;

	open_one(&host, DATA "trace.dat");
	open_one(&guest, DATA "trace-Guest.dat");
	leave_out(&host.source, "name: kvm_entry\n");
	assert_int_equal(sync_host_read(&h, &host.source, NULL), 0);
	assert_int_equal(sync_guest_read(&g, &guest.source, NULL), 0);
	assert_true(h.sleeps.n > 200 && h.n_raises > 100 && g.idles.n > 200 && g.n_ticks > 100);
	for (int64_t off = -400000; off <= 400000; off += 200000) {
		struct sync_result with, without_any;
		struct sync_input in;
		int32_t *pids;

		prior.offset = EXACT + off;
		prior.bound = 500000;
		assert_int_equal(sync_input_make(&in, &h, &g, vcpus, 2, &pids), 0);
		in.prior = prior;
		assert_int_equal(sync_solve(&in, &with, NULL), 0);
		without(&in);
		assert_int_equal(sync_solve(&in, &without_any, NULL), 0);
		fprintf(stderr,
			"# prior %+lld us: %.1f us, without anchors %.1f us; %llu used, %llu dropped\n",
			(long long)off / 1000, (double)sync_median_bound(&with) / 1e3,
			(double)sync_median_bound(&without_any) / 1e3,
			(unsigned long long)with.anchors, (unsigned long long)with.anchors_dropped);
		assert_int_equal(with.class, SYNC_PING);
		assert_int_equal(without_any.class, SYNC_PING);
		assert_true(sync_median_bound(&with) * 2 < sync_median_bound(&without_any));
		assert_true(with.anchors > 0);
		expect_truth(&with, guest.reader);
		sync_result_release(&with);
		sync_result_release(&without_any);
		free(pids);
	}
	sync_guest_release(&g);
	sync_host_release(&h);
	close_one(&host);
	close_one(&guest);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_windows),
		cmocka_unit_test(test_exits),
		cmocka_unit_test(test_displaced),
		cmocka_unit_test(test_lost),
		cmocka_unit_test(test_capture),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
