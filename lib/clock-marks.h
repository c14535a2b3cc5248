/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HYPTRACE_AGENT_SYNC_CLOCK_H
#define HYPTRACE_AGENT_SYNC_CLOCK_H

#include "undo.h"

/*
 * When did that happen, by the trace clock? Its name tells whether the system
 * has the same clock for programs; else a mark in a trace buffer tells.
 */
struct sync_clock;

/* n: marks of one pass. The instance it may make is put back by the undo. */
int sync_clock_open(struct sync_clock **out, struct undo *u, const char *clock, size_t n);
void sync_clock_free(struct sync_clock *c);
/* Forgets all marks. */
void sync_clock_clear(struct sync_clock *c);
/* Mark i is now. */
void sync_clock_mark(struct sync_clock *c, size_t i);
/* After the last mark, before the first get. */
void sync_clock_collect(struct sync_clock *c);
int64_t sync_clock_get(const struct sync_clock *c, size_t i); /* ns; 0: not there */

#endif
