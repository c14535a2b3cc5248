/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_WATCH_H
#define HYPTRACE_WATCH_H

#include "dat/pauses.h"
#include "tracefs/plan.h"
#include "tracefs/undo.h"

/*
 * When tracing was off between regions: an instance of its own, which stays on, records the events of
 * --start-on and --stop-on and nothing else. Nobody reads it before the end: of more events than it has
 * room for the last ones are there.
 */
struct watch {
	char path[64];	      /* "instances/x"; "": none */
	uint16_t start, stop; /* ids of the events; stop 0: not to be seen (ftrace:print) */
};

/* Makes the instance and switches it on, before any trigger is set. -errno, not logged: none is there. */
int watch_open(struct watch *w, struct undo *u, const struct record_plan *plan, const char *clock);
/* Switches it off and reads it; *whole: no event was lost. 0 or -errno: then tracing may have been off
 * anywhere, which is what *out says. */
int watch_read(const struct watch *w, struct undo *u, struct pauses *out, bool *whole);
/* As a word of a session file, and back: -EINVAL, and *w is none, which watch_read() refuses, too. */
char *watch_text(const struct watch *w);
int watch_parse(struct watch *w, const char *text);

#endif
