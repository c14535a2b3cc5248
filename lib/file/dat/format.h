/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_FORMAT_H
#define HYPTRACE_FORMAT_H

#include "base/std.h"

/* Event format files of tracefs: events/<system>/<event>/format. */

struct event_field {
	char *type;		   /* "pid_t", "unsigned long" */
	char *name;		   /* "vcpu", arrays with their [n] */
	unsigned int offset, size; /* bytes */
	bool is_signed;
};

struct event_format {
	char *name;
	unsigned int id;
	struct event_field *common; /* before the first blank line */
	size_t n_common;
	struct event_field *fields;
	size_t n_fields;
	char *print_fmt; /* all after "print fmt: ", trimmed; "" if missing */
};

/*
 * Parses the text. -EBADMSG when name, ID or format is missing, a field lies beyond 64 KiB, or a line makes
 * no sense (a NUL byte never does). -ENOMEM. On error *f is empty.
 */
int event_format_parse(const char *text, size_t len, struct event_format *f);
void event_format_release(struct event_format *f);
/* By name, without the [n] of an array; a field before a common one. NULL: none. */
const struct event_field *event_format_field(const struct event_format *f, const char *name);

#endif
