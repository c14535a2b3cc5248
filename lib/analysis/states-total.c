// SPDX-License-Identifier: LGPL-2.1-or-later
/* Words for states, which of them files can tell, and sums of spans. */
#include <errno.h>
#include <stdlib.h>

#include "analysis/states-priv.h"
#include "util/array.h"

const char *state_name(enum state state)
{
	static const char *const names[STATES] = {
		[STATE_UNKNOWN] = "unknown",	 [STATE_GUEST] = "guest",	[STATE_HYP] = "hypervisor",
		[STATE_FIRMWARE] = "firmware",	 [STATE_HOST] = "host",		[STATE_VMM] = "VMM",
		[STATE_PREEMPTED] = "preempted", [STATE_HALTED] = "halted",	[STATE_BLOCKED] = "blocked",
		[STATE_OUTSIDE] = "outside",	 [STATE_RUNNING] = "running",	[STATE_STOLEN] = "stolen",
		[STATE_RUNNABLE] = "runnable",	 [STATE_SLEEPING] = "sleeping", [STATE_ENDED] = "ended"
	};

	return (unsigned int)state < STATES ? names[state] : "unknown";
}

/* ---- which can be told ----------------------------------------------------------------------- */

#define BIT(state) (1u << (state))

static bool told_kind(const struct states *st, size_t input, enum step_kind kind)
{
	return steps_known(st->steps, input, kind);
}

/* Of the vCPUs that a file's host runs. */
static unsigned int told_vcpus(const struct states *st, size_t input)
{
	bool kvm = told_kind(st, input, STEP_KVM_ENTRY) && told_kind(st, input, STEP_KVM_EXIT);
	bool hyp = told_kind(st, input, STEP_HYP_ENTER) && told_kind(st, input, STEP_HYP_EXIT);
	unsigned int told = 0;

	if (!kvm && !hyp)
		return 0;
	told |= BIT(STATE_GUEST);
	if (hyp)
		told |= BIT(STATE_HYP);
	if (hyp && steps_reason(st->steps, input, STEP_HYP_EXIT, 0)) /* it has reasons */
		told |= BIT(STATE_FIRMWARE);
	if (!told_kind(st, input, STEP_SWITCH))
		return told | BIT(STATE_OUTSIDE) |
		       (told_kind(st, input, STEP_VCPU_WAKEUP) ? BIT(STATE_HALTED) : 0);
	told |= BIT(STATE_HOST) | BIT(STATE_PREEMPTED) | BIT(STATE_BLOCKED) | BIT(STATE_ENDED);
	if (kvm)
		told |= BIT(STATE_HALTED);
	if (told_kind(st, input, STEP_USER_EXIT))
		told |= BIT(STATE_VMM);
	return told;
}

unsigned int states_told(const struct states *st, size_t input)
{
	unsigned int told = told_vcpus(st, input);

	if (!told_kind(st, input, STEP_SWITCH))
		return told;
	told |= BIT(STATE_RUNNING) | BIT(STATE_RUNNABLE) | BIT(STATE_SLEEPING) | BIT(STATE_ENDED);
	if (st->in[input].host && told_vcpus(st, st->in[input].host->index))
		told |= BIT(STATE_STOLEN);
	return told;
}

/* ---- sums ------------------------------------------------------------------------------------- */

static void sum_add(struct state_sum *to, const struct state_span *s)
{
	uint64_t ns = s->to - s->from, undecided = s->from_bound;

	undecided = s->to_bound > UINT64_MAX - undecided ? UINT64_MAX : undecided + s->to_bound;
	to->ns += ns;
	to->n++;
	to->undecided += undecided < ns ? undecided : ns;
}

static int thief_add(struct state_total *t, const struct state_span *s)
{
	struct state_thief thief = { s->other, s->other_input, { 0 } };
	size_t i = 0;

	while (i < t->n_thieves && (t->thieves[i].pid != thief.pid || t->thieves[i].input != thief.input))
		i++;
	if (i == t->n_thieves && i >= STATE_THIEVES_MAX - 1) { /* the last is all others */
		i = STATE_THIEVES_MAX - 1;
		thief.pid = STATE_NO_TASK;
		thief.input = STATE_NO_INPUT;
	}
	if (i == t->n_thieves && array_push(&t->thieves, &t->n_thieves, &thief, sizeof(thief)))
		return -ENOMEM;
	sum_add(&t->thieves[i].sum, s);
	return 0;
}

static int totals_reach(struct state_totals *t, uint32_t index)
{
	static const struct state_total empty;

	while (t->n <= index)
		if (array_push(&t->v, &t->n, &empty, sizeof(empty)))
			return -ENOMEM;
	return 0;
}

int state_totals_span(void *totals, const struct state_span *s)
{
	struct state_totals *all = totals;
	struct state_total *t;

	if (totals_reach(all, s->owner->index))
		return -ENOMEM;
	t = &all->v[s->owner->index];
	t->owner = s->owner;
	sum_add(&t->all[s->state], s);
	if (s->state == STATE_STOLEN)
		sum_add(&t->stolen[s->by], s);
	if (s->state == STATE_PREEMPTED || (s->state == STATE_STOLEN && s->by == STATE_PREEMPTED))
		return thief_add(t, s);
	return 0;
}

void state_totals_release(struct state_totals *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->v[i].thieves);
	free(t->v);
	*t = (struct state_totals){ 0 };
}
