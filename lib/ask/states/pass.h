/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_PASS_H
#define HYPTRACE_PASS_H

#include "ask/states/steps.h"

/* Several questions, answered by one reading of the files. */
struct pass_run {
	const struct merge_run *records;
	const struct step *steps; /* of those records, for any part; none if this one wants none */
	size_t n_steps;
	void *own;	 /* the part's, NULL at first; kept for later runs */
	struct buf *out; /* the part's, empty in work() */
	size_t worker;	 /* in work(): who does it, below pipeline_workers() */
};

struct pass_part {
	void *ctx;
	uint64_t steps; /* the set of kinds that it wants; 0: none, and none it gets */
	/* Before each run of a pass in order: how much of the files has been read, 0 to 1. NULL: nothing to
	 * do. */
	int (*before)(void *ctx, double part);
	/* Called by several threads, each with a run. NULL: nothing to do. */
	int (*work)(void *ctx, struct pass_run *run);
	/*
	 * In the order of time, one run at a time, perhaps by other threads: first() at the time of earlier
	 * runs' after() and of other parts' first(), so that it meets nothing that they use (but for `uses`),
	 * nor names. NULL: nothing to do; both: the part needs no order.
	 */
	int (*first)(void *ctx, struct pass_run *run);
	int (*after)(void *ctx, struct pass_run *run);
	const void *uses; /* by first(): what those of other parts use, too, and so never at once */
	/* At the end, of each run's own. NULL: not needed. */
	void (*release)(void *own);
	bool learns; /* of the first part: after() calls steps_learn itself, as far as it reads */
};

#define PASS_PARTS_MAX 40

/*
 * Reads the files once for all parts. Pauses between regions come as records of no bytes (merge_tell_pauses).
 * If no part has a first() or an after(), files are read without the merge: runs are then of one CPU each, in
 * no order, and those of one CPU may be worked on by two threads at a time. steps: of the timeline's inputs;
 * NULL where no part wants them. 0, the first other result of a part, -ENOMEM; -EINVAL: more than
 * PASS_PARTS_MAX.
 */
int pass_read(struct timeline *t, const struct steps *steps, const struct pass_part *parts, size_t n);

/*
 * CPUs of a buffer on which events are missing now: from the last one before a loss to the first after it. A
 * thread moves from CPU to CPU: while events are missing on one, nothing is certain of it.
 */
struct gaps {
	/* by stream */
	struct gaps_stream {
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
