/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_LOCKS_H
#define HYPTRACE_LOCKS_H

#include "util/base.h"

/*
 * One recording per buffer, and one undo: who changes a buffer holds a flock on
 * its directory in tracefs, the top one for whatever lies beside the others. It
 * dies with the process. What a process that died has not put back is known by a
 * link in /run/hyptrace from the buffer to the journal, and nobody else may
 * change that buffer until it is. Used by undo only.
 */
struct locks {
	struct lock {
		char *dir; /* relative to the tracing directory */
		int fd;
	} * v;
	size_t n;
};

/*
 * Takes the lock of the buffer that this path (relative to the tracing directory)
 * is or lies in, unless it is held. journal_fd: by which the caller puts it back,
 * -1: it is in memory only. -EBUSY, with a message: another process has the lock, or
 * has died before it put the buffer back. -ENOENT: no such buffer.
 */
int locks_take(struct locks *l, int dirfd, const char *path, int journal_fd, const struct log *log);
/* undone: all of them are as they were before. */
void locks_release(struct locks *l, bool undone);

#endif
