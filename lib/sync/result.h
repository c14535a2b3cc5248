/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SYNC_RESULT_H
#define HYPTRACE_SYNC_RESULT_H

#include "file/dat/offset.h"

/*
 * A guest's clock offset over time, with a bound: what the solver and the counter
 * method compute, and what is written into files. Plain data.
 */

enum sync_class {
	SYNC_NONE, /* no offset */
	SYNC_PING, /* a message's round trip: +- RTT/2 */
	SYNC_SOFT, /* nearly all events inside */
	SYNC_HARD, /* every event inside, nothing lost unseen */
};

const char *sync_class_name(enum sync_class c); /* "none", "ping", "soft", "hard" */

struct sync_offset_point {
	uint64_t time;	/* guest */
	int64_t offset; /* host = guest + offset */
	/* Half width: the truth lies in offset +- bound. UINT64_MAX: unbounded. Between two
	 * points the larger one holds. */
	uint64_t bound;
	enum sync_class class;
};

struct sync_vcpu {
	unsigned int cpu;
	int32_t pid; /* 0: not found */
};

/* For plots: what the offset may be at a guest time. */
struct sync_band {
	uint64_t time;
	int64_t low, high;
};

struct sync_result {
	enum sync_class class; /* the worst of the points' */
	const char *method;    /* "counter", "hyp windows", "kvm windows", "ping", "none" */
	struct sync_offset_point *points;
	size_t n_points;
	size_t *jumps; /* points that begin a new segment: the offset jumps there */
	size_t n_jumps;
	struct sync_vcpu *vcpus;
	size_t n_vcpus;
	struct sync_band *bands;
	size_t n_bands;
	uint64_t events;  /* that could be checked */
	uint64_t outside; /* of them, in no window with this offset and its bound */
	uint64_t worst;	  /* ns by which the farthest of these is beyond its nearest window */
	bool map_changed; /* the given vCPU map was wrong */
};

/* Leaves it empty. */
void sync_result_release(struct sync_result *r);

/* The offset at a guest time, rounded as stock rounds; 0 without points. */
int64_t sync_offset(const struct sync_result *r, uint64_t time);
/* Its half width; UINT64_MAX: unbounded. */
uint64_t sync_bound(const struct sync_result *r, uint64_t time);
/* True if the offset jumps at this point (an index). */
bool sync_is_jump(const struct sync_result *r, size_t point);
/* Mean drift over the whole, jumps left out, in ppm. */
double sync_drift_ppm(const struct sync_result *r);
/* Events inside / events, 0..1. */
double sync_coverage(const struct sync_result *r);
/* The median half width of all points that have one; UINT64_MAX without. */
uint64_t sync_median_bound(const struct sync_result *r);

/* The host thread of a guest CPU; 0: not found. */
int32_t sync_pid(const struct sync_result *r, unsigned int cpu);

/*
 * The result as a TIME_SHIFT of n_cpus CPUs for the guest's file, which the caller
 * releases. -ENODATA: there is no offset to write; -ENOMEM.
 */
int sync_time_shift(const struct sync_result *r, uint64_t host_id, uint32_t n_cpus, struct offset_shift *out);
/*
 * The bytes of a GUEST option for the host's file. name and trace_id are the guest's, which has n_cpus CPUs;
 * known: threads where the result has none. Readers index the list by CPU: none is left out, 0 is for those
 * without a thread. 0 or -ENOMEM; the caller releases *out in any case.
 */
int sync_guest_option(const struct sync_result *r, const struct offset_vcpu *known, size_t n_known,
		      uint32_t n_cpus, char *name, uint64_t trace_id, struct buf *out);

#endif
