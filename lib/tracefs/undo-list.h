/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_UNDO_LIST_H
#define HYPTRACE_UNDO_LIST_H

#include "util/base.h"

/*
 * tracefs files that hold a list: what they show is not always what they take.
 * Used by undo only.
 */

/*
 * The content of a list file in the form that can be written back, one entry a
 * line. Left out: comment lines ("#### all functions enabled ####", "no pid"),
 * functions with a command (they outlive O_TRUNC), and events that are on only
 * in soft mode, for a trigger's sake.
 */
int list_read(int dirfd, const char *path, struct buf *out);
/*
 * Makes lines the content of the file. Stops at a line that the kernel refuses:
 * its copy is then in *refused (the caller frees it); with go_on, goes on, and
 * returns the first error.
 */
int list_write(int dirfd, const char *path, const char *lines, bool go_on, char **refused);
/* One write(2) of the line, with the newline that echo would add. 0 or -errno. */
int write_line(int fd, const char *line);

#endif
