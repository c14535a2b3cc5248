/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_PERF_RING_H
#define HYPTRACE_PERF_RING_H

#include <linux/perf_event.h>

#include "util/base.h"

/*
 * The kernel's samples of one CPU (perf_event_open(2)): an event and the ring that it writes to. Samples
 * have PERF_RING_SAMPLE, other records end in the same words (struct sample_id of the manual page).
 */
struct perf_ring;

#define PERF_RING_SAMPLE                                                                                     \
	(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | PERF_SAMPLE_CALLCHAIN)
#define PERF_RING_TRAILER 24 /* bytes: pid, tid, time, cpu */

/*
 * Off. By the CPU's cycles, where the kernel takes them with that clock, which it does not with
 * CLOCK_BOOTTIME; else by cpu-clock, a timer. hz: samples a second. -ENODEV: the CPU is off; -ENOENT,
 * -ENOSYS, -EACCES, -EINVAL ...: perf_event_open's. Free with perf_ring_close(), which takes NULL.
 */
int perf_ring_open(struct perf_ring **out, unsigned int cpu, unsigned int hz, int clockid);
void perf_ring_close(struct perf_ring *r);
int perf_ring_switch(struct perf_ring *r, bool on);
/* Readable when the ring is half full. */
int perf_ring_fd(const struct perf_ring *r);
const char *perf_ring_by(const struct perf_ring *r); /* "cycles" or "cpu-clock" */
/* The next record, good until the next call; NULL: none is there. */
const struct perf_event_header *perf_ring_next(struct perf_ring *r);

#endif
