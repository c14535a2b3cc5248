/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TESTS_STATES_WORLD_H
#define TESTS_STATES_WORLD_H

/*
 * Made-up machines with the truth written down: a host with hogs and a guest of two vCPUs, and the events
 * that files could have of them. Include after cmocka.h.
 */
#include "states-rig.h"

#define CPUS	 3
#define VCPUS	 2
#define HOGS	 4
#define GTASKS	 5
#define THREADS	 (VCPUS + HOGS)
#define OWNERS	 (2 * VCPUS + HOGS + GTASKS)
#define FIRST	 11 /* pid of vCPU 0; 12 is vCPU 1, hogs follow */
#define GFIRST	 201
#define BEGIN	 1000000
#define STREAMS	 (4 * CPUS)
#define HALT_ARM 1

/* ---- what there is to record, by the seed ------------------------------------------------------ */

struct setup {
	bool x86, hyp, reasons, sched, wakings, user, guest, kvm_apart;
	uint64_t step;	/* hyp times are multiples of it */
	uint64_t bound; /* of the guest's clock */
	unsigned int losses;
	unsigned int pace; /* mean ns between two events */
};

struct dice {
	uint64_t state;
};

static inline uint64_t roll(struct dice *d, uint64_t sides)
{
	d->state = d->state * 6364136223846793005ull + 1442695040888963407ull;
	return (d->state >> 33) % sides;
}

static inline struct setup setup_of(uint64_t seed, struct dice *d)
{
	struct setup s = { .x86 = seed % 4 == 3,
			   .sched = seed % 10 != 9,
			   .wakings = seed % 7 != 6,
			   .user = roll(d, 2),
			   .guest = roll(d, 4),
			   .kvm_apart = roll(d, 3) == 0,
			   .bound = roll(d, 2) * roll(d, 3000),
			   .losses = seed % 5 ? (unsigned int)roll(d, 8) : 0,
			   .pace = 200 + (unsigned int)roll(d, 4000) };

	s.hyp = !s.x86 && roll(d, 4);
	s.reasons = roll(d, 4);
	s.step = s.reasons && roll(d, 2) ? 1000 : 1;
	return s;
}

/* ---- the truth ---------------------------------------------------------------------------------- */

/* TRUTH_POLL: the host's kernel polls for the vCPU, which is halted or the host's work, as one likes */
enum { TRUTH_POLL = STATES, TRUTHS };

struct truth_part {
	uint64_t from;
	unsigned int state, by;
	int32_t other;
};

struct truth {
	enum state_kind kind;
	int32_t pid;
	struct truth_part *v;
	size_t n;
};

enum { ON, WAITS, SLEEPS };
/* where a vCPU's thread is in KVM's loop */
enum { OUT, POLLS, USER, IN, IN_EL2, INSIDE, EX_EL2, EX_EL3, EX, OUT_EL2, OUT_EL3 };

struct thread {
	int32_t pid;
	int run, cpu;
	int at;	    /* of a vCPU */
	bool halts; /* its exit was for that */
	int32_t thief;
	uint64_t since; /* of a wait */
};

struct world {
	struct setup set;
	struct dice d;
	uint64_t t;
	struct thread v[THREADS];
	int current[CPUS]; /* -1: idle */
	bool el2[CPUS];	   /* while no vCPU's thread has it */
	int gcurrent[VCPUS];
	uint64_t guest_ts; /* the guest's clock never goes back */
	struct {
		int run, cpu;
		int32_t thief;
	} g[GTASKS];
	struct truth truth[OWNERS];
	struct truth cpus[CPUS + VCPUS]; /* other: the task that the host's, and the guest's, CPU has */
	struct wake {
		uint64_t at;
		bool guest;
		int32_t by, whom;
	} * wakes;
	size_t n_wakes;
	struct {
		struct step *v;
		size_t n;
	} streams[STREAMS];
};

static inline unsigned int vcpu_truth(const struct world *w, const struct thread *v)
{
	static const unsigned int at[] = {
		[OUT] = STATE_HOST,    [POLLS] = TRUTH_POLL,	  [USER] = STATE_VMM,
		[IN] = STATE_HOST,     [IN_EL2] = STATE_HYP,	  [INSIDE] = STATE_GUEST,
		[EX_EL2] = STATE_HYP,  [EX_EL3] = STATE_FIRMWARE, [EX] = STATE_HOST,
		[OUT_EL2] = STATE_HYP, [OUT_EL3] = STATE_FIRMWARE
	};

	if (v->run == WAITS)
		return w->current[v->cpu] < 0 ? STATE_WAKING : STATE_PREEMPTED;
	if (v->run == SLEEPS)
		return v->halts ? STATE_HALTED : STATE_BLOCKED;
	return at[v->at];
}

static inline void truth_set(const struct world *w, struct truth *t, unsigned int state, unsigned int by,
			     int32_t other)
{
	const struct truth_part now = { w->t, state, by, other };

	if (t->n && t->v[t->n - 1].state == state && t->v[t->n - 1].by == by && t->v[t->n - 1].other == other)
		return;
	assert_int_equal(array_push(&t->v, &t->n, &now, sizeof(now)), 0);
}

static inline int32_t pid_on(const struct world *w, int cpu)
{
	return w->current[cpu] < 0 ? 0 : w->v[w->current[cpu]].pid;
}

static inline void write_down(struct world *w)
{
	static const unsigned int runs[] = { STATE_RUNNING, STATE_RUNNABLE, STATE_SLEEPING };
	unsigned int vcpus[VCPUS];
	int32_t others[VCPUS];
	size_t at = 0;

	for (int i = 0; i < VCPUS; i++) {
		vcpus[i] = vcpu_truth(w, &w->v[i]);
		others[i] = vcpus[i] == STATE_PREEMPTED ? pid_on(w, w->v[i].cpu) : STATE_NO_TASK;
		truth_set(w, &w->truth[at++], vcpus[i], 0, others[i]);
	}
	for (int i = 0; i < THREADS; i++)
		truth_set(w, &w->truth[at++], runs[w->v[i].run], 0,
			  w->v[i].run == WAITS ? w->v[i].thief : STATE_NO_TASK);
	for (int i = 0; i < GTASKS; i++) {
		int cpu = w->g[i].cpu;
		bool on = w->g[i].run == ON, stolen = on && vcpus[cpu] != STATE_GUEST;

		truth_set(w, &w->truth[at++], stolen ? STATE_STOLEN : runs[w->g[i].run],
			  stolen ? vcpus[cpu] : 0,
			  stolen		 ? others[cpu]
			  : w->g[i].run == WAITS ? w->g[i].thief
						 : STATE_NO_TASK);
	}
	for (int i = 0; i < CPUS; i++)
		truth_set(w, &w->cpus[i], 0, 0, pid_on(w, i));
	for (int i = 0; i < VCPUS; i++)
		truth_set(w, &w->cpus[CPUS + i], 0, 0, w->gcurrent[i] < 0 ? 0 : GFIRST + w->gcurrent[i]);
}

static inline void truth_wake(struct world *w, bool guest, int32_t by, int32_t whom)
{
	const struct wake wake = { w->t, guest, by, whom };

	assert_int_equal(array_push(&w->wakes, &w->n_wakes, &wake, sizeof(wake)), 0);
}

static inline void world_release(struct world *w)
{
	for (size_t i = 0; i < OWNERS; i++)
		free(w->truth[i].v);
	for (size_t i = 0; i < CPUS + VCPUS; i++)
		free(w->cpus[i].v);
	for (size_t i = 0; i < STREAMS; i++)
		free(w->streams[i].v);
	free(w->wakes);
}

/* ---- events --------------------------------------------------------------------------------------- */

enum { TOP, HYP_BUFFER, KVM_BUFFER, GUEST_TOP };

static inline void record(struct world *w, int cpu, enum step_kind kind, int32_t pid, uint64_t a, uint64_t b)
{
	bool hyp = kind == STEP_HYP_ENTER || kind == STEP_HYP_EXIT;
	bool sched = kind == STEP_SWITCH || kind == STEP_WAKING || kind == STEP_WAKEUP;
	int buffer = hyp ? HYP_BUFFER : !sched && w->set.kvm_apart ? KVM_BUFFER : TOP;
	struct step s = { .ts = w->t, .a = a, .b = b, .cpu = (uint32_t)cpu, .pid = pid };
	size_t at = (size_t)(buffer * CPUS + cpu);

	if ((hyp && !w->set.hyp) || (sched && !w->set.sched) || (kind == STEP_USER_EXIT && !w->set.user) ||
	    ((kind == STEP_WAKING || kind == STEP_WAKEUP) && !w->set.wakings))
		return;
	s.kind = (uint8_t)kind;
	s.buffer = (uint16_t)buffer;
	if (hyp) {
		s.ts -= s.ts % w->set.step;
		s.a = w->set.reasons ? a : STEP_UNKNOWN;
		s.b = w->set.reasons ? b : STEP_UNKNOWN;
	}
	assert_int_equal(array_push(&w->streams[at].v, &w->streams[at].n, &s, sizeof(s)), 0);
}

static inline void record_guest(struct world *w, int cpu, enum step_kind kind, int32_t pid, uint64_t a,
				uint64_t b)
{
	struct step s = { .ts = w->t, .a = a, .b = b, .cpu = (uint32_t)cpu, .pid = pid, .input = GUEST };
	size_t at = (size_t)(GUEST_TOP * CPUS + cpu);

	if (!w->set.guest || (kind == STEP_WAKING && !w->set.wakings))
		return;
	s.kind = (uint8_t)kind;
	/* the clock is off by as much as it can be, to one side and then to the other */
	s.ts += (w->t / 200000) % 2 ? w->set.bound : -w->set.bound;
	s.ts = s.ts > w->guest_ts ? s.ts : w->guest_ts + 1;
	w->guest_ts = s.ts;
	assert_int_equal(array_push(&w->streams[at].v, &w->streams[at].n, &s, sizeof(s)), 0);
}

/* ---- the host's scheduler --------------------------------------------------------------------------- */

static inline int waiting_for(struct world *w, int cpu)
{
	int first = (int)roll(&w->d, THREADS);

	for (int i = 0; i < THREADS; i++) {
		struct thread *t = &w->v[(first + i) % THREADS];

		/* now and then one that waits for another CPU is taken */
		if (t->run == WAITS && (t->cpu == cpu || roll(&w->d, 6) == 0))
			return (first + i) % THREADS;
	}
	return -1;
}

static inline void switch_to(struct world *w, int cpu, int next, int run, uint64_t state)
{
	struct thread *from = w->current[cpu] < 0 ? NULL : &w->v[w->current[cpu]];
	int32_t pid = next < 0 ? 0 : w->v[next].pid;

	if (!from && next < 0)
		return;
	record(w, cpu, STEP_SWITCH, from ? from->pid : 0, (uint64_t)pid, from ? state : 0);
	if (from) {
		from->run = run;
		from->thief = pid;
		from->cpu = cpu;
	}
	w->current[cpu] = next;
	if (next >= 0) {
		w->v[next].run = ON;
		w->v[next].cpu = cpu;
	}
}

static inline void wake_any(struct world *w, int cpu)
{
	int first = (int)roll(&w->d, THREADS);

	for (int i = 0; i < THREADS; i++) {
		struct thread *t = &w->v[(first + i) % THREADS];

		if (t->run != SLEEPS)
			continue;
		t->run = WAITS;
		t->cpu = (int)roll(&w->d, CPUS);
		t->thief = pid_on(w, t->cpu);
		truth_wake(w, false, pid_on(w, cpu), t->pid);
		record(w, cpu, STEP_WAKING, pid_on(w, cpu), (uint64_t)t->pid, (uint64_t)t->cpu);
		return;
	}
}

/* ---- the guest's ----------------------------------------------------------------------------------------
 */

static inline int guest_next(struct world *w, int cpu)
{
	int first = (int)roll(&w->d, GTASKS);

	for (int i = 0; i < GTASKS; i++) {
		int g = (first + i) % GTASKS;

		if (w->g[g].run == WAITS && (w->g[g].cpu == cpu || roll(&w->d, 3) == 0))
			return g;
	}
	return -1;
}

static inline void guest_switch(struct world *w, int cpu)
{
	int from = w->gcurrent[cpu], next = guest_next(w, cpu);
	bool sleeps = roll(&w->d, 2);

	if (from < 0 && next < 0)
		return;
	if (from >= 0 && next < 0)
		sleeps = true;
	record_guest(w, cpu, STEP_SWITCH, from < 0 ? 0 : GFIRST + from,
		     next < 0 ? 0 : (uint64_t)(GFIRST + next), from >= 0 && sleeps);
	if (from >= 0) {
		w->g[from].run = sleeps ? SLEEPS : WAITS;
		w->g[from].thief = next < 0 ? 0 : GFIRST + next;
	}
	w->gcurrent[cpu] = next;
	if (next < 0)
		return;
	w->g[next].run = ON;
	w->g[next].cpu = cpu;
}

static inline void guest_wake(struct world *w, int cpu)
{
	int g = (int)roll(&w->d, GTASKS), to = (int)roll(&w->d, VCPUS);

	if (w->g[g].run != SLEEPS)
		return;
	w->g[g].run = WAITS;
	w->g[g].cpu = to;
	w->g[g].thief = w->gcurrent[to] < 0 ? 0 : GFIRST + w->gcurrent[to];
	truth_wake(w, true, w->gcurrent[cpu] < 0 ? 0 : GFIRST + w->gcurrent[cpu], GFIRST + g);
	record_guest(w, cpu, STEP_WAKING, w->gcurrent[cpu] < 0 ? 0 : GFIRST + w->gcurrent[cpu],
		     (uint64_t)(GFIRST + g), (uint64_t)to);
}

/* ---- a vCPU's thread, one event on ------------------------------------------------------------------------
 */

enum { R_SMC, R_HVC, R_SYS, R_PSCI, R_ABORT, R_GUEST_EXIT, R_ERET_HOST, R_ERET_GUEST };

static inline void vcpu_leaves(struct world *w, struct thread *v, int cpu)
{
	bool idle = w->gcurrent[v->pid - FIRST] < 0;

	v->halts = idle && roll(&w->d, 4);
	v->at = OUT;
	if (w->set.x86)
		record(w, cpu, STEP_KVM_EXIT, v->pid, 1ull << 32 | (v->halts ? 12 : 1), STEP_UNKNOWN);
	else
		record(w, cpu, STEP_KVM_EXIT, v->pid, v->halts ? 2 : 0, v->halts ? HALT_ARM : 0);
}

static inline void vcpu_enters(struct world *w, struct thread *v, int cpu)
{
	record(w, cpu, STEP_KVM_ENTRY, v->pid, 0, STEP_UNKNOWN);
	v->halts = false;
	v->at = w->set.x86 ? INSIDE : IN;
}

static inline void hyp_to(struct world *w, struct thread *v, int cpu, bool enter, uint64_t reason, int at)
{
	record(w, cpu, enter ? STEP_HYP_ENTER : STEP_HYP_EXIT, -1, reason,
	       reason == R_ERET_GUEST ? (uint64_t)v->pid : 0);
	v->at = at;
}

static inline void vcpu_outside(struct world *w, struct thread *v, int cpu)
{
	uint64_t what = roll(&w->d, 16);

	if (what < 3) {
		switch_to(w, cpu, waiting_for(w, cpu), WAITS, 0x100);
		if (v->run == WAITS && w->current[cpu] < 0) /* nobody: it was not preempted */
			v->thief = 0;
	} else if (what < (v->halts ? 9 : 4)) {
		v->since = w->t;
		switch_to(w, cpu, waiting_for(w, cpu), SLEEPS, 1);
	} else if (what < 10 && v->halts && v->at == OUT) {
		v->since = w->t;
		v->at = POLLS;
	} else if (what < 11 && v->at == OUT) {
		v->halts = false;
		v->at = USER;
		record(w, cpu, STEP_USER_EXIT, v->pid, 6, STEP_UNKNOWN);
	} else if (what < 13 && v->at == OUT && !w->set.x86) {
		hyp_to(w, v, cpu, true, R_HVC, OUT_EL2);
	} else {
		vcpu_enters(w, v, cpu);
	}
}

static inline void vcpu_inside(struct world *w, struct thread *v, int cpu)
{
	int g = v->pid - FIRST;

	switch (roll(&w->d, 4)) {
	case 0:
		guest_switch(w, g);
		return;
	case 1:
		guest_wake(w, g);
		return;
	}
	if (w->set.x86)
		vcpu_leaves(w, v, cpu);
	else
		hyp_to(w, v, cpu, true, R_GUEST_EXIT, EX_EL2);
}

static inline void vcpu_goes_on(struct world *w, struct thread *v, int cpu)
{
	uint64_t what = roll(&w->d, 8);

	switch (v->at) {
	case OUT:
	case USER:
		vcpu_outside(w, v, cpu);
		return;
	case POLLS:
		record(w, cpu, STEP_VCPU_WAKEUP, v->pid, w->t - v->since, STEP_UNKNOWN);
		v->at = OUT;
		return;
	case IN:
		hyp_to(w, v, cpu, true, R_HVC, IN_EL2);
		return;
	case IN_EL2:
		hyp_to(w, v, cpu, false, R_ERET_GUEST, INSIDE);
		return;
	case INSIDE:
		vcpu_inside(w, v, cpu);
		return;
	case EX_EL2:
		if (what < 2)
			hyp_to(w, v, cpu, false, R_ERET_GUEST, INSIDE);
		else if (what < 3 && w->set.reasons)
			hyp_to(w, v, cpu, false, R_SMC, EX_EL3);
		else
			hyp_to(w, v, cpu, false, R_ERET_HOST, EX);
		return;
	case EX_EL3:
		hyp_to(w, v, cpu, true, R_SMC, EX_EL2);
		return;
	case EX:
		vcpu_leaves(w, v, cpu);
		return;
	case OUT_EL2:
		if (what < 2)
			hyp_to(w, v, cpu, false, R_PSCI, OUT_EL3);
		else
			hyp_to(w, v, cpu, false, R_ERET_HOST, OUT);
		return;
	case OUT_EL3:
		hyp_to(w, v, cpu, true, R_PSCI, OUT_EL2);
		return;
	}
}

static inline void cpu_goes_on(struct world *w, int cpu)
{
	struct thread *t = w->current[cpu] < 0 ? NULL : &w->v[w->current[cpu]];
	uint64_t what = roll(&w->d, 8);

	if (t && t - w->v < VCPUS) {
		vcpu_goes_on(w, t, cpu);
		return;
	}
	if (w->el2[cpu] || (what < 1 && !w->set.x86)) {
		record(w, cpu, w->el2[cpu] ? STEP_HYP_EXIT : STEP_HYP_ENTER, -1,
		       w->el2[cpu] ? R_ERET_HOST : R_HVC, 0);
		w->el2[cpu] = !w->el2[cpu];
	} else if (what < 4 || (!t && what < 6)) {
		wake_any(w, cpu);
	} else if (!t) {
		switch_to(w, cpu, waiting_for(w, cpu), WAITS, 0);
	} else {
		bool sleeps = what < 6;

		switch_to(w, cpu, waiting_for(w, cpu), sleeps ? SLEEPS : WAITS, sleeps ? 1 : 0x100);
	}
}

static inline void world_play(struct world *w, uint64_t seed)
{
	*w = (struct world){ .d = { seed * 77 + 5 }, .t = BEGIN };
	w->set = setup_of(seed, &w->d);
	for (int i = 0; i < THREADS; i++)
		w->v[i] = (struct thread){
			.pid = FIRST + i, .run = i % 2 ? SLEEPS : WAITS, .cpu = i % CPUS, .at = OUT
		};
	for (int i = 0; i < GTASKS; i++) {
		w->g[i].run = i % 2 ? SLEEPS : WAITS;
		w->g[i].cpu = i % VCPUS;
	}
	for (int i = 0; i < CPUS; i++)
		w->current[i] = -1;
	for (int i = 0; i < VCPUS; i++)
		w->gcurrent[i] = -1;
	for (int i = 0; i < 3000; i++) {
		write_down(w);
		w->t += 1 + roll(&w->d, 2 * w->set.pace / CPUS);
		cpu_goes_on(w, (int)roll(&w->d, CPUS));
	}
	write_down(w);
}

/* ---- the files -------------------------------------------------------------------------------------------
 */

/* Takes some events out of a stream, and says so as the merge does. */
static inline void lose(struct world *w, size_t at)
{
	size_t n = w->streams[at].n, first, some;
	struct step *v = w->streams[at].v, gap, lost;

	if (n < 4)
		return;
	first = roll(&w->d, n - 2);
	some = 2 + roll(&w->d, n - first - 2 < 40 ? n - first - 1 : 40);
	for (size_t i = first; i < first + some; i++)
		if (v[i].kind == STEP_GAP || v[i].kind == STEP_LOST)
			return;
	gap = lost = first ? v[first - 1] : v[first];
	if (!first)
		gap.ts = 0;
	if (first && (gap.kind == STEP_LOST || gap.kind == STEP_GAP))
		return;
	gap.kind = STEP_GAP;
	lost.b = first + some == n;
	lost.ts = lost.b ? gap.ts : v[first + some - 1].ts;
	if (!lost.b)
		lost.ts = v[first + some].ts;
	lost.kind = STEP_LOST;
	v[first] = gap;
	v[first + 1] = lost;
	memmove(&v[first + 2], &v[first + some], (n - first - some) * sizeof(*v));
	w->streams[at].n = n - some + 2;
}

/* A buffer that ends before the others: from its last event on all of its CPUs have a gap. */
static inline void end_early(struct world *w, size_t buffer)
{
	uint64_t at = BEGIN + (w->t - BEGIN) / 2 + roll(&w->d, (w->t - BEGIN) / 2), last = 0;

	for (size_t i = buffer * CPUS; i < (buffer + 1) * CPUS; i++) {
		while (w->streams[i].n && w->streams[i].v[w->streams[i].n - 1].ts > at)
			w->streams[i].n--;
		if (w->streams[i].n && w->streams[i].v[w->streams[i].n - 1].ts > last)
			last = w->streams[i].v[w->streams[i].n - 1].ts;
	}
	for (size_t i = buffer * CPUS; i < (buffer + 1) * CPUS; i++) {
		struct step gap = { .ts = last,
				    .kind = STEP_GAP,
				    .buffer = buffer == GUEST_TOP ? 0 : (uint16_t)buffer,
				    .input = buffer == GUEST_TOP ? GUEST : HOST,
				    .cpu = (uint32_t)(i % CPUS) };
		struct step *v = realloc(w->streams[i].v, (w->streams[i].n + 1) * sizeof(*v));

		assert_non_null(v);
		v[w->streams[i].n++] = gap;
		w->streams[i].v = v;
	}
}

/* As the merge: by time, and a CPU's in its own order. */
static inline const struct step *next_step(const struct world *w, size_t *at)
{
	size_t best = STREAMS;

	for (size_t i = 0; i < STREAMS; i++)
		if (at[i] < w->streams[i].n &&
		    (best == STREAMS || w->streams[i].v[at[i]].ts < w->streams[best].v[at[best]].ts))
			best = i;
	return best == STREAMS ? NULL : &w->streams[best].v[at[best]++];
}

#endif
