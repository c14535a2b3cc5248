/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_TALLY_H
#define HYPTRACE_TALLY_H

#include "ask/states/histogram.h"
#include "spans/spans.h"

/* Spans of some kinds, exits and visits: the longest are kept, and all are added up by slices of time. */
#define TALLY_KINDS SPAN_MARK /* the kinds before it */

#define TALLY_LONGEST_MAX 1000
#define TALLY_SLICES_MAX  65536
#define TALLY_ROWS_MAX	  256 /* reasons whose slices are kept */

struct tally_cell {
	uint64_t ns;
	uint64_t n; /* of those that begin there */
};

/* A reason by slices. */
struct tally_row {
	enum span_kind what;
	size_t input;
	uint64_t why; /* as the spans have it */
	struct tally_cell *cells;
	size_t room;	       /* slices */
	struct histogram time; /* of all slices */
};

struct tally {
	/* at most `most` of each kind, the longest first */
	size_t most;
	struct span *longest[TALLY_KINDS];
	size_t n_longest[TALLY_KINDS];
	/* slices; width 0: none */
	uint64_t width, origin; /* ns; the time of the first record */
	bool begun;		/* there is an origin */
	struct tally_row *rows;
	size_t n_rows, n_slices;
	uint64_t beyond; /* spans of more reasons, or later than the last slice that can be */
};

/* most: up to TALLY_LONGEST_MAX. -ENOMEM. */
int tally_open(struct tally *s, size_t most, uint64_t width);
void tally_release(struct tally *s);
/* The first call of it sets the time from which slices count. */
void tally_begin(struct tally *s, uint64_t ts);
/* One that is among the longest so far, or is wanted by slices. */
int tally_keep(struct tally *s, const struct span *span);
/* -ENOMEM. Inline: there are millions, and few are kept: without rows and pid. */
static inline int tally_add(struct tally *s, const struct span *span)
{
	const struct span *longest = s->longest[span->kind];
	struct span kept;

	if (!s->width && s->n_longest[span->kind] == s->most &&
	    (!s->most || span->to - span->from < longest[s->most - 1].to - longest[s->most - 1].from))
		return 0;
	kept = (struct span){ .from = span->from,
			      .to = span->to,
			      .why = span->why,
			      .machine = span->machine,
			      .cpu = span->cpu,
			      .vcpu = span->vcpu,
			      .kind = span->kind };
	return tally_keep(s, &kept);
}

#endif
