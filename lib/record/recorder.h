/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_RECORDER_H
#define HYPTRACE_RECORDER_H

#include "record/source.h"
#include "record/spool.h"

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
	/* Called once, from the thread that failed first; the recording should then be ended. */
	void (*failed)(void *ctx, const struct source *s, unsigned int cpu, int error);
	void *ctx;
	const struct log *log;
};

int recorder_new(struct recorder **out, const struct recorder_opts *o);
/* Starts the threads that drain s into buffer number `buffer` of the spool. The source must live until
 * recorder_free. */
int recorder_add(struct recorder *r, struct source *s, struct spool *spool, size_t buffer);
/*
 * The source's tracing is off: drains what is left of it and joins its threads.
 * Returns the first error of one of them. Without end only if the kernel never says "empty":
 * see timeout_ms, after which -ETIMEDOUT is returned and the threads are left behind.
 */
int recorder_finish(struct recorder *r, const struct source *s, unsigned int timeout_ms);
/* Totals of one source so far. */
struct recorder_totals {
	uint64_t bytes, events, lost, bad;
};
struct recorder_totals recorder_totals(const struct recorder *r, const struct source *s);
const struct drain_stats *recorder_stats(const struct recorder *r, const struct source *s, unsigned int cpu);
uint64_t recorder_bytes(const struct recorder *r); /* of all sources */
/* All threads must have been joined. */
void recorder_free(struct recorder *r);

#endif
