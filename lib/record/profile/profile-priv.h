/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_PROFILE_PRIV_H
#define HYPTRACE_PROFILE_PRIV_H

#include <linux/perf_event.h>
#include <pthread.h>

#include "record/profile/profile.h"

/* Shared by profile.c (records and tasks), perf.c (the kernel's events) and source.c (draining). */
struct profile {
	struct source source;
	struct perf_ring **rings; /* by CPU; NULL: that CPU is off */
	unsigned int n_rings;
	unsigned int first_id;
	uint16_t hz; /* as in the samples */
	const struct log *log;
	pthread_mutex_t lock;
	/* The tasks that are sampled, by tid: by the kernel's records as they come, else by /proc. Under the
	 * lock */
	struct profile_task {
		int32_t tid;
		bool maps;	/* are known */
		uint64_t named; /* when, by a record: CPUs' records are read one CPU after the other */
		char comm[16];	/* "": not known, or it is gone */
	} * tasks;
	size_t n_tasks;
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

/* The build id of an ELF file's notes (64 bit), at most 20 bytes; returns their number, 0: it has none. */
size_t build_id_read(int fd, uint8_t id[20]);

#endif
