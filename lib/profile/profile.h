/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_PROFILE_H
#define HYPTRACE_PROFILE_H

#include "dat/page.h"
#include "profile/samples.h"
#include "record/source.h"
#include "spool/spool.h"

/*
 * Samples of all CPUs (record --profile), by the kernel's perf events, as records of
 * profile/samples.h: what each CPU does hz times a second, idle or not, with its stacks; in a host
 * also whether it runs a guest. The maps of a process come before its first sample in user mode, or as it
 * makes them.
 */
struct profile;

struct profile_opts {
	unsigned int hz, n_cpus;
	const char *clock; /* of the recording; the profile's then */
	const struct log *log;
};

/*
 * All is there, and off. Why it cannot be is logged: a clock that is none of the system's (-EINVAL), a
 * kernel without perf events, one that refuses them. Free with profile_close(), which takes NULL.
 */
int profile_open(struct profile **out, const struct profile_opts *o);
void profile_close(struct profile *p);
/* The ids of its events from first_id on. */
void profile_number(struct profile *p, unsigned int first_id);
/* The formats of such events go behind those that the spool has. */
int profile_keep_formats(unsigned int first_id, struct spool *spool);
/* Names of the tasks that were met, into the spool. */
int profile_collect_names(const struct profile *p, struct spool *spool);
int profile_switch(struct profile *p, bool on);
/* Readable when the ring of a CPU is half full; -1: the CPU is off. */
int profile_fd(const struct profile *p, unsigned int cpu);

/* Takes what there is of a CPU. 0, or what the writer says. A thread per CPU; w is its own. */
int profile_read(struct profile *p, unsigned int cpu, struct page_writer *w, struct drain_stats *st);
/* One record of a ring; len: of its bytes, which are at least a head. */
struct perf_event_header;
int profile_take(struct profile *p, const struct perf_event_header *h, size_t len, struct page_writer *w,
		 struct drain_stats *st);

/* As the recorder sees it; owned by the profile. */
struct source *profile_source(struct profile *p);
/* What a killed recorder's spool has of one: nothing more to read. n_cpus, page_size: the spool's. */
int profile_reopen(struct profile **out, unsigned int n_cpus, uint32_t page_size);

#endif
