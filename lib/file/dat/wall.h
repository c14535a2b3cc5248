/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_WALL_H
#define HYPTRACE_WALL_H

#include "base/buf.h"

/*
 * The time of day by the trace clock, at a recording's begin and end: the option DAT_WALL of a host's file
 * holds one sample, or both, as they stand here, in the file's byte order.
 */
#define DAT_WALL 0x4872 /* far from trace-cmd's own ids, which are counted from 0 */

#define WALL_NO_ERROR UINT64_MAX /* the kernel's clock was not synchronised: nothing bounds its error */

/* When the file's clock showed `trace`, CLOCK_REALTIME showed `utc` +- slack; all ns. */
struct wall_sample {
	uint64_t trace, utc, slack;
	uint64_t max_error, est_error; /* of CLOCK_REALTIME, by the kernel (adjtimex(2)), or WALL_NO_ERROR */
	uint64_t tai;		       /* s, TAI - UTC; 0: the kernel was not told */
};

struct wall {
	struct wall_sample v[2];
	size_t n; /* 0: the file does not say */
};

/* -EBADMSG: makes no sense. */
int wall_decode(const void *data, size_t len, struct wall *out);
/*
 * The time of day at a time of the file's clock, ns since 1970, by a line between both samples. *bound: its
 * greatest error, if both clocks drifted apart or CLOCK_REALTIME was set between; UINT64_MAX: unknown, as
 * before and after the samples.
 */
uint64_t wall_at(const struct wall *w, uint64_t trace, uint64_t *bound);

#endif
