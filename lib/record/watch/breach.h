/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_BREACH_H
#define HYPTRACE_BREACH_H

#include "record/watch/watcher.h"

/* A limit that the last interval must not exceed: "METRIC > VALUE" or "METRIC > VALUE for TIME". */
struct breach {
	const struct breach_metric *metric; /* NULL: none was given */
	double limit;			    /* ns, or a share */
	bool of_hyp;			    /* it needs hyp_window */
	uint64_t lasts;			    /* ns for which it must hold */
	uint64_t since;			    /* mono ns; 0: it does not hold now */
};

/* For messages and -h: each metric with the form of its value. */
#define BREACH_FORMS "stolen > 10%, wakeup_p99 > 5ms, hyp > 2%, each perhaps with: for 30s"

/* -EINVAL: none of BREACH_FORMS. */
int breach_parse(struct breach *b, const char *text);
/* After each look: whether it has held for its time. worst: text of the value now, "Guest:0 84.2 %". */
bool breach_holds(struct breach *b, const struct watcher *w, uint64_t now, char worst[300]);

#endif
