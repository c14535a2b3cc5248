// SPDX-License-Identifier: LGPL-2.1-or-later
/* Pairs and chains against made-up truths: machines whose clocks are wrong within bounds, and losses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "ask/latency/chain.h"

#ifdef __SANITIZE_ADDRESS__ /* the plain program has them all */
#define SEEDS 60
#else
#define SEEDS 1000
#endif
#define EVENTS	 400
#define MACHINES 3
#define LOSSES	 8

/* ---- made-up events --------------------------------------------------------------------- */

struct made {
	uint64_t truth; /* when it happened */
	struct chain_event e;
	uint64_t key;
	size_t point;
	bool cancels, lost;
};

struct world {
	uint64_t seed;
	size_t n, n_points;
	uint64_t reach;
	struct made v[EVENTS];
	struct {
		uint64_t from, to;
	} losses[LOSSES];
	size_t n_losses;
	/* what was told: ids of events (their cpu) */
	struct told {
		enum chain_fate fate;
		size_t n;
		uint32_t ids[CHAIN_POINTS_MAX];
	} told[EVENTS];
	size_t n_told, n_true;
	bool truths[EVENTS]; /* by id of a last event: told[] says which in `chains` */
	struct told chains[EVENTS];
};

static uint64_t next_random(struct world *w, uint64_t below)
{
	w->seed = w->seed * 6364136223846793005ull + 1442695040888963407ull;
	return (w->seed >> 33) % below;
}

static int by_truth(const void *a, const void *b)
{
	const struct made *x = a, *y = b;

	return x->truth < y->truth ? -1 : x->truth > y->truth;
}

static int by_shown(const void *a, const void *b)
{
	const struct made *x = a, *y = b;

	return x->e.ts < y->e.ts ? -1 : x->e.ts > y->e.ts ? 1 : by_truth(a, b);
}

static void make_events(struct world *w, size_t machines)
{
	int64_t error[MACHINES] = { 0 };
	uint64_t bound[MACHINES] = { 0 }, at = 10000, step = 2 + next_random(w, 200);
	size_t keys = 1 + next_random(w, 4);

	for (size_t m = 1; m < machines; m++) {
		bound[m] = next_random(w, 60);
		error[m] = (int64_t)next_random(w, 2 * bound[m] + 1) - (int64_t)bound[m];
		w->reach = bound[m] + 20 > w->reach ? bound[m] + 20 : w->reach;
	}
	w->n = 20 + next_random(w, EVENTS - 20);
	for (size_t i = 0; i < w->n; i++) {
		struct made *m = &w->v[i];
		size_t machine = next_random(w, machines);

		at += 1 + next_random(w, step);
		*m = (struct made){ .truth = at,
				    .e = { .ts = (uint64_t)((int64_t)at + error[machine]),
					   .bound = bound[machine],
					   .input = (uint32_t)machine,
					   .cpu = (uint32_t)i },
				    .key = next_random(w, keys),
				    .point = next_random(w, w->n_points) };
		m->cancels = m->point && !next_random(w, 5);
		if (machine) /* the bound varies with time */
			m->e.bound += next_random(w, 20);
		if (next_random(w, 50) == 0 && machine && machines == 3)
			m->e.bound = UINT64_MAX;
	}
}

static void make_losses(struct world *w)
{
	w->n_losses = next_random(w, LOSSES);
	for (size_t k = 0; k < w->n_losses; k++) {
		size_t from = next_random(w, w->n), to = from + next_random(w, 10), machine;

		to = to < w->n ? to : w->n - 1;
		machine = w->v[from].e.input;
		w->losses[k].from = w->v[from].truth - 1;
		w->losses[k].to = w->v[to].truth + 1;
		for (size_t i = from; i <= to; i++)
			w->v[i].lost |= w->v[i].e.input == machine;
	}
}

/* ---- what is true: the rule of the header, with nothing hidden --------------------------------- */

static void find_truths(struct world *w)
{
	static struct told waiting[CHAIN_POINTS_MAX][8];
	static bool waits[CHAIN_POINTS_MAX][8];

	memset(waits, 0, sizeof(waits));
	memset(w->truths, 0, sizeof(w->truths));
	qsort(w->v, w->n, sizeof(w->v[0]), by_truth);
	for (size_t i = 0; i < w->n; i++) {
		struct made *m = &w->v[i];
		struct told t = { .n = 0 };

		if (m->point && !waits[m->point][m->key])
			continue;
		if (m->cancels) {
			waits[m->point][m->key] = false;
			continue;
		}
		if (m->point)
			t = waiting[m->point][m->key];
		waits[m->point][m->key] = false;
		t.ids[t.n++] = m->e.cpu;
		if (m->point + 1 == w->n_points) {
			w->truths[m->e.cpu] = true;
			w->chains[m->e.cpu] = t;
			w->n_true++;
		} else {
			waits[m->point + 1][m->key] = true;
			waiting[m->point + 1][m->key] = t;
		}
	}
}

/* ---- what is told -------------------------------------------------------------------------------- */

static int tell(void *ctx, enum chain_fate fate, uint32_t row, const struct chain_event *v, size_t n)
{
	struct world *w = ctx;
	struct told *t = &w->told[w->n_told++];

	*t = (struct told){ .fate = fate, .n = n };
	for (size_t i = 0; i < n; i++)
		t->ids[i] = v[i].cpu;
	assert_true(w->n_told <= EVENTS);
	return 0;
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return b > a ? 0 : a - b;
}

static uint64_t more(uint64_t a, uint64_t b)
{
	return b > UINT64_MAX - a ? UINT64_MAX : a + b;
}

static bool was_lost(void *ctx, const struct chain_event *v, size_t n)
{
	const struct world *w = ctx;
	uint64_t from = UINT64_MAX, to = 0;

	for (size_t i = 0; i < n; i++) {
		from = less(v[i].ts, v[i].bound) < from ? less(v[i].ts, v[i].bound) : from;
		to = more(v[i].ts, v[i].bound) > to ? more(v[i].ts, v[i].bound) : to;
	}
	for (size_t i = 0; i < w->n_losses; i++)
		if (w->losses[i].from < to && w->losses[i].to > from)
			return true;
	return false;
}

static void run_world(struct world *w)
{
	struct chain_results told = { tell, was_lost, w };
	struct chain *c;

	qsort(w->v, w->n, sizeof(w->v[0]), by_shown);
	assert_int_equal(chain_open(&c, w->n_points, w->reach, &told), 0);
	for (size_t i = 0; i < w->n; i++) {
		const struct made *m = &w->v[i];
		struct latency_key key = { 1, m->key ? m->key : UINT64_MAX };
		struct chain_step s = { .point = m->point, .event = m->e, .look = key, .next = key };

		if (!m->lost)
			assert_int_equal(m->cancels ? chain_cancel(c, &s) : chain_take(c, &s), 0);
	}
	assert_int_equal(chain_end(c), 0);
	chain_close(c);
}

/* Nothing that is told as certain is wrong. */
static size_t check_told(const struct world *w)
{
	size_t done = 0;

	for (size_t i = 0; i < w->n_told; i++) {
		const struct told *t = &w->told[i];
		uint32_t last = t->ids[t->n - 1];

		if (t->fate != CHAIN_DONE)
			continue;
		done++;
		assert_int_equal(t->n, w->n_points);
		assert_true(w->truths[last]);
		assert_memory_equal(t->ids, w->chains[last].ids, t->n * sizeof(t->ids[0]));
	}
	return done;
}

/* ---- pairs by the definition, each event against each ----------------------------------------------- */

static uint64_t bound_of(const struct world *w, const struct made *m)
{
	return m->e.bound == UINT64_MAX ? w->reach : m->e.bound;
}

static bool surely_before(const struct world *w, const struct made *a, const struct made *b)
{
	return a->e.input == b->e.input || more(a->e.ts, bound_of(w, a)) < less(b->e.ts, bound_of(w, b));
}

static bool unknown_order(const struct chain_event *a, const struct chain_event *b)
{
	return a->input != b->input && (a->bound == UINT64_MAX || b->bound == UINT64_MAX);
}

static bool is_pair(const struct world *w, size_t b, size_t e)
{
	if (w->v[b].point != 0 || w->v[e].point != 1 || w->v[e].cancels ||
	    !surely_before(w, &w->v[b], &w->v[e]) || unknown_order(&w->v[b].e, &w->v[e].e))
		return false;
	for (size_t i = 0; i < w->n; i++) {
		const struct made *m = &w->v[i];

		if (m->lost || m->key != w->v[b].key || i == b || i == e)
			continue;
		if (i > b && i < e)
			return false;
		if (i < b ? !surely_before(w, m, &w->v[b]) || !surely_before(w, m, &w->v[e])
			  : !surely_before(w, &w->v[e], m))
			return false;
	}
	return true;
}

static size_t count_pairs(struct world *w)
{
	size_t n = 0;

	for (size_t e = 0; e < w->n; e++)
		for (size_t b = e; b-- > 0;) {
			if (w->v[e].lost || w->v[b].lost || w->v[b].key != w->v[e].key)
				continue;
			if (is_pair(w, b, e)) {
				struct chain_event v[] = { w->v[b].e, w->v[e].e };

				n += !was_lost(w, v, 2);
			}
			break;
		}
	return n;
}

/* ---- tests -------------------------------------------------------------------------------------- */

static size_t told_as(const struct world *w, enum chain_fate fate)
{
	size_t n = 0;

	for (size_t i = 0; i < w->n_told; i++)
		n += w->told[i].fate == fate;
	return n;
}

static void check_worlds(size_t n_points, size_t machines, bool losses)
{
	size_t done = 0, truths = 0, undecided = 0, lost = 0;

	for (uint64_t seed = 0; seed < SEEDS; seed++) {
		static struct world w;
		size_t begins = 0;

		w = (struct world){ .seed = seed * 7919 + n_points, .n_points = n_points };
		make_events(&w, machines);
		if (losses)
			make_losses(&w);
		find_truths(&w);
		run_world(&w);
		done += check_told(&w);
		truths += w.n_true;
		undecided += told_as(&w, CHAIN_UNDECIDED);
		lost += told_as(&w, CHAIN_LOST);
		if (n_points == 2)
			assert_int_equal(told_as(&w, CHAIN_DONE), count_pairs(&w));
		/* each begin has one end */
		for (size_t i = 0; i < w.n; i++)
			begins += !w.v[i].lost && w.v[i].point == 0;
		for (size_t i = 0; i < w.n_told; i++)
			begins -= w.told[i].fate != CHAIN_STRAY &&
				  !(w.told[i].n == 1 && w.told[i].fate == CHAIN_UNDECIDED);
		assert_int_equal(begins, 0);
	}
	if (machines == 1 && !losses)
		assert_int_equal(done, truths);
	assert_true(done > (machines == 1 ? truths / 2 : truths / 20));
	assert_true((machines > 1) == (undecided > 0));
	assert_true(losses == (lost > 0));
}

static void test_pairs(void **state)
{
	for (size_t machines = 1; machines <= MACHINES; machines++) {
		check_worlds(2, machines, false);
		check_worlds(2, machines, true);
	}
}

static void test_chains(void **state)
{
	for (size_t n = 3; n <= 5; n++)
		for (size_t machines = 1; machines <= MACHINES; machines++) {
			check_worlds(n, machines, false);
			check_worlds(n, machines, true);
		}
}

/* Bounds that nobody knows: no pair. */
static void test_unknown(void **state)
{
	static struct world w;
	struct chain_results told = { tell, NULL, &w };
	struct chain_step s = { .point = 0, .next = { 1, 0 }, .look = { 1, 0 } };
	struct chain *c;

	w = (struct world){ .n_points = 2 };
	assert_int_equal(chain_open(&c, 2, 1, &told), 0);
	for (uint64_t i = 0; i < 100; i++) {
		s.event = (struct chain_event){ .ts = 1000 * i,
						.bound = i & 1 ? UINT64_MAX : 0,
						.input = i & 1 };
		s.point = i & 1;
		assert_int_equal(chain_take(c, &s), 0);
	}
	assert_int_equal(chain_end(c), 0);
	assert_int_equal(told_as(&w, CHAIN_UNDECIDED), 50);
	assert_int_equal(w.n_told, 50);
	chain_close(c);
}

/* Chains whose keys change on the way, and take a value along. */
static void test_keys(void **state)
{
	static struct world w;
	struct chain_results told = { tell, NULL, &w };
	const struct chain_step steps[] = {
		{ .point = 0, .event = { .ts = 1, .cpu = 1 }, .next = { 2, 7 }, .carry = { 5, 77 } },
		{ .point = 0, .event = { .ts = 2, .cpu = 2 }, .next = { 2, 8 }, .carry = { 5, 88 } },
		{ .point = 1,
		  .event = { .ts = 3, .cpu = 3 },
		  .look = { 2, 7 },
		  .next = { CHAIN_CARRIED_SCOPE, 3 } },
		{ .point = 1,
		  .event = { .ts = 4, .cpu = 4 },
		  .look = { 2, 9 },
		  .next = { CHAIN_CARRIED_SCOPE, 3 } },
		{ .point = 2,
		  .event = { .ts = 5, .cpu = 5 },
		  .look = { 5, 3 },
		  .next = { CHAIN_CARRIED, 0 } },
		{ .point = 3, .event = { .ts = 6, .cpu = 6 }, .look = { 5, 88 } },
		{ .point = 3, .event = { .ts = 7, .cpu = 7 }, .look = { 5, 77 } },
	};
	const struct chain_step cancel = { .point = 1, .event = { .ts = 8 }, .look = { 2, 8 } };
	struct chain *c;

	w = (struct world){ .n_points = 4 };
	assert_int_equal(chain_open(&c, 4, 0, &told), 0);
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
		assert_int_equal(chain_take(c, &steps[i]), 0);
	assert_int_equal(w.n_told, 2);
	assert_int_equal(w.told[0].fate, CHAIN_STRAY); /* 88 is not as far */
	assert_int_equal(w.told[1].fate, CHAIN_DONE);
	assert_int_equal(w.told[1].ids[0], 1);
	assert_int_equal(w.told[1].ids[1], 3);
	assert_int_equal(w.told[1].ids[3], 7);
	assert_int_equal(chain_cancel(c, &cancel), 0);
	assert_int_equal(w.n_told, 3);
	assert_int_equal(w.told[2].fate, CHAIN_STOPPED);
	assert_int_equal(w.told[2].ids[0], 2);
	assert_int_equal(chain_end(c), 0);
	assert_int_equal(w.n_told, 3);
	chain_close(c);
}

static int count_fate(void *ctx, enum chain_fate fate, uint32_t row, const struct chain_event *v, size_t n)
{
	((size_t *)ctx)[fate]++;
	return 0;
}

/* More keys than there is room for: what is refused is told. */
static void test_refused(void **state)
{
	size_t fates[CHAIN_REFUSED + 1] = { 0 };
	struct chain_results told = { count_fate, NULL, fates };
	struct chain_step s = { .point = 0 };
	struct chain *c;

	assert_int_equal(chain_open(&c, 2, 0, &told), 0);
	for (uint64_t i = 0; i < CHAIN_KEYS_MAX + 3; i++) {
		s.event.ts = i;
		s.next.value = i;
		assert_int_equal(chain_take(c, &s), 0);
	}
	s.point = 1;
	for (uint64_t i = 0; i < CHAIN_KEYS_MAX + 3; i++) {
		s.event.ts++;
		s.look.value = i;
		assert_int_equal(chain_take(c, &s), 0);
	}
	assert_int_equal(chain_end(c), 0);
	assert_int_equal(fates[CHAIN_DONE], CHAIN_KEYS_MAX);
	assert_int_equal(fates[CHAIN_REFUSED], 3);
	assert_int_equal(fates[CHAIN_STRAY], 3);
	chain_close(c);
}

/* More chains at a time than can be held: the oldest are undecided. */
static void test_many_held(void **state)
{
	size_t fates[CHAIN_REFUSED + 1] = { 0 };
	struct chain_results told = { count_fate, NULL, fates };
	struct chain_step s = { .point = 0 };
	struct chain *c;

	assert_int_equal(chain_open(&c, 2, 1ull << 40, &told), 0);
	for (uint64_t i = 0; i < 40000; i++) {
		s.event.ts = i;
		s.point = i & 1;
		assert_int_equal(chain_take(c, &s), 0);
	}
	assert_int_equal(chain_end(c), 0);
	assert_int_equal(fates[CHAIN_DONE] + fates[CHAIN_UNDECIDED], 20000);
	assert_true(fates[CHAIN_UNDECIDED] > 1000);
	assert_true(fates[CHAIN_DONE] > 10000);
	chain_close(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pairs),	cmocka_unit_test(test_chains),
		cmocka_unit_test(test_unknown), cmocka_unit_test(test_keys),
		cmocka_unit_test(test_refused), cmocka_unit_test(test_many_held),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
