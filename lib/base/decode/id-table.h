/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_ID_TABLE_H
#define HYPTRACE_ID_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Lines of users' text files, and texts by number. */

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
struct id_table {
	char **v;
	size_t n;
};

/* Copies the text, in place of what the number had. -ENOMEM. */
int id_table_set(struct id_table *t, size_t id, const char *text);
/* Owned by t; NULL: none of that number. */
const char *id_table_get(const struct id_table *t, uint64_t id);
void id_table_release(struct id_table *t);

#endif
