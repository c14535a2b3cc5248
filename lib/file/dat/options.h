/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_DAT_OPTIONS_H
#define HYPTRACE_DAT_OPTIONS_H

#include "file/dat/writer.h"

/*
 * The options that the caller of dat_write gives (trace-cmd.dat.v7(5)), with their bytes: put v and
 * n into struct dat_file. Zero-initialised = empty. Every call returns 0 or -ENOMEM, unless stated
 * otherwise; after a failure earlier options remain valid.
 */
struct dat_options {
	struct dat_option *v;
	size_t n;
};

/* hyptrace's own: the command line that recorded, as a text; far from trace-cmd's ids, which count from 0. */
#define DAT_COMMAND 0x4871

/* Frees the options and their bytes; *o is empty again. */
void dat_options_release(struct dat_options *o);

/* Any option; the bytes are copied. -EINVAL: longer than a reader's int. */
int dat_options_add(struct dat_options *o, uint16_t id, const void *data, size_t len);
/* One whose data is a text, NUL included. */
int dat_options_add_text(struct dat_options *o, uint16_t id, const char *text);

/*
 * TRACECLOCK: the text of tracefs' trace_clock ("local [boot] ...") or a bare name, which gets its brackets
 * here. Stock's report shows raw numbers for clocks that it does not know for nanoseconds, "boot" among them,
 * unless there is a TSC2NSEC too.
 */
int dat_options_add_clock(struct dat_options *o, const char *text);
/* TSC2NSEC: ns = ticks * mult >> shift. Stock stores the offset and never applies it. */
int dat_options_add_tsc2nsec(struct dat_options *o, uint32_t mult, uint32_t shift, uint64_t offset);
/* TRACEID: of this session; GUEST and TIME_SHIFT of other files refer to it. */
int dat_options_add_traceid(struct dat_options *o, uint64_t id);
/* UNAME: of the running kernel. */
int dat_options_add_uname(struct dat_options *o);
/* DATE: us to add to a time stamp to make it the time of day. */
int dat_options_add_date(struct dat_options *o, int64_t offset_us);
/*
 * PROCMAPS of one process: its command and the text of /proc/PID/maps, of which
 * the mappings of files are kept. Without any there is nothing to add: 0.
 */
int dat_options_add_procmaps(struct dat_options *o, int pid, const char *command, const char *maps,
			     size_t len);

#endif
