/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HYPTRACE_CMD_WATCH_PRIV_H
#define HYPTRACE_CMD_WATCH_PRIV_H

#include <sys/types.h>

#include "base/log.h"
#include "base/std.h"

/* Dumps of --dump-when: watch-dumps.c. */
struct watch_dumps {
	const char *when;  /* the option's text */
	const char *dir;   /* where the flight recorder's files are */
	uint64_t max, gap; /* ms */
	uint64_t breaches, n;
	uint64_t asked;	      /* the last one, ns of CLOCK_REALTIME, as files' times */
	const char *hindered; /* the reason that was logged last */
	char *file;	      /* that is being written, then explained */
	pid_t why;	      /* 0: not yet */
};

/* The limit is exceeded: asks for a dump, unless there are enough. worst: the value. */
void dumps_ask(struct watch_dumps *d, const char *worst, const struct log *log);
/* Now and then: explains a dump once it is there. */
void dumps_go_on(struct watch_dumps *d, const struct log *log);

#endif
