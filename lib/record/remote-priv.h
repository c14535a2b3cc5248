/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_REMOTE_PRIV_H
#define HYPTRACE_REMOTE_PRIV_H

#include <pthread.h>
#include <stdatomic.h>

#include "dat/page.h"
#include "record/remote.h"

/* Shared by remote.c (finding, setting up), remote-drain.c (reading) and remote-feed.c (importing). */

struct remote {
	struct source source;
	char *path;
	int dirfd; /* locked */
	bool raw;
	struct page_layout layout; /* of raw pages */
	struct buf formats;	   /* of the events, for remote_events_save */
	size_t n_on;
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

/* ---- remote-drain.c: also for what was read before (remote-feed.c) */

/* One CPU being read. */
struct remote_reader {
	struct remote *r;
	unsigned int cpu;
	struct drain *d;
	struct page_writer w;
	uint64_t offset;  /* in the spool's file, of the page being filled */
	uint64_t last_ts; /* of the last record; 0: none */
	int last_vcpu;	  /* the one seen last, which need not be looked up again */
	struct hyptext *text;
	uint8_t *record; /* room for one, of raw pages */
	size_t record_size;
};
/* What failed to open is closed. 0 or -errno. */
int remote_reader_open(struct remote_reader *x, struct remote *r, unsigned int cpu, struct drain *d);
/* Flushes, unless ret says that something failed, which is returned then. */
int remote_reader_close(struct remote_reader *x, int ret);
/* Writes one record, ctx being the reader, with its time as the kernel gave it. Under the lock. */
int remote_reader_record(void *ctx, const struct hyprecord *rec);
/* One raw page of the kernel. */
int remote_reader_page(struct remote_reader *x, const void *page, size_t len);
/* New reasons into the spool. Under the lock. */
int remote_save_reasons(struct remote *r);

/* As source_ops.drain and .stat. */
int remote_drain(struct source *s, unsigned int cpu, struct drain *d);
int remote_stat(struct source *s, unsigned int cpu, const struct drain_stats *st, struct buf *out);

#endif
