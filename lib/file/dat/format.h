/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_FORMAT_H
#define HYPTRACE_FORMAT_H

#include "base/buf.h"

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

/* ---- print-format.c ---- */

/*
 * Of f's print format, appended to *out for stock tools, in other words for the same:
 * `a ?: b` becomes `a ? a : b`, functions of include/linux/string_choices.h become
 * the choice that they make (kvm_sys_access of Linux 7 has both, and stock report prints
 * [FAILED TO PARSE] for it), and "%c" of `a ? 'e' : 'i'` becomes "%s" of `a ? "e" : "i"`
 * (for kvm_wfx_arm64 it prints wf>c<). 1; 0: nothing of that is in it. -E2BIG: it is
 * longer, deeper or wider than any kernel's; -EINVAL: it divides by what may be 0, or has what libtraceevent
 * cannot read either: only then *why is NULL. -ENOMEM. f's text is not good for anything after that.
 */
int print_format_fixup(struct event_format *f, struct buf *out, const char **why);

/*
 * The conversions in a format string, as libtraceevent sees them. widths[i]: argument i
 * is a width ("%*d"). Returns the number of arguments up to max; -E2BIG: more, or a width
 * beyond 4096; -EINVAL: one that printf reads otherwise than libtraceevent.
 */
int print_conversions(const char *s, size_t len, bool *widths, size_t max);

/* The longest, and how deep one may nest; kernels' have 6,000 bytes and some 20 levels. */
#define PRINT_FORMAT_MAX 65536
#define PRINT_DEPTH_MAX	 200
#define PRINT_ARGS_MAX	 128

/*
 * Formats come from guests and in files, and libtraceevent trusts them: it divides by zero, recurses
 * until the stack ends, pads to any width, and reads as many items of an array as a record claims.
 * It only gets texts that this check has parsed completely (print-format.c has the rules).
 */
struct checked_format {
	char *name;
	unsigned int id;
	struct buf text; /* without an unsound print format: then the fields are printed */
	const char *why; /* the fault ("divides by ..."); NULL: none, or the format cannot be parsed */
};

/*
 * Of a format file's text. -EBADMSG: it is no format, or its fields lie as no kernel's
 * do; -ENOMEM. *f is to be released in any case.
 */
int format_check(const char *text, size_t len, struct checked_format *f);
void checked_format_release(struct checked_format *f);

#endif
