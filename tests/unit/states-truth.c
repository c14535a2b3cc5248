// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Where time goes, against made-up machines: a host with hogs and a guest of two vCPUs is played with the
 * truth written down, its events are recorded as files could have them, with losses, cut
 * times and a clock that is off; nothing that the model claims of it may be wrong.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "states-world.h"

#ifdef __SANITIZE_ADDRESS__ /* the plain program has them all */
#define SEEDS 80
#else
#define SEEDS 1000
#endif

/* ---- the judge
 * ---------------------------------------------------------------------------------------------- */

struct judge {
	const struct world *w;
	struct rig_states r;
	uint64_t seed, at[4 * OWNERS]; /* where each owner's next span begins */
	uint64_t spans, wrong, claimed, unknown;
	struct state_totals totals;
};

#define BIT(state) (1u << (state))

/* Which truths a claim allows. */
static unsigned int allowed(unsigned int state, bool coarse, bool sched)
{
	unsigned int inside = BIT(STATE_GUEST) | BIT(STATE_HYP) | BIT(STATE_FIRMWARE) | BIT(STATE_HOST);
	unsigned int outside = BIT(STATE_HOST) | BIT(STATE_VMM) | BIT(STATE_HYP) | BIT(STATE_FIRMWARE) |
			       BIT(STATE_PREEMPTED) | BIT(STATE_WAKING) | BIT(STATE_HALTED) |
			       BIT(STATE_BLOCKED) | BIT(TRUTH_POLL);

	switch (state) {
	case STATE_GUEST:
		return coarse ? inside : BIT(STATE_GUEST);
	case STATE_HOST:
		return BIT(STATE_HOST) | BIT(TRUTH_POLL) |
		       (coarse ? BIT(STATE_VMM) | BIT(STATE_HYP) | BIT(STATE_FIRMWARE) : 0);
	case STATE_VMM:
		return BIT(STATE_VMM) | (coarse ? BIT(STATE_HYP) | BIT(STATE_FIRMWARE) : 0);
	case STATE_HALTED:
	case STATE_BLOCKED:
		return BIT(state) | BIT(TRUTH_POLL) |
		       (coarse ? BIT(STATE_HALTED) | BIT(STATE_BLOCKED) | BIT(STATE_PREEMPTED) |
					 BIT(STATE_WAKING)
			       : 0) |
		       (sched ? 0 : outside);
	case STATE_PREEMPTED:
		return BIT(STATE_PREEMPTED) | (coarse ? BIT(STATE_WAKING) : 0);
	case STATE_OUTSIDE:
		return outside;
	case STATE_SLEEPING:
		return BIT(STATE_SLEEPING) | (coarse ? BIT(STATE_RUNNABLE) : 0);
	default:
		return BIT(state);
	}
}

static bool part_fits(const struct judge *j, const struct state_span *s, const struct truth_part *p)
{
	unsigned int by = p->state == STATE_STOLEN ? p->by : STATE_GUEST;
	bool sched = j->w->set.sched;

	if (s->other != STATE_NO_TASK && p->other != STATE_NO_TASK && s->other != p->other &&
	    (s->state == STATE_PREEMPTED || s->by == STATE_PREEMPTED || s->state == STATE_RUNNABLE))
		return false;
	if (s->state == STATE_STOLEN)
		return allowed(s->by, s->coarse, sched) & BIT(by);
	if (s->state == STATE_RUNNING && s->coarse && p->state == STATE_STOLEN)
		return !sched || allowed(STATE_GUEST, true, sched) & BIT(by);
	return allowed(s->state, s->coarse, sched) & BIT(p->state);
}

static const struct truth *truth_of(const struct judge *j, const struct state_owner *o)
{
	size_t at;

	if (o->kind == STATE_OF_GUEST_TASK)
		at = VCPUS + THREADS + (size_t)(o->pid - GFIRST);
	else
		at = (size_t)(o->pid - FIRST) + (o->kind == STATE_OF_TASK ? VCPUS : 0);
	assert_true(at < OWNERS);
	return &j->w->truth[at];
}

static void blame(struct judge *j, const struct state_span *s, const struct truth_part *p)
{
	if (!j->wrong++)
		print_error("seed %llu: owner %d of kind %d, %llu to %llu (+-%llu, %llu): %s%s%s by %d, "
			    "truth from "
			    "%llu: state %u by %u, %d\n",
			    (unsigned long long)j->seed, s->owner->pid, (int)s->owner->kind,
			    (unsigned long long)s->from, (unsigned long long)s->to,
			    (unsigned long long)s->from_bound, (unsigned long long)s->to_bound,
			    state_name(s->state), s->coarse ? "~ " : " ", s->by ? state_name(s->by) : "",
			    s->other, (unsigned long long)p->from, p->state, p->by, p->other);
}

static int judge_span(void *ctx, const struct state_span *s)
{
	struct judge *j = ctx;
	const struct truth *t = truth_of(j, s->owner);
	uint64_t from = s->from + s->from_bound, to = s->to < s->to_bound ? 0 : s->to - s->to_bound;

	assert_true(s->from == j->at[s->owner->index] && s->to > s->from);
	j->at[s->owner->index] = s->to;
	j->spans++;
	*(s->state == STATE_UNKNOWN ? &j->unknown : &j->claimed) += s->to - s->from;
	for (size_t i = 0; i < t->n && s->state != STATE_UNKNOWN; i++) {
		uint64_t end = i + 1 < t->n ? t->v[i + 1].from : UINT64_MAX;

		if (t->v[i].from < to && end > from && from < to && !part_fits(j, s, &t->v[i]))
			blame(j, s, &t->v[i]);
	}
	return state_totals_span(&j->totals, s);
}

/* Spans tile the recording, and sums are its length to the ns. */
static void judge_sums(struct judge *j)
{
	uint64_t length = states_to(j->r.st) - states_from(j->r.st);

	assert_true(j->totals.n <= ARRAY_SIZE(j->at));
	for (size_t i = 0; i < j->totals.n; i++) {
		uint64_t sum = 0, stolen = 0;

		for (int s = 0; s < STATES; s++) {
			sum += j->totals.v[i].all[s].ns;
			stolen += j->totals.v[i].stolen[s].ns;
		}
		assert_int_equal(j->at[i], states_to(j->r.st));
		assert_int_equal(sum, length);
		assert_int_equal(stolen, j->totals.v[i].all[STATE_STOLEN].ns);
	}
}

static void judge_world(struct judge *j, const struct world *w)
{
	size_t at[STREAMS] = { 0 };
	const struct step *s;

	j->w = w;
	rig_inputs(&j->r, (w->set.x86 ? RIG_X86 : 0) | (w->set.guest ? RIG_GUEST : 0), FIRST, w->set.bound);
	assert_int_equal(states_open(&j->r.st, &j->r.in, NULL, j->r.steps,
				     STATES_VCPUS | STATES_TASKS | STATES_GUEST_TASKS, judge_span, j),
			 0);
	assert_int_equal(states_begin(j->r.st, BEGIN), 0);
	for (size_t i = 0; i < ARRAY_SIZE(j->at); i++)
		j->at[i] = BEGIN;
	while ((s = next_step(w, at)))
		assert_int_equal(states_step(j->r.st, s, s->ts), 0);
	states_until(j->r.st, w->t);
	assert_int_equal(states_end(j->r.st), 0);
	judge_sums(j);
	state_totals_release(&j->totals);
	rig_states_close(&j->r);
}

static uint64_t seeds(void)
{
	const char *s = getenv("SEEDS");

	return s ? strtoull(s, NULL, 0) : SEEDS;
}

static void test_truths(void **state)
{
	uint64_t wrong = 0, claimed = 0, unknown = 0, spans = 0, whole[2] = { 0 }, blind[2] = { 0 };
	struct world *w = malloc(sizeof(*w));
	const char *one = getenv("SEED");

	assert_non_null(w);
	for (uint64_t seed = one ? strtoull(one, NULL, 0) : 0; seed < (one ? seed + 1 : seeds()); seed++) {
		struct judge j = { .seed = seed };

		world_play(w, seed);
		for (unsigned int i = 0; i < w->set.losses; i++)
			lose(w, roll(&w->d, STREAMS));
		if (w->set.losses && roll(&w->d, 3) == 0)
			end_early(w, roll(&w->d, STREAMS / CPUS));
		judge_world(&j, w);
		wrong += j.wrong != 0;
		claimed += j.claimed;
		unknown += j.unknown;
		spans += j.spans;
		if (!w->set.losses && w->set.sched && (w->set.reasons || !w->set.hyp)) {
			whole[0] += j.claimed;
			whole[1] += j.claimed + j.unknown;
		}
		if (!w->set.losses && w->set.sched && w->set.hyp && !w->set.reasons && w->set.guest &&
		    w->set.bound < 1000) {
			blind[0] += j.claimed;
			blind[1] += j.claimed + j.unknown;
		}
		world_release(w);
		if (one)
			break;
	}
	free(w);
	print_message(
		"%llu spans, %.1f %% claimed, %.2f %% of what lost nothing, %.2f %% without reasons; %llu "
		"seeds with a wrong claim\n",
		(unsigned long long)spans, 100.0 * (double)claimed / (double)(claimed + unknown),
		whole[1] ? 100.0 * (double)whole[0] / (double)whole[1] : 0,
		blind[1] ? 100.0 * (double)blind[0] / (double)blind[1] : 0, (unsigned long long)wrong);
	assert_int_equal(wrong, 0);
	if (!one) /* what is left unknown there precedes the first or follows the last event */
		assert_true(whole[0] * 100 > whole[1] * 97);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_truths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
