/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SYSTEM_METADATA_H
#define HYPTRACE_SYSTEM_METADATA_H

#include "file/dat/reader.h"
#include "record/spool/spool.h"

/*
 * Copies the texts that a trace.dat needs from tracefs and /proc to the spool.
 *
 * Before the recording: header_page, header_event, and "formats": for each event a line "SYSTEM LENGTH" and
 * the format text, the ftrace system first. After it: kallsyms.zst (u32 length, and the text as a zstd frame;
 * or kallsyms, of another trace.dat), printk_formats, saved_cmdlines.
 */

/* Adds an event's to the text "formats". */
void formats_add(struct buf *formats, const char *system, const void *format, size_t len);
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
/*
 * A sample of the time of day by the spool's clock (options.h) into its text "wall": the first one stays, the
 * next replaces the last one. Nothing where that clock is none of the system's. 0 or -errno.
 */
int collect_wall(struct spool *spool);

/*
 * The texts and options of a trace.dat into the spool, as dat_from_spool() takes them. Options are kept in
 * the text "options": for each u16 id, u32 length, bytes; not those that leave_out names. 0 or -errno.
 */
int spool_keep_info(struct spool *spool, const struct reader_info *info, bool (*leave_out)(uint16_t id));

#endif
