// SPDX-License-Identifier: LGPL-2.1-or-later
/* Lost events: what they could have changed is unknown from the first of them on. */
#include "analysis/states-priv.h"

static const unsigned int family_kinds[FAMILIES] = {
	[FAMILY_SCHED] = 1u << STEP_SWITCH | 1u << STEP_WAKING | 1u << STEP_WAKEUP,
	[FAMILY_KVM] = 1u << STEP_KVM_ENTRY | 1u << STEP_KVM_EXIT | 1u << STEP_USER_EXIT |
		       1u << STEP_VCPU_WAKEUP | 1u << STEP_WFX,
	[FAMILY_HYP] = 1u << STEP_HYP_ENTER | 1u << STEP_HYP_EXIT,
};

static bool family_in_gap(const struct state_cpu *c, enum state_family f)
{
	unsigned int kinds = family_kinds[f] & c->in->kinds;

	for (unsigned int kind = 0; kind < STEP_KINDS; kind++)
		if (kinds & 1u << kind && c->gaps & 1ull << c->in->buffer[kind])
			return true;
	return false;
}

/* ---- what a gap hides ------------------------------------------------------------------------ */

static void gap_sched(struct states *st, struct state_cpu *c)
{
	struct state_task *next;

	c->pid = STATE_NO_TASK;
	c->task = NULL;
	for (struct state_task *t = c->in->tasks; t; t = next) {
		next = t->next;
		if (t->run == RUN_ON && t->cpu != c)
			continue;
		state_run_set(st, t, RUN_UNKNOWN, NULL);
		state_task_settle(st, t);
	}
}

static void gap_kvm(struct states *st, struct state_cpu *c)
{
	for (struct state_vcpu *v = c->in->vcpus; v; v = v->next) {
		if (!state_kvm_paired(v->in))
			state_vcpu_doubt(st, v);
		if (!state_kvm_exposed(v))
			continue;
		v->kvm = KVM_UNKNOWN;
		state_vcpu_settle(st, v);
	}
}

static void gap_hyp(struct states *st, struct state_cpu *c)
{
	struct state_vcpu *v = state_cpu_vcpu(c), *inside = c->inside;

	c->hyp = HYP_UNKNOWN;
	c->inside = NULL;
	if (v)
		state_vcpu_settle(st, v);
	if (inside && inside != v)
		state_vcpu_settle(st, inside);
}

static void gap_refresh(struct states *st, struct state_cpu *c)
{
	static void (*const hide[FAMILIES])(struct states *, struct state_cpu *) = {
		[FAMILY_SCHED] = gap_sched, [FAMILY_KVM] = gap_kvm, [FAMILY_HYP] = gap_hyp
	};
	bool was[FAMILIES];

	for (int f = 0; f < FAMILIES; f++) {
		was[f] = c->gap[f];
		c->gap[f] = family_in_gap(c, f);
		c->in->gaps[f] += (unsigned int)c->gap[f] - (unsigned int)was[f];
	}
	for (int f = 0; f < FAMILIES && st; f++)
		if (c->gap[f] && !was[f])
			hide[f](st, c);
}

void state_gap_learn(struct state_input *in, enum step_kind kind, uint8_t buffer)
{
	in->kinds |= 1u << kind;
	in->buffer[kind] = buffer;
	for (size_t i = 0; i < in->n_cpus; i++)
		if (in->cpus[i] && in->cpus[i]->gaps)
			gap_refresh(NULL, in->cpus[i]);
}

void state_gap_tell(struct states *st, struct state_cpu *c)
{
	c->gaps |= c->in->over;
	gap_refresh(st, c);
}

void state_gap_over(struct states *st, struct state_input *in, uint8_t buffer)
{
	in->over |= 1ull << buffer;
	for (size_t i = 0; i < in->n_cpus; i++)
		if (in->cpus[i])
			state_gap_tell(st, in->cpus[i]);
}

void state_gap_step(struct states *st, struct state_cpu *c, const struct step *s)
{
	uint64_t buffer = 1ull << (s->buffer < STATE_BUFFERS_MAX ? s->buffer : STATE_BUFFERS_MAX - 1);

	if (s->kind == STEP_GAP) {
		c->gaps |= buffer;
		gap_refresh(st, c);
		return;
	}
	if (!(c->gaps & buffer)) { /* nobody said where it began: what is shown now is in doubt */
		c->gaps |= buffer;
		st->amend = true;
		st->amend_from = 0;
		gap_refresh(st, c);
		st->amend = false;
	}
	if (s->b == 1) /* to the end */
		return;
	c->gaps &= ~buffer;
	gap_refresh(st, c);
}
