/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_PROGRAM_H
#define HYPTRACE_PROGRAM_H

#include <sys/types.h>

#include "base/buf.h"

/*
 * Runs a program, which is looked for in PATH, and reads what it prints until it ends. No shell is between;
 * it gets no input, and what it says on stderr is dropped. argv ends with NULL.
 * Returns its exit status, or -errno: -ENOENT: there is no such program; -EINTR: a signal ended it;
 * -ETIMEDOUT, -EFBIG: it took longer or printed more than that, and was killed.
 */
int program_output(const char *const *argv, struct buf *out, size_t max, int timeout_ms);

/*
 * Starts one, in a process group of its own: a terminal's Ctrl-C is for us. Its stdout is out, -1: ours; what
 * it says on stderr is ours, or dropped (quiet). 0 and *pid, to be waited for, or -errno as above.
 */
int program_spawn(const char *const *argv, int out, bool quiet, pid_t *pid);

#endif
