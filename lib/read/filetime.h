/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_FILETIME_H
#define HYPTRACE_FILETIME_H

#include "file/dat/offset.h"
#include "file/dat/reader.h"
#include "file/dat/options.h"

/*
 * Conversion of a trace.dat's time stamps by its options, in the order of stock (libtracecmd,
 * timestamp_calc): TIME_SHIFT by CPU, TSC2NSEC's mult and shift, then DATE and OFFSET. Stock leaves
 * TIME_SHIFT out for the instances of a guest's file; here it applies to all buffers, since they have one
 * clock.
 */
struct filetime {
	struct offset_shift shift; /* empty: none */
	uint32_t mult, tsc_shift;  /* TSC2NSEC; mult 0: none */
	double ns_per_tick;	   /* in place of TSC2NSEC; 0: none */
	int64_t add;		   /* ns */
	struct wall wall;	   /* of the file's clock */
	int64_t date;		   /* ns; DATE, applied or not; 0: none */
	char clock[32];		   /* "boot"; "" when the file does not say */
	/*
	 * Shown as seconds. As in stock: not when the clock is one that stock does
	 * not know for nanoseconds ("boot", "counter"), unless it is converted.
	 */
	bool seconds;
};

enum {
	FILETIME_RAW = 1,     /* leave the time stamps as they are */
	FILETIME_NO_DATE = 2, /* leave DATE out */
};

/* Zeroes *t first. -EBADMSG: an option makes no sense (the log says which); -ENOMEM. */
int filetime_read(struct filetime *t, const struct reader *r, unsigned int flags, const struct log *log);
/* Frees what it holds; zeroed ones are fine. */
void filetime_release(struct filetime *t);
/* Converts ticks of a clock of that many per second into ns, in place of what the file says. 0: no change. */
void filetime_set_hz(struct filetime *t, uint64_t hz);
/* Converts by another's rate: a guest's times become ticks of its host's clock first, by the TIME_SHIFT. */
void filetime_take_rate(struct filetime *t, const struct filetime *from);
/* Times are ticks of the file's clock, which nothing converts into ns. */
bool filetime_in_ticks(const struct filetime *t);
/* The corrected time of a time stamp of that CPU (ticks of the file's clock): ns, or ticks still. */
uint64_t filetime_convert(const struct filetime *t, unsigned int cpu, uint64_t ts);
/* True: that only adds t->add. */
static inline bool filetime_adds(const struct filetime *t)
{
	/* mult 1 and shift 0, which recorders write for clocks that count ns, change nothing */
	return !t->shift.cpus && t->mult <= 1 && !t->tsc_shift && t->ns_per_tick <= 0;
}

static inline uint64_t filetime_apply(const struct filetime *t, unsigned int cpu, uint64_t ts)
{
	return filetime_adds(t) ? ts + (uint64_t)t->add : filetime_convert(t, cpu, ts);
}
/*
 * Bound of a guest's time by the bounds in its TIME_SHIFT: ns, or ticks where times are.
 * UINT64_MAX: unknown, there are none, or ts lies before the first or behind the last of them.
 */
uint64_t filetime_bound(const struct filetime *t, uint64_t ts);
/* The widest of those that are known, in its unit; 0: there are none. */
uint64_t filetime_widest_bound(const struct filetime *t);

#endif
