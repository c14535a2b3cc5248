/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_TIMELINE_H
#define HYPTRACE_TIMELINE_H

#include "read/inputs.h"

/*
 * The records of all inputs by corrected time, each with its event as libtraceevent knows it. Either one
 * after the other by timeline_next, or run by run by merge_take and the other calls of merge.h on its merge.
 */
struct timeline {
	const struct inputs *in;
	struct merge *merge;
	/* timeline.c's own */
	struct merge_input *v;
	struct merge_run run;
	size_t next; /* in the run: after the record that was given last */
	struct padded room;
};

struct timeline_record {
	const struct merge_record *m; /* good until the next call */
	size_t input;		      /* index of in */
	const struct input *in;
	const struct reader_buffer *buffer;
	unsigned int cpu;
	uint64_t ts;		 /* ns of the host's clock; ticks where they are not converted */
	uint64_t raw;		 /* as it stands in the page */
	int64_t missed;		 /* events lost before it on this CPU; -1: some */
	struct tep_record tep;	 /* its bytes, with zeros behind them; size 0: none, only a loss */
	struct tep_event *event; /* NULL: no format has its id */
	unsigned int id;
	int pid; /* -1: the record has none */
};

/*
 * want, ctx: as of merge_open. Inputs must be loaded and outlive the timeline, which
 * timeline_close frees (NULL is fine). -ENOMEM, -errno from the files.
 */
int timeline_open(struct timeline **out, const struct inputs *in, merge_want *want, void *ctx,
		  const struct log *log);
void timeline_close(struct timeline *t);
/* 1: *r, whose bytes are the timeline's until the next call; 0: the end; -ENOMEM. */
int timeline_next(struct timeline *t, struct timeline_record *r);

/*
 * Makes *r of a record of a run, by any thread, with bytes in room, which is the thread's own. timeline_ahead
 * returns the record after run->v[i] in its buffer, perhaps after the run: 1, or 0.
 */
void timeline_fill(const struct timeline *t, const struct merge_record *m, struct padded *room,
		   struct timeline_record *r);
int timeline_ahead(const struct timeline *t, const struct merge_run *run, size_t i,
		   struct merge_record *next);
/* page_event_id() of it. */
static inline unsigned int timeline_id(const struct merge_record *m)
{
	return page_event_id(m->data, m->len);
}

/* The event of a record; NULL: no format has its id, which is 0 where the record is too short for one. */
const struct known_event *timeline_event(const struct timeline *t, const struct merge_record *m,
					 unsigned int *id);
/* Pid by that field; -1: the record has none. */
int timeline_pid(const struct field_load *pid, const struct merge_record *m);

/*
 * The records of all inputs, worked on by every core, with the result in the order
 * of time: pages are merged into runs of records one after the other, runs are worked on side by side, and
 * given back in their order.
 */
struct pipeline_run {
	struct merge_run records;
	struct buf out; /* the job's, empty at first; kept for the runs to come */
	void *own;	/* the job's, NULL at first; kept likewise */
	size_t worker;	/* in work() and finish(): who does it, below pipeline_workers() */
};

#define PIPELINE_FIRSTS_MAX 4

struct pipeline_job {
	/*
	 * Records of a run at most; 0: MERGE_RUN_MAX. Long ones cost memory, short ones time: what is in
	 * order goes from core to core with each.
	 */
	size_t run;
	/*
	 * For run after run, in order: whatever depends on the records before. May look at
	 * the records behind the run with merge_ahead. NULL: nothing to do.
	 */
	int (*before)(void *ctx, struct pipeline_run *run);
	/* By several threads, each with a run. */
	int (*work)(void *ctx, struct pipeline_run *run);
	/*
	 * In order again: n_firsts calls for each run, numbered from 0. Those of one number are made one at
	 * a time, during those of other numbers and after() of earlier runs.
	 */
	int (*first)(void *ctx, struct pipeline_run *run, size_t number);
	size_t n_firsts; /* up to PIPELINE_FIRSTS_MAX */
	/* By several threads again, each with a run, when all first() of it are over. NULL: nothing to do. */
	int (*finish)(void *ctx, struct pipeline_run *run);
	/* In order, one at a time, when the run is finished. */
	int (*after)(void *ctx, struct pipeline_run *run);
	/* At the end, of each run's own. NULL: not needed. */
	void (*release)(void *own);
};

/* Count of threads: the cores that this process may use, up to 16. */
size_t pipeline_workers(void);
/* Most runs of a thread that are begun and not yet returned, where there are several threads. */
#define PIPELINE_SLOTS 5
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
