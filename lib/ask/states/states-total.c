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

static void sum_add(struct state_sum *to, const struct state_sum *part)
{
	to->ns += part->ns;
	to->n += part->n;
	to->undecided += part->undecided;
}

/* Returns the part of the span that lies in the time that is covered (ns 0: none), and forgets what was
 * before it. */
static struct state_sum total_part(const struct states *st, struct state_total *t, const struct state_span *s)
{
	struct state_span part = *s;
	uint64_t from = st ? s->covered_from : 0, ns, undecided;
	bool any = !st || states_cut(&part);

	if (t->from < from) { /* a buffer began since */
		free(t->thieves);
		free(t->causes);
		*t = (struct state_total){ .owner = t->owner, .from = from };
	}
	if (!any)
		return (struct state_sum){ 0 };
	if (__builtin_add_overflow(part.from_bound, part.to_bound, &undecided))
		undecided = UINT64_MAX;
	ns = part.to - part.from;
	return (struct state_sum){ ns, 1, undecided < ns ? undecided : ns };
}

/* The same by causes, and by what stole. */
static int total_detail(struct state_total *t, bool causes, const struct state_span *s, struct state_sum part)
{
	if (causes) {
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
		sum_add(&t->causes[i].sum, &part);
	}
	if (s->state == STATE_STOLEN)
		sum_add(&t->stolen[s->by], &part);
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
		sum_add(&t->thieves[i].sum, &part);
	}
	return 0;
}

int state_totals_span(void *totals, const struct state_span *s)
{
	static const struct state_total empty;
	struct state_totals *all = totals;
	struct state_total *t;
	struct state_sum part;

	while (all->n <= s->owner->index)
		if (array_push(&all->v, &all->n, &empty, sizeof(empty)))
			return -ENOMEM;
	t = &all->v[s->owner->index];
	t->owner = s->owner;
	part = total_part(all->st, t, s);
	if (!part.ns)
		return 0;
	sum_add(&t->all[s->state], &part);
	if (!all->with_causes && s->state != STATE_STOLEN && s->state != STATE_PREEMPTED)
		return 0;
	return total_detail(t, all->with_causes, s, part);
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
