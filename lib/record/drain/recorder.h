/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_RECORDER_H
#define HYPTRACE_RECORDER_H

#include "record/drain/source.h"
#include "record/spool/spool.h"

/*
 * Drains sources into the spool: one thread per source and CPU. Signal
 * RECORDER_SIGNAL (SIGURG, whose default is to be ignored) gets a handler that
 * does nothing, so that a thread asleep in a read comes back when it is to stop.
 */
struct recorder;

#define RECORDER_SIGNAL SIGURG

struct recorder_opts {
	uint64_t sleep_us; /* -s */
	int rt_prio;	   /* -r: SCHED_FIFO priority; 0 = none */
	bool ring;	   /* buffers of the host and the hypervisor are drained by recorder_flush() only */
	/* Called once, from the thread that failed first; the recording should then be ended. */
	void (*failed)(void *ctx, const struct source *s, unsigned int cpu, int error);
	void *ctx;
	const struct log *log;
};

/* Free with recorder_free(). 0 or -ENOMEM. */
int recorder_new(struct recorder **out, const struct recorder_opts *o);
/* Adds a buffer for the source to the spool, after its last one. 0 or -errno. */
int recorder_describe(struct spool *spool, const struct source *s);
/*
 * Starts the threads that drain s into buffer number `buffer` of the spool. The source must live until
 * recorder_free(). -EMFILE: too many CPUs for the limit of open files; or another -errno.
 */
int recorder_add(struct recorder *r, struct source *s, struct spool *spool, size_t buffer);
/*
 * The source's tracing is off: drains what is left of it and joins its threads. Returns the first error of
 * one of them. -ETIMEDOUT: a buffer did not run empty within timeout_ms, and its threads are abandoned.
 */
int recorder_finish(struct recorder *r, const struct source *s, unsigned int timeout_ms);
/*
 * Moves all that a running source has by now into the spool, also pages that are filled in part (only for a
 * host's buffer and the hypervisor's). Waits at most timeout_ms: later records lie in later pages.
 */
void recorder_flush(struct recorder *r, const struct source *s, unsigned int timeout_ms);
/* Totals of one source so far. */
struct recorder_totals {
	uint64_t bytes, events, lost, unknown, taken, bad;
};
struct recorder_totals recorder_totals(const struct recorder *r, const struct source *s);
/* Of one CPU, the recorder's; NULL: the source was not added. */
const struct drain_stats *recorder_stats(const struct recorder *r, const struct source *s, unsigned int cpu);
/* Bytes of pages of all sources so far. */
uint64_t recorder_bytes(const struct recorder *r);
/* After recorder_finish() of each source; memory that an abandoned thread uses is not freed. Takes NULL. */
void recorder_free(struct recorder *r);

#endif
