// SPDX-License-Identifier: LGPL-2.1-or-later
/* sched_switch, sched_waking and sched_wakeup: which thread runs where, waits or sleeps. */
#include "analysis/states-priv.h"

/*
 * sched_switch's prev_state: one bit for each reason to sleep; runnable is 0, and preempted a bit above
 * those (include/trace/events/sched.h, __trace_sched_switch_state).
 */
#define SLEEP_BITS 0xff
#define ENDED_BITS 0x30 /* EXIT_DEAD, EXIT_ZOMBIE */

static enum run_side run_of_state(uint64_t state)
{
	if (state == STEP_UNKNOWN)
		return RUN_UNKNOWN;
	if (!(state & SLEEP_BITS))
		return RUN_WAITS;
	return state & ENDED_BITS ? RUN_ENDED : RUN_SLEEPS;
}

static int32_t pid_of_field(uint64_t v)
{
	return v <= INT32_MAX ? (int32_t)v : STATE_NO_TASK;
}

/* Those that wait for a CPU are told by whom it is taken. */
static void sched_tell_waiting(struct states *st, struct state_cpu *c)
{
	struct state_vcpu *next;

	for (struct state_vcpu *v = c->waiting; v; v = next) {
		next = v->waits_next;
		state_vcpu_settle(st, v);
	}
}

/* Somebody else than was thought had the CPU until now, since who knows when. */
static void sched_contradict(struct states *st, struct state_cpu *c)
{
	struct state_task *t = c->task;

	for (struct state_vcpu *v = c->waiting; v; v = v->waits_next)
		if (v->track.view.state == STATE_PREEMPTED)
			v->track.view.other = STATE_NO_TASK;
	c->pid = STATE_NO_TASK;
	c->task = NULL;
	if (!t)
		return;
	state_task_doubt(st, t);
	state_run_set(st, t, RUN_UNKNOWN, NULL);
	state_task_settle(st, t);
}

/* A vCPU's thread cannot lose its CPU while it is in the guest: an exit is missing. */
static void sched_broken_entry(struct states *st, struct state_task *t)
{
	if (!t->vcpu || t->vcpu->kvm != KVM_IN)
		return;
	if (!state_seen_hyp(t->vcpu->in))
		state_vcpu_doubt(st, t->vcpu);
	state_kvm_set(t->vcpu, KVM_UNKNOWN);
}

/* It was thought to run somewhere else than on c. */
static void sched_elsewhere(struct states *st, const struct state_cpu *c, struct state_task *t)
{
	struct state_cpu *old = t->cpu;

	state_task_doubt(st, t);
	if (t->run != RUN_ON || old == c || old->task != t)
		return;
	old->task = NULL;
	old->pid = STATE_NO_TASK;
}

static void sched_leave(struct states *st, struct state_cpu *c, struct state_task *t, uint64_t state)
{
	if (t->run != RUN_UNKNOWN && (t->run != RUN_ON || t->cpu != c))
		sched_elsewhere(st, c, t);
	sched_broken_entry(st, t);
	t->thief = c->pid;
	state_run_set(st, t, run_of_state(state), c);
	state_task_settle(st, t);
}

/* It runs on c, which knows no other task. */
static void sched_come(struct states *st, struct state_cpu *c, struct state_task *t)
{
	if ((t->run == RUN_ON && t->cpu != c) || t->run == RUN_ENDED)
		sched_elsewhere(st, c, t);
	state_run_set(st, t, RUN_ON, c);
	state_task_settle(st, t);
}

static void sched_switch(struct states *st, struct state_cpu *c, const struct step *s)
{
	struct state_task *prev = state_task_of(st, c->in, s->pid), *next;
	int32_t pid = pid_of_field(s->a);

	if (c->pid != s->pid && c->pid != STATE_NO_TASK)
		sched_contradict(st, c);
	next = state_task_of(st, c->in, pid);
	c->pid = c->gap[FAMILY_SCHED] ? STATE_NO_TASK : pid;
	c->task = NULL;
	if (prev && prev != next)
		sched_leave(st, c, prev, s->b);
	if (next) {
		c->task = c->pid == pid ? next : NULL;
		sched_come(st, c, next);
	}
	sched_tell_waiting(st, c);
}

static void sched_wake(struct states *st, struct state_cpu *c, const struct step *s)
{
	struct state_task *t = state_task_of(st, c->in, pid_of_field(s->a));
	struct state_cpu *to;

	if (!t || t->run == RUN_ON)
		return;
	to = s->b != STEP_UNKNOWN ? state_cpu_of(st, c->in, s->b) : t->cpu;
	if (t->run == RUN_WAITS && (s->kind != STEP_WAKEUP || to == t->cpu || s->b == STEP_UNKNOWN))
		return;
	if (t->track)
		state_track_woken(t->track, s->pid, t->input, false);
	if (t->vcpu)
		state_track_woken(&t->vcpu->track, s->pid, t->input, state_halt_coarse(t->vcpu));
	if (t->run != RUN_WAITS)
		t->thief = to ? to->pid : STATE_NO_TASK;
	state_run_set(st, t, RUN_WAITS, to);
	state_task_settle(st, t);
}

void state_sched_step(struct states *st, struct state_cpu *c, const struct step *s)
{
	if (s->kind == STEP_SWITCH)
		sched_switch(st, c, s);
	else
		sched_wake(st, c, s);
}

void state_sched_proof(struct states *st, struct state_cpu *c, struct state_task *t)
{
	if (c->task == t || !state_seen(c->in, STEP_SWITCH) || c->gap[FAMILY_SCHED])
		return;
	if (c->pid != STATE_NO_TASK)
		sched_contradict(st, c);
	if (t->run != RUN_UNKNOWN)
		state_task_doubt(st, t);
	c->pid = t->pid;
	c->task = t;
	sched_come(st, c, t);
	sched_tell_waiting(st, c);
}
