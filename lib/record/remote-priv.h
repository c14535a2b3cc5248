/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_REMOTE_PRIV_H
#define HYPTRACE_REMOTE_PRIV_H

#include <pthread.h>
#include <stdatomic.h>

#include "dat/page.h"
#include "record/remote-hold.h"
#include "record/remote.h"

/* Shared by remote.c (finding, setting up), remote-drain.c (reading) and remote-feed.c (importing). */

/* What is known of a vCPU (a host thread) and its CNTVOFF: low <= CNTVOFF <= high, ns. */
struct cntvoff {
	int vcpu;
	uint64_t low, high;
	bool said; /* by a hyp_cntvoff record */
};

struct remote {
	struct source source;
	char *path;
	int dirfd; /* locked */
	bool raw;
	struct page_layout layout; /* of raw pages */
	struct strlist names;	   /* of the events, as in the directory */
	size_t n_on;
	uint64_t size_kb;
	unsigned int first_id;
	struct undo *undo;
	struct spool *spool;
	const struct log *log;
	_Atomic uint64_t on_since; /* boot clock ns just before tracing is switched on; 0: was on already */

	/* held while the events' reasons may grow, and over voffs */
	pthread_mutex_t lock;
	struct hypevents events;
	size_t saved_reasons;
	struct cntvoff *cntvoffs;
	size_t n_cntvoffs;
};

static inline struct remote *remote_of(struct source *s)
{
	return (struct remote *)((char *)s - offsetof(struct remote, source));
}

/* The entry of a vCPU's thread, made when new; NULL: out of memory. Under the lock. */
struct cntvoff *remote_vcpu(struct remote *r, int pid);
/* A hyp_cntvoff record for a step, when it says something new: its length, else 0. Under the lock. */
size_t remote_cntvoff_record(struct remote *r, const struct nvhe_step *s, void *out, size_t size);

extern const struct source_ops remote_text_ops, remote_raw_ops;

/* ---- remote-drain.c: also for what was read before (remote-feed.c) */

/* One CPU being read. */
struct remote_reader {
	struct remote *r;
	unsigned int cpu;
	struct drain *d;
	struct page_writer w;
	off_t offset;	   /* in the spool's file, of the page being filled */
	struct hold *hold; /* NULL: times are right as they are */
	uint64_t from;	   /* no record to come is older than this, boot clock ns; 0: not known */
	uint64_t last_ts;
	bool repaired; /* a step of CNTVOFF was seen */
	bool asked;    /* for a put of the vCPU whose CNTVOFF is open */
	int last_vcpu; /* the one seen last, which need not be looked up again */
	int error;     /* of a CNTVOFF record, written between two others */
};
int remote_reader_open(struct remote_reader *x, struct remote *r, unsigned int cpu, struct drain *d);
/* Flushes, unless ret says that something failed, which is returned then. */
int remote_reader_close(struct remote_reader *x, int ret);
/*
 * One record, ctx being the reader: repairs its time and writes it, by the next
 * remote_reader_settle or soon after. Under the lock.
 */
int remote_reader_record(void *ctx, const struct hyprecord *rec);
/* What was read ends here, and more may come. Under the lock. */
int remote_reader_settle(struct remote_reader *x);
/* One raw page of the kernel; out: room for a record. */
int remote_reader_page(struct remote_reader *x, const void *page, size_t len, uint8_t *out, size_t out_size);
int remote_save_reasons(struct remote *r);

int remote_start(struct source *s);
int remote_stop(struct source *s);

#endif
