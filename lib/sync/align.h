/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SYNC_ALIGN_H
#define HYPTRACE_SYNC_ALIGN_H

#include "read/inputs.h"
#include "sync/evidence.h"

/* Offsets of the guests of a host among opened files, by sync.h's method. */

struct offsets_guest {
	const struct input *file;
	char *name; /* by the host's GUEST option, else by its file: "dir/trace-NAME.dat" */
	struct sync_guest events;
	struct sync_input in;
	int32_t *pids;
	struct sync_result result;
	bool has_shift;
	struct offset_shift shift; /* the file's own */
	struct sync_check check;   /* ... and what it violates */
};

struct offsets {
	const struct input *host;
	struct sync_host windows;
	struct offsets_guest *guests;
	size_t n_guests;
};

/* Of a host: whether the offset of that file is wanted. */
typedef bool offsets_want(const struct inputs *all, const struct input *host, const struct input *in);

/*
 * Reads the evidence of the host and of the files that are wanted, computes their offsets, and makes their
 * times and whose vCPUs the host's threads are by them, where there are any. progress: NULL: none; its total
 * is found here. Fills *o, whose files are the caller's, for offsets_release, also when it fails. -ENOMEM,
 * -errno from the files.
 */
int offsets_solve(struct inputs *all, struct input *host, offsets_want *wanted, const struct log *log,
		  struct sync_progress *progress, struct offsets *o);
void offsets_release(struct offsets *o);
/*
 * The same for each guest whose file has no bounds and whose host's file is open, too. The log gets a line of
 * each. -ENOMEM.
 */
int inputs_align(struct inputs *all, const struct log *log);

#endif
