/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_PROFILE_H
#define HYPTRACE_PROFILE_H

#include <linux/perf_event.h>
#include <pthread.h>

#include "record/drain/source.h"

/*
 * Samples of all CPUs (record --profile), by the kernel's perf events, as the records below: each CPU's
 * task and stacks hz times a second, idle or not; in a host also whether it runs a guest. The maps of a
 * process come before its first sample in user mode, or as it makes them.
 */
struct profile;

struct profile_opts {
	unsigned int hz, n_cpus;
	bool by_clock;	       /* cycles come at no fixed rate, and do not show when a sample was due */
	const char *clock;     /* of the recording; the profile's then */
	unsigned int first_id; /* its events have the ids from there on */
	const struct log *log;
};

/*
 * Opens all events, switched off. Failures are logged: a clock that is not the system's (-EINVAL), a
 * kernel without perf events, one that refuses them. Free with profile_close(), which takes NULL.
 */
int profile_open(struct profile **out, const struct profile_opts *o);
void profile_close(struct profile *p);
/* Appends the formats of such events to those of the spool. */
int profile_keep_formats(unsigned int first_id, struct spool *spool);
/* Names of the tasks that were met, into the spool. */
int profile_collect_names(struct profile *p, struct spool *spool);
int profile_switch(struct profile *p, bool on);
/* Readable when the ring of a CPU is half full; -1: the CPU is off. */
int profile_fd(const struct profile *p, unsigned int cpu);

/* Reads a CPU's new records. 0, or the writer's error. One thread per CPU, each with its own w. */
int profile_read(struct profile *p, unsigned int cpu, struct page_writer *w, struct drain_stats *st);
/* One record of a ring; len: of its bytes, which are at least a head. */
int profile_take(struct profile *p, const struct perf_event_header *h, size_t len, struct page_writer *w,
		 struct drain_stats *st);

/* As the recorder sees it; owned by the profile. */
struct source *profile_source(struct profile *p);
/*
 * Stands for the profile in a killed recorder's spool: nothing more to read. n_cpus, page_size: the spool's.
 */
int profile_reopen(struct profile **out, unsigned int n_cpus, uint32_t page_size);

/*
 * The records of a profile, as any event's: with the common header, in pages of a buffer of their
 * own, and with print formats that libtraceevent parses, so that stock tools read them.
 * hyptrace:sample is one sample; hyptrace:map: a process has mapped (part of) a file for execution.
 */
#define PROFILE_SYSTEM "hyptrace"
#define PROFILE_SAMPLE "sample"
#define PROFILE_MAP    "map"
#define PROFILE_EVENTS 2 /* ids: sample, then map */

/* The format of event i below PROFILE_EVENTS, as a file of tracefs has it. */
void profile_format(size_t i, unsigned int first_id, struct buf *out);

/* ---- shared by profile.c (records and tasks), perf.c (the kernel's events) and source.c (draining) ---- */

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
