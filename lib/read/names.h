/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_NAMES_H
#define HYPTRACE_NAMES_H

#include <traceevent/event-parse.h>

#include "base/map.h"

/* The tasks' names that libtraceevent knows, by pid: it searches its list for each. */
struct names {
	struct tep_handle *tep;
	struct name *v;
	size_t n;
	struct map by_pid;
	unsigned int age; /* of what libtraceevent knows */
};

/* The name by libtraceevent, which searches its list; NULL: it knows none. */
const char *names_ask(struct tep_handle *tep, int pid);

void names_init(struct names *n, struct tep_handle *tep);
void names_release(struct names *n);
/*
 * The name; NULL: it is not known (yet). One thread at a time, and not while another one prints
 * by libtraceevent, whose plugins learn names.
 */
const char *names_find(struct names *n, int pid);
/* libtraceevent may have learned a name. */
void names_learned(struct names *n);

#endif
