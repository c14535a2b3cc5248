/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_REMOTE_PRIV_H
#define HYPTRACE_REMOTE_PRIV_H

#include <pthread.h>
#include <stdatomic.h>

#include "page.h"
#include "remote.h"

/* Shared by remote.c (finding, setting up) and remote-drain.c (reading). */

/* What is known of a vCPU (a host thread) and its CNTVOFF: low <= CNTVOFF <= high, ns. */
struct voff {
	int vcpu;
	uint64_t low, high;
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
	struct voff *voffs;
	size_t n_voffs;
};

static inline struct remote *remote_of(struct source *s)
{
	return (struct remote *)((char *)s - offsetof(struct remote, source));
}

/* The entry of a vCPU's thread, made when new; NULL: out of memory. Under the lock. */
struct voff *remote_vcpu(struct remote *r, int pid);
/* A hyp_cntvoff record for a step, when it says something new: its length, else 0. Under the lock. */
size_t remote_voff_record(struct remote *r, const struct nvhe_step *s, void *out, size_t size);

extern const struct source_ops remote_text_ops, remote_raw_ops;

int remote_start(struct source *s);
int remote_stop(struct source *s);

#endif
