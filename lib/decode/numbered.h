/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_NUMBERED_H
#define HYPTRACE_NUMBERED_H

#include "util/base.h"

/* What users' text files give: lines, and texts by number. */

/*
 * Calls fn with a copy of each line that is not empty; fn may write into it. '#' at
 * the start of a line makes a comment; with `trailing` it does so anywhere, and
 * blanks at a line's end do not count. Ends at the first error of fn and returns it.
 * -EBADMSG: a NUL in a line; -ENOMEM. *number, if not NULL, is the number of the
 * line read last, from 1.
 */
int text_lines(const void *data, size_t len, bool trailing, int (*fn)(void *ctx, char *line), void *ctx,
	       unsigned int *number);

/* Texts by number; holes are NULL. Zero-initialised = empty. */
struct numbered {
	char **v;
	size_t n;
};

/* Copies the text, in place of what the number had. -ENOMEM. */
int numbered_set(struct numbered *t, size_t id, const char *text);
/* Owned by t; NULL: none of that number. */
const char *numbered_get(const struct numbered *t, uint64_t id);
void numbered_release(struct numbered *t);

#endif
