/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_API_HANDLE_H
#define HYPTRACE_API_HANDLE_H

#include "hyptrace.h"
#include "read/timeline.h"

/*
 * Calls for hyptrace's own commands beyond hyptrace.h: libtraceevent's side of a handle.
 * Pointers are the handle's, valid as hyptrace.h has it for its own.
 */

/* Passes a message to the struct log in ctx; a hyptrace_log_fn. */
void handle_log_to(void *log, enum hyptrace_log_level level, const char *message);

/*
 * The files. Until they are loaded the caller may correct each one's time, set flags of
 * its tep and register handlers there.
 */
struct inputs *handle_inputs(struct hyptrace *h);
/*
 * Before they are loaded: loading finds this part of their time, after it has corrected times (-EINVAL,
 * logged: nothing was recorded then), and timelines of the files have no other records. The struct must
 * outlive that.
 */
void handle_read_part(struct hyptrace *h, const struct time_part *part);
/* Formats and plugins, now instead of with the first hyptrace_next. -ENOMEM, -EBADMSG. */
int handle_load(struct hyptrace *h);

/*
 * Begins the iteration of hyptrace_next() anew, over loaded files and the CPUs that are wanted (merge_open).
 * *out: its timeline, the handle's, for run after run of records.
 */
int handle_iterate(struct hyptrace *h, merge_want *want, void *ctx, struct timeline **out);

struct sync_progress;
struct offsets;
/*
 * hyptrace_sync, with progress (NULL: none); fills *o (sync/align.h), whose files are the handle's, for
 * offsets_release, also when it fails.
 */
int handle_sync(struct hyptrace *h, struct sync_progress *progress, struct offsets *o);

/* ---- size-tagged structs ------------------------------------------------------------- */

/* Fills ours (of that size) from the caller's, which may be NULL: nothing. -EINVAL, -E2BIG. */
int tagged_read(void *ours, size_t size, const void *theirs);
/* Gives the caller as much of ours as its struct has room for. -EINVAL. */
int tagged_write(void *theirs, const void *ours, size_t size);

#endif
