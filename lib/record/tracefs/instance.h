/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_INSTANCE_H
#define HYPTRACE_INSTANCE_H

#include <sys/types.h>

#include "file/dat/options.h"
#include "record/plan/plan.h"
#include "record/tracefs/undo.h"

/* The group of the events that hyptrace makes for itself (record/clock/cntvoff.h): -e finds none of them. */
#define INSTANCE_OWN_EVENTS "hyptrace"

struct instance_opts {
	const struct record_plan *plan;
	const char *clock; /* to use when the buffer's plan names none; NULL = leave it */
	const struct log *log;
	/* Regular expressions for functions: instance_match_functions, or NULL: -EINVAL for each. */
	int (*match)(int tracing_dirfd, const char *pattern, struct buf *out);
};

/*
 * A host tracefs buffer: the top one or instances/<name>. Made ready for a buffer_plan; every change
 * is journalled in the undo, which puts it back. Messages go to the log of the options and name the
 * file, the value and the kernel's error.
 */
struct instance {
	/* For others to read. */
	char *path;  /* relative to the tracing directory: "." or "instances/x" */
	char *clock; /* in use; NULL before setup */
	/* Private. */
	struct undo *undo;
	const struct buffer_plan *buffer;
	struct instance_opts o;
	bool begins; /* --start-on's trigger is set */
};

/*
 * Adds the functions that can be traced and match, one a line as the filter files
 * take them. -EINVAL: not a regular expression; -ENOENT: none matches.
 */
int instance_match_functions(int tracing_dirfd, const char *pattern, struct buf *out);

/*
 * Makes the events that a buffer's plan defines (event_plan.define). Call it before any buffer is
 * opened: an event must be off in all buffers before it can be removed. 0 or -errno, which is
 * logged; single optional events may fail, but not all of them.
 */
int instance_make_events(struct undo *u, const struct buffer_plan *b, const struct log *log);
/*
 * Opens the instance, makes its directory when it is not there, and takes its
 * lock (undo.h: -EBUSY). Does not touch anything else yet. The undo, the plans and the strings of o stay the
 * caller's and must outlive the instance.
 */
int instance_open(struct instance **out, struct undo *u, const struct buffer_plan *b,
		  const struct instance_opts *o);
void instance_free(struct instance *i);
/*
 * Configures: tracing_on 0, buffer cleared, all events and pid filters off, tracer nop, then clock,
 * sub-buffer size, size, cpumask, options, function filters, tracer, events with filters and triggers;
 * --cmdlines-size and --max-graph-depth, which are files of the top directory. To be done before
 * trace_pipe_raw is opened: the kernel changes no tracer while that is read.
 *
 * An event that matches nothing is -ENOENT with a message that names it (with plan->ignore_event_errors: a
 * warning). What goes wrong with one event of many that a pattern matches is a warning.
 */
int instance_setup(struct instance *i);
/* True if events or a tracer are on in the buffer of this path ("." or "instances/x"); false: none there. */
bool instance_runs(int tracing_dirfd, const char *path);
/*
 * In place of instance_setup, for a buffer that runs: it is not cleared and keeps all
 * that is set, events with filters and triggers come on top (or, after -v, go). A
 * warning when the plan has more than events. tracing_on is left to the source.
 */
int instance_join(struct instance *i);
/* Keeps these tasks (a list for set_event_notrace_pid) out of the trace; nothing where the kernel cannot. */
int instance_hide_pids(struct instance *i, const char *pids);
/*
 * Traces these tasks only, and `one` unless it is 0 (and their children, if the plan asks for it); replaces
 * an earlier list.
 */
int instance_set_pids(struct instance *i, const struct strlist *pids, pid_t one);
/*
 * Before any buffer is opened: checks that the events of --start-on and --stop-on are there, and makes
 * one more where they are the same. -errno, logged; so are the following.
 */
int instance_make_region(struct undo *u, const struct record_plan *plan, const struct log *log);
/* Sets the triggers of --start-on and --stop-on. From now on the kernel switches tracing_on. */
int instance_begin_region(struct instance *i);
/* The kernel no longer switches tracing on. To be done between two writes of 0 to tracing_on. */
void instance_end_region(struct instance *i);
/* The same for a buffer that a killed recorder left. path: the instance's; event: trigger_plan's. */
int instance_forget_region(struct undo *u, const char *path, const char *event);
/* tracing_on: 1, 0 or -errno, which is not logged. */
int instance_is_on(const struct instance *i);
int instance_start(struct instance *i); /* the region's triggers; tracing_on 1 unless --start-on does it */
int instance_stop(struct instance *i);	/* tracing_on 0, whatever the triggers do */

#define INSTANCE_PATH 640 /* bytes: two names of 255, and what is fixed */

/* The path of one of its files, relative to the tracing directory; "" when it does not fit. Returns path. */
const char *instance_file(const struct instance *i, char path[INSTANCE_PATH], const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/*
 * Names of the systems with an event switched on, for the formats to be kept;
 * those that only a trigger may switch on are among them.
 */
int instance_systems(const struct instance *i, struct strlist *out);
/* Lost events (overrun, commit overrun, dropped) of a CPU by its stats file. */
int instance_lost(const struct instance *i, unsigned int cpu, uint64_t *lost);

/* ---- region-watch.c ------------------------------------------------------------------------------- */

/*
 * Times at which tracing was off between regions: an instance of its own, always on, records the events
 * of --start-on and --stop-on and nothing else. It is not read before the end: of more events than
 * it has room for the last ones are there.
 */
struct watch {
	char path[64];	      /* "instances/x"; "": none */
	uint16_t start, stop; /* ids of the events; stop 0: not to be seen (ftrace:print) */
};

/* Makes the instance and switches it on, before any trigger is set. -errno, not logged: none is there. */
int watch_open(struct watch *w, struct undo *u, const struct record_plan *plan, const char *clock);
/*
 * Switches it off and reads it; *whole: no event was lost. 0 or -errno: then *out states that
 * tracing may have been off at any time.
 */
int watch_read(const struct watch *w, struct undo *u, struct pauses *out, bool *whole);
/* As a word of a session file, and back: -EINVAL, and watch_read() refuses *w. */
char *watch_text(const struct watch *w);
int watch_parse(struct watch *w, const char *text);

/* ---- for the files of instance only ---------------------------------------------------------------- */

/* True if the kernel has this file; path: relative to the tracing directory. */
bool instance_has(const struct instance *i, const char *path);

/*
 * Logs that value could not be written to path, why (ret: -errno), and what the kernel's error log
 * has about it. choices: a file whose first line lists what could be, or NULL.
 */
void instance_complain(const struct instance *i, enum log_level level, const char *path, const char *value,
		       int ret, const char *choices);
/* " (be root)" and the like, for a message about -errno; else "". */
const char *instance_hint(int ret);
/* undo_write to a path relative to the tracing directory, with the complaint. */
int instance_put(struct instance *i, const char *path, const char *value, const char *choices);
int instance_put_number(struct instance *i, const char *path, uint64_t n);

/* The same for one of its own files. */
int instance_put_file(struct instance *i, const char *file, const char *value);
/* undo_list likewise; clearing a list that this kernel does not have is no error. */
int instance_put_list(struct instance *i, const char *file, const char *lines);
/* Its error_log. */
int instance_read_errors(const struct instance *i, struct buf *out);

#define INSTANCE_EVENT 64 /* bytes: an event of INSTANCE_OWN_EVENTS */

/* The event that ends regions, "system/event", in name where it is the second one, and its filter or NULL;
 * NULL: none does. */
const char *instance_region_stop(const struct record_plan *plan, char name[INSTANCE_EVENT],
				 const char **filter);

#endif
