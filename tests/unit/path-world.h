/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TESTS_PATH_WORLD_H
#define TESTS_PATH_WORLD_H

/*
 * A world for the chains of causes: made up backwards from a moment, cause by cause, across a guest and its
 * host; and as what of it was recorded.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "ask/path/path.h"
#include "base/array.h"

enum { HOST, GUEST };

#define VCPUS	  3
#define HOST_CPUS 8
#define THREAD(g) (100 + (g)) /* the vCPU's, on the host's CPU g */
#define HOPS_MAX  200

/* ---- a world ----------------------------------------------------------------------------- */

struct world {
	uint64_t number, seed;
	int64_t error;	/* of the guest's clock, ns */
	uint32_t bound; /* of it */
	struct path_row rows[8192];
	size_t n;
	struct path_cause hops[HOPS_MAX]; /* the truth, by true times, regardless of the first sleep */
	int groups[HOPS_MAX];		  /* hops that end only together */
	size_t n_hops;
	int group;
	enum path_end end;
	uint64_t t;	/* all behind it is made up */
	int pids;	/* the last one */
	int links;	/* that are still to come */
	int sleepers;	/* each has its own CPU before */
	size_t sleep;	/* of the first sleeper's sched_switch: index + 1, 0: none yet */
	uint64_t woken; /* ... was woken */
	uint64_t wait;	/* when that is; 0: not decided yet */
};

static uint64_t world_random(struct world *w, uint64_t n)
{
	w->seed = w->seed * 6364136223846793005u + 1442695040888963407u;
	return (w->seed >> 33) % n;
}

static bool world_chance(struct world *w, unsigned int percent)
{
	return world_random(w, 100) < percent;
}

/* A stretch that is long beside the bounds of most worlds. */
static uint64_t world_stretch(struct world *w)
{
	return 20000 + world_random(w, 300000);
}

static struct path_row *world_row(struct world *w, int machine, uint32_t cpu, uint64_t ts, int pid,
				  uint8_t kind, uint64_t a, uint64_t b)
{
	struct path_row *r = &w->rows[w->n++];

	assert_true(w->n <= ARRAY_SIZE(w->rows));
	*r = (struct path_row){ .ts = ts,
				.a = a,
				.b = b,
				.pid = pid,
				.cpu = cpu,
				.input = (uint16_t)machine,
				.kind = kind,
				.guest = machine == GUEST };
	return r;
}

static struct path_row *world_switch(struct world *w, int machine, uint32_t cpu, uint64_t ts, int from,
				     int state, int to)
{
	return world_row(w, machine, cpu, ts, from, STEP_SWITCH, (uint64_t)to, (uint64_t)state);
}

/* The time back to `from` is that hop. */
static void world_hop(struct world *w, enum path_state state, int machine, uint32_t cpu, int pid,
		      uint64_t from, int by)
{
	assert_true(w->n_hops < HOPS_MAX && from < w->t);
	w->groups[w->n_hops] = w->group;
	w->hops[w->n_hops++] = (struct path_cause){ .state = state,
						    .input = (uint16_t)machine,
						    .cpu = cpu,
						    .pid = pid,
						    .from = from,
						    .to = w->t,
						    .by = by };
	w->t = from;
}

/* What the guest does on that CPU back to `from`, with pauses of its vCPU in between. */
static void world_guest(struct world *w, enum path_state state, uint32_t cpu, int pid, uint64_t from, int by)
{
	while (w->t - from > 150000 && world_chance(w, 40)) {
		uint64_t in = w->t - 40000 - world_random(w, 20000),
			 out = in - 20000 - world_random(w, 20000);
		int thief = world_chance(w, 20) ? 0 : ++w->pids;

		world_switch(w, HOST, cpu, out, THREAD(cpu), 0, thief);
		world_switch(w, HOST, cpu, in, thief, 0, THREAD(cpu));
		world_hop(w, state, GUEST, cpu, pid, in, by);
		world_hop(w, PATH_RUNNABLE, HOST, cpu, THREAD(cpu), out, thief);
	}
	if (world_chance(w, 30)) { /* it leaves and comes back */
		uint64_t out = w->t - (w->t - from) / 2;

		world_row(w, HOST, cpu, out, THREAD(cpu), STEP_KVM_EXIT, world_chance(w, 50) ? 2 : 0, 0);
		world_row(w, HOST, cpu, out + 2000, THREAD(cpu), STEP_KVM_ENTRY, 0, 0);
	}
	world_hop(w, state, GUEST, cpu, pid, from, by);
}

/* Others have the CPU back to `from`; the last one's switch is at now. Returns who had it at first. */
static int world_thieves(struct world *w, int machine, uint32_t cpu, int pid, uint64_t from, int thief)
{
	while (w->t - from > 60000 && world_chance(w, 30)) {
		uint64_t at = w->t - 20000 - world_random(w, 20000);
		int before = ++w->pids;

		world_switch(w, machine, cpu, at, before, 1, thief);
		if (machine == GUEST)
			world_guest(w, PATH_RUNNABLE, cpu, pid, at, thief);
		else
			world_hop(w, PATH_RUNNABLE, machine, cpu, pid, at, thief);
		thief = before;
	}
	if (machine == GUEST)
		world_guest(w, PATH_RUNNABLE, cpu, pid, from, thief);
	else
		world_hop(w, PATH_RUNNABLE, machine, cpu, pid, from, thief);
	return thief;
}

static uint32_t world_other_vcpu(struct world *w, uint32_t cpu)
{
	return (cpu + 1 + (uint32_t)world_random(w, VCPUS - 1)) % VCPUS;
}

static uint32_t world_host_cpu(struct world *w)
{
	return VCPUS + (uint32_t)world_random(w, HOST_CPUS - VCPUS);
}

/* Of the first that sleeps it is decided last when it fell asleep. */
static void world_sleeper(struct world *w, int machine, int pid)
{
	world_switch(w, machine, 40 + (uint32_t)++w->sleepers, w->t > 50000000 ? w->t - 50000000 : 1, pid, 1,
		     0);
	if (!w->sleep) {
		w->sleep = w->n;
		w->woken = w->t;
	}
}

/* ---- causes -------------------------------------------------------------------------------- */

static void world_guest_task(struct world *w, uint32_t cpu, int pid);
static void world_host_task(struct world *w, uint32_t cpu, int pid);

/* A host's task, or its interrupt, woke a host's thread; the row says who. */
static void world_woken(struct world *w, int sleeper, bool vcpus, uint32_t not_vcpu)
{
	uint32_t cpu = world_host_cpu(w);
	uint64_t exit = w->t - 5000 - world_random(w, 5000);
	struct path_row *r;

	if (world_chance(w, 30)) {
		r = world_row(w, HOST, cpu, w->t, 0, STEP_WAKING, (uint64_t)sleeper, 0);
		r->flags = PATH_HARDIRQ;
		w->end = PATH_INTERRUPT;
	} else if (vcpus && world_chance(w, 50)) {
		cpu = world_other_vcpu(w, not_vcpu);
		world_row(w, HOST, cpu, w->t, THREAD(cpu), STEP_WAKING, (uint64_t)sleeper, 0);
		world_row(w, HOST, cpu, w->t + 1000, THREAD(cpu), STEP_KVM_ENTRY, 0, 0);
		world_row(w, HOST, cpu, exit, THREAD(cpu), STEP_KVM_EXIT, 2, 0x24);
		world_row(w, HOST, cpu, exit - 700000, THREAD(cpu), STEP_KVM_ENTRY, 0, 0);
		w->group++;
		world_hop(w, PATH_HANDLES, HOST, cpu, THREAD(cpu), exit, PATH_NOBODY);
		world_guest_task(w, cpu, ++w->pids);
	} else {
		int waker = ++w->pids;

		world_row(w, HOST, cpu, w->t, waker, STEP_WAKING, (uint64_t)sleeper, 0);
		world_host_task(w, cpu, waker);
	}
}

static void world_host_task(struct world *w, uint32_t cpu, int pid)
{
	uint64_t in = w->t - world_stretch(w), woken = in - world_stretch(w);
	int thief = world_chance(w, 30) ? 0 : ++w->pids;

	world_switch(w, HOST, cpu, in, thief, 0, pid);
	w->group++;
	world_hop(w, PATH_RUNS, HOST, cpu, pid, in, PATH_NOBODY);
	w->group++;
	thief = world_thieves(w, HOST, cpu, pid, woken, thief);
	if (world_chance(w, 15) || --w->links < 0) {
		world_switch(w, HOST, cpu, woken, pid, world_chance(w, 50) ? 0 : 0x100, thief);
		w->end = PATH_PREEMPTED;
		return;
	}
	world_sleeper(w, HOST, pid);
	world_woken(w, pid, true, VCPUS);
}

/* The vCPU slept, and someone woke it in time for now: *woken is when; SLEPT ns before that it fell asleep.
 */
#define SLEPT 30000
static uint64_t world_vcpu_wakes(struct world *w, uint32_t cpu, bool halted, uint64_t *since, int *by)
{
	uint64_t in = w->t - 20000 - world_random(w, 20000), woken = in - 20000 - world_random(w, 20000);
	int thief = world_chance(w, 50) ? 0 : ++w->pids;

	world_switch(w, HOST, cpu, in, thief, 0, THREAD(cpu));
	if (halted)
		world_row(w, HOST, cpu, in + 3000, THREAD(cpu), STEP_VCPU_WAKEUP, 0, 0);
	world_row(w, HOST, cpu, in + 5000, THREAD(cpu), STEP_KVM_ENTRY, 0, 0);
	world_row(w, HOST, cpu, woken - SLEPT - 2000, THREAD(cpu), STEP_KVM_EXIT, 2, 1);
	world_switch(w, HOST, cpu, woken - SLEPT, THREAD(cpu), 1, 0);
	*since = woken;
	*by = thief;
	return in;
}

/* A vCPU's sleep is not moved. */
static void world_first_sleep(struct world *w, uint64_t since)
{
	if (!w->sleep) {
		w->sleep = w->n;
		w->wait = since;
	}
}

/* The guest's CPU handles an interrupt. */
static void world_guest_irq(struct world *w, uint32_t cpu, int pid)
{
	uint64_t handler = w->t - 2000 - world_random(w, 3000), raised, in, woken;
	struct path_row *r = world_row(w, GUEST, cpu, handler, pid, STEP_IRQ_ENTER, 40, 0);
	size_t irq = w->n - 1;
	uint32_t from = world_host_cpu(w);
	int raiser = ++w->pids, thief;

	r->flags = PATH_HARDIRQ;
	r = world_row(w, GUEST, cpu, w->t + 500, pid, STEP_IRQ_EXIT, 40, 0);
	r->flags = PATH_HARDIRQ;
	r = &w->rows[irq];
	w->group++;
	switch (world_random(w, 4)) {
	case 0: /* raised while the vCPU ran */
		raised = handler - world_stretch(w);
		world_row(w, HOST, from, raised, raiser, STEP_VIRQ, cpu, 55);
		world_guest(w, PATH_PENDING, cpu, pid, raised, PATH_NOBODY);
		world_host_task(w, from, raiser);
		return;
	case 1: /* ... that had been halted */
		in = world_vcpu_wakes(w, cpu, true, &woken, &thief);
		raised = woken - 5000;
		world_row(w, HOST, from, raised, raiser, STEP_VIRQ, cpu, 55);
		world_row(w, HOST, from, woken, raiser, STEP_WAKING, THREAD(cpu), 0);
		world_hop(w, PATH_PENDING, GUEST, cpu, pid, in, PATH_NOBODY);
		world_hop(w, PATH_RUNNABLE, HOST, cpu, THREAD(cpu), woken, thief);
		world_hop(w, PATH_ASLEEP, HOST, cpu, THREAD(cpu), raised, raiser);
		world_host_task(w, from, raiser);
		return;
	case 2: /* its own timer, by a host's */
		r->irq = PATH_TIMER;
		in = world_vcpu_wakes(w, cpu, true, &woken, &thief);
		world_row(w, HOST, cpu, in + 2000, THREAD(cpu), STEP_VTIMER, cpu, 27);
		world_row(w, HOST, cpu, in + 2000, THREAD(cpu), STEP_VIRQ, cpu, 27);
		world_hop(w, PATH_PENDING, GUEST, cpu, pid, in + 2000, PATH_NOBODY);
		w->group++;
		world_hop(w, PATH_RUNS, HOST, cpu, THREAD(cpu), in, PATH_NOBODY);
		w->group++;
		world_hop(w, PATH_RUNNABLE, HOST, cpu, THREAD(cpu), woken, thief);
		r = world_row(w, HOST, cpu, woken, 0, STEP_WAKING, THREAD(cpu), 0);
		r->flags = PATH_HARDIRQ;
		world_first_sleep(w, woken - SLEPT);
		w->end = PATH_INTERRUPT;
		return;
	default: /* nobody recorded who raised it */
		w->end = PATH_UNKNOWN;
	}
}

/* A guest's task that could run had to be woken, or had been preempted. */
static void world_guest_rest(struct world *w, uint32_t cpu, int pid, int thief)
{
	uint64_t woken = w->t - world_stretch(w);
	uint32_t other = world_other_vcpu(w, cpu);
	int waker = ++w->pids;
	struct path_row *r;

	w->group++;
	if (world_chance(w, 15) || --w->links < 0) {
		thief = world_thieves(w, GUEST, cpu, pid, woken, thief);
		world_switch(w, GUEST, cpu, woken, pid, 0, thief);
		w->end = PATH_PREEMPTED;
		return;
	}
	if (!thief && world_chance(w, 60)) { /* the vCPU was halted, too, and the other one kicked it */
		int host_thief;
		uint64_t kicked, in = world_vcpu_wakes(w, cpu, true, &kicked, &host_thief);

		world_row(w, GUEST, cpu, in + 8000, 0, STEP_IRQ_ENTER, 1, 0)->irq = PATH_IPI;
		world_row(w, GUEST, cpu, in + 9000, 0, STEP_IRQ_EXIT, 1, 0);
		woken = kicked - 10000;
		world_row(w, HOST, other, kicked, THREAD(other), STEP_WAKING, THREAD(cpu), 0);
		world_hop(w, PATH_RUNNABLE, GUEST, cpu, pid, in, 0);
		world_hop(w, PATH_RUNNABLE, HOST, cpu, THREAD(cpu), kicked, host_thief);
		world_hop(w, PATH_ASLEEP, HOST, cpu, THREAD(cpu), woken, THREAD(other));
	} else {
		world_thieves(w, GUEST, cpu, pid, woken, thief);
	}
	world_sleeper(w, GUEST, pid);
	r = world_row(w, GUEST, other, w->t, waker, STEP_WAKING, (uint64_t)pid, 0);
	if (world_chance(w, 40)) {
		r->flags = PATH_HARDIRQ;
		world_guest_irq(w, other, waker);
	} else {
		world_guest_task(w, other, waker);
	}
}

static void world_guest_task(struct world *w, uint32_t cpu, int pid)
{
	uint64_t in = w->t - world_stretch(w), woken;
	int thief = world_chance(w, 40) ? 0 : ++w->pids;

	w->group++;
	if (world_chance(w, 20)) { /* its vCPU sleeps on the way, in the VMM */
		int host_thief;
		uint64_t back = world_vcpu_wakes(w, cpu, false, &woken, &host_thief);

		world_switch(w, GUEST, cpu, woken - 36000, thief, 1, pid);
		world_hop(w, PATH_RUNS, GUEST, cpu, pid, back, PATH_NOBODY);
		world_hop(w, PATH_RUNNABLE, HOST, cpu, THREAD(cpu), woken, host_thief);
		world_first_sleep(w, woken - SLEPT);
		world_woken(w, THREAD(cpu), false, cpu);
		return;
	}
	world_switch(w, GUEST, cpu, in, thief, thief ? 1 : 0, pid);
	world_guest(w, PATH_RUNS, cpu, pid, in, PATH_NOBODY);
	world_guest_rest(w, cpu, pid, thief);
}

/* ---- the world as it was recorded ------------------------------------------------------------- */

/* Things on other CPUs, of other tasks and of other vCPUs. */
static void world_noise(struct world *w, uint64_t end)
{
	for (int i = 0; i < 300; i++) {
		uint64_t ts = w->t - 1000000 + world_random(w, end + 500000 - w->t);
		int machine = (int)world_random(w, 2), pid = 900000 + i;
		uint32_t cpu = 20 + (uint32_t)world_random(w, 4);

		switch (world_random(w, 5)) {
		case 0:
			world_switch(w, machine, cpu, ts, pid, (int)world_random(w, 2), 900000 + i + 1);
			break;
		case 1:
			world_row(w, machine, cpu, ts, pid, STEP_WAKING, (uint64_t)pid + 2, 0);
			break;
		case 2:
			world_row(w, HOST, cpu, ts, pid, STEP_VIRQ, 20, 55);
			break;
		case 3:
			world_row(w, GUEST, cpu, ts, pid, STEP_IRQ_ENTER, 40, 0);
			world_row(w, GUEST, cpu, ts + 100, pid, STEP_IRQ_EXIT, 40, 0);
			break;
		default:
			world_row(w, HOST, cpu, ts, pid, STEP_KVM_EXIT, 2, 0);
		}
	}
}

static int world_order(const void *a, const void *b)
{
	const struct path_row *x = a, *y = b;

	return compare_u64(&x->ts, &y->ts);
}

static bool world_near_edge(const struct world *w, uint64_t ts, uint64_t near)
{
	for (size_t i = 0; i < w->n_hops; i++)
		if (ts < w->hops[i].from + near && ts + near > w->hops[i].from)
			return true;
	return false;
}

/* Where the first sleeper fell asleep: anywhere before it was woken. */
static void world_decide_sleep(struct world *w, uint64_t end)
{
	if (!w->sleep || w->wait)
		return;
	for (int tries = 0; tries < 100; tries++) {
		w->wait = w->t - 300000 + world_random(w, end - w->t);
		if (w->wait < w->woken && !world_near_edge(w, w->wait, 35000))
			break;
		w->wait = w->t - 400000;
	}
	w->rows[w->sleep - 1].ts = w->wait;
}

/* The truth ends where the first sleep began. */
static void world_cut(struct world *w)
{
	size_t i = 0, n;

	while (i < w->n_hops && w->sleep) {
		for (n = i + 1; n < w->n_hops && w->groups[n] == w->groups[i];)
			n++;
		if (w->hops[n - 1].from <= w->wait)
			break;
		i = n;
	}
	if (i == w->n_hops || !w->sleep)
		return;
	if (w->hops[i].state == PATH_RUNS) {
		while (w->hops[i].from > w->wait)
			i++;
		w->hops[i].from = w->wait;
		w->n_hops = i + 1;
		w->end = PATH_OWN;
	} else if (n < w->n_hops || w->end != PATH_PREEMPTED) {
		w->n_hops = n;
		w->end = PATH_UNDER_WAY;
	}
}

/* Files that say which threads run the guest's CPUs. */
static struct inputs *world_inputs(void)
{
	static struct offset_vcpu vcpus[VCPUS];
	static struct offset_guest guest = { "Guest", 7, VCPUS, vcpus };
	static struct vcpu_thread threads[VCPUS];
	static struct input v[2] = { { .machine = "host",
				       .guests = &guest,
				       .n_guests = 1,
				       .threads = threads,
				       .n_threads = VCPUS },
				     { .machine = "Guest", .guest = true, .trace_id = 7 } };
	static struct inputs in = { .v = v, .n = 2 };

	for (uint32_t i = 0; i < VCPUS; i++) {
		vcpus[i] = (struct offset_vcpu){ i, THREAD(i) };
		threads[i] = (struct vcpu_thread){ THREAD(i), &guest, &vcpus[i] };
	}
	return &in;
}

static uint64_t world_shown(const struct world *w, int machine, uint64_t ts)
{
	return machine == GUEST ? ts + (uint64_t)w->error : ts;
}

static void world_make(struct world *w, uint64_t seed, struct path_moment *m)
{
	uint64_t end = 10000000000;

	*w = (struct world){ .number = seed, .seed = seed * 977 + 5, .t = end, .pids = 1000, .links = 8 };
	world_random(w, 2);
	w->bound = (uint32_t)world_random(w, seed % 4 ? 2000 : 100000);
	w->error = (int64_t)world_random(w, 2ull * w->bound + 1) - w->bound;
	*m = (struct path_moment){ .pid = ++w->pids };
	if (world_chance(w, 70)) {
		m->input = GUEST;
		m->cpu = (uint32_t)world_random(w, VCPUS);
		world_guest_task(w, m->cpu, m->pid);
	} else {
		m->cpu = world_host_cpu(w);
		world_host_task(w, m->cpu, m->pid);
	}
	world_decide_sleep(w, end);
	world_noise(w, end);
	m->ts = world_shown(w, m->input, end);
	m->bound = m->input == GUEST ? w->bound : 0;
	for (size_t i = 0; i < w->n; i++) {
		w->rows[i].ts = world_shown(w, w->rows[i].input, w->rows[i].ts);
		w->rows[i].bound = w->rows[i].input == GUEST ? w->bound : 0;
	}
	qsort(w->rows, w->n, sizeof(*w->rows), world_order);
	for (size_t i = 0; i < w->n; i++) {
		w->rows[i].nr = i;
		if (w->rows[i].ts <= m->ts)
			m->nr = i;
	}
}

/* ---- what was not recorded ------------------------------------------------------------------------ */

static void rows_number(struct world *w, struct path_moment *m)
{
	for (size_t i = 0; i < w->n; i++) {
		w->rows[i].nr = i;
		if (w->rows[i].ts <= m->ts)
			m->nr = i;
	}
}

/* Some events of a CPU were lost, which its next one tells, or the end. */
static void world_lose(struct world *w, struct path_moment *m)
{
	const struct path_row *any = &w->rows[world_random(w, w->n)];
	struct path_row lost = {
		.input = any->input, .cpu = any->cpu, .kind = STEP_LOST, .guest = any->guest
	};
	uint64_t from = any->ts, to = from + world_random(w, 500000);
	size_t kept = 0;

	lost.b = 1;
	lost.ts = to + 1;
	lost.a = 0;
	for (size_t i = 0; i < w->n; i++) {
		const struct path_row *r = &w->rows[i];
		bool same = r->input == lost.input && r->cpu == lost.cpu;

		if (same && r->ts < from)
			lost.b = r->ts;
		if (same && r->ts >= from && r->ts <= to)
			lost.a++;
		else
			w->rows[kept++] = *r;
	}
	w->n = kept;
	w->rows[w->n++] = lost;
	qsort(w->rows, w->n, sizeof(*w->rows), world_order);
	rows_number(w, m);
}

/* A kind of event that a machine did not record. */
static void world_leave_out(struct world *w, struct path_moment *m)
{
	static const uint8_t kinds[] = { STEP_WAKING,	 STEP_IRQ_ENTER,   STEP_KVM_EXIT,
					 STEP_KVM_ENTRY, STEP_VCPU_WAKEUP, STEP_SWITCH };
	uint8_t kind = kinds[world_random(w, ARRAY_SIZE(kinds))];
	int machine = kind == STEP_SWITCH ? GUEST : (int)world_random(w, 2);
	size_t kept = 0;

	for (size_t i = 0; i < w->n; i++)
		if (w->rows[i].kind != kind || w->rows[i].input != machine)
			w->rows[kept++] = w->rows[i];
	w->n = kept;
	rows_number(w, m);
}

/* The recording began later. */
static void world_begin_late(struct world *w, struct path_moment *m)
{
	size_t first = world_random(w, m->nr), kept = 0;

	for (size_t i = first; i < w->n; i++)
		w->rows[kept++] = w->rows[i];
	w->n = kept;
	rows_number(w, m);
}

#endif
