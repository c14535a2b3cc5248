// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Chains of causes against made-up truths, with clocks that are wrong within their bound, with noise, losses
 * and events that nobody recorded. Each hop that is told has to be true, and the end has to be the true
 * one unless it says that it is not known.
 */
#include "path-world.h"

#define SEEDS 1000

/* ---- verdicts ------------------------------------------------------------------------------------ */

static bool hop_alike(const struct path_cause *a, const struct path_cause *b)
{
	bool by = a->state == PATH_RUNNABLE || a->state == PATH_ASLEEP;

	return a->state == b->state && a->input == b->input && a->cpu == b->cpu && a->pid == b->pid &&
	       (!by || a->by == b->by);
}

static uint64_t apart(uint64_t a, uint64_t b)
{
	return a > b ? a - b : b - a;
}

/*
 * Whether it is of the truth, from *at on: where bounds are as large as what is told, what is smaller may be
 * missing.
 */
static bool hop_true(const struct world *w, const struct path_cause *h, size_t *at, bool last,
		     const struct path *p)
{
	for (size_t i = *at; i < w->n_hops; i++) {
		const struct path_cause *t = &w->hops[i];
		bool small = t->to - t->from <= 2ull * w->bound;
		bool cut = last &&
			   (p->end == PATH_OWN || h->event.kind == STEP_LOST || h->event.kind == STEP_NONE);

		if (hop_alike(h, t) && (apart(h->from, t->from) <= w->bound || (cut && h->from > t->from))) {
			*at = i + 1;
			return true;
		}
		if (!small && !hop_alike(h, t))
			break;
	}
	return h->to - h->from <= 2ull * w->bound;
}

static bool end_true(const struct world *w, const struct path *p, size_t at)
{
	uint64_t now = p->n ? p->v[p->n - 1].from : 0;

	switch (p->end) {
	case PATH_UNKNOWN:
	case PATH_UNDECIDED:
		return true;
	case PATH_OWN:
		return w->sleep && apart(now, w->wait) <= w->bound;
	case PATH_UNDER_WAY:
		return w->sleep && now <= w->wait + w->bound;
	default:
		for (; at < w->n_hops; at++)
			if (w->hops[at].to - w->hops[at].from > 2ull * w->bound)
				return false;
		return p->end == w->end;
	}
}

static const char *path_wrong(const struct world *w, const struct path *p)
{
	size_t at = 0;

	for (size_t i = 0; i < p->n; i++) {
		const struct path_cause *h = &p->v[i];

		if (i && h->to != p->v[i - 1].from)
			return "hops do not join";
		if (!hop_true(w, h, &at, i + 1 == p->n, p))
			return "a hop is not true";
	}
	return end_true(w, p, at) ? NULL : "the end is not true";
}

static void hops_show(const char *title, const struct path_cause *v, size_t n, enum path_end end,
		      const char *why)
{
	print_message("%s\n", title);
	for (size_t i = 0; i < n; i++)
		print_message("  %-18s m%u cpu %u pid %d by %d  %llu - %llu (%llu)\n",
			      path_state_name(v[i].state), v[i].input, v[i].cpu, v[i].pid, v[i].by,
			      (unsigned long long)v[i].from, (unsigned long long)v[i].to,
			      (unsigned long long)(v[i].to - v[i].from));
	print_message("  %s: %s\n", path_end_name(end), why);
}

static void world_fail(const struct world *w, const struct path *p, const char *what)
{
	print_message("seed %llu bound %u error %lld wait %llu\n", (unsigned long long)w->number, w->bound,
		      (long long)w->error, (unsigned long long)w->wait);
	hops_show("truth", w->hops, w->n_hops, w->end, "");
	hops_show("told", p->v, p->n, p->end, p->why);
	fail_msg("%s", what);
}

static void world_window(const struct world *w, struct path_window *win)
{
	*win = (struct path_window){ .within = UINT64_MAX / 2 };
	for (size_t i = 0; i < w->n; i++)
		assert_int_equal(path_window_add(win, &w->rows[i]), 0);
}

/* Nothing is missing, and clocks are good: all of the truth is told. */
static void check_whole(struct world *w, const struct path *p)
{
	world_cut(w);
	if (w->bound > 2000)
		return;
	if (p->n != w->n_hops || p->end != w->end)
		world_fail(w, p, "not all of the truth");
	for (size_t i = 0; i < p->n; i++)
		if (!hop_alike(&p->v[i], &w->hops[i]))
			world_fail(w, p, "not the hops of the truth");
}

/* ---- the tests --------------------------------------------------------------------------------- */

typedef void world_change(struct world *w, struct path_moment *m);

static void check_worlds(world_change *change)
{
	static struct world w;
	size_t ends[PATH_ENDS] = { 0 }, hops = 0;

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		struct path_window win;
		struct path_moment m;
		struct path p = { .max = HOPS_MAX };
		const char *wrong;

		world_make(&w, seed, &m);
		if (change)
			change(&w, &m);
		world_window(&w, &win);
		assert_int_equal(path_find(&p, &win, world_inputs(), &m), 0);
		wrong = path_wrong(&w, &p);
		if (wrong)
			world_fail(&w, &p, wrong);
		if (!change)
			check_whole(&w, &p);
		ends[p.end]++;
		hops += p.n;
		path_release(&p);
		path_window_release(&win);
	}
	for (size_t i = 0; i < PATH_ENDS; i++)
		if (ends[i])
			print_message("# %s: %zu\n", path_end_name((enum path_end)i), ends[i]);
	print_message("# %d worlds, %zu hops, 0 wrong\n", SEEDS, hops);
}

static void test_truths(void **state)
{
	check_worlds(NULL);
}

static void test_losses(void **state)
{
	check_worlds(world_lose);
}

static void test_left_out(void **state)
{
	check_worlds(world_leave_out);
}

static void test_late(void **state)
{
	check_worlds(world_begin_late);
}

/* ---- what makes no sense -------------------------------------------------------------------------- */

/* Rows of anything, of a few tasks and CPUs, so that they meet. */
static void garbage_make(struct world *w, struct path_moment *m, uint64_t seed)
{
	uint64_t ts = 1000000;

	*w = (struct world){ .number = seed, .seed = seed * 131 + 7 };
	for (size_t i = 0; i < 400; i++) {
		uint8_t kind = (uint8_t)(1 + world_random(w, PATH_BORN));
		int machine = (int)world_random(w, 2);
		uint64_t numbers[] = { world_random(w, 4), 100 + world_random(w, VCPUS), STEP_UNKNOWN,
				       1ull << 40 };
		struct path_row *r;

		ts += world_random(w, 30000);
		ts -= world_random(w, 5000);
		r = world_row(w, machine, (uint32_t)world_random(w, VCPUS), ts,
			      (int)numbers[world_random(w, 2)], kind, numbers[world_random(w, 4)],
			      numbers[world_random(w, 4)]);
		r->bound = machine == HOST	 ? 0
			   : world_chance(w, 20) ? UINT32_MAX
						 : (uint32_t)world_random(w, 20000);
		r->flags = (uint8_t)world_random(w, 4);
		r->irq = (uint8_t)world_random(w, 4);
		r->nr = i;
	}
	*m = (struct path_moment){ .ts = ts,
				   .nr = world_random(w, 400),
				   .bound = world_chance(w, 50) ? UINT32_MAX : 500,
				   .input = (uint16_t)world_random(w, 2),
				   .cpu = (uint32_t)world_random(w, VCPUS),
				   .pid = (int32_t)world_random(w, 4),
				   .flags = (uint8_t)world_random(w, 4) };
}

static void test_garbage(void **state)
{
	static struct world w;

	for (uint64_t seed = 0; seed < 3 * SEEDS; seed++) {
		struct path_window win;
		struct path_moment m;
		struct path p = { .max = 20 };

		garbage_make(&w, &m, seed);
		world_window(&w, &win);
		assert_int_equal(path_find(&p, &win, world_inputs(), &m), 0);
		assert_int_not_equal(p.end, PATH_OPEN);
		assert_true(p.n <= 20 && *p.why);
		for (size_t i = 0; i < p.n; i++)
			assert_true(p.v[i].from < p.v[i].to && (!i || p.v[i].to == p.v[i - 1].from));
		path_release(&p);
		path_window_release(&win);
	}
}

/* ---- the window ------------------------------------------------------------------------------------ */

static void test_window(void **state)
{
	struct path_window w = { .within = 1000000, .max = 4096 };
	struct path_row r = { .kind = STEP_WAKING };

	for (uint64_t i = 0; i < 100000; i++) { /* 1 us apart: the last ms has room */
		r.nr = i;
		w.asked = r.ts = 5000000 + i * 1000;
		assert_int_equal(path_window_add(&w, &r), 0);
		assert_true(w.n <= 4096 && w.v[w.n - 1].nr == i);
		assert_int_equal(w.from, w.v[0].ts);
		assert_true(i < 1000 || w.from <= r.ts - w.within);
	}
	assert_true(w.cut && !w.full);
	assert_int_equal(path_window_after(&w, 99990), w.n - 9);
	assert_int_equal(path_window_at(&w, r.ts - 1), w.n - 1);
	path_window_keep(&w, r.ts - 5000);
	assert_int_equal(w.n, 6);
	path_window_release(&w);
	/* more than there is room for: half goes, and the window says from when on it is whole */
	w = (struct path_window){ .within = UINT64_MAX / 2, .max = 4096 };
	for (uint64_t i = 0; i < 100000; i++) {
		r.nr = i;
		r.ts = i;
		assert_int_equal(path_window_add(&w, &r), 0);
		assert_int_equal(w.v[w.n - 1].nr - w.v[0].nr, w.n - 1);
	}
	assert_true(w.n >= 2048 && w.cut && w.full && w.from == w.v[0].ts);
	/* a loss that is told of much later does not empty it */
	w.asked = r.ts;
	r.kind = STEP_LOST;
	r.ts = UINT64_MAX;
	w.within = 10000;
	assert_int_equal(path_window_add(&w, &r), 0);
	assert_true(w.n >= 2048);
	path_window_release(&w);
	/* until moments are asked for again, rows stay however far the newest is */
	w = (struct path_window){ .within = 10000, .max = 4096, .asked = 20000 };
	for (uint64_t i = 0; i < 3000; i++) {
		r.ts = 1000 + i * 10000;
		assert_int_equal(path_window_add(&w, &r), 0);
	}
	assert_int_equal(w.v[0].ts, 11000);
	assert_int_equal(w.n, 2999);
	path_window_release(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_truths),	 cmocka_unit_test(test_losses),
		cmocka_unit_test(test_left_out), cmocka_unit_test(test_late),
		cmocka_unit_test(test_garbage),	 cmocka_unit_test(test_window),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
