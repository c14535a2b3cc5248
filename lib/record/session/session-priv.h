/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SESSION_PRIV_H
#define HYPTRACE_SESSION_PRIV_H

#include "base/program.h"
#include "record/marks/rings.h"
#include "record/tracefs/instance.h"
#include "record/profile/profile.h"
#include "record/drain/remote.h"
#include "record/session/guests.h"
#include "base/clock.h"

/* Shared by session.c (the road), prepare.c (its first part) and recover-killed.c. */

struct session_track {
	struct source *source;	   /* NULL: gone, when recovering */
	struct instance *instance; /* NULL for the profile and the hypervisor, and when recovering */
	bool started;
	bool joined; /* --take-over: it ran before */
	uint64_t size_kb;
};

/* Sources that the recorder itself switches for --start-on and --stop-on. */
struct session_region {
	bool on;		    /* as it was looked at last */
	uint64_t looked;	    /* the time of that, boot ns */
	uint64_t late_on, late_off; /* ns that followers were switched late, at most */
	size_t n;		    /* times that they were switched on */
	struct watch watch;
};

struct session {
	const struct record_plan *plan;
	const struct session_opts *o;
	const struct log *log;
	struct session_summary *summary;
	char *tracing_dir;
	struct undo *undo;
	struct spool *spool;
	struct remote *remote;
	struct profile *profile; /* --profile; NULL: none */
	struct rings *rings;	 /* --hypertrace; NULL: none */
	struct recorder *recorder;
	/* tracks[i] is buffer i of the spool; armed from the last to the first */
	struct session_track tracks[SESSION_BUFFERS_MAX];
	size_t n_tracks;
	struct session_region region;
	struct session_guests guests;
	struct command command;
	bool has_command;
	struct strlist procs; /* pids whose maps are kept (--proc-map) */
	int fail_fd;	      /* eventfd: a recorder thread failed */
	_Atomic int failure;
	struct rotate *rotate; /* NULL: one file of all of it */
	struct kernel_symbols symbols;
	double started_at; /* CLOCK_MONOTONIC, s */
};

/* CLOCK_MONOTONIC, s */
static inline double session_now(void)
{
	return (double)mono_ns() / 1e9;
}

/* All calls return 0 or -errno, and log what a user has to know. */

/* prepare.c: all up to, but not including, switching anything on. */
int session_prepare_all(struct session *s);

/* region.c: notes when tracing is off, from before the host's buffers are started. */
void session_region_watch(struct session *s);
/* The pauses into the spool: once all buffers are stopped, before tracefs is put back. */
void session_region_keep(struct session *s);
/* Before the host's buffers are started. */
int session_region_begin(struct session *s);
/* True if session_region_look() is to be called, each SESSION_REGION_MS. */
bool session_region_is_watched(const struct session *s);
/* Switches the hypervisor's buffer and the samples after the host's; true: the recording is to end. */
bool session_region_look(struct session *s);
/* Logs the largest delay. */
void session_region_report(const struct session *s);
#define SESSION_REGION_MS 5

/* session.c: stops and drains every track, first to last; continues after errors and returns the first. */
int session_drain(struct session *s);
/* Fills in the summary from what was drained so far. */
void session_sum(struct session *s);
/* The formats of printk, the names of tasks and the CPUSTAT texts into the spool, at the end; without some of
 * them a recording is still one. */
void session_keep_texts(struct session *s);
/* Puts tracefs back by the undo journal. 0, -errno, or a number of entries that could not be. */
int session_restore(struct session *s);
/* Makes the host's file from the spool. output: NULL, or instead of where it was to go. */
int session_write(struct session *s, const char *output);
/* Once its file is written; it is kept when tracefs could not be put back. */
void session_remove_spool(struct session *s);
/* One that has opened nothing yet, with an empty summary. */
struct session session_new(const struct record_plan *plan, const struct session_opts *o,
			   struct session_summary *summary);
/* Frees what the session has; the spool's directory stays. */
void session_release(struct session *s);

/*
 * Long recordings: written piece by piece (--rotate), only the newest of them (-m), or kept in
 * memory until something happens (--flight). All of them move the start of the valid pages in the
 * spools (record/spool/spool.h) while tracing continues. Calls return 0 or -errno, log what a user has to
 * know, and do nothing unless the plan asks for them.
 */
struct rotate;

/* The buffer whose events ask for a dump (--dump-on), off; in tracefs, before the recorder has threads. */
int rotate_prepare(struct session *s);
/* That buffer, or NULL. */
struct instance *rotate_instance(const struct session *s);
/* Once all sources have their threads. */
int rotate_begin(struct session *s);
/* All is traced now. */
int rotate_started(struct session *s);
/* To be polled; readable: rotate_tick() has something to do. -1: nothing to wait for. */
int rotate_fd(const struct session *s);
/*
 * Now and then: takes a file that is ready as written, and throws away what is old. *cut: another one is due,
 * rotate_cut(). An error ends the recording, whose spools have what is not written.
 */
int rotate_tick(struct session *s, bool *cut);
/* Begins to write a file of all that is here. The spool has its names by now, the summary its counts. */
void rotate_cut(struct session *s);
/* A file is being written: it reads the spools' texts and the guests' vCPUs. */
bool rotate_is_writing(const struct session *s);
/* Bytes in the spools that count. */
uint64_t rotate_bytes(const struct session *s);
/* Tracing ends: waits for the file that is being written. What is left is the last one's. */
void rotate_end(struct session *s);
/* The last one is about to be written: removes what is more than --keep. */
void rotate_keep_last(struct session *s);
/* Takes NULL. */
void rotate_free(struct rotate *r);

#endif
