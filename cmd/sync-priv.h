/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HYPTRACE_CMD_SYNC_PRIV_H
#define HYPTRACE_CMD_SYNC_PRIV_H

#include "sync/align.h"
#include "cmd.h"

/* Shared by sync.c and sync-plot.c. */

struct sync_job {
	struct hyptrace *files;
	struct offsets found;
	const struct log *log;
};

/* Guest time in the middle of the capture. */
static inline uint64_t guest_middle(const struct offsets_guest *g)
{
	return g->events.first + (g->events.last - g->events.first) / 2;
}

static inline bool in_ticks(const struct offsets_guest *g)
{
	return clock_in_ticks(g->file->time.clock);
}

/* All guests' bands, lines and own samples as an SVG. */
int plot_svg(const struct sync_job *job, const char *path);

#endif
