/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_REMOTE_PRIV_H
#define HYPTRACE_REMOTE_PRIV_H

#include <pthread.h>
#include <stdatomic.h>

#include "dat/page.h"
#include "record/remote.h"

/* Shared by remote.c (finding, setting up) and remote-drain.c (reading, importing). */

struct remote {
	struct source source;
	char *path;
	int dirfd;
	bool raw;
	struct page_layout layout; /* of raw pages */
	struct buf formats;	   /* of the events, for remote_events_save */
	uint64_t size_kb;
	struct undo *undo;
	struct spool *spool;
	const struct log *log;
	_Atomic uint64_t on_since; /* boot clock ns just before tracing is switched on; 0: was on already */
	atomic_bool early;	   /* times need repair (repair.h) */

	/* held while the events' reasons may grow, and over vcpus */
	pthread_mutex_t lock;
	struct hypevents events;
	size_t saved_reasons;
	int *vcpus; /* pids of the vCPU threads seen */
	size_t n_vcpus;
};

static inline struct remote *remote_of(struct source *s)
{
	return (struct remote *)((char *)s - offsetof(struct remote, source));
}

/* remote-drain.c: source_ops.drain and .stat. */
int remote_drain(struct source *s, unsigned int cpu, struct drain *d);
int remote_stat(struct source *s, unsigned int cpu, const struct drain_stats *st, struct buf *out);

#endif
