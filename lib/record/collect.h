/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_COLLECT_H
#define HYPTRACE_COLLECT_H

#include "spool/spool.h"

/*
 * Copies the texts that a trace.dat needs from tracefs and /proc to the spool.
 *
 * Before the recording: header_page, header_event, and "formats": for each
 * event a line "SYSTEM LENGTH" and the format text, the ftrace system first.
 * After it: kallsyms, printk_formats, saved_cmdlines.
 */

/*
 * header_page, header_event and formats. systems: those with recorded events.
 * *max_id: the largest id among the formats. 0 or -errno, which is logged.
 */
int collect_formats(int tracing_dirfd, const struct strlist *systems, struct spool *spool,
		    unsigned int *max_id, const struct log *log);
/* printk_formats, saved_cmdlines. What cannot be read is left out with a warning; -ENOSPC: no room for it. */
int collect_names(int tracing_dirfd, struct spool *spool, const struct log *log);
/* kallsyms of the kernel itself: root/proc/kallsyms; root may be NULL. As collect_names(). */
int collect_symbols(struct spool *spool, const char *root, const struct log *log);
/* Appends "pid comm" lines from /proc for those pids that saved_cmdlines lacks. 0 or -errno. */
int collect_pids(struct spool *spool, const int *pids, size_t n);

#endif
