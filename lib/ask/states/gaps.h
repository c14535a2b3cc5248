/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_GAPS_H
#define HYPTRACE_GAPS_H

#include "read/timeline.h"

/*
 * CPUs of a buffer on which events are missing now: from the last one before a loss to the first after it. A
 * thread moves from CPU to CPU: while events are missing on one, nothing is certain of it.
 */
struct gaps {
	/* by stream */
	struct gaps_stream {
		const struct merge_stream *of;
		bool open;
		uint32_t buffer; /* the first stream of its buffer */
		uint32_t n;	 /* there: on how many of the buffer's CPUs */
	} * v;
};

/* A CPU's first events may be missing, too. -ENOMEM. */
int gaps_open(struct gaps *g, const struct timeline *t);
void gaps_release(struct gaps *g);
/* They are missing from here on (STEP_GAP). */
void gaps_start(struct gaps *g, uint32_t stream);
/* They were missing up to here (STEP_LOST). */
void gaps_stop(struct gaps *g, uint32_t stream);

/* The same number for all streams of a buffer. */
static inline uint32_t gaps_buffer(const struct gaps *g, uint32_t stream)
{
	return g->v[stream].buffer;
}

/* True: some are missing in the buffer of that stream. */
static inline bool gaps_any(const struct gaps *g, uint32_t stream)
{
	return g->v[g->v[stream].buffer].n;
}

#endif
