/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_CLOCK_MARKS_H
#define HYPTRACE_CLOCK_MARKS_H

#include "tracefs/undo.h"

/*
 * When something happened by a trace clock. Where programs have a clock of that name,
 * they read it; else a mark in a trace buffer has the time.
 */
struct clock_marks;

/* The system's clock (a clockid_t) that is the trace clock of this name, or -1. */
int clock_marks_system(const char *clock);
/*
 * n: marks of one pass. The instance it may make is put back by the undo. 0, -ENOMEM,
 * or an error of tracefs; the caller frees *out.
 */
int clock_marks_open(struct clock_marks **out, struct undo *u, const char *clock, size_t n);
void clock_marks_free(struct clock_marks *c); /* takes NULL */
/* Forgets all marks. */
void clock_marks_clear(struct clock_marks *c);
/* Mark i is now. */
void clock_marks_set(struct clock_marks *c, size_t i);
/* After the last mark, before the first get. */
void clock_marks_collect(struct clock_marks *c);
int64_t clock_marks_get(const struct clock_marks *c, size_t i); /* ns; 0: not there */

#endif
