// SPDX-License-Identifier: LGPL-2.1-or-later
/* The state that follows from what is known of a thread, its CPU and its vCPU. */
#include "analysis/states-priv.h"

static const struct state_view unknown_view = { .cpu = STATE_NO_CPU,
						.other = STATE_NO_TASK,
						.other_input = STATE_NO_INPUT };

/* ---- vCPUs ------------------------------------------------------------------------------ */

static void view_why(struct state_view *view, uint8_t why, uint64_t reason, uint64_t class)
{
	view->why = why;
	view->reason = reason;
	view->class = class;
}

static void view_exit(struct state_view *view, const struct state_vcpu *v)
{
	if (v->kvm == KVM_OUT || v->kvm == KVM_USER)
		view_why(view, v->why, v->reason, v->class);
}

static void tell_host(const struct state_vcpu *v, struct state_view *view)
{
	const struct state_input *in = v->in;

	bool told = v->kvm != KVM_UNKNOWN;

	if (!told && !state_seen_hyp(in)) /* it may be in the guest */
		return;
	view->state = v->kvm == KVM_USER ? STATE_VMM : STATE_HOST;
	view->coarse =
		!told || !state_seen(in, STEP_USER_EXIT) || in->blind || (!in->x86 && !state_seen_hyp(in));
	view_exit(view, v);
}

/* Its thread has the CPU. */
static void tell_on_cpu(struct state_vcpu *v, const struct state_cpu *c, struct state_view *view)
{
	if (!state_seen_hyp(v->in)) {
		if (v->kvm != KVM_IN) {
			tell_host(v, view);
			return;
		}
		view->state = STATE_GUEST;
		view->coarse = !v->in->x86;
		return;
	}
	v->track.sure = c->hyp_sure;
	switch (c->hyp) {
	case HYP_HOST:
		tell_host(v, view);
		return;
	case HYP_EL2:
	case HYP_EL3:
		view->state = c->hyp == HYP_EL2 ? STATE_HYP : STATE_FIRMWARE;
		view_why(view, c->hyp_why, c->hyp_reason, 0);
		return;
	case HYP_GUEST:
		if (!c->inside || c->inside == v)
			view->state = STATE_GUEST;
		return;
	}
}

bool state_halt_coarse(const struct state_vcpu *v)
{
	return v->why == STEP_NONE || (v->halts && !state_seen(v->in, STEP_USER_EXIT));
}

static bool told_wakings(const struct state_input *in)
{
	return state_seen(in, STEP_WAKING) || state_seen(in, STEP_WAKEUP);
}

static void tell_off_cpu(const struct state_vcpu *v, struct state_view *view)
{
	const struct state_task *t = v->task;

	if (t->run == RUN_ENDED) {
		view->state = STATE_ENDED;
		return;
	}
	if (t->run == RUN_WAITS) {
		view->state = STATE_PREEMPTED;
		view->other = t->cpu ? t->cpu->pid : STATE_NO_TASK;
		view->other_input = t->input;
	} else if (v->kvm != KVM_UNKNOWN) {
		view->state = v->halts ? STATE_HALTED : STATE_BLOCKED;
		view->coarse = !told_wakings(v->in) || state_halt_coarse(v);
	}
	view_exit(view, v);
}

static bool side_inside(uint8_t hyp)
{
	return hyp == HYP_GUEST || hyp == HYP_EL2 || hyp == HYP_EL3;
}

static void tell_vcpu(struct state_vcpu *v, struct state_view *view)
{
	const struct state_task *t = v->task;
	const struct state_cpu *c = v->kvm == KVM_IN ? v->cpu : t->cpu, *on = v->inside_on;
	bool inside = on && on->inside == v && side_inside(on->hyp);

	if (inside) /* the hypervisor says so, whatever else is known */
		c = on;
	v->track.sure = 0;
	*view = unknown_view;
	view->cpu = c ? c->number : STATE_NO_CPU;
	if (inside || v->kvm == KVM_IN || t->run == RUN_ON) {
		if (c)
			tell_on_cpu(v, c, view);
	} else if (t->run != RUN_UNKNOWN) {
		tell_off_cpu(v, view);
	} else if (!state_seen(v->in, STEP_SWITCH) && v->kvm != KVM_UNKNOWN) {
		view->state = STATE_OUTSIDE;
		view->cpu = v->cpu->number;
		view_exit(view, v);
	}
}

struct state_vcpu *state_cpu_vcpu(const struct state_cpu *c)
{
	if (c->task)
		return c->task->vcpu;
	return c->pid == STATE_NO_TASK && c->loaded && c->loaded->cpu == c ? c->loaded : NULL;
}

/* ---- tasks ------------------------------------------------------------------------------ */

static void tell_running(const struct state_task *t, const struct state_input *in, struct state_view *view)
{
	const struct state_vcpu *v = in->in->guest ? t->cpu->vcpu : NULL;

	if (v && t->track->sure < v->track.sure)
		t->track->sure = v->track.sure;
	view->state = STATE_RUNNING;
	view->coarse = in->in->guest && !v;
	if (!v)
		return;
	*view = v->track.view;
	view->cpu = t->cpu->number;
	if (view->state == STATE_GUEST) {
		view->state = STATE_RUNNING;
	} else if (view->state != STATE_UNKNOWN) {
		view->by = view->state;
		view->state = STATE_STOLEN;
	}
}

static void tell_task(const struct states *st, const struct state_task *t, struct state_view *view)
{
	const struct state_input *in = &st->in[t->input];

	t->track->sure = t->sure;
	*view = unknown_view;
	view->cpu = t->cpu ? t->cpu->number : STATE_NO_CPU;
	switch (t->run) {
	case RUN_ON:
		tell_running(t, in, view);
		return;
	case RUN_WAITS:
		view->state = STATE_RUNNABLE;
		view->other = t->thief;
		view->other_input = t->input;
		return;
	case RUN_SLEEPS:
		view->state = STATE_SLEEPING;
		view->coarse = !told_wakings(in);
		return;
	case RUN_ENDED:
		view->state = STATE_ENDED;
		return;
	}
}

/* ---- showing it --------------------------------------------------------------------------- */

void state_vcpu_settle(struct states *st, struct state_vcpu *v)
{
	struct state_view view;

	tell_vcpu(v, &view);
	if (view.state == STATE_UNKNOWN)
		view = unknown_view;
	state_track_show(st, &v->track, &view);
	if (v->guest && v->guest->task)
		state_task_settle(st, v->guest->task);
}

void state_task_settle(struct states *st, struct state_task *t)
{
	struct state_view view;

	if (t->track) {
		tell_task(st, t, &view);
		if (view.state == STATE_UNKNOWN)
			view = unknown_view;
		state_track_show(st, t->track, &view);
	}
	if (t->vcpu)
		state_vcpu_settle(st, t->vcpu);
}

void state_vcpu_doubt(struct states *st, struct state_vcpu *v)
{
	struct state_task *t = v->guest ? v->guest->task : NULL;

	v->track.view = unknown_view;
	if (t && t->track && t->run == RUN_ON)
		t->track->view = unknown_view;
	(void)st;
}

void state_task_doubt(struct states *st, struct state_task *t)
{
	if (t->track)
		t->track->view = unknown_view;
	if (t->vcpu)
		state_vcpu_doubt(st, t->vcpu);
}

/* ---- the end ------------------------------------------------------------------------------- */

/* Whoever records a kind into a buffer has what came into it until its last step. */
static uint64_t family_proven(const struct state_input *in, unsigned int kinds)
{
	uint64_t until = UINT64_MAX;

	kinds &= in->kinds;
	for (unsigned int kind = 0; kind < STEP_KINDS; kind++)
		if (kinds & 1u << kind && in->live[in->buffer[kind]] < until)
			until = in->live[in->buffer[kind]];
	return until;
}

#define SCHED_KINDS (1u << STEP_SWITCH | 1u << STEP_WAKING | 1u << STEP_WAKEUP)
#define KVM_KINDS   (1u << STEP_KVM_ENTRY | 1u << STEP_KVM_EXIT)
#define HYP_KINDS   (1u << STEP_HYP_ENTER | 1u << STEP_HYP_EXIT)

static uint64_t proven_vcpu(const struct state_vcpu *v)
{
	switch (v->track.view.state) {
	case STATE_PREEMPTED:
	case STATE_HALTED:
	case STATE_BLOCKED:
	case STATE_ENDED:
		return family_proven(v->in, SCHED_KINDS);
	case STATE_GUEST:
	case STATE_HYP:
	case STATE_FIRMWARE:
		if (state_seen_hyp(v->in))
			return family_proven(v->in, HYP_KINDS);
		return state_kvm_paired(v->in) ? family_proven(v->in, KVM_KINDS) : 0;
	default:
		if (!state_kvm_paired(v->in))
			return 0;
		return family_proven(v->in, SCHED_KINDS | KVM_KINDS | HYP_KINDS);
	}
}

uint64_t state_proven(const struct states *st, const struct state_track *t)
{
	const struct state_input *in = &st->in[t->owner.input];
	const struct state_task *task = state_task_find(st, in, t->owner.pid);
	uint64_t until, vcpu = UINT64_MAX;

	if (t->owner.kind == STATE_OF_VCPU)
		return proven_vcpu(task->vcpu);
	until = family_proven(in, SCHED_KINDS);
	if (in->in->guest && task->run == RUN_ON && task->cpu->vcpu)
		vcpu = proven_vcpu(task->cpu->vcpu);
	return vcpu < until ? vcpu : until;
}
