/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_PIPELINE_H
#define HYPTRACE_PIPELINE_H

#include "read/timeline.h"

/*
 * The records of all inputs, worked on by every core, with the result in the order
 * of time: pages are merged into runs of some thousand records one after the other, runs are
 * worked on side by side, and given back in their order.
 */
struct pipeline_run {
	struct merge_run records;
	struct buf out; /* the job's, empty at first; kept for the runs to come */
	void *own;	/* the job's, NULL at first; kept likewise */
	size_t worker;	/* in work(): who does it, below pipeline_workers() */
};

struct pipeline_job {
	/*
	 * For run after run, in order: whatever depends on the records before. May look at
	 * the records behind the run with merge_ahead. NULL: nothing to do.
	 */
	int (*before)(void *ctx, struct pipeline_run *run);
	/* By several threads, each with a run. */
	int (*work)(void *ctx, struct pipeline_run *run);
	/* In order again, one at a time, perhaps by other threads. */
	int (*after)(void *ctx, struct pipeline_run *run);
	/* At the end, of each run's own. NULL: not needed. */
	void (*release)(void *own);
};

/* Count of threads: the cores that this process may use, up to 16. */
size_t pipeline_workers(void);
/*
 * Runs to the end: 0. A function of the job that returns another value ends it at that run: no
 * after() is called for it or for later runs. -ENOMEM.
 */
int pipeline_work(struct timeline *t, const struct pipeline_job *job, void *ctx);

/*
 * For each run of records, of one CPU each and in no order among CPUs, by several threads: worker is
 * below pipeline_workers(). What is not 0 ends it.
 */
typedef int streams_job(void *ctx, const struct merge_run *run, size_t worker);

/*
 * All records of a timeline that nothing was taken from, without the merge that pipeline_work() needs: CPUs
 * are read side by side, and a CPU's runs are worked on side by side. 0, what work gave, -ENOMEM.
 */
int streams_work(struct timeline *t, streams_job *work, void *ctx);

#endif
