/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_EXACT_H
#define HYPTRACE_EXACT_H

#include "counter.h"
#include "sync.h"

/*
 * The exact method: a guest's counter is the host's less CNTVOFF, without any
 * drift; snapshots on both sides tie the trace clocks to their counters. Pure:
 * logs in, a sync_result out. Documentation/clock-sync.md has the maths.
 */

/* Question and answer: by the host's counter, and by the guest's in between. */
struct counter_ping {
	uint64_t sent, back;  /* host */
	uint64_t first, last; /* guest: question taken, answer sent */
};

/* Zero-initialised = empty. */
struct counter_log {
	struct counter_shot *shots;
	size_t n_shots;
	struct counter_ping *pings; /* of a guest */
	size_t n_pings;
};

int counter_log_shot(struct counter_log *l, const struct counter_shot *s); /* -ENOMEM */
int counter_log_ping(struct counter_log *l, const struct counter_ping *p);
void counter_log_release(struct counter_log *l);

/* From `first` to `last` (ns, host's trace clock) vCPUs of VM `vm` were loaded with this CNTVOFF. */
struct voff_span {
	int32_t vm; /* pid of its VMM */
	uint64_t voff; /* ticks: guest = host - voff */
	uint64_t first, last;
	bool vague; /* records were lost before it: it may have begun earlier */
	bool lossy; /* records were lost after `last` */
};

struct voff_vcpu {
	int32_t vm, pid; /* VMM, vCPU's thread */
	unsigned int id;
};

/* What the host saw of its VMs. Zero-initialised = empty: no probe. */
struct voff_log {
	struct voff_span *spans; /* by time */
	size_t n_spans;
	struct voff_vcpu *vcpus;
	size_t n_vcpus;
};

/* One vcpu_load, in order of time for each VM; lost: records before it are missing. */
int voff_log_load(struct voff_log *l, uint64_t time, int32_t vm, uint64_t voff, bool lost);
/* Records of any VM are missing before those that come from now on. */
void voff_log_lost(struct voff_log *l);
int voff_log_vcpu(struct voff_log *l, int32_t vm, int32_t pid, unsigned int id);
void voff_log_release(struct voff_log *l);

/* The guest's vCPU threads, as far as they are known. */
struct exact_threads {
	const struct offset_vcpu *v;
	size_t n;
};

/*
 * The guest's offset. The VM is the one whose CNTVOFF fits the pings; where several
 * do, the one that has a thread of the guest's; where none
 * does, an offset of 0 that fits them is taken: protected VMs have that, and no
 * other by chance. -ENODATA with *why: it cannot be had; -ENOMEM.
 * out->class is SYNC_HARD, or SYNC_SOFT where records of CNTVOFF were lost.
 */
int exact_solve(const struct counter_log *host, const struct counter_log *guest,
		const struct voff_log *voff, const struct exact_threads *threads, struct sync_result *out,
		const char **why);

/* What a recording's events tell, besides the counters. */
struct exact_events {
	const struct sync_host *host;
	const struct sync_guest *guest;
	const struct offset_vcpu *vcpus; /* the map, as far as known */
	size_t n_vcpus;
};

/*
 * Without CNTVOFF, but with events: the windows (sync.h) bound it, all of a
 * recording together, since it does not drift; where the pings show that the VM was
 * stopped, all before and all after. -ENODATA: they do not, or it was stopped and
 * no ping shows that; sync_files may still find something.
 */
int exact_windows(const struct counter_log *host, const struct counter_log *guest,
		  const struct exact_events *events, struct sync_result *out, const struct log *log);

/*
 * Without CNTVOFF: it does not change, so the pings alone bound it, all of them
 * together. out->class is SYNC_PING.
 */
int exact_ping(const struct counter_log *host, const struct counter_log *guest,
	       struct sync_result *out, const char **why);

#endif
