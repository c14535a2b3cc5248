/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_WATCH_H
#define HYPTRACE_WATCH_H

#include "file/dat/pauses.h"
#include "record/plan/plan.h"
#include "record/tracefs/undo.h"

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

#endif
