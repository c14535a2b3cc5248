/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SHIM_H
#define HYPTRACE_SHIM_H

#include "base/std.h"

/* Our programs under the name trace-cmd: a link to hyptrace, early in PATH (hyptrace(1)). */

#define SHIM_NAME "trace-cmd"

/* True if argv[0] is that name. */
bool shim_called(const char *argv0);

/* Path of `name` relative to the folder of the running program; malloc'ed, NULL: no memory, or no
 * /proc. */
char *shim_beside(const char *name);

/* A copy to parse, for parsing changes argv: free() it. NULL: no memory. */
char **shim_copy(int argc, char **argv);

/*
 * Becomes the trace-cmd that PATH has beyond its last link to hyptrace, so that two installations cannot
 * call each other in circles. Returns only when it cannot: -ENOENT, there is none, or -errno of execv.
 */
int shim_exec_real(char **argv);

#endif
