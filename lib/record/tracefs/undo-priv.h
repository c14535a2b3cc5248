/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_UNDO_PRIV_H
#define HYPTRACE_UNDO_PRIV_H

#include <sys/types.h>

#include "base/buf.h"
#include "base/log.h"

/*
 * One recording per buffer, and one undo: a process that changes a buffer holds a flock on its
 * directory in tracefs, and on the top directory for all that is not in an instance. The lock ends
 * with the process. A link in /run/hyptrace from the buffer to the journal marks a buffer that a
 * dead process has not put back; no other process may change it until then. Used by undo only.
 */
struct locks {
	struct lock {
		char *dir; /* relative to the tracing directory */
		int fd;
	} * v;
	size_t n;
};

/*
 * Takes the lock of the buffer that this path (relative to the tracing directory) is or lies in, unless it is
 * held. journal_fd: by which the caller puts it back, -1: it is in memory only. -EBUSY, with a message:
 * another process has the lock, or has died before it put the buffer back. -ENOENT: no such buffer.
 */
int locks_take(struct locks *l, int dirfd, const char *path, int journal_fd, const struct log *log);
/* undone: all of them are as they were before. */
void locks_release(struct locks *l, bool undone);

/*
 * tracefs files that hold a list: what they show is not always what they take.
 *
 * The content of a list file in the form that can be written back, one entry a line. Left out: comment lines
 * ("#### all functions enabled ####", "no pid"), functions with a command (they outlive O_TRUNC), and events
 * that are on only in soft mode, for a trigger's sake.
 */
int list_read(int dirfd, const char *path, struct buf *out);
/*
 * Makes lines the content of the file. Stops at a line that the kernel refuses: its copy is then in
 * *refused (the caller frees it); with go_on, continues and returns the first error.
 */
int list_write(int dirfd, const char *path, const char *lines, bool go_on, char **refused);
/* One write(2) of the line, with the newline that echo would add. 0 or -errno. */
int write_line(int fd, const char *line);

#endif
