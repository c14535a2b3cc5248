/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_TRACEFS_DIR_H
#define HYPTRACE_TRACEFS_DIR_H

#include "base/files.h"
#include "base/log.h"

/*
 * The tracing directory: `given` (unless NULL or ""), or where tracefs is mounted, or /sys/kernel/tracing, on
 * which it is mounted then. malloc'ed; NULL with a message when there is none or it may not be read.
 */
char *tracefs_dir(const char *given, const struct log *log);

/*
 * The same by the text of /proc/self/mountinfo: the first mount of the whole of tracefs, else "tracing" below
 * the first debugfs. malloc'ed; NULL: neither, or out of memory.
 */
char *tracefs_mounted(const char *mountinfo, size_t len);

/* True if a path lies below the tracing directory: relative, no "." or ".." parts, no control characters. */
bool tracefs_path_ok(const char *path);

/* n: CPUs with a directory in a buffer's per_cpu (path), which are all possible ones; 0 with an error. */
int tracefs_cpus(int dirfd, const char *path, unsigned int *n);

/*
 * Events read and lost of a CPU by its stats file: overwritten unread, or without room in a buffer that does
 * not overwrite. Both are 0 with an error.
 */
int tracefs_counts(int dirfd, const char *stats, uint64_t *events, uint64_t *lost);

#endif
