/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_API_HANDLE_H
#define HYPTRACE_API_HANDLE_H

#include "hyptrace.h"
#include "read/timeline.h"

/*
 * What hyptrace's own commands need beyond hyptrace.h: libtraceevent's side of a handle.
 * Pointers are the handle's, valid as hyptrace.h has it for its own.
 */

/* A hyptrace_log_fn that hands on to a struct log, its ctx. */
void handle_log_to(void *log, enum hyptrace_log_level level, const char *message);

/*
 * The files. Until they are loaded the caller may correct each one's time, set flags of
 * its tep and register handlers there.
 */
struct inputs *handle_inputs(struct hyptrace *h);
/* Formats and plugins, now instead of with the first hyptrace_next. -ENOMEM, -EBADMSG. */
int handle_load(struct hyptrace *h);

/* ---- size-tagged structs ------------------------------------------------------------- */

/* Fills ours (of that size) from the caller's, which may be NULL: nothing. -EINVAL, -E2BIG. */
int tagged_read(void *ours, size_t size, const void *theirs);
/* Gives the caller as much of ours as its struct has room for. -EINVAL. */
int tagged_write(void *theirs, const void *ours, size_t size);

#endif
