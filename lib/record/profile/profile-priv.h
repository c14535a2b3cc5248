/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_PROFILE_PRIV_H
#define HYPTRACE_PROFILE_PRIV_H

#include <linux/perf_event.h>

#include "record/profile/profile.h"
#include "base/buf.h"
#include "base/log.h"

/* Shared by profile.c (records), perf.c (the kernel's events), comms.c (tasks) and source.c (draining). */
struct profile {
	struct source source;
	struct perf_ring **rings; /* by CPU; NULL: that CPU is off */
	unsigned int n_rings;
	unsigned int first_id;
	struct profile_tasks *tasks;
	const struct log *log;
};

/*
 * The kernel's samples of one CPU (perf_event_open(2)): an event and the ring that it writes to. Samples
 * have PERF_RING_SAMPLE, other records end in the same words (struct sample_id of the manual page).
 */
struct perf_ring;

#define PERF_RING_SAMPLE                                                                                     \
	(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_CALLCHAIN)
#define PERF_RING_TRAILER 24 /* bytes: pid, tid, time, cpu */

/* The next record, good until the next call; NULL: none is there. */
const struct perf_event_header *perf_ring_next(struct perf_ring *r);

/*
 * Names of tasks while they are sampled, and the tasks with known maps: by the kernel's records as
 * they come, else by /proc. From any thread.
 */
struct profile_tasks;

struct profile_tasks *profile_tasks_new(void);	  /* NULL: out of memory */
void profile_tasks_free(struct profile_tasks *t); /* takes NULL */
/* Notes a task's new name; exec: it runs another program, whose maps follow as records. 0 or -ENOMEM. */
int profile_tasks_named(struct profile_tasks *t, int32_t tid, const char comm[16], bool exec);
/* A task began as another one was. */
int profile_tasks_forked(struct profile_tasks *t, int32_t tid, int32_t parent);
/* Its name; "" when it is gone and the name is unknown. */
int profile_tasks_name(struct profile_tasks *t, int32_t tid, char comm[16]);
/* Whether a process's maps are still to be read from /proc: true once. */
bool profile_tasks_maps_due(struct profile_tasks *t, int32_t tgid);

/* "TID NAME" lines of all that are known. */
void profile_tasks_list(struct profile_tasks *t, struct buf *out);

/* The build id of an ELF file's notes (64 bit), at most 20 bytes; returns their number, 0: it has none. */
size_t build_id_read(int fd, uint8_t id[20]);

#endif
