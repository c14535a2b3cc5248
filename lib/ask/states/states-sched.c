// SPDX-License-Identifier: LGPL-2.1-or-later
/* Threads and vCPUs as the scheduler's events and gaps have it: running where, waiting, asleep or unknown. */
#include "ask/states/states-priv.h"

/* True if events that are missing now could have changed what a vCPU does by KVM. */
static bool kvm_exposed(const struct state_vcpu *v)
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

void state_sched_proof(struct states *st, struct state_cpu *c, struct state_task *t)
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
