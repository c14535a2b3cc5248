/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_API_OFFSETS_H
#define HYPTRACE_API_OFFSETS_H

#include "api/handle.h"
#include "sync/evidence.h"

/* What `hyptrace sync` needs beyond hyptrace_sync and hyptrace_offset: all that was found. */

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

/*
 * hyptrace_sync, which see; fills *o, whose files are the handle's, for offsets_release,
 * also when it fails.
 */
int handle_sync(struct hyptrace *h, struct offsets *o);
void offsets_release(struct offsets *o);

#endif
