/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_REMOTE_H
#define HYPTRACE_REMOTE_H

#include <pthread.h>

#include "record/hyp/hypevents.h"
#include "record/plan/plan.h"
#include "record/drain/source.h"
#include "record/tracefs/undo.h"

/*
 * The hypervisor's trace buffer in tracefs. Three layouts, probed in this order:
 *   remotes/hypervisor  mainline >= 7.1: text only (trace_pipe)
 *   hypervisor          Android 16, 6.12 and later: raw pages
 *   hyp                 Android 14/15: raw pages
 * Its records are rewritten while they are read (record/hyp/hypevents.h).
 */
struct remote {
	/* for others to read */
	struct source source; /* the remote as the recorder sees it */
	uint64_t size_kb;     /* per CPU */
	bool joined;	      /* taken over: it ran before, or held something */
	atomic_bool early;    /* times need a repair, which writes the pages once more (repair.c) */
	atomic_bool unread;   /* of some CPU neither pages nor text could be read */

	/* private */
	char *path;
	char *name; /* in the file: "hyp", "remote:NAME" */
	bool hyp;   /* the hypervisor's, not another remote's */
	int dirfd;
	bool raw;
	struct page_layout layout; /* of raw pages */
	struct buf formats;	   /* of the events, for remote_events_save */
	struct undo *undo;
	struct spool *spool;
	const struct log *log;
	char *clock;		   /* of another remote, or NULL */
	_Atomic uint64_t on_since; /* boot clock ns just before tracing is switched on; 0: was on already */
	bool was_on;		   /* joined, and tracing was on */
	const struct buffer_plan *to_join; /* of one that is joined: the events to switch at the start */
	bool turns;			   /* of raw: hyp_enter and hyp_exit are both recorded */
	atomic_bool misread;		   /* the raw files give no pages: the text is read in their place */
	atomic_bool shared;		   /* another reader takes events */

	/* held while the events' reasons may grow, and over vcpus */
	pthread_mutex_t lock;
	struct hypevents events;
	size_t saved_reasons;
	int *vcpus; /* pids of the vCPU threads seen */
	size_t n_vcpus;
};

/* Names of -B, and of the buffer in the file: the hypervisor's, and "remote:NAME" for any of remotes/. */
#define REMOTE_HYP "hyp"
#define REMOTE_ANY "remote:"

#define REMOTE_DEFAULT_KB 2048 /* per CPU; the kernel's own default of 7 loses events at once */

/* Path of the instance relative to dirfd, or NULL: none. */
const char *remote_find(int tracing_dirfd);
/*
 * Logs why there is no hypervisor buffer: what of architecture, kernel version, CONFIG_NVHE_EL2_DEBUG,
 * kvm-arm.mode, tracefs and permission is in the way. root: "" (or a test's tree that holds proc/ and boot/).
 */
void remote_explain(int tracing_dirfd, const char *root, const struct log *log);
/* The same for "remote:NAME": which ones there are. */
void remote_explain_named(int tracing_dirfd, const char *name, const struct log *log);

/*
 * Finds and locks it (undo.h: a second hyptrace gets -EBUSY) and reads its events.
 * name: as above. -ENOENT: not there (see remote_explain).
 */
int remote_open(struct remote **out, struct undo *u, const char *name, const struct log *log);
void remote_free(struct remote *r);

/* True if an event name of the command line names events here: "hyp_enter", "hyp:*", "hypervisor:hyp_exit",
 * "all". */
bool remote_has_event(const struct remote *r, const char *name);

/*
 * Buffer size, then events: those of the plan, all of them when it names none; logs them. -EBUSY: tracing is
 * on, or a reader is open; the message names it. take_over: when it runs it is neither cleared nor resized,
 * its events remain on, and its start adds those of the plan (b is used until then); at the end it keeps
 * running.
 */
int remote_setup(struct remote *r, const struct buffer_plan *b, bool take_over);

/*
 * Gives the events their ids in the file, from first_id on, and keeps the formats in
 * the spool, reasons met and what a repair of times needs later. -ERANGE: too many.
 */
int remote_number(struct remote *r, unsigned int first_id, struct spool *spool);
/* For `recover`: the events as the spool kept them. path: of the spool_buffer. */
int remote_reopen(struct remote **out, struct undo *u, const struct spool_buffer *b, struct spool *spool,
		  const struct log *log);
/*
 * A buffer's data that was read before, elsewhere (remote_feed_open()): its events are those in the
 * spool's "hyp_formats". path: as in the kernel. raw: the layout of the pages, NULL for text.
 */
int remote_import(struct remote **out, const char *path, const struct page_layout *raw, unsigned int n_cpus,
		  struct spool *spool, const struct log *log);
/*
 * Keeps the time as a bound of the recording (repair.c), where a repair is possible: before the first start,
 * and (end) after the last stop. Logs a failure. Not while others read the spool's keys.
 */
void remote_keep_bound(struct remote *r, bool end);
/* Names of the vCPU threads seen, into the spool (collect_pids). */
int remote_collect_pids(struct remote *r);

/*
 * Writes what was read from a hypervisor's buffer before, text or raw pages,
 * into a spool's buffer, as a recording would have: rewritten, times as they were.
 */
struct remote_feed;

/* r: of remote_import(); buffer: its number in the spool. */
int remote_feed_open(struct remote_feed **out, struct remote *r, struct spool *spool, size_t buffer);
/* Lines of trace_pipe or trace, of one CPU or of all, in pieces of any length. */
int remote_feed_text(struct remote_feed *f, const void *text, size_t len);
/* One page of trace_pipe_raw. */
int remote_feed_page(struct remote_feed *f, unsigned int cpu, const void *page, size_t len);

/* Ends it and frees f; ret: what failed before, and is returned then. */
int remote_feed_close(struct remote_feed *f, int ret, struct drain_totals *out);

/* ---- for remote.c and remote-drain.c only ----------------------------------------------------- */

static inline struct remote *remote_of(struct source *s)
{
	return (struct remote *)((char *)s - offsetof(struct remote, source));
}

/* remote-drain.c: source_ops.drain. */
int remote_drain(struct source *s, unsigned int cpu, struct drain *d);
/* ... what may help against an errno of its tracing_on and its pipes: text behind strerror's, or "". */
const char *remote_hint(const struct remote *r, int error);

#endif
