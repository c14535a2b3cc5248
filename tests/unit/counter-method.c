// SPDX-License-Identifier: GPL-2.0-only
/* The counter method on simulated clocks: the truth lies in every bound. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "base/array.h"
#include "sync/evidence.h"
#include "file/dat/offset.h"
#include "record/clock/cntvoff.h"

/*
 * Two made-up machines on one counter of 62.5 MHz. A clock is a list of lines:
 * rates (ns per tick, against 16) that change where the test says.
 */
#define HZ    62500000ull
#define START 1000000000ull /* of the host's counter */

struct clock {
	uint64_t base; /* ns at START */
	double ppm[3]; /* of the clock's rate, in thirds of 10 s */
};

static uint64_t clock_at(const struct clock *c, uint64_t n)
{
	double t = (double)(n - START), third = (double)HZ * 10 / 3, ns = 0;

	for (int i = 0; i < 3; i++) {
		double part = t - third * i;

		if (i < 2 && part > third)
			part = third;
		if (part > 0)
			ns += part * 16 * (1 + c->ppm[i] * 1e-6);
	}
	return c->base + (uint64_t)ns;
}

/* The host's counter when the guest's shows c. */
struct vm {
	uint64_t cntvoff[2];
	uint64_t paused_at, resumed_at; /* host counter; 0: never */
};

static uint64_t guest_counter(const struct vm *v, uint64_t n)
{
	if (!v->paused_at || n < v->paused_at)
		return n - v->cntvoff[0];
	return n < v->resumed_at ? v->paused_at - v->cntvoff[0] : n - v->cntvoff[1];
}

static void add_shot(struct counter_log *l, uint64_t counter, uint64_t clock, uint64_t slack)
{
	/* the bracket's middle is not where the clock was read */
	struct counter_shot s = { counter + (counter % 3 ? slack / 2 : 0), slack, clock };

	assert_int_equal(counter_log_shot(l, &s), 0);
}

static void add_ping(struct counter_log *l, const struct vm *v, uint64_t n, uint64_t way)
{
	struct counter_ping p = { n - way, n + 2 * way, guest_counter(v, n), guest_counter(v, n + way / 2) };

	assert_int_equal(counter_log_ping(l, &p), 0);
}

/* Asked before the VM is stopped, answered when it has run again for a while. */
static void add_late_ping(struct counter_log *l, const struct vm *v)
{
	uint64_t n = v->resumed_at + HZ / 100;
	struct counter_ping p = { v->paused_at - 1000, n + 1000, guest_counter(v, n),
				  guest_counter(v, n + 100) };

	assert_int_equal(counter_log_ping(l, &p), 0);
}

struct world {
	struct clock host, guest;
	struct vm vm;
	struct counter_log host_log, guest_log;
	struct cntvoff_log cntvoff;
};

static void run(struct world *w, double interval)
{
	uint64_t step = (uint64_t)(interval * HZ), asked = 0;

	for (uint64_t n = START; n <= START + 10 * HZ + step; n += step)
		add_shot(&w->host_log, n, clock_at(&w->host, n), 6);
	for (uint64_t n = START + HZ / 50; n <= START + 10 * HZ; n += step) {
		uint64_t c = guest_counter(&w->vm, n);

		if (w->vm.paused_at && n >= w->vm.paused_at && n < w->vm.resumed_at) {
			asked = n;
			continue;
		}
		if (asked && w->vm.paused_at) /* on its way meanwhile */
			add_late_ping(&w->guest_log, &w->vm);
		asked = 0;
		/* the guest's clock runs with its own counter */
		add_shot(&w->guest_log, c, clock_at(&w->guest, c + w->vm.cntvoff[0]), 5);
		add_ping(&w->guest_log, &w->vm, n, 3000);
	}
}

/* A vCPU is loaded every ms, but not while the VM is stopped. */
static void load(struct world *w, int32_t vm)
{
	for (uint64_t n = START; n <= START + 10 * HZ; n += HZ / 1000) {
		bool after = w->vm.paused_at && n >= w->vm.resumed_at;

		if (w->vm.paused_at && n >= w->vm.paused_at && !after)
			continue;
		assert_int_equal(
			cntvoff_log_load(&w->cntvoff, clock_at(&w->host, n), vm, w->vm.cntvoff[after], false),
			0);
	}
	assert_int_equal(cntvoff_log_vcpu(&w->cntvoff, vm, 501, 0), 0);
	assert_int_equal(cntvoff_log_vcpu(&w->cntvoff, vm, 502, 1), 0);
}

static void solve(const struct world *w, const struct offset_vcpu *vcpus, size_t n, struct sync_result *r)
{
	const char *why;

	assert_int_equal(counter_solve(&w->host_log, &w->guest_log, &w->cntvoff, vcpus, n, r, &why), 0);
}

/* The largest error at any time of the guest's, not at points alone, is within what is stated there. */
static void judge(const struct world *w, const struct sync_result *r, uint64_t limit)
{
	for (uint64_t n = START + HZ / 50; n < START + 9 * HZ; n += HZ / 777) {
		uint64_t c = guest_counter(&w->vm, n), bound;
		uint64_t time = clock_at(&w->guest, c + w->vm.cntvoff[0]);
		int64_t truth = (int64_t)(clock_at(&w->host, n) - time), error;

		if (w->vm.paused_at && n >= w->vm.paused_at && n < w->vm.resumed_at + 100)
			continue; /* no event of the guest's can be there */
		error = llabs(sync_offset(r, time) - truth);
		bound = sync_bound(r, time);
		if (bound == UINT64_MAX)
			continue;
		assert_in_range(error, 0, bound);
		assert_in_range(bound, 1, limit);
	}
}

static void release(struct world *w, struct sync_result *r)
{
	counter_log_release(&w->host_log);
	counter_log_release(&w->guest_log);
	cntvoff_log_release(&w->cntvoff);
	sync_result_release(r);
}

static void drift_is_followed(void **state)
{
	/* two clocks that NTP slews against each other, and changes its mind */
	struct world w = { .host = { 5000000000, { 3, 40, -10 } },
			   .guest = { 77, { -100, -100, -60 } },
			   .vm.cntvoff = { 900000000 } };
	struct sync_result r;

	run(&w, 0.25);
	load(&w, 90);
	solve(&w, NULL, 0, &r);
	assert_int_equal(r.class, SYNC_HARD);
	assert_string_equal(r.method, "counter");
	assert_int_equal(r.n_jumps, 0);
	judge(&w, &r, 20000);
	assert_in_range(sync_median_bound(&r), 1, 1000);
	assert_int_equal(r.n_vcpus, 2);
	assert_int_equal(r.vcpus[1].pid, 502);
	release(&w, &r);
}

/* late: how many of the host's last snapshots are not there yet. */
static void steady(size_t late)
{
	struct world w = { .host = { 5000000000, { 3, 3, 3 } },
			   .guest = { 77, { -1, -1, -1 } },
			   .vm.cntvoff = { 900000000 } };
	struct sync_result r;

	run(&w, 0.25);
	load(&w, 90);
	w.host_log.n_shots -= late;
	solve(&w, NULL, 0, &r);
	judge(&w, &r, 1000);
	release(&w, &r);
}

static void steady_clocks_within_a_microsecond(void **state)
{
	steady(0);
}

/* Of a recording that goes on the guest's snapshots may be younger than the host's. */
static void a_part_of_a_recording(void **state)
{
	steady(3);
}

static void pause_is_cut(void **state)
{
	struct world w = { .host = { 5000000000, { 3, 3, 3 } },
			   .guest = { 77, { -9, -9, -9 } },
			   .vm = { { 900000000, 900000000 + 2 * HZ }, START + 4 * HZ, START + 6 * HZ } };
	struct sync_result r;

	run(&w, 0.25);
	load(&w, 90);
	solve(&w, NULL, 0, &r);
	assert_int_equal(r.class, SYNC_HARD);
	assert_int_equal(r.n_jumps, 1);
	assert_in_range(r.points[r.jumps[0]].offset - r.points[r.jumps[0] - 1].offset, 1999990000,
			2000010000);
	judge(&w, &r, 1000);
	release(&w, &r);
}

static void vm_is_found_among_others(void **state)
{
	struct world w = { .host = { 5000000000, { 0 } },
			   .guest = { 77, { 0 } },
			   .vm.cntvoff = { 900000000 } };
	struct sync_result r;

	run(&w, 1);
	for (int vm = 70; vm < 75; vm++)
		assert_int_equal(
			cntvoff_log_load(&w.cntvoff, 5000000000, vm, 123456789 + (uint64_t)vm * HZ, false),
			0);
	/* 1 ms away: beyond what a question and its answer leave */
	assert_int_equal(cntvoff_log_load(&w.cntvoff, 5000000000, 80, 900000000 + HZ / 1000, false), 0);
	load(&w, 90);
	solve(&w, NULL, 0, &r);
	judge(&w, &r, 1000);
	release(&w, &r);
}

/* Two that were started within 50 us: what a question and its answer leave suits both. */
static void vms_started_together(void **state)
{
	struct world w = { .host = { 5000000000, { 0 } },
			   .guest = { 77, { 0 } },
			   .vm.cntvoff = { 900000000 } };
	const struct offset_vcpu vcpus[] = { { 0, 0 }, { 1, 502 } };
	struct sync_result r;
	const char *why;

	run(&w, 1);
	assert_int_equal(cntvoff_log_load(&w.cntvoff, 5000000000, 80, 900000000 + HZ / 20000, false), 0);
	assert_int_equal(cntvoff_log_vcpu(&w.cntvoff, 80, 401, 0), 0);
	load(&w, 90);
	assert_int_equal(counter_solve(&w.host_log, &w.guest_log, &w.cntvoff, NULL, 0, &r, &why), -ENODATA);
	assert_string_equal(why, "several VMs' CNTVOFFs fit its counter, and its vCPU threads are not known");
	solve(&w, vcpus, 2, &r);
	judge(&w, &r, 1000);
	release(&w, &r);
}

static void protected_vm_has_none(void **state)
{
	struct world w = { .host = { 5000000000, { 0 } }, .guest = { 77, { 2, 2, 2 } }, .vm.cntvoff = { 0 } };
	struct sync_result r;

	run(&w, 0.25);
	solve(&w, NULL, 0, &r);
	assert_int_equal(r.class, SYNC_HARD);
	judge(&w, &r, 1000);
	release(&w, &r);
}

static void without_cntvoff_pings_remain(void **state)
{
	struct world w = { .host = { 5000000000, { 3, 3, 3 } },
			   .guest = { 77, { -9, -9, -9 } },
			   .vm = { { 900000000, 900000000 + 2 * HZ }, START + 4 * HZ, START + 6 * HZ } };
	struct sync_result r;
	const char *why;

	run(&w, 0.25);
	assert_int_equal(counter_solve(&w.host_log, &w.guest_log, &w.cntvoff, NULL, 0, &r, &why), -ENODATA);
	assert_string_equal(why, "its CNTVOFF is not known");
	assert_int_equal(r.n_points, 0);
	assert_int_equal(counter_solve_pings(&w.host_log, &w.guest_log, &r, &why), 0);
	assert_int_equal(r.class, SYNC_PING);
	/* where the jump is, is not known: the point before it says so */
	assert_int_equal(r.n_jumps, 1);
	assert_int_equal(r.points[r.jumps[0] - 1].class, SYNC_NONE);
	assert_in_range(sync_median_bound(&r), 10000, 100000);
	for (size_t i = 0; i < r.n_points; i++) {
		bool after = i >= r.jumps[0];
		uint64_t c = (r.points[i].time - w.guest.base) / 16 + START - w.vm.cntvoff[0];
		uint64_t n = c + w.vm.cntvoff[after];
		int64_t truth = (int64_t)(clock_at(&w.host, n) - clock_at(&w.guest, c + w.vm.cntvoff[0]));

		if (r.points[i].class == SYNC_NONE)
			continue;
		/* c is off by what the guest's clock is slewed by: 9 ppm of 10 s, of no account for the
		 * offset */
		assert_in_range(llabs(r.points[i].offset - truth), 0, r.points[i].bound + 1000);
	}
	release(&w, &r);
}

static void a_wrong_cntvoff_is_refused(void **state)
{
	struct world w = { .host = { 5000000000, { 0 } },
			   .guest = { 77, { 0 } },
			   .vm.cntvoff = { 900000000 } };
	struct sync_result r;
	const char *why;

	run(&w, 1);
	assert_int_equal(cntvoff_log_load(&w.cntvoff, 5000000000, 90, 900000000 + HZ / 100, false), 0);
	assert_int_equal(counter_solve(&w.host_log, &w.guest_log, &w.cntvoff, NULL, 0, &r, &why), -ENODATA);
	assert_string_equal(why, "no VM's CNTVOFF fits its counter");
	release(&w, &r);
}

static void lost_loads_make_it_soft(void **state)
{
	struct world w = { .host = { 5000000000, { 0 } },
			   .guest = { 77, { 0 } },
			   .vm = { { 900000000, 900000000 + HZ }, START + 4 * HZ, START + 5 * HZ } };
	struct sync_result r;

	run(&w, 0.25);
	assert_int_equal(
		cntvoff_log_load(&w.cntvoff, clock_at(&w.host, START + HZ), 90, w.vm.cntvoff[0], false), 0);
	assert_int_equal(
		cntvoff_log_load(&w.cntvoff, clock_at(&w.host, START + 6 * HZ), 90, w.vm.cntvoff[1], true),
		0);
	solve(&w, NULL, 0, &r);
	assert_int_equal(r.class, SYNC_SOFT);
	assert_int_equal(r.points[r.jumps[0] - 1].class, SYNC_NONE);
	/* nothing is vouched for from the last load with the old one to the first with the new one */
	for (uint64_t n = START + 1 * HZ + HZ / 2; n < START + 6 * HZ; n += HZ / 4)
		assert_int_equal(
			sync_bound(&r, clock_at(&w.guest, guest_counter(&w.vm, n) + w.vm.cntvoff[0])),
			UINT64_MAX);
	judge(&w, &r, 1000);
	release(&w, &r);
}

static void a_clock_that_was_set_is_refused(void **state)
{
	struct world w = { .host = { 5000000000, { 0 } },
			   .guest = { 77, { 0 } },
			   .vm.cntvoff = { 900000000 } };
	struct sync_result r;
	const char *why;

	run(&w, 0.25);
	load(&w, 90);
	for (size_t i = w.guest_log.n_shots / 2; i < w.guest_log.n_shots; i++)
		w.guest_log.shots[i].clock += 5000000;
	assert_int_equal(counter_solve(&w.host_log, &w.guest_log, &w.cntvoff, NULL, 0, &r, &why), -ENODATA);
	assert_string_equal(why, "its clock was set");
	release(&w, &r);
}

/* ---- with windows ----------------------------------------------------------------- */

#define THREADS 2

/* Each vCPU runs for 0.1 to 0.4 ms of every ms, with events in it, none nearer than 5 us to an end. */
static void make_events(const struct world *w, struct sync_host *h, struct sync_guest *g)
{
	uint32_t random = 1;

	*h = (struct sync_host){ .begin = clock_at(&w->host, START) };
	*g = (struct sync_guest){ .cpus = calloc(THREADS, sizeof(*g->cpus)), .n_cpus = THREADS };
	for (unsigned int cpu = 0; cpu < THREADS; cpu++) {
		struct sync_cpu *c = &g->cpus[cpu];

		*c = (struct sync_cpu){ .cpu = cpu, .times = calloc(60000, sizeof(*c->times)) };
		for (uint64_t n = START + HZ / 50; n < START + 9 * HZ; n += HZ / 1000) {
			uint64_t a, b;
			struct sync_window win;

			random = random * 1664525 + 1013904223;
			a = n + random % 20000;
			b = a + 6000 + (random >> 8) % 18000;
			if (w->vm.paused_at && b > w->vm.paused_at && a < w->vm.resumed_at)
				continue;
			win = (struct sync_window){ clock_at(&w->host, a), clock_at(&w->host, b),
						    500 + (int32_t)cpu, SYNC_KVM, false };
			h->end = win.b;
			assert_int_equal(array_push(&h->windows.v, &h->windows.n, &win, sizeof(win)), 0);
			for (uint64_t at = a + 312 + random % 200; at < b - 312 && c->n < 60000; at += 2500) {
				uint64_t counter = guest_counter(&w->vm, at);

				c->times[c->n++] = clock_at(&w->guest, counter + w->vm.cntvoff[0]);
			}
		}
	}
}

/* Events that have no bound are few: those about a pause. */
static size_t unbound(const struct sync_guest *g, const struct sync_result *r)
{
	size_t n = 0;

	for (size_t i = 0; i < g->n_cpus; i++)
		for (size_t k = 0; k < g->cpus[i].n; k++)
			n += sync_bound(r, g->cpus[i].times[k]) == UINT64_MAX;
	return n;
}

static void windows_once(struct world *w, uint64_t limit, size_t jumps)
{
	const struct offset_vcpu map[] = { { 0, 500 }, { 1, 501 } };
	struct sync_host h;
	struct sync_guest g;
	struct sync_evidence e = { &h, &g, map, THREADS };
	struct sync_result r;

	make_events(w, &h, &g);
	assert_int_equal(counter_solve_windows(&w->host_log, &w->guest_log, &e, &r), 0);
	assert_int_equal(r.class, SYNC_HARD);
	assert_string_equal(r.method, "kvm windows");
	assert_int_equal(r.outside, 0);
	assert_int_equal(r.n_jumps, jumps);
	assert_int_equal(r.n_vcpus, THREADS);
	assert_in_range(unbound(&g, &r), 0, 10 * jumps);
	judge(w, &r, limit);
	sync_guest_release(&g);
	sync_host_release(&h);
	release(w, &r);
}

/* No slice alone knows the rates so well: what the ends leave, 10 us, and the snapshots' slack. */
static void windows_bound_cntvoff_together(void **state)
{
	struct world w = { .host = { 5000000000, { 3, 3, 3 } },
			   .guest = { 77, { -120, -120, -120 } },
			   .vm.cntvoff = { 900000000 } };

	run(&w, 0.25);
	windows_once(&w, 8000, 0);
}

/* The VM is stopped for a while: one CNTVOFF before, one after, and the events tell where. */
static void windows_find_a_pause(void **state)
{
	struct world w = { .host = { 5000000000, { 3, 3, 3 } },
			   .guest = { 77, { -9, -9, -9 } },
			   .vm = { { 900000000, 900000000 + 2 * HZ }, START + 4 * HZ, START + 6 * HZ } };

	run(&w, 0.25);
	windows_once(&w, 8000, 1);
}

/* ... but no snapshot was made since: not the old CNTVOFF for all. */
static void windows_refuse_a_pause_unseen(void **state)
{
	struct world w = { .host = { 5000000000, { 3, 3, 3 } },
			   .guest = { 77, { -9, -9, -9 } },
			   .vm = { { 900000000, 900000000 + 2 * HZ }, START + 4 * HZ, START + 6 * HZ } };
	const struct offset_vcpu map[] = { { 0, 500 }, { 1, 501 } };
	struct sync_host h;
	struct sync_guest g;
	struct sync_evidence e = { &h, &g, map, THREADS };
	struct sync_result r;

	run(&w, 0.25);
	make_events(&w, &h, &g);
	w.guest_log.n_shots = w.guest_log.n_pings = 10;
	assert_int_equal(counter_solve_windows(&w.host_log, &w.guest_log, &e, &r), -ENODATA);
	sync_guest_release(&g);
	sync_host_release(&h);
	release(&w, &r);
}

/* CNTVOFF is known, but the last snapshot is from before it changed. */
static void pause_after_the_last_snapshot(void **state)
{
	struct world w = { .host = { 5000000000, { 3, 3, 3 } },
			   .guest = { 77, { -9, -9, -9 } },
			   .vm = { { 900000000, 900000000 + 2 * HZ }, START + 4 * HZ, START + 6 * HZ } };
	uint64_t late = 5000000000 + (6 * HZ + HZ / 2) * 16;
	struct sync_result r;

	run(&w, 0.25);
	load(&w, 90);
	w.guest_log.n_shots = w.guest_log.n_pings = 10;
	solve(&w, NULL, 0, &r);
	assert_int_equal(r.n_jumps, 1);
	assert_in_range(sync_bound(&r, late - (uint64_t)r.points[r.n_points - 1].offset), 1, 100000);
	judge(&w, &r, 100000);
	release(&w, &r);
}

static void too_little_is_refused(void **state)
{
	struct world w = { .vm.cntvoff = { 5 } };
	struct sync_result r;
	const char *why;

	assert_int_equal(counter_solve(&w.host_log, &w.guest_log, &w.cntvoff, NULL, 0, &r, &why), -ENODATA);
	assert_int_equal(counter_solve_pings(&w.host_log, &w.guest_log, &r, &why), -ENODATA);
	add_shot(&w.host_log, 5, 5, 0);
	add_shot(&w.host_log, 5, 5, 0);
	add_shot(&w.guest_log, 5, 5, 0);
	assert_int_equal(counter_solve(&w.host_log, &w.guest_log, &w.cntvoff, NULL, 0, &r, &why), -ENODATA);
	release(&w, &r);
}

/* As it is written: stock wants points nearer than its 64-bit product lasts. */
static void points_are_near_enough(void **state)
{
	struct world w = { .guest = { 77, { 0 } }, .vm.cntvoff = { 900000000 } };
	struct offset_shift s;
	struct sync_result r;

	for (uint64_t n = START; n <= START + 200 * HZ; n += 200 * HZ) {
		add_shot(&w.host_log, n, n * 16, 3);
		add_shot(&w.guest_log, n - 900000000, n * 16 - 900000000, 3);
		add_ping(&w.guest_log, &w.vm, n, 3000);
	}
	assert_int_equal(cntvoff_log_load(&w.cntvoff, START * 16, 90, 900000000, false), 0);
	solve(&w, NULL, 0, &r);
	assert_int_equal(sync_time_shift(&r, 1, 2, &s), 0);
	for (uint32_t i = 1; i < s.cpus[0].n; i++)
		assert_in_range(s.cpus[0].v[i].time - s.cpus[0].v[i - 1].time, 1, 50000000000);
	/* two snapshots alone tell nothing of bends between them */
	assert_in_range(sync_median_bound(&r), 100000, 1000000000);
	offset_shift_release(&s);
	release(&w, &r);
}

/* What another CPU's buffer kept back comes late: no second change of CNTVOFF. */
static void late_records(void **state)
{
	struct cntvoff_log l = { 0 };

	assert_int_equal(cntvoff_log_load(&l, 100, 9, 5, false), 0);
	assert_int_equal(cntvoff_log_load(&l, 300, 9, 7, false), 0);
	assert_int_equal(cntvoff_log_load(&l, 200, 9, 5, false), 0);
	assert_int_equal(cntvoff_log_load(&l, 250, 8, 6, false), 0);
	assert_int_equal(cntvoff_log_load(&l, 400, 9, 7, false), 0);
	assert_int_equal(l.n_spans, 3);
	assert_int_equal(l.spans[0].last, 200);
	assert_int_equal(l.spans[1].first, 300);
	assert_int_equal(l.spans[1].last, 400);
	cntvoff_log_release(&l);
}

static void put(const char *dir, const char *name, const char *text)
{
	char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

/* debugfs of an x86 host: a VM whose TSC is offset, one whose TSC is scaled too. */
static void tsc_offsets(void **state)
{
	char top[] = "/tmp/hyptrace-kvm.XXXXXX", dir[128], command[64];
	static const char *const vcpus[] = { "777-11/vcpu0", "777-11/vcpu1", "888-12/vcpu0" };
	struct cntvoff_log l = { 0 };

	assert_non_null(mkdtemp(top));
	for (int i = 0; i < 3; i++) {
		snprintf(dir, sizeof(dir), "%s/%.6s", top, vcpus[i]);
		mkdir(dir, 0700);
		snprintf(dir, sizeof(dir), "%s/%s", top, vcpus[i]);
		assert_int_equal(mkdir(dir, 0700), 0);
		put(dir, "tsc-offset", "-5000000000\n");
		put(dir, "pid", i ? "779\n" : "778\n");
		put(dir, "tsc-scaling-ratio-frac-bits", "48\n");
		put(dir, "tsc-scaling-ratio", i == 2 ? "281474976710657\n" : "281474976710656\n");
	}
	assert_int_equal(cntvoff_tsc_read(top, 100, &l), 0);
	assert_int_equal(cntvoff_tsc_read(top, 300, &l), 0);
	assert_int_equal(l.n_spans, 1);
	assert_int_equal(l.spans[0].vm, 777);
	assert_int_equal(l.spans[0].cntvoff, 5000000000);
	assert_int_equal(l.spans[0].first, 100);
	assert_int_equal(l.spans[0].last, 300);
	assert_int_equal(l.n_vcpus, 2);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(l.vcpus[i].pid, 778 + (int)l.vcpus[i].id);
	cntvoff_log_release(&l);
	assert_int_equal(cntvoff_tsc_read("/no/such/directory", 300, &l), 0);
	assert_int_equal(l.n_spans, 0);
	snprintf(command, sizeof(command), "rm -r %s", top);
	assert_int_equal(system(command), 0);
}

/* Of a long recording: copied while it goes on, and only the newest is kept. */
static void log_of_a_long_recording(void **state)
{
	struct counter_log l = { 0 }, copy = { 0 };

	for (uint64_t i = 0; i < 40; i++) {
		const struct counter_ping p = { .sent = i };

		assert_int_equal(counter_log_ping(&l, &p), 0);
		if (i % 4 == 3)
			add_shot(&l, i, i, 1);
	}
	assert_int_equal(counter_log_copy(&copy, &l), 0);
	counter_log_forget(&l, 20);
	assert_int_equal(counter_log_shots(&l), 10);
	counter_log_forget(&l, 4);
	assert_int_equal(counter_log_shots(&l), 4);
	assert_int_equal(l.shots[0].clock, 27);
	assert_true(l.n_pings >= 16 && l.n_pings <= 20 && l.pings[l.n_pings - 1].sent == 39);
	assert_true(copy.n_shots == 10 && copy.n_pings == 40 && !copy.pings[0].sent);
	add_shot(&l, 40, 40, 1);
	assert_int_equal(l.shots[4].clock, 40);
	counter_log_release(&l);
	counter_log_release(&copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(log_of_a_long_recording),
		cmocka_unit_test(drift_is_followed),
		cmocka_unit_test(steady_clocks_within_a_microsecond),
		cmocka_unit_test(a_part_of_a_recording),
		cmocka_unit_test(pause_is_cut),
		cmocka_unit_test(vm_is_found_among_others),
		cmocka_unit_test(vms_started_together),
		cmocka_unit_test(protected_vm_has_none),
		cmocka_unit_test(without_cntvoff_pings_remain),
		cmocka_unit_test(a_wrong_cntvoff_is_refused),
		cmocka_unit_test(lost_loads_make_it_soft),
		cmocka_unit_test(a_clock_that_was_set_is_refused),
		cmocka_unit_test(windows_bound_cntvoff_together),
		cmocka_unit_test(windows_find_a_pause),
		cmocka_unit_test(windows_refuse_a_pause_unseen),
		cmocka_unit_test(pause_after_the_last_snapshot),
		cmocka_unit_test(too_little_is_refused),
		cmocka_unit_test(points_are_near_enough),
		cmocka_unit_test(late_records),
		cmocka_unit_test(tsc_offsets),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
