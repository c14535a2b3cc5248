/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SYNC_FIT_H
#define HYPTRACE_SYNC_FIT_H

#include "sync/solver.h"

/* One segment whose line is being fitted: shared by drift.c and view.c. */

#define FIT_FAR 1e18 /* ns: no limit */

struct node {
	struct slice s;
	double low, high;	    /* the corridor at the slice's mid, against the fit's base */
	double seen_low, seen_high; /* ... as the other nodes narrow it */
	double y;		    /* the line there */
	double slope;		    /* the likeliest */
	double near, bent;	    /* a bend near by, and all up to here */
	bool point;
	bool unsure; /* far more events are outside than usual: no bound */
};

struct fit {
	struct problem *p;
	struct node *v; /* the segment's slices; the first and the last have no length */
	size_t n;
	int64_t base;
	double bend; /* what the rate may change by besides the bends found */
	bool hard;   /* no event is outside */
	size_t conflicts;
};

static inline double fit_dist(const struct node *a, const struct node *b)
{
	return (double)(int64_t)(b->s.mid - a->s.mid);
}

static inline size_t fit_next_point(const struct fit *f, size_t i)
{
	for (i++; i < f->n && !f->v[i].point; i++)
		;
	return i;
}

/* Narrows the corridor at each node by what all others allow, and finds the rates there. */
void fit_see_all(struct fit *f);
/* Finds the places where the line must bend, and by how much; the true bend may be a little earlier or later.
 */
void fit_find_bends(struct fit *f);

#endif
