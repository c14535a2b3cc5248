// SPDX-License-Identifier: LGPL-2.1-or-later
/* What a thread and a vCPU do, as far as no event that is missing could have changed it. */
#include "analysis/states-priv.h"

/* ---- vCPUs -------------------------------------------------------------------------------- */

bool state_kvm_exposed(const struct state_vcpu *v)
{
	const struct state_task *t = v->task;

	if (!v->in->gaps[FAMILY_KVM])
		return false;
	if (v->kvm == KVM_IN && v->cpu)
		return v->cpu->gap[FAMILY_KVM];
	if (t->run == RUN_UNKNOWN)
		return true;
	return t->run == RUN_ON && t->cpu->gap[FAMILY_KVM];
}

void state_kvm_set(struct state_vcpu *v, enum kvm_side side)
{
	v->kvm = (uint8_t)side;
	if (state_kvm_exposed(v))
		v->kvm = KVM_UNKNOWN;
}

/* ---- threads ------------------------------------------------------------------------------ */

static void task_list(struct state_input *in, struct state_task *t, bool known)
{
	if (known == t->listed)
		return;
	t->listed = known;
	if (!known) {
		*t->at = t->next;
		if (t->next)
			t->next->at = t->at;
		return;
	}
	t->next = in->tasks;
	t->at = &in->tasks;
	if (t->next)
		t->next->at = &t->next;
	in->tasks = t;
}

static void vcpu_wait(struct state_vcpu *v, struct state_cpu *c)
{
	if (v->waits_at) {
		*v->waits_at = v->waits_next;
		if (v->waits_next)
			v->waits_next->waits_at = v->waits_at;
		v->waits_at = NULL;
	}
	if (!c)
		return;
	v->waits_next = c->waiting;
	v->waits_at = &c->waiting;
	if (v->waits_next)
		v->waits_next->waits_at = &v->waits_next;
	c->waiting = v;
}

void state_run_set(struct states *st, struct state_task *t, enum run_side run, struct state_cpu *c)
{
	struct state_input *in = &st->in[t->input];

	/* on a CPU with a gap anything may have happened to it; else it may have come to such a CPU */
	if (run == RUN_ON ? c->gap[FAMILY_SCHED] : in->gaps[FAMILY_SCHED])
		run = RUN_UNKNOWN;
	t->run = (uint8_t)run;
	t->sure = state_sure(st);
	t->cpu = c ?: t->cpu;
	task_list(in, t, run != RUN_UNKNOWN);
	if (!t->vcpu)
		return;
	vcpu_wait(t->vcpu, run == RUN_WAITS ? t->cpu : NULL);
	state_kvm_set(t->vcpu, t->vcpu->kvm); /* it may be elsewhere now */
}
