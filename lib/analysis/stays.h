/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_STAYS_H
#define HYPTRACE_STAYS_H

#include "analysis/histogram.h"

/*
 * Stretches of time of some kind, a vCPU's exits or a CPU's stays in the hypervisor, as whoever finds
 * them hands them on: the longest are kept, and all are added up by slices of time.
 */
enum stay_what { STAY_EXIT, STAY_HYP, STAY_KINDS };

struct stay {
	uint64_t from, to; /* ns of the host's clock */
	uint64_t kind;	   /* which, as its finder tells them apart */
	size_t input;
	int32_t pid; /* the vCPU's thread; 0: none */
	uint32_t cpu;
	enum stay_what what;
};

#define STAYS_LONGEST_MAX 1000
#define STAYS_SLICES_MAX  65536
#define STAYS_ROWS_MAX	  256 /* kinds whose slices are kept */

struct stays_cell {
	uint64_t ns;	/* until stays_finish only of those that begin or end there */
	int32_t passes; /* how many more than in the slice before fill it */
	uint32_t n;	/* of those that begin there */
};

/* A kind by slices. */
struct stays_row {
	enum stay_what what;
	size_t input;
	uint64_t kind;
	struct stays_cell *cells;
	size_t room;	       /* slices */
	struct histogram time; /* of all slices */
};

struct stays {
	/* the longest: at most `most` of each kind, in no order until stays_finish */
	size_t most;
	struct stay *longest[STAY_KINDS];
	size_t n_longest[STAY_KINDS];
	/* slices; width 0: none */
	uint64_t width, origin; /* ns; the time of the first record */
	bool begun;		/* there is an origin */
	struct stays_row *rows;
	size_t n_rows, n_slices;
	uint64_t beyond; /* stays of more kinds, or later than the last slice that can be */
};

/* most: up to STAYS_LONGEST_MAX. -ENOMEM. */
int stays_open(struct stays *s, size_t most, uint64_t width);
void stays_release(struct stays *s);
/* Slices count from the first time that is told. */
void stays_begin(struct stays *s, uint64_t ts);
/* -ENOMEM. */
int stays_add(struct stays *s, const struct stay *stay);
/* Once, when all are added: the longest of each kind first; the cells are whole. */
void stays_finish(struct stays *s);

#endif
