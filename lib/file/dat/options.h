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

/* hyptrace's own options; far from trace-cmd's ids, which count from 0. */
enum {
	DAT_PAUSES = 0x4870,  /* struct pauses */
	DAT_COMMAND = 0x4871, /* the command line that recorded, as a text */
	DAT_WALL = 0x4872,    /* struct wall */
};

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

/* ---- pauses ---- */

/*
 * Stretches of a recording in which tracing was off, between two regions (record --start-on): the option
 * DAT_PAUSES of a file holds the clock's name, NUL, and from and to of each, u64, in the file's byte order.
 * They hold for every buffer of that clock. Records may lie in a pause, where another CPU
 * was still writing or a buffer followed late: between any two of them others may be missing.
 */
struct pause {
	uint64_t from, to; /* as records have their times in pages */
};

/* In the order of time, apart from each other. Zero-initialised = empty. */
struct pauses {
	struct pause *v;
	size_t n;
};

/* Appends one; the part that overlaps the last one is cut off. -ENOMEM. */
int pauses_add(struct pauses *p, uint64_t from, uint64_t to);
/* Adds the option's bytes. */
void pauses_encode(const struct pauses *p, const char *clock, struct buf *out);
/* The stretches of such bytes. -EBADMSG: makes no sense; -ENOMEM. */
int pauses_decode(const void *data, size_t len, struct pauses *out);
void pauses_release(struct pauses *p);
/*
 * True if a pause lies between two records that follow each other, or one of them in it. next: 0 before the
 * first of a CPU's, whose times ascend; where they go back pauses may be overlooked.
 */
bool pauses_between(const struct pauses *p, uint64_t a, uint64_t b, size_t *next);

/* ---- wall ---- */

/*
 * The time of day by the trace clock, at a recording's begin and end: the option DAT_WALL of a host's file
 * holds one sample, or both, as they stand here, in the file's byte order.
 */
#define WALL_NO_ERROR UINT64_MAX /* the kernel's clock was not synchronised: nothing bounds its error */

/* When the file's clock showed `trace`, CLOCK_REALTIME showed `utc` +- slack; all ns. */
struct wall_sample {
	uint64_t trace, utc, slack;
	uint64_t max_error, est_error; /* of CLOCK_REALTIME, by the kernel (adjtimex(2)), or WALL_NO_ERROR */
	uint64_t tai;		       /* s, TAI - UTC; 0: not set in the kernel */
};

struct wall {
	struct wall_sample v[2];
	size_t n; /* 0: the file does not say */
};

/* -EBADMSG: makes no sense. */
int wall_decode(const void *data, size_t len, struct wall *out);
/*
 * The time of day at a time of the file's clock, ns since 1970, by a line between both samples. *bound: its
 * greatest error, if both clocks drifted apart or CLOCK_REALTIME was set between; UINT64_MAX: unknown, as
 * before and after the samples.
 */
uint64_t wall_at(const struct wall *w, uint64_t trace, uint64_t *bound);

#endif
