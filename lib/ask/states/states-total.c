// SPDX-License-Identifier: LGPL-2.1-or-later
/* Words for states, and sums of spans. */
#include "ask/states/states-priv.h"

const char *state_name(enum state state)
{
	static const char *const names[STATES] = { [STATE_UNKNOWN] = "lost",
						   [STATE_GUEST] = "guest",
						   [STATE_HYP] = "hypervisor",
						   [STATE_FIRMWARE] = "firmware",
						   [STATE_HOST] = "host",
						   [STATE_VMM] = "VMM",
						   [STATE_PREEMPTED] = "preempted",
						   [STATE_WAKING] = "waking",
						   [STATE_HALTED] = "halted",
						   [STATE_BLOCKED] = "blocked",
						   [STATE_OUTSIDE] = "not recorded",
						   [STATE_RUNNING] = "running",
						   [STATE_STOLEN] = "stolen",
						   [STATE_RUNNABLE] = "runnable",
						   [STATE_SLEEPING] = "sleeping",
						   [STATE_ENDED] = "ended" };

	return (unsigned int)state < STATES ? names[state] : "lost";
}

static void sum_add(struct state_sum *to, const struct state_span *s)
{
	uint64_t ns = s->to - s->from, undecided = s->from_bound;

	undecided = s->to_bound > UINT64_MAX - undecided ? UINT64_MAX : undecided + s->to_bound;
	to->ns += ns;
	to->n++;
	to->undecided += undecided < ns ? undecided : ns;
}

/* Cuts the span to the time that is covered, and forgets what was before that; false: nothing is left. */
static bool total_cut(const struct states *st, struct state_total *t, struct state_span *s)
{
	uint64_t from, to;

	states_covered(st, s->owner, &from, &to);
	if (t->from < from) { /* a buffer began since */
		free(t->thieves);
		free(t->causes);
		*t = (struct state_total){ .owner = t->owner, .from = from };
	}
	if (s->from < from) {
		s->from = from;
		s->from_bound = 0;
	}
	if (s->to > to) {
		s->to = to;
		s->to_bound = 0;
	}
	return s->from < s->to;
}

int state_totals_span(void *totals, const struct state_span *span)
{
	static const struct state_total empty;
	struct state_span cut = *span, *s = &cut;
	struct state_totals *all = totals;
	struct state_total *t;

	while (all->n <= s->owner->index)
		if (array_push(&all->v, &all->n, &empty, sizeof(empty)))
			return -ENOMEM;
	t = &all->v[s->owner->index];
	t->owner = s->owner;
	if (all->st && !total_cut(all->st, t, s))
		return 0;
	if (all->with_causes) {
		const struct state_cause cause = {
			s->state, s->why, s->why == STEP_NONE ? 0 : s->reason, { 0 }
		};
		size_t i = 0;

		while (i < t->n_causes &&
		       (t->causes[i].state != cause.state || t->causes[i].why != cause.why ||
			t->causes[i].reason != cause.reason))
			i++;
		if (i == t->n_causes && array_push(&t->causes, &t->n_causes, &cause, sizeof(cause)))
			return -ENOMEM;
		sum_add(&t->causes[i].sum, s);
	}
	sum_add(&t->all[s->state], s);
	if (s->state == STATE_STOLEN)
		sum_add(&t->stolen[s->by], s);
	if (s->state == STATE_PREEMPTED || (s->state == STATE_STOLEN && s->by == STATE_PREEMPTED)) {
		struct state_thief thief = { s->other, s->other_input, { 0 } };
		size_t i = 0;

		while (i < t->n_thieves &&
		       (t->thieves[i].pid != thief.pid || t->thieves[i].input != thief.input))
			i++;
		if (i == t->n_thieves && i >= STATE_THIEVES_MAX - 1) { /* the last is all others */
			i = STATE_THIEVES_MAX - 1;
			thief.pid = STATE_NO_TASK;
			thief.input = STATE_NO_INPUT;
		}
		if (i == t->n_thieves && array_push(&t->thieves, &t->n_thieves, &thief, sizeof(thief)))
			return -ENOMEM;
		sum_add(&t->thieves[i].sum, s);
	}
	return 0;
}

void state_totals_release(struct state_totals *t)
{
	for (size_t i = 0; i < t->n; i++) {
		free(t->v[i].thieves);
		free(t->v[i].causes);
	}
	free(t->v);
	*t = (struct state_totals){ 0 };
}
