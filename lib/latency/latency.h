/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_LATENCY_H
#define HYPTRACE_LATENCY_H

#include "analysis/histogram.h"
#include "latency/by.h"
#include "latency/event.h"

/*
 * How long it takes from one event to the next: chains (chain.h) of the records of files, by
 * key, with losses and the clocks' bounds.
 */
#define LATENCY_TERMS_MAX 16
#define LATENCY_ROWS_MAX  1000 /* further keys share a row */

/* An event that is a point; a point may have several. */
struct latency_term {
	const char *event; /* as event_words_parse has it */
	size_t point;
	bool cancels; /* it is none, but ends what waits for the point below `look` */
	struct latency_by_how look, next, carry;
	struct latency_by_how row; /* point 0: which row it counts in; BY_NOTHING: as `next` */
	const char *record;	   /* options of record that give it; NULL */
};

struct latency_plan {
	const struct latency_term *terms;
	size_t n_terms, n_points;
	bool strays;  /* the last point without the others counts, in the row of its `look` */
	bool apart;   /* machines are told apart by all keys */
	bool lenient; /* events that lack a field of the plan's are not meant */
	size_t worst; /* so many are kept */
};

struct latency_row {
	struct latency_key key;
	bool others;		  /* of all keys beyond LATENCY_ROWS_MAX */
	uint64_t begins, ends;	  /* events of the first and (strays) the last point */
	uint64_t undecided, lost; /* see enum chain_fate */
	uint64_t refused;
	uint64_t strays, doubtful;	    /* last points that no chain waited for, surely and perhaps */
	uint64_t stopped[CHAIN_POINTS_MAX]; /* by how many points came */
	uint64_t bound;			    /* the greatest of a chain that counts, ns; UINT64_MAX: none */
	struct histogram stages[CHAIN_POINTS_MAX]; /* [n_points - 1]: the whole; before that each stage */
};

struct latency_worst {
	uint64_t took; /* ns */
	uint32_t row;
	struct chain_event v[CHAIN_POINTS_MAX];
};

struct latency; /* opaque */

/*
 * in: loaded, and outlives it, as does the plan with its texts. -EINVAL: the log says which event or field
 * is not there; -ENOMEM. latency_close takes NULL.
 */
int latency_open(struct latency **out, const struct inputs *in, const struct latency_plan *plan,
		 const struct log *log);
void latency_close(struct latency *l);
/* Reads the files, once. *damaged: places in them. -ENOMEM, -errno from the files. */
int latency_read(struct latency *l, const struct log *log, uint64_t *damaged);

/* Afterwards: rows in the order in which their keys came; the longest first. */
const struct latency_row *latency_rows(const struct latency *l, size_t *n);
const struct latency_worst *latency_worst(const struct latency *l, size_t *n);
/* Of a term: its events that came, those that passed its filter, and of these those without a key. */
struct latency_count {
	bool known; /* a file has a format of it */
	uint64_t seen, passed, keyless;
};
const struct latency_count *latency_count(const struct latency *l, size_t term);
/* The bound between two events, ns: 0 on one machine; UINT64_MAX: unknown. */
uint64_t latency_bound(const struct chain_event *a, const struct chain_event *b);
/* A guest whose clock has no bound, though order across machines is asked for; NULL: none. */
const char *latency_unbounded(const struct latency *l);
/* What there was in these files, in between some events: "events were lost", or pauses between regions. */
const char *latency_why_lost(const struct latency *l);
const struct who *latency_who(const struct latency *l);

#endif
