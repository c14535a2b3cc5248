// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * KVM's and the hypervisor's events: in the guest, in the hypervisor, out of it and why. A state begins with
 * each of them, and other events end it before its counterpart comes (WFx, wake-ups, exits to the VMM,
 * switches), so that none waits for its pair. Where no other event comes in between, states have the edges of
 * the spans of lib/spans (tests/integration/spans.t).
 */
#include "ask/states/states-priv.h"

#define ESR_WFX	  1    /* ESR_ELx_EC_WFx */
#define ISA_SHIFT 32   /* struct step */
#define VMX_HLT	  12   /* EXIT_REASON_HLT */
#define SVM_HLT	  0x78 /* SVM_EXIT_HLT */
#define ISA_VMX	  1
#define ISA_SVM	  2

/* The other one of the pair is missing before this one. */
static void kvm_unpaired(struct state_vcpu *v)
{
	enum state shown = v->track.open.state;

	if (!state_seen_hyp(v->in) || shown == STATE_VMM || shown == STATE_OUTSIDE)
		state_vcpu_doubt(v);
}

/* Without an isa the reason may be of either. */
static bool exit_halts(const struct state_input *in, const struct step *s)
{
	uint32_t reason = (uint32_t)s->a;
	uint64_t isa = s->a >> ISA_SHIFT;

	if (!in->x86)
		return s->b == ESR_WFX;
	return (reason == VMX_HLT && isa != ISA_SVM) || (reason == SVM_HLT && isa != ISA_VMX);
}

static void vcpu_out(struct state_vcpu *v, enum kvm_side side, const struct step *s)
{
	v->why = s->kind;
	v->reason = s->a;
	v->class = s->b;
	state_kvm_set(v, side);
}

void state_kvm_step(struct states *st, struct state_cpu *c, const struct step *s)
{
	struct state_vcpu *v = c->task && c->task->pid == s->pid ? c->task->vcpu : NULL;
	struct state_span wait;
	uint64_t from;

	v = v ?: state_vcpu_of(st, c->in, s->pid);
	if (!v)
		return;
	state_sched_proof(st, c, v->task);
	c->loaded = v;
	v->cpu = c;
	switch (s->kind) {
	case STEP_KVM_ENTRY:
		if (v->kvm == KVM_IN)
			kvm_unpaired(v);
		v->halts = v->entered = false;
		state_kvm_set(v, KVM_IN);
		break;
	case STEP_KVM_EXIT:
		if (v->kvm == KVM_OUT || v->kvm == KVM_USER)
			kvm_unpaired(v);
		if (c->hyp == HYP_GUEST && s->ts >= c->hyp_sure) { /* its hyp_enter is missing */
			state_vcpu_doubt(v);
			c->hyp = HYP_HOST;
			c->inside = NULL;
		}
		v->halts = exit_halts(v->in, s);
		vcpu_out(v, KVM_OUT, s);
		break;
	case STEP_USER_EXIT:
		if (v->kvm == KVM_IN)
			kvm_unpaired(v);
		v->halts = false;
		vcpu_out(v, KVM_USER, s);
		break;
	case STEP_WFX:
		if (s->a != STEP_UNKNOWN)
			v->halts = !s->a;
		break;
	case STEP_VCPU_WAKEUP:
		/* a wait of s->a ns is over: what was shown since its begin, if nothing else came in between
		 */
		state_view_set(&wait, &v->track.open);
		from = s->a < st->now ? st->now - s->a : 0;
		if (v->kvm != KVM_OUT || !v->halts || from < v->track.open.from ||
		    (wait.state != STATE_HOST && wait.state != STATE_OUTSIDE))
			break;
		wait.coarse = wait.state == STATE_OUTSIDE; /* and the wait for a CPU after it */
		wait.state = STATE_HALTED;
		state_track_cut(st, &v->track, from, &wait);
		break;
	}
	state_vcpu_settle(st, v);
}

/* The vCPU in the guest there, by hyp_exit's field: until the hypervisor returns to the host. */
static void el2_inside(struct states *st, struct state_cpu *c, const struct step *s)
{
	struct state_vcpu *v = c->inside;

	if (c->hyp == HYP_EL2 || c->hyp == HYP_EL3)
		return;
	if (c->hyp == HYP_GUEST && s->b && s->b <= INT32_MAX) {
		c->inside = v = state_vcpu_of(st, c->in, (int32_t)s->b);
		if (!v)
			return;
		v->inside_on = c;
	} else {
		c->inside = NULL;
	}
	if (!v || state_seen_kvm(c->in))
		return;
	c->loaded = v; /* without KVM's events these show the same */
	v->cpu = c;
	state_kvm_set(v, c->hyp == HYP_GUEST ? KVM_IN : KVM_OUT);
}

void state_hyp_step(struct states *st, struct state_cpu *c, const struct step *s)
{
	struct state_vcpu *v = state_cpu_vcpu(c), *was = c->inside;

	c->hyp_since = st->now;
	c->hyp_sure = state_sure(st);
	c->guest_at = 0;
	c->hyp_why = s->a == STEP_UNKNOWN ? STEP_NONE : s->kind;
	c->hyp_reason = s->a == STEP_UNKNOWN ? 0 : s->a;
	if (s->kind == STEP_HYP_ENTER)
		c->hyp = HYP_EL2;
	else if (s->a != STEP_UNKNOWN)
		c->hyp = s->a < STATE_REASONS ? c->in->hyp_exit_to[s->a] : HYP_UNKNOWN;
	else {
		c->in->without_reasons = st->without_reasons = true;
		if (!v || v->kvm == KVM_OUT || v->kvm == KVM_USER)
			c->hyp = HYP_HOST;
		else if (v->kvm == KVM_IN)
			c->hyp = v->entered ? HYP_UNTOLD : HYP_GUEST;
		else
			c->hyp = HYP_UNKNOWN;
		if (v)
			v->entered = true;
	}
	el2_inside(st, c, s);
	if (v)
		state_vcpu_settle(st, v);
	if (was && was != v)
		state_vcpu_settle(st, was);
	if (c->inside && c->inside != v && c->inside != was)
		state_vcpu_settle(st, c->inside);
}

/* The unknown side since the last hyp_exit is that one. */
static void hyp_was(struct states *st, struct state_cpu *c, enum hyp_side side)
{
	struct state_vcpu *v = c->hyp == HYP_UNTOLD ? state_cpu_vcpu(c) : NULL;

	c->hyp = (uint8_t)side;
	if (!v)
		return;
	st->amend = true;
	st->amend_from = c->hyp_since;
	state_vcpu_settle(st, v);
	st->amend = false;
}

void state_hyp_is_host(struct states *st, struct state_cpu *c)
{
	hyp_was(st, c, c->gap[FAMILY_HYP] ? c->hyp : HYP_HOST);
	c->hyp_sure = st->now;
}

void state_hyp_is_guest(struct states *st, struct state_cpu *c)
{
	if (c->guest_at && c->guest_at < st->now)
		hyp_was(st, c, HYP_GUEST);
}

void state_hyp_shown(struct states *st, const struct state_vcpu *v, uint64_t ts, uint64_t bound)
{
	struct state_cpu *c = v->cpu;

	if (!c || c->hyp != HYP_UNTOLD || state_cpu_vcpu(c) != v)
		return;
	if (!c->guest_at && bound <= ts && ts - bound > c->hyp_sure)
		c->guest_at = ts + bound;
	state_hyp_is_guest(st, c);
}
