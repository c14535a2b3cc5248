/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_COLLECT_H
#define HYPTRACE_COLLECT_H

#include "record/spool.h"

/*
 * Copies the texts that a trace.dat needs from tracefs and /proc to the spool.
 *
 * Before the recording: header_page, header_event, and "formats": for each
 * event a line "SYSTEM LENGTH" and the format text, the ftrace system first.
 * After it: kallsyms, printk_formats, saved_cmdlines.
 */

/* systems: those with recorded events. max_id: the largest id among the formats. */
int collect_formats(int tracing_dirfd, const struct strlist *systems, struct spool *spool,
		    unsigned int *max_id, const struct log *log);
/* A text that cannot be had is left out with a warning; -ENOSPC: it cannot be kept. */
int collect_names(int tracing_dirfd, struct spool *spool, const struct log *log);
/* Of the kernel itself: root/proc/kallsyms; root may be NULL. */
int collect_symbols(struct spool *spool, const char *root, const struct log *log);
/* "pid comm" lines from /proc for pids that saved_cmdlines lacks; appends to the spool's. */
int collect_pids(struct spool *spool, const int *pids, size_t n);

#endif
