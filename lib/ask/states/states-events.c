// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Threads, vCPUs and CPUs as events and gaps show them: by the scheduler's (running where, waiting, asleep or
 * unknown), and by KVM's and the hypervisor's (in the guest, in the hypervisor, out of it and why). A state
 * of the latter begins with each of them, and other events end it before its counterpart comes (WFx,
 * wake-ups, exits to the VMM, switches), so that none waits for its pair. Where no other event comes in
 * between, states have the edges of the spans of lib/spans (tests/integration/spans.t).
 */
#include "ask/states/states-priv.h"

/* True if events that are missing now could have changed what a vCPU does by KVM. */
static bool kvm_exposed(const struct state_vcpu *v)
{
	const struct state_task *t = v->task;

	if (!v->in->gaps[FAMILY_KVM])
		return false;
	if (v->kvm == KVM_IN && v->cpu)
		return v->cpu->gap[FAMILY_KVM];
	return t->run == RUN_UNKNOWN || (t->run == RUN_ON && t->cpu->gap[FAMILY_KVM]);
}

/* The vCPU's side by KVM; unknown where an event that is missing could have changed it. */
static void state_kvm_set(struct state_vcpu *v, enum kvm_side side)
{
	v->kvm = (uint8_t)side;
	if (kvm_exposed(v))
		v->kvm = KVM_UNKNOWN;
}

/*
 * Sets the side and the CPU of a thread (NULL: as before), with the lists that it is on; unknown where an
 * event that is missing could have changed it. Not yet shown.
 */
static void run_set(struct states *st, struct state_task *t, enum run_side run, struct state_cpu *c)
{
	struct state_input *in = &st->in[t->input];
	struct state_vcpu *v = t->vcpu;

	/* on a CPU with a gap anything may have happened to it; else it may have come to such a CPU */
	if (run == RUN_ON ? c->gap[FAMILY_SCHED] : in->gaps[FAMILY_SCHED])
		run = RUN_UNKNOWN;
	t->run = (uint8_t)run;
	t->sure = state_sure(st);
	t->cpu = c ?: t->cpu;
	if (t->listed && run == RUN_UNKNOWN)
		LIST_REMOVE(t, in_list);
	else if (!t->listed && run != RUN_UNKNOWN)
		LIST_INSERT_HEAD(&in->tasks, t, in_list);
	t->listed = run != RUN_UNKNOWN;
	if (!v)
		return;
	if (v->waits.le_prev)
		LIST_REMOVE(v, waits);
	v->waits.le_prev = NULL;
	if (run == RUN_WAITS && t->cpu)
		LIST_INSERT_HEAD(&t->cpu->waiting, v, waits);
	state_kvm_set(v, v->kvm); /* it may be elsewhere now */
}

/*
 * sched_switch's prev_state: one bit for each reason to sleep; runnable is 0, and preempted a bit above
 * those (include/trace/events/sched.h, __trace_sched_switch_state).
 */
#define SLEEP_BITS 0xff
#define ENDED_BITS 0x30 /* EXIT_DEAD, EXIT_ZOMBIE */

static int32_t pid_of_field(uint64_t v)
{
	return v <= INT32_MAX ? (int32_t)v : STATE_NO_TASK;
}

/* vCPUs that wait for the CPU show another task that has it. */
static void sched_settle_waiting(struct states *st, struct state_cpu *c)
{
	struct state_vcpu *next;

	for (struct state_vcpu *v = LIST_FIRST(&c->waiting); v; v = next) {
		next = LIST_NEXT(v, waits);
		state_vcpu_settle(st, v);
	}
}

/* Another task than was thought has had the CPU, since an unknown time: vCPUs wait for that one. */
static void sched_forget(struct state_cpu *c)
{
	for (struct state_vcpu *v = LIST_FIRST(&c->waiting); v; v = LIST_NEXT(v, waits))
		if (v->track.open.state == STATE_PREEMPTED || v->track.open.state == STATE_WAKING) {
			v->track.open.state = STATE_PREEMPTED;
			v->track.open.other = STATE_NO_TASK;
			v->track.open.other_input = v->in->index;
			v->track.open.coarse = true;
		}
	c->pid = STATE_NO_TASK;
	c->task = NULL;
}

static void sched_contradict(struct states *st, struct state_cpu *c)
{
	struct state_task *t = c->task;

	sched_forget(c);
	if (!t)
		return;
	state_task_doubt(t);
	run_set(st, t, RUN_UNKNOWN, NULL);
	state_task_settle(st, t);
}

/* The task was thought to run somewhere else than on c. */
static void sched_elsewhere(const struct state_cpu *c, struct state_task *t)
{
	struct state_cpu *old = t->cpu;

	state_task_doubt(t);
	if (t->run != RUN_ON || old == c || old->task != t)
		return;
	sched_forget(old);
}

/* The task runs on c, which knows no other. */
static void sched_come(struct states *st, struct state_cpu *c, struct state_task *t)
{
	if ((t->run == RUN_ON && t->cpu != c) || t->run == RUN_ENDED)
		sched_elsewhere(c, t);
	run_set(st, t, RUN_ON, c);
	state_task_settle(st, t);
}

static void sched_wake(struct states *st, struct state_cpu *c, const struct step *s)
{
	struct state_task *t = state_task_of(st, c->in, pid_of_field(s->a));
	struct state_cpu *to;

	/* without sched_switch nothing would end the wait */
	if (!t || t->run == RUN_ON || !state_seen(c->in, STEP_SWITCH))
		return;
	to = s->b != STEP_UNKNOWN ? state_cpu_of(st, c->in, s->b) : t->cpu;
	if (t->run == RUN_WAITS && (s->kind != STEP_WAKEUP || to == t->cpu || s->b == STEP_UNKNOWN))
		return;
	if (t->track)
		state_track_woken(t->track, s->pid, t->input, false);
	if (t->vcpu)
		state_track_woken(&t->vcpu->track, s->pid, t->input, state_halt_coarse(t->vcpu));
	if (t->run != RUN_WAITS)
		t->preempter = to ? to->pid : STATE_NO_TASK;
	run_set(st, t, RUN_WAITS, to);
	state_task_settle(st, t);
}

void state_sched_step(struct states *st, struct state_cpu *c, const struct step *s)
{
	struct state_task *prev, *next;
	int32_t pid;

	if (s->kind != STEP_SWITCH) {
		sched_wake(st, c, s);
		return;
	}
	prev = c->task && c->task->pid == s->pid ? c->task : state_task_of(st, c->in, s->pid);
	if (c->pid != s->pid && c->pid != STATE_NO_TASK)
		sched_contradict(st, c);
	pid = pid_of_field(s->a);
	next = state_task_of(st, c->in, pid);
	c->pid = c->gap[FAMILY_SCHED] ? STATE_NO_TASK : pid;
	c->task = NULL;
	if (prev && prev != next) {
		if (prev->run != RUN_UNKNOWN && (prev->run != RUN_ON || prev->cpu != c))
			sched_elsewhere(c, prev);
		/* it cannot lose its CPU in the guest: an exit is missing */
		if (prev->vcpu && prev->vcpu->kvm == KVM_IN) {
			if (!state_seen_hyp(prev->vcpu->in))
				state_vcpu_doubt(prev->vcpu);
			state_kvm_set(prev->vcpu, KVM_UNKNOWN);
		}
		prev->preempter = c->pid;
		run_set(st, prev,
			s->b == STEP_UNKNOWN   ? RUN_UNKNOWN
			: !(s->b & SLEEP_BITS) ? RUN_WAITS
			: s->b & ENDED_BITS    ? RUN_ENDED
					       : RUN_SLEEPS,
			c);
		state_task_settle(st, prev);
	}
	if (next) {
		c->task = c->pid == pid ? next : NULL;
		sched_come(st, c, next);
	}
	sched_settle_waiting(st, c);
}

/* An event shows that a task runs there. */
static void state_sched_proof(struct states *st, struct state_cpu *c, struct state_task *t)
{
	if (c->task == t || !state_seen(c->in, STEP_SWITCH) || c->gap[FAMILY_SCHED])
		return;
	if (c->pid != STATE_NO_TASK)
		sched_contradict(st, c);
	if (t->run != RUN_UNKNOWN)
		state_task_doubt(t);
	c->pid = t->pid;
	c->task = t;
	sched_come(st, c, t);
	sched_settle_waiting(st, c);
}

/* ---- gaps: from the first lost event on what it could have changed is unknown ------------------- */

static const uint64_t family_kinds[FAMILIES] = {
	[FAMILY_SCHED] = STATE_SCHED_KINDS,
	[FAMILY_KVM] = STEP_SET(STEP_KVM_ENTRY) | STEP_SET(STEP_KVM_EXIT) | STEP_SET(STEP_USER_EXIT) |
		       STEP_SET(STEP_VCPU_WAKEUP) | STEP_SET(STEP_WFX),
	[FAMILY_HYP] = STATE_HYP_KINDS,
};

/* Finds the families with missing events on the CPU; what those could have changed becomes unknown (st NULL:
 * not yet). */
static void gap_refresh(struct states *st, struct state_cpu *c)
{
	bool was[FAMILIES];

	for (int f = 0; f < FAMILIES; f++) {
		uint64_t kinds = family_kinds[f] & c->in->kinds;

		was[f] = c->gap[f];
		c->gap[f] = false;
		for (unsigned int kind = 0; kind < STEP_KINDS && !c->gap[f]; kind++)
			c->gap[f] = kinds & STEP_SET(kind) && c->gaps & 1ull << c->in->buffer[kind];
		c->in->gaps[f] += (unsigned int)c->gap[f] - (unsigned int)was[f];
	}
	if (!st)
		return;
	if (c->gap[FAMILY_SCHED] && !was[FAMILY_SCHED]) {
		struct state_task *next;

		c->pid = STATE_NO_TASK;
		c->task = NULL;
		for (struct state_task *t = LIST_FIRST(&c->in->tasks); t; t = next) {
			next = LIST_NEXT(t, in_list);
			if (t->run == RUN_ON && t->cpu != c)
				continue;
			run_set(st, t, RUN_UNKNOWN, NULL);
			state_task_settle(st, t);
		}
	}
	if (c->gap[FAMILY_KVM] && !was[FAMILY_KVM]) {
		for (struct state_vcpu *v = c->in->vcpus; v; v = v->next) {
			if (!state_kvm_paired(v->in))
				state_vcpu_doubt(v);
			if (!kvm_exposed(v))
				continue;
			v->kvm = KVM_UNKNOWN;
			state_vcpu_settle(st, v);
		}
	}
	if (c->gap[FAMILY_HYP] && !was[FAMILY_HYP]) {
		struct state_vcpu *v = state_cpu_vcpu(c), *inside = c->inside;

		c->hyp = HYP_UNKNOWN;
		c->inside = NULL;
		if (v)
			state_vcpu_settle(st, v);
		if (inside && inside != v)
			state_vcpu_settle(st, inside);
	}
}

void state_gap_learn(struct state_input *in, enum step_kind kind, uint8_t buffer)
{
	in->kinds |= STEP_SET(kind);
	in->buffer[kind] = buffer;
	for (size_t i = 0; i < in->n_cpus; i++)
		if (in->cpus[i] && in->cpus[i]->gaps)
			gap_refresh(NULL, in->cpus[i]);
}

void state_gap_apply(struct states *st, struct state_cpu *c)
{
	c->gaps |= c->in->over;
	gap_refresh(st, c);
}

void state_gap_over(struct states *st, struct state_input *in, uint8_t buffer)
{
	in->over |= 1ull << buffer;
	for (size_t i = 0; i < in->n_cpus; i++)
		if (in->cpus[i])
			state_gap_apply(st, in->cpus[i]);
}

void state_gap_step(struct states *st, struct state_cpu *c, const struct step *s)
{
	uint64_t buffer = 1ull << (s->buffer < STATE_BUFFERS_MAX ? s->buffer : STATE_BUFFERS_MAX - 1);

	if (s->kind == STEP_GAP) {
		c->gaps |= buffer;
		gap_refresh(st, c);
		return;
	}
	if (!(c->gaps & buffer)) { /* no STEP_GAP said where it began: what is shown now is in doubt */
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

/* The vCPU of that thread, which mostly has the CPU. */
static struct state_vcpu *vcpu_here(struct states *st, const struct state_cpu *c, int32_t pid)
{
	struct state_vcpu *v = c->task && c->task->pid == pid ? c->task->vcpu : NULL;

	return v ?: state_vcpu_of(st, c->in, pid);
}

void state_kvm_step(struct states *st, struct state_cpu *c, const struct step *s)
{
	struct state_vcpu *v = vcpu_here(st, c, s->pid);
	struct state_span wait;
	uint64_t from;

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
		wait.view = v->track.open.view;
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
		c->inside = v = vcpu_here(st, c, (int32_t)s->b);
		if (!v)
			return;
		v->inside_on = c;
	} else {
		c->inside = NULL;
	}
	if (!v || c->in->kinds & (STEP_SET(STEP_KVM_ENTRY) | STEP_SET(STEP_KVM_EXIT)))
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
