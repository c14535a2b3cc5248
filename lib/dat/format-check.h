/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_FORMAT_CHECK_H
#define HYPTRACE_FORMAT_CHECK_H

#include "util/base.h"

/*
 * Formats come from guests and in files, and libtraceevent does whatever they say: it
 * divides by zero, recurses until the stack ends, pads to any width, and reads as many
 * items of an array as a record claims. What it gets is a text that this check has
 * read from end to end (print-format.h has the rules).
 */
struct checked_format {
	char *name;
	unsigned int id;
	struct buf text; /* where the print format is not sound, without it: the fields are printed */
	const char *why; /* what is wrong with it ("divides by ..."); NULL: nothing, or it cannot be read */
};

/*
 * Of a format file's text. -EBADMSG: it is no format, or its fields lie as no kernel's
 * do; -ENOMEM. *f is to be released in any case.
 */
int format_check(const char *text, size_t len, struct checked_format *f);
void checked_format_release(struct checked_format *f);

#endif
