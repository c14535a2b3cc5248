/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_FILTER_H
#define HYPTRACE_FILTER_H

#include "base/std.h"
#include <traceevent/event-parse.h>

/*
 * A filter "EVENT,...[: EXPRESSION]" as a program: libtraceevent parses it, and what it
 * makes of it is compiled for each event to a list of tests. The same verdicts as
 * tep_filter_match's, but for what that reads from where nothing was written:
 *  - a field of 3 or 16 bytes as a number is 0;
 *  - a number as a text is "0x2a" for patterns, too.
 * A division by 0, at which it ends the process, does not match.
 */
struct filter; /* opaque */

struct filter_record {
	const uint8_t *data; /* may be unaligned; what is beyond len bytes reads as zeros */
	size_t len;
	unsigned int id; /* of the event */
	unsigned int cpu;
};

/*
 * text must have passed filter_syntax() unless it is the caller's own. The tep must outlive
 * it, with all its formats. -EINVAL: why has a line; -ENOMEM. filter_free takes NULL.
 */
int filter_open(struct filter **out, struct tep_handle *tep, const char *text, char *why, size_t size);
void filter_free(struct filter *f);
/*
 * By several threads at a time, without allocating, unless a pattern (=~) is looked for. One that asks for
 * tasks' names (COMM), which printing a record may change, in the order of records, by one thread.
 */
bool filter_match(const struct filter *f, const struct filter_record *r);

/*
 * Checks a foreign filter "EVENT,...[: EXPRESSION]" before libtraceevent gets it:
 * version 1.7 reads through a NULL pointer when a filter ends in the middle of a
 * comparison, and writes past its error text when a wrong one is long.
 *
 * 0, or -EINVAL with a line in why: operators need something on both sides,
 * comparisons to be joined by && and ||, parentheses to be closed. Whether an
 * event has the fields is not checked.
 */
int filter_syntax(const char *filter, char *why, size_t size);

#endif
