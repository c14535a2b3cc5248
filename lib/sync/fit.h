/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SYNC_FIT_H
#define HYPTRACE_SYNC_FIT_H

#include "sync/problem.h"

/* One piece being fitted: shared by sync-drift.c and sync-view.c. */

#define FIT_FAR 1e18 /* ns: no limit */

struct fit {
	struct problem *p;
	struct slice *s; /* the piece's; the first and the last have no length */
	size_t n;
	int64_t base;
	double *low, *high;  /* the corridor at each slice's mid, against base */
	double *y;	     /* the line there */
	double *slope;	     /* the likeliest */
	double *near, *bent; /* a bend near by, and all up to here */
	double bend;	     /* what the rate may change by besides */
	bool *knot;
	bool *unsure; /* far more events are outside than usual: not vouched for */
	bool hard;
	size_t conflicts;
};

static inline double fit_dist(const struct slice *a, const struct slice *b)
{
	return (double)(int64_t)(b->mid - a->mid);
}

static inline size_t fit_next_knot(const struct fit *f, size_t i)
{
	for (i++; i < f->n && !f->knot[i]; i++)
		;
	return i;
}

/* Narrows the corridor at each slice by what all others allow, and finds the rates there. */
int fit_see_all(struct fit *f);
/* Where the line must bend, and by how much; near a bend it may have been earlier or later. */
void fit_find_bends(struct fit *f);

#endif
