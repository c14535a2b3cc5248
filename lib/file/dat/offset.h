/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_OFFSET_H
#define HYPTRACE_OFFSET_H

#include "base/buf.h"

/*
 * Offset tables: what to add to a guest's time stamp to make it the host's, as
 * the TIME_SHIFT option of trace-cmd.dat.v7(5) holds them and as stock applies
 * them (libtracecmd, timestamp_host_sync), and the GUEST option. No I/O.
 */

#define OFFSET_METHOD_LEN  16
#define OFFSET_INTERPOLATE 1 /* flag of a TIME_SHIFT: lines between points, else steps */

/*
 * A trace clock whose times are not ns: x86-tsc, ppc-tb, and counter, which counts events
 * (kernel/trace/trace.c, trace_clocks).
 */
bool clock_in_ticks(const char *clock);

struct offset_point {
	uint64_t time;	/* of the guest */
	int64_t offset; /* host = guest + offset */
	int64_t scaling;
	uint64_t frac; /* host = (guest * scaling >> frac) + offset; 1 and 0 normally */
};

/* One guest CPU's; times ascend strictly. */
struct offset_table {
	struct offset_point *v;
	uint32_t n;
};

/* A whole TIME_SHIFT. Zero-initialised = empty; owns its tables. */
struct offset_shift {
	uint64_t peer;	/* TRACEID of the host's file */
	uint32_t flags; /* OFFSET_INTERPOLATE */
	uint32_t n_cpus;
	struct offset_table *cpus;
	/*
	 * hyptrace's own: how wrong the points can be, and where that is from. bounds:
	 * NULL, or half widths in ns (UINT64_MAX: nothing is known); between two points the
	 * larger one holds; as many as the points of a CPU. In the file they are the table of one CPU more
	 * than the guest has: stock stumbles over whatever it does not know, but not over that.
	 */
	uint64_t *bounds;
	uint32_t n_bounds;
	char method[OFFSET_METHOD_LEN + 1], class[OFFSET_METHOD_LEN + 1]; /* words of sync.h */
};

/*
 * The host's time of a guest time stamp, bit for bit as stock computes it: a lone offset point only
 * adds its offset; the outer lines extend before the first point and after the last; without any
 * point ts is returned unchanged.
 */
uint64_t offset_apply(const struct offset_table *t, uint32_t flags, uint64_t ts);
/* ... on one of the shift's CPUs; one that it does not know stays as it is. */
uint64_t offset_shift_apply(const struct offset_shift *s, uint32_t cpu, uint64_t ts);

/*
 * Every CPU gets a copy of the same n points, which is what stock reads right
 * (it takes the last CPU's number of points for all fractions). A lone point is
 * doubled 1 s later. -ENOMEM, -EINVAL: no points, or times that do not ascend.
 */
int offset_shift_fill(struct offset_shift *s, uint64_t peer, uint32_t n_cpus, const struct offset_point *v,
		      uint32_t n);
void offset_shift_release(struct offset_shift *s);
/* Copies n bounds; the words are cut to their length. -ENOMEM. */
int offset_shift_set_bounds(struct offset_shift *s, const uint64_t *bounds, uint32_t n, const char *method,
			    const char *class);

/* The bytes of a TIME_SHIFT option; buf_status() reports a lack of memory. */
void offset_shift_encode(const struct offset_shift *s, struct buf *out);
/*
 * Parses one; sorts offset points and drops those of equal time, as stock does. Fractions may be
 * missing (trace-cmd 2.9). -EBADMSG, -ENOMEM: *s is empty.
 */
int offset_shift_decode(const void *data, size_t len, struct offset_shift *s);

/* As it stands in the option, in the file's byte order. */
struct offset_vcpu {
	uint32_t cpu;
	uint32_t pid; /* its host thread */
};

/* A GUEST option of the host's file. Zero-initialised = empty. */
struct offset_guest {
	char *name;
	uint64_t trace_id; /* TRACEID of the guest's file */
	uint32_t n;
	struct offset_vcpu *vcpus;
};

/* Stock wants every cpu < n, each once: see to it. */
void offset_guest_encode(const struct offset_guest *g, struct buf *out);
/* -EBADMSG, -ENOMEM: *g is empty. */
int offset_guest_decode(const void *data, size_t len, struct offset_guest *g);
void offset_guest_release(struct offset_guest *g);

#endif
