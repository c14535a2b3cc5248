/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SERIES_H
#define HYPTRACE_SERIES_H

#include "ask/states/histogram.h"
#include "read/inputs.h"

/*
 * A recording as figures of SERIES_SLICES equal slices of its time, so that two recordings can be compared
 * whatever their length: how often a thing happened in a second, or which share of a second it took.
 */
#define SERIES_SLICES 64

enum series_group {
	SERIES_CAUSES,	  /* who preempted which vCPU, of that vCPU's time */
	SERIES_EVENTS,	  /* a second, by machine, buffer and name */
	SERIES_EXITS,	  /* a second, by reason */
	SERIES_EXIT_TIME, /* handling them: of one CPU's time */
	SERIES_HYP,	  /* stays in the hypervisor a second, by reason */
	SERIES_HYP_TIME,  /* of one CPU's time */
	SERIES_STATES,	  /* of each vCPU's time; tasks' stolen time, of one CPU's, by guest */
	SERIES_TASKS,	  /* what the host's tasks ran, of one CPU's time, by name */
	SERIES_GROUPS
};

struct series_row {
	enum series_group group;
	char *machine, *name;
	double v[SERIES_SLICES];
	struct histogram time; /* EXIT_TIME, HYP_TIME: ns of each; else empty */
};

struct series {
	uint64_t from, to; /* ns of the host's clock: the first and the last record */
	uint64_t lost;	   /* events; those of losses without a number count as 1 */
	uint64_t damaged;  /* places in the files */
	double length;	   /* seconds; after series_per() how many of the event there were */
	double *per;	   /* series_per(): the event's rates in the slices; else NULL */
	struct series_row *v;
	size_t n;
};

/*
 * Reads the inputs, which are loaded. -ENODATA: there is not a record, or all have the same time;
 * -ENOMEM. *s must be released in any case.
 */
int series_read(struct series *s, const struct inputs *in, const struct log *log);
/*
 * Makes the figures those of each event of that name, [SYSTEM:]EVENT[@MACHINE], instead of a second's: how
 * often a thing happened, or how many seconds it took. -ENOENT: there is no such event; -ENOMEM.
 */
int series_per(struct series *s, const char *event);
void series_release(struct series *s);

/* ---- of two, by slices: significance.c ------------------------------------------------------------ */

/*
 * Decides whether two recordings differ in a figure by more than each of them differs from itself. Each is
 * cut into slices of equal length. Neighbouring slices are alike where things come in bursts, so the
 * uncertainty of a mean comes from the slices' slowest movements: the first cosines of the series, whose mean
 * square estimates the spectrum at frequency 0 (Mueller 2007; Lazarus, Lewis, Stock, Watson 2018).
 * Where the slowest two exceed the faster ones, the figure moves more slowly than the recording is long; the
 * interval then is made of these two, three times as wide, and a difference within it is not decided.
 */
#define SIGNIFICANCE_SLICES_MIN 32

enum verdict {
	VERDICT_UNKNOWN, /* too few slices, or these move too slowly */
	VERDICT_SAME,	 /* within the noise */
	VERDICT_LESS,	 /* the second one has less */
	VERDICT_MORE
};

/*
 * Values by slices; length: of all of them, in any unit that both series have. per: an event's values in the
 * same slices, of which none is negative and one is positive; the figure is then v of each such event (a
 * ratio estimate, of which only what v moves apart from per is noise). NULL: the figure is v's mean.
 */
struct slice_series {
	const double *v;
	size_t n;
	double length;
	const double *per;
};

struct significance {
	double a, b;	  /* means, or ratios */
	double low, high; /* of b - a: 99 % confidence */
	enum verdict verdict;
};

struct significance significance_of(const struct slice_series *a, const struct slice_series *b);
/* "same", "less", "more", "too short" */
const char *verdict_word(enum verdict verdict);

#endif
