/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_REMOTE_PRIV_H
#define HYPTRACE_REMOTE_PRIV_H

#include <pthread.h>
#include <stdatomic.h>

#include "file/dat/page.h"
#include "record/drain/remote.h"

/* Shared by remote.c (finding, setting up), remote-switch.c and remote-drain.c (reading,
 * importing). */

struct remote {
	struct source source;
	char *path;
	char *name; /* in the file: "hyp", "remote:NAME" */
	bool hyp;   /* the hypervisor's, not another remote's */
	int dirfd;
	bool raw;
	struct page_layout layout; /* of raw pages */
	struct buf formats;	   /* of the events, for remote_events_save */
	uint64_t size_kb;
	struct undo *undo;
	struct spool *spool;
	const struct log *log;
	char *clock;		   /* of another remote, or NULL */
	_Atomic uint64_t on_since; /* boot clock ns just before tracing is switched on; 0: was on already */
	bool joined;		   /* taken over: it ran before, or held something */
	bool was_on;		   /* joined, and tracing was on */
	atomic_bool early;	   /* times need repair (repair.h) */
	bool turns;		   /* of raw: hyp_enter and hyp_exit are both recorded */
	atomic_bool misread;	   /* the raw files give no pages: the text is read in their place */
	atomic_bool unread;	   /* nor could that be read */
	atomic_bool shared;	   /* another reader takes events */

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

/* remote-switch.c. write: undo_write, undo_at_end or undo_poke. name: relative to the remote's directory. */
int remote_undo_file(struct remote *r, int (*write)(struct undo *, const char *, const char *),
		     const char *name, const char *value);
/* The last word of the plan about an event, in the order given: 1 on, 0 off; `none`: it has none. */
int remote_wants(const struct remote *r, const struct buffer_plan *b, const char *event, int none);
/* Switches the event, with a message when that fails. */
int remote_switch(struct remote *r, const char *event, bool on);

/* remote-switch.c: whether -p function takes in this event: func, func_ret. */
bool remote_is_func(const struct buffer_plan *b, const char *event);
/* The functions of -l and -n, where the kernel traces those of the hypervisor. */
int remote_set_functions(struct remote *r, const struct buffer_plan *b);

/*
 * remote-switch.c: Android 16's buffer_size_kb shows "7 (loaded)" while there is a buffer; other
 * kernels do not show it.
 */
bool remote_is_loaded(const struct remote *r);

/* Whether tracing is on, or what was traced before is still there. */
bool remote_runs(const struct remote *r);
/* In place of remote_setup's steps: nothing is cleared, the plan's events come on top. */
int remote_join(struct remote *r, const struct buffer_plan *b);

/* remote-drain.c: source_ops.drain. */
int remote_drain(struct source *s, unsigned int cpu, struct drain *d);

#endif
