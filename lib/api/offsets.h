/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_API_OFFSETS_H
#define HYPTRACE_API_OFFSETS_H

#include "api/handle.h"
#include "sync/align.h"

/* Calls for `hyptrace sync` beyond hyptrace_sync and hyptrace_offset: the whole result. */

/*
 * hyptrace_sync, with progress (NULL: none); fills *o, whose files are the handle's, for offsets_release,
 * also when it fails.
 */
int handle_sync(struct hyptrace *h, struct sync_progress *progress, struct offsets *o);

#endif
