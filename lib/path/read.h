/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_PATH_READ_H
#define HYPTRACE_PATH_READ_H

#include "latency/event.h"
#include "path/path.h"

/* Which moment is asked for. */
struct path_ask {
	const struct event_words *event; /* NULL: a time */
	uint64_t nth;			 /* of the events that match, from 1 */
	uint64_t time;			 /* ns of the host's clock */
	size_t input;			 /* whose; SIZE_MAX: any machine's event */
	int64_t cpu, pid;		 /* of a time: one of them; -1: not that one */
};

struct path_found {
	struct path_window window; /* within is the caller's */
	struct path_moment moment;
	bool found;
	uint64_t matches; /* events: how many there were */
};

/*
 * One reading of a fresh timeline: the moment, and the steps before it. Of an event: its task, of a
 * sched_switch the one that comes. Of a time: the task that runs on the CPU; the task, where it runs then or
 * as soon as it runs again. found false: there is no such moment. -EINVAL: the filter does not fit, said;
 * -ENOMEM. The window is the caller's to release.
 */
int path_read(struct path_found *f, const struct inputs *in, struct timeline *t, const struct path_ask *ask,
	      const struct log *log);

/* A record as `hyptrace report` prints it. */
struct path_text {
	uint64_t nr;
	char *name, *text; /* NULL: it was not found */
	/* what a sched event says: the names of two tasks, -1: none */
	int32_t pids[2];
	char comms[2][16];
};

/* Another reading: of v, in the order of nr, all but nr is filled. -ENOMEM. */
int path_texts(const struct inputs *in, struct timeline *t, struct path_text *v, size_t n);
void path_texts_release(struct path_text *v, size_t n);

#endif
