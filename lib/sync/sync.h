/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SYNC_H
#define HYPTRACE_SYNC_H

#include "sync/result.h"
#include "base/log.h"

/*
 * Clock synchronisation of a guest with its host from causality: a guest's event can only happen while its
 * vCPU's host thread runs the guest. Documentation/clock-sync.md has the maths.
 *
 * 	host time = guest time + sync_offset(result, guest time)
 *
 * Times are ns, or ticks when both files use a counter clock.
 */

enum sync_kind {
	SYNC_KVM, /* kvm_entry .. kvm_exit */
	SYNC_HYP, /* the hypervisor's eret_guest .. guest_exit */
};

/* One guest CPU's events; times ascend. */
struct sync_cpu {
	unsigned int cpu;
	uint64_t *times;
	size_t n;
};

/*
 * A stretch of host time in which a thread can have run its guest. Any order; they may overlap. `unknown`:
 * events were lost here, so it may have; with pid 0 that holds for every thread.
 */
struct sync_window {
	uint64_t a, b;
	int32_t pid;
	uint8_t kind; /* enum sync_kind */
	bool unknown;
};

struct sync_windows {
	struct sync_window *v; /* freed by the struct's owner */
	size_t n;
};

/* An entry into the guest or an exit from it. */
struct sync_point {
	uint64_t time;
	int32_t pid;
	uint8_t kind;
	bool enter;
};

/*
 * Pairs entries with exits (sorts v) and appends their windows; one that lacks its
 * other half becomes an unknown window. begin, end: of the host's capture. slack:
 * widens each window on both sides by the clock's error (ns); step: widens its end
 * by the resolution of the time stamps (ns), which are cut off. 0 or -ENOMEM.
 */
int sync_windows_pair(struct sync_windows *w, struct sync_point *v, size_t n, uint64_t begin, uint64_t end,
		      uint64_t slack, uint64_t step);

/* A bound from elsewhere, a ping say: |host - guest - offset| <= bound around `time`. */
struct sync_prior {
	bool valid;
	uint64_t time; /* guest */
	int64_t offset;
	uint64_t bound;
};

/* Everything is borrowed and only read: solvers in several threads may share it. */
struct sync_input {
	const struct sync_cpu *cpus;
	size_t n_cpus;
	const struct sync_window *windows;
	size_t n_windows;
	/* Of the host's capture: events beyond it are no evidence. 0, 0: of the windows. */
	uint64_t begin, end;
	/*
	 * Host thread of each of cpus[], 0: not given; NULL: none is. They are checked
	 * against the events, and replaced where these contradict them.
	 */
	const int32_t *pids;
	struct sync_prior prior;
	/* Both clocks hardly drift: tries limits that suit such clocks first. */
	bool steady;
	double max_rate; /* of the clocks against each other; 0 = 5e-4 */
	/*
	 * Largest unseen change of this rate within a segment: 0 = 5e-6, for clocks that NTP
	 * steers; 1e-7 for clocks that it does not steer; more for fast slewing.
	 */
	double max_bend;
};

/* 0 (also for class none), -ENOMEM, -EINVAL: no CPUs. Release *out after 0. */
int sync_solve(const struct sync_input *in, struct sync_result *out);

/*
 * Causality of given offsets (the file's own, for example): for each event
 * outside of its windows, the least shift that would bring it in.
 */
struct sync_check {
	uint64_t events, outside;
	uint64_t worst; /* ns beyond the nearest window */
};
/*
 * map: its vcpus alone are used. bounds: an event nearer to a window than the bound of its
 * time is inside; NULL: no bound is allowed for. 0 or -ENOMEM.
 */
int sync_check(const struct sync_input *in, const struct sync_result *map, const struct sync_result *bounds,
	       const struct offset_shift *shift, struct sync_check *out);

#endif
