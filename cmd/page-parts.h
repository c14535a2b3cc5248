/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HYPTRACE_PAGE_PARTS_H
#define HYPTRACE_PAGE_PARTS_H

#include "base/buf.h"
#include "base/log.h"
#include "base/strings.h"

/*
 * Answers of other commands as JSON, for the page of hyptrace view. in: loaded. 0 or -errno, logged.
 */

struct inputs;
struct times_opts;

/* All tables of stat --json: stat.c. */
int stat_json(const struct inputs *in, struct buf *out, const struct log *log);
/* Findings of why --json, files: for its commands: why.c. */
int why_json(const struct inputs *in, const struct strlist *files, struct buf *out, const struct log *log);
/* All presets of latency that these files can feed, as an array with their distributions: view-latency.c. */
int latency_json(const struct inputs *in, struct buf *out);
/* Stacks of flame --json, the light ones added up: flame.c. Not logged; -ENODATA: there are none. */
int flame_json(const struct inputs *in, struct buf *out);
/* Tables of diff --json: diff.c. sides: of diff_sides(). */
int diff_json(const struct buf sides[2], const struct times_opts *times, struct buf *out,
	      const struct log *log);
/*
 * The names of the two recordings' files, joined by commas: the second recording begins with the second
 * file that is no guest's. Returns an EXIT_ status; messages are printed.
 */
int diff_sides(const struct strlist *named, struct buf sides[2], const struct log *log);
/* The names of a side, apart. -ENOMEM. */
int diff_files(const char *names, struct strlist *out);

#endif
