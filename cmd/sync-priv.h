/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HYPTRACE_CMD_SYNC_PRIV_H
#define HYPTRACE_CMD_SYNC_PRIV_H

#include <stdio.h>

#include "cmd.h"
#include "dat/reader.h"
#include "sync/evidence.h"

/* Shared by sync.c, sync-plot.c, sync-print.c and sync-write.c. */

struct trace_file {
	const char *path;
	int fd;
	struct reader *reader;
	struct sync_source source;
	uint64_t id; /* TRACEID; 0 = none */
	char clock[32];
};

struct guest_file {
	struct trace_file file;
	char *name;
	struct sync_guest events;
	struct sync_input in;
	int32_t *pids;
	struct sync_result result;
	bool has_shift;
	struct offset_shift shift; /* the file's own */
	struct sync_check check;   /* ... and what it violates */
};

struct sync_job {
	struct trace_file host;
	struct sync_host windows;
	struct guest_file *guests;
	size_t n_guests;
	const struct log *log;
};

/* Guest time in the middle of the capture. */
uint64_t guest_middle(const struct guest_file *g);
bool in_ticks(const struct guest_file *g);
void print_table(const struct sync_job *job, FILE *out);
void print_json(const struct sync_job *job, struct buf *out);
/* All guests' bands, lines and own samples as an SVG. */
int plot_svg(const struct sync_job *job, const char *path);
int write_files(struct sync_job *job);

#endif
