/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_LATENCY_EVENT_H
#define HYPTRACE_LATENCY_EVENT_H

#include "read/filter.h"
#include "read/inputs.h"

/*
 * Selects records by a word of a command line:
 *
 *	[SYSTEM:]EVENT[@MACHINE][/FILTER]
 *
 * The first '/' begins the filter, whose form is that of report -F after the colon. MACHINE is "host",
 * "guest" (any) or a guest's name; without it records of all machines count.
 */
struct event_words {
	char *text;			     /* that of all of these */
	const char *system, *name, *machine; /* NULL: any; name is never NULL */
	const char *filter;		     /* NULL: none */
};

/* -EINVAL: why has a line; -ENOMEM. *e must be released in any case. */
int event_words_parse(struct event_words *e, const char *text, char *why, size_t size);
void event_words_release(struct event_words *e);
bool event_words_machine(const struct event_words *e, const struct input *in);

/* The same in one file. */
struct event_match {
	size_t n;
	struct event_id {
		unsigned int id;
		struct tep_event *event;
		struct filter *filter; /* NULL: none */
		bool hyp;	       /* of the hypervisor's own events */
	} * v;
};

/*
 * n 0: the file has no such event. -EINVAL: the filter does not fit the event, why has a line; -ENOMEM.
 * The input outlives it. *m must be released in any case.
 */
int event_match_open(struct event_match *m, const struct event_words *e, const struct input *in, char *why,
		     size_t size);
void event_match_release(struct event_match *m);

#endif
