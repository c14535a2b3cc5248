/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HYPTRACE_CMD_SYNC_PRIV_H
#define HYPTRACE_CMD_SYNC_PRIV_H

#include <stdio.h>

#include "api/offsets.h"
#include "cmd.h"

/* Shared by sync.c, sync-plot.c, sync-print.c and sync-write.c. */

struct sync_job {
	struct hyptrace *files;
	struct offsets found;
	const struct log *log;
};

/* Guest time in the middle of the capture. */
uint64_t guest_middle(const struct offsets_guest *g);
bool in_ticks(const struct offsets_guest *g);
void print_table(const struct sync_job *job, FILE *out);
void print_json(const struct sync_job *job, struct buf *out);
/* All guests' bands, lines and own samples as an SVG. */
int plot_svg(const struct sync_job *job, const char *path);
int write_files(struct sync_job *job);

#endif
