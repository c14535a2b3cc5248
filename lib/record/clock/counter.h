/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_COUNTER_H
#define HYPTRACE_COUNTER_H

#include <pthread.h>

#include "file/dat/page.h"
#include "file/dat/options.h"
#include "record/tracefs/undo.h"

/*
 * The machine's counter, which all its clocks are made from: CNTVCT_EL0 on
 * arm64 (what a host reads there is the physical count, a guest reads it less
 * its CNTVOFF), the TSC on x86. And snapshots that tie it to a trace clock.
 */
bool counter_there(void);
/* Ordered with the loads before and after it. 0: no counter. */
uint64_t counter_read(void);

/* At `counter` +- slack ticks the clock showed `clock`. */
struct counter_shot {
	uint64_t counter, slack;
	uint64_t clock; /* ns */
};

/*
 * The narrowest of so many brackets. marks: opened for at least COUNTER_MARKS.
 * -ENODATA: the clock could not be read once; -ENOTSUP: no counter.
 */
#define COUNTER_MARKS 16
struct clock_marker; /* below */
int counter_shoot(struct clock_marker *marks, struct counter_shot *out);

/* The time of day by a system's clock, now: the narrowest of as many brackets, and the kernel's own
 * statement. */
void wall_shoot(int clock, struct wall_sample *out);

/* Question and answer: by the host's counter, and by the guest's in between. */
struct counter_ping {
	uint64_t sent, back;  /* host */
	uint64_t first, last; /* guest: question taken, answer sent */
};

/* Those of a recording, for the counter method. Zero-initialised = empty. */
struct counter_log {
	struct counter_shot *shots;
	size_t n_shots;
	struct counter_ping *pings; /* of a guest */
	size_t n_pings;
	pthread_mutex_t lock; /* while it grows; all zero, which is PTHREAD_MUTEX_INITIALIZER */
};

/* Appends a copy. 0 or -ENOMEM. */
int counter_log_shot(struct counter_log *l, const struct counter_shot *s);
int counter_log_ping(struct counter_log *l, const struct counter_ping *p);
/* While another thread appends: how many shots there are ... */
size_t counter_log_shots(struct counter_log *l);
/* ... all of it into an empty one, 0 or -ENOMEM ... */
int counter_log_copy(struct counter_log *to, struct counter_log *from);
/* ... and drops all but the newest `keep` shots, and as many pings for each as there were. */
void counter_log_forget(struct counter_log *l, size_t keep);
/* Leaves it empty. */
void counter_log_release(struct counter_log *l);

/*
 * Time of a moment by a trace clock. Programs read a system clock of that name, if there
 * is one; else a mark in a trace buffer has the time.
 */

struct clock_marker {
	int system; /* clock id, or -1: marks in the trace */
	struct undo *undo;
	char instance[48];
	int marker;
	struct page_layout layout;
	uint8_t *page;
	size_t n;
	int64_t ts[]; /* for others to read: of each mark, ns; 0: not there */
};

/* The system's clock (a clockid_t) that is the trace clock of this name, or -1. */
int clock_marker_system(const char *clock);
/*
 * n: marks of one pass. The instance it may make is put back by the undo. 0, -ENOMEM,
 * or an error of tracefs; the caller frees *out.
 */
int clock_marker_open(struct clock_marker **out, struct undo *u, const char *clock, size_t n);
void clock_marker_free(struct clock_marker *c); /* takes NULL */
/* Forgets all marks. */
void clock_marker_clear(struct clock_marker *c);
/* Mark i is now. */
void clock_marker_set(struct clock_marker *c, size_t i);
/* After the last mark, before the first is read. */
void clock_marker_collect(struct clock_marker *c);

#endif
