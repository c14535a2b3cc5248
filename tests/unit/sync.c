// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Synchronisation against a made-up truth: a sample of it. HYPTRACE_SYNC_SEEDS=N: as
 * many seeds of full size (`make sync-seeds`; 1000 for the figures in Documentation/clock-sync.md);
 * =N,v: with a line for each that is wrong; =N,s: small ones; =N,from=M: seeds M to
 * M + N - 1. A test's name as the argument runs only that.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <time.h>

#include <cmocka.h>

#include "sync-gen.h"

/* Of each kind, small ones: a sample. Those without a result take several times as long. */
#ifdef __SANITIZE_ADDRESS__
#define SEEDS	   2
#define SEEDS_NONE 1
#else
#define SEEDS	   7
#define SEEDS_NONE 2
#endif

struct tally {
	unsigned int seeds, none, hard, hard_wrong, soft, soft_wrong, map_wrong;
	double bounds; /* sum of medians, ns */
	double cpu;    /* s */
};

static unsigned int seeds(unsigned int sample, unsigned int *first, bool *verbose, bool *small)
{
	const char *env = getenv("HYPTRACE_SYNC_SEEDS");
	const char *from = env ? strstr(env, "from=") : NULL;
	int n = env ? atoi(env) : 0;

	*first = from ? (unsigned int)atoi(from + 5) : 1;
	*verbose = env && strstr(env, ",v");
	*small = !env || strstr(env, ",s");
	return n > 0 ? (unsigned int)n : sample;
}

static bool map_right(const struct gen *g, const struct sync_result *r)
{
	for (size_t i = 0; i < r->n_vcpus; i++)
		if (r->vcpus[i].pid && r->vcpus[i].pid != g->true_pids[i])
			return false;
	return true;
}

static void judge(struct gen *g, uint64_t seed, bool verbose, struct tally *t)
{
	struct sync_result r;
	double worst = 0;
	bool right;

	clock_t start = clock();

	assert_int_equal(sync_solve(&g->in, &r), 0);
	t->cpu += (double)(clock() - start) / CLOCKS_PER_SEC;
	right = gen_right(g, &r, &worst);
	t->seeds++;
	t->none += r.class == SYNC_NONE;
	t->hard += r.class == SYNC_HARD;
	t->soft += r.class == SYNC_SOFT;
	t->hard_wrong += r.class == SYNC_HARD && !right;
	t->soft_wrong += r.class == SYNC_SOFT && !right;
	t->map_wrong += !map_right(g, &r);
	t->bounds += r.n_points ? (double)sync_median_bound(&r) : 0;
	if (verbose && (!right || !map_right(g, &r)))
		fprintf(stderr,
			"# seed %llu: %s%s%s off by %.0f ns more, %u vcpus %.1f s %zu bends, %llu "
			"events, "
			"%llu outside, %zu knots %zu cuts, bound %.0f\n",
			(unsigned long long)seed, sync_class_name(r.class), right ? "" : " WRONG",
			map_right(g, &r) ? "" : " MAP", worst, g->n_vcpus, g->length / 1e9, g->n_bends,
			(unsigned long long)r.events, (unsigned long long)r.outside, r.n_points, r.n_jumps,
			r.n_points ? (double)sync_median_bound(&r) : 0);
	sync_result_release(&r);
}

typedef void (*shape_fn)(struct gen *g);

static void run(const char *name, shape_fn shape, unsigned int sample, struct tally *t)
{
	bool verbose, small;
	unsigned int first, n = seeds(sample, &first, &verbose, &small);

	*t = (struct tally){ 0 };
	for (unsigned int i = first; i - first < n; i++) {
		struct gen g;

		gen_usual(&g, i, small);
		shape(&g);
		gen_make(&g);
		judge(&g, i, verbose, t);
		gen_release(&g);
	}
	fprintf(stderr,
		"# %s: %u seeds: %u hard (%u wrong), %u soft (%u wrong), %u none, %u wrong maps, "
		"mean bound %.1f us, %.2f s\n",
		name, t->seeds, t->hard, t->hard_wrong, t->soft, t->soft_wrong, t->none, t->map_wrong,
		t->bounds / (t->seeds - t->none + 1e-9) / 1e3, t->cpu);
}

static void expect(const struct tally *t)
{
	assert_true(t->hard_wrong * 1000 <= t->hard);
	assert_true(t->soft_wrong * 100 <= t->soft);
	assert_int_equal(t->map_wrong, 0);
	assert_true(t->none * 20 <= t->seeds + 20);
}

/* ---- shapes ------------------------------------------------------------------------- */

static void clean(struct gen *g)
{
	gen_clocks(g, 200, 0, 0);
}

static void slewed(struct gen *g)
{
	gen_clocks(g, 200, 1 + gen_u64(g) % 3, 0);
	g->in.max_bend = 4e-4;
}

static void jumping(struct gen *g)
{
	gen_clocks(g, 200, 0, 1 + gen_u64(g) % 2);
}

static void stepped(struct gen *g)
{
	gen_steps(g, 200);
}

static void dirty(struct gen *g)
{
	gen_clocks(g, 200, 0, 0);
	g->lost_windows = 0.1;
	g->displaced = 0.01;
}

static void one_sided(struct gen *g)
{
	gen_clocks(g, 200, 0, 0);
	g->lost_one_side = 0.05;
}

static void unmapped(struct gen *g)
{
	gen_clocks(g, 200, 0, 0);
	g->unknown_map = true;
	g->displaced = gen_u64(g) % 2 ? 0.01 : 0;
}

static void misled(struct gen *g)
{
	gen_clocks(g, 100, 0, 0);
	g->wrong_map = true;
}

static void everything(struct gen *g)
{
	gen_clocks(g, 200, 0, gen_u64(g) % 2);
	g->lost_windows = 0.1;
	g->displaced = 0.01;
	g->lost_one_side = 0.02;
	g->unknown_map = gen_u64(g) % 2;
}

static void unrelated(struct gen *g)
{
	gen_clocks(g, 200, 0, 0);
	g->nothing = true;
}

static void always_inside(struct gen *g)
{
	gen_clocks(g, 200, 0, 0);
	g->run = 1e12;
}

#define TEST(shape)                                                                                          \
	static void test_##shape(void **state)                                                               \
	{                                                                                                    \
		struct tally t;                                                                              \
                                                                                                             \
		run(#shape, shape, SEEDS, &t);                                                               \
		expect(&t);                                                                                  \
	}
TEST(clean)
TEST(slewed)
TEST(jumping)
TEST(stepped)
TEST(dirty)
TEST(one_sided)
TEST(unmapped)
TEST(misled)
TEST(everything)

/* Times that no clock shows, and windows the wrong way round. */
static void test_absurd(void **state)
{
	uint64_t times[] = { 0, 5, UINT64_MAX - 1, UINT64_MAX };
	struct sync_window w[] = {
		{ 10, 5, 1, SYNC_KVM, false },
		{ 0, UINT64_MAX, 1, SYNC_KVM, false },
		{ 1ull << 63, UINT64_MAX, 2, SYNC_HYP, true },
		{ 7, 9, 0, SYNC_HYP, true },
	};
	struct sync_cpu cpu = { 0, times, 4 };
	struct sync_input in = { .cpus = &cpu, .n_cpus = 1, .windows = w, .n_windows = 4 };
	struct sync_result r;

	for (int end = 0; end < 2; end++) {
		assert_int_equal(sync_solve(&in, &r), 0);
		assert_int_equal(r.class, SYNC_NONE);
		assert_int_equal(sync_bound(&r, 5), UINT64_MAX);
		sync_result_release(&r);
		in.begin = 100;
		in.end = 50;
		cpu.n = 2;
	}
	in.n_cpus = 0;
	assert_int_equal(sync_solve(&in, &r), -EINVAL);
}

static void test_nothing(void **state)
{
	struct tally t;

	run("unrelated", unrelated, SEEDS_NONE, &t);
	assert_int_equal(t.none, t.seeds);
	run("always inside", always_inside, SEEDS_NONE, &t);
	assert_int_equal(t.none, t.seeds);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clean),	  cmocka_unit_test(test_slewed),
		cmocka_unit_test(test_jumping),	  cmocka_unit_test(test_dirty),
		cmocka_unit_test(test_one_sided), cmocka_unit_test(test_unmapped),
		cmocka_unit_test(test_misled),	  cmocka_unit_test(test_everything),
		cmocka_unit_test(test_nothing),	  cmocka_unit_test(test_absurd),
		cmocka_unit_test(test_stepped),
	};

	if (argc > 1) /* "test_clean", "*" */
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
