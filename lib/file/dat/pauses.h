/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_PAUSES_H
#define HYPTRACE_PAUSES_H

#include "base/buf.h"

/*
 * Stretches of a recording in which tracing was off, between two regions (record --start-on): the option
 * DAT_PAUSES of a file holds the clock's name, NUL, and from and to of each, u64, in the file's byte order.
 * They hold for every buffer of that clock. Records may lie in a pause, where another CPU
 * was still writing or a buffer followed late: between any two of them others may be missing.
 */
#define DAT_PAUSES 0x4870 /* far from trace-cmd's own ids, which are counted from 0 */

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
 * Whether a pause lies between two records that follow each other, or one of them in it. next: 0 before the
 * first of a CPU's, whose times ascend; where they go back pauses may be overlooked.
 */
bool pauses_between(const struct pauses *p, uint64_t a, uint64_t b, size_t *next);

#endif
