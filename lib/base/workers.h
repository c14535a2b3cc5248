/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_WORKERS_H
#define HYPTRACE_WORKERS_H

#include <stdatomic.h>

#include "base/std.h"

/*
 * One thread for each of n things (the guests of a recording), to work on them at the same time. The threads
 * live as long as the workers, so that a list of them, such as a pid filter, is made once.
 */
struct workers;

typedef void workers_job(void *ctx, size_t i);

/* 0, -ENOMEM, -EAGAIN: no more threads. */
int workers_new(struct workers **out, size_t n);
/* Ends the threads; waits for a job that runs. Takes NULL. */
void workers_free(struct workers *c);

/* Lets each thread do the job and returns at once. The job before must have been waited for. */
void workers_begin(struct workers *c, workers_job *job, void *ctx);
/* In the job, by thread i: it has reached that stage. Stages count from 1. */
void workers_reach(struct workers *c, size_t i, int stage);
/* Waits until each has reached the stage, or has finished the job. */
void workers_await(struct workers *c, int stage);
/* Waits until all have finished the job. */
void workers_finish(struct workers *c);

/*
 * The job by n threads, of which the caller is the last, until all have finished it. Where there are no
 * more threads the caller does it alone, as n - 1.
 */
void workers_share(size_t n, workers_job *job, void *ctx);

/* Does the job, as 0, in a thread; at once if none can be started: NULL. workers_free() waits for it. */
struct workers *workers_beside(workers_job *job, void *ctx);

/*
 * A job for whichever thread has time: one that would wait else, or the one that needs it done. The members
 * are private. Zero-initialised = none.
 */
struct errand {
	void (*job)(void *ctx);
	void *ctx;
	size_t place;
	_Atomic enum errand_state {
		ERRAND_NONE,
		ERRAND_BEGUN,
		ERRAND_AWAITED, /* its owner waits for the thread that does it */
	} state;
};

/* There must be none. */
void errand_begin(struct errand *e, void (*job)(void *ctx), void *ctx);
/* Does it, if no thread has begun it yet; else waits until it is done. */
void errand_finish(struct errand *e);
/* Leaves it undone, if no thread has begun it yet; else waits until it is done. */
void errand_drop(struct errand *e);
/* Does one that waits, of any thread's. False: there is none. */
bool errands_help(void);
/* There may be some that wait. */
bool errands_wait(void);

/*
 * Things that threads take and put back, such as a compressor's memory: a thread mostly gets what it put
 * back, which lies near to its core. Zero-initialised = empty.
 */
#define POOL_MAX 16
struct pool {
	void *_Atomic v[POOL_MAX];
};

/* NULL: there is none. */
void *pool_take(struct pool *p);
/* Returns what there is no place for: the caller frees it. NULL, also for nothing. */
void *pool_put(struct pool *p, void *thing);

/*
 * A core that writes into a cache line takes it from all others. OWN_LINE stands before the first of the
 * members that one thread writes while others read the members before it.
 */
#define CACHE_LINE 64
#define OWN_LINE   _Alignas(CACHE_LINE)
/* n zeroed entries of `size` bytes in cache lines of their own, for free(). NULL: out of memory. */
void *cache_lines_new(size_t n, size_t size);

#endif
