/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SYNC_PRIV_H
#define HYPTRACE_SYNC_PRIV_H

#include "sync/sync.h"

/* Shared by sync.c and sync-*.c. */

/* Host time in which a thread may have run its guest; sorted, apart from each other. */
struct span {
	uint64_t a;
	uint64_t b : 63;
	uint64_t unknown : 1;
};

struct thread {
	int32_t pid;
	struct span *v;
	size_t n;
	bool hyp;    /* bounded by the hypervisor's windows */
	double duty; /* part of the time in which it may have run its guest */
};

/*
 * A stretch of guest time with the events in it, and what they say. Offsets
 * here are absolute; the line is what is known of their change inside.
 */
struct slice {
	uint64_t t0, t1; /* [t0, t1) */
	uint64_t mid;
	int64_t offset; /* the line: at mid */
	double slope;
	double rate;	     /* the truth's slope differs by no more from the line's */
	int64_t low, high;   /* of the truth at mid, by the tau rule */
	int64_t low0, high0; /* ... where most events are inside */
	uint32_t n, best;    /* events, most of them inside */
	bool told;	     /* low and high are valid */
};

static inline int64_t slice_middle(const struct slice *s)
{
	return s->low + (s->high - s->low) / 2;
}

struct sweeper {
	uint32_t *lows, *highs, *scratch;
	size_t n_lows, n_highs, cap;
	size_t full;
};

struct problem {
	const struct sync_input *in;
	struct thread *threads;
	size_t n_threads;
	int *map; /* thread of each guest CPU, -1 = none */
	uint64_t host0, host1;
	uint64_t guest0, guest1;
	double rate;
	double burst; /* events in a window, about */
	double part;  /* of the events usually outside, as far as known */
	double least; /* of the pieces' parts: what is usual in this capture */
	struct slice *slices;
	size_t n_slices;
	struct sweeper sweeper;
	const struct log *log;
};

/* ---- sync-windows.c */
int windows_threads(struct problem *p); /* release it in any case */
void windows_release(struct problem *p);
/* The span that holds t or the first one behind it; n when there is none. */
size_t span_at(const struct thread *t, uint64_t time);
/* How far t is from the nearest span; *unknown: in one where nothing is known. */
uint64_t span_distance(const struct thread *t, uint64_t time, bool *unknown);

/* ---- sync-sweep.c */
/*
 * Sweeps a slice for offsets at its mid in [low, high] and fills n, best, low,
 * high. one_cpu >= 0: only that CPU (index), on thread `on`.
 */
int sweep_slice(struct problem *p, struct slice *s, int64_t low, int64_t high);
int sweep_pair(struct problem *p, struct slice *s, int64_t low, int64_t high, size_t cpu, size_t on);
void sweeper_release(struct sweeper *w);
/* First event not before `time`. */
size_t cpu_lower(const struct sync_cpu *c, uint64_t time);
uint64_t slice_events(const struct problem *p, uint64_t t0, uint64_t t1);

/* ---- sync-find.c */
struct candidate {
	int64_t offset; /* at `time` +- slack */
	uint64_t slack;
	double score;
};
/* Likeliest offsets of the guest's [t0, t1), the best first; their number or -errno. */
int find_candidates(struct problem *p, uint64_t t0, uint64_t t1, struct candidate *v, size_t max);

/* ---- sync-search.c */
#define OUTSIDE_MAX 0.25 /* part of the events: with more there is no result */
struct pieces;
/* Finds the pieces between slices [from, to), in any order, and with them the map if need be. */
int search_pieces(struct problem *p, struct pieces *all, size_t from, size_t to);

/* ---- sync-map.c */
void map_unknown(struct problem *p);
/* Solves the map of the CPUs near slice k, for offsets in [low, high]. Returns covered events. */
int map_solve(struct problem *p, size_t k, int64_t low, int64_t high, int *map, uint64_t *covered);
/*
 * Compares every assignment with all others at the offsets found; unclear ones
 * are taken out. *changed: a better thread was found for a CPU.
 */
int map_check(struct problem *p, const struct sync_result *r, bool *changed);

/* ---- sync-drift.c */
struct piece {
	size_t first, last;  /* slices [first, last) */
	size_t seen, unseen; /* of them, [seen, unseen) were followed: the others are another's */
	uint64_t t0, t1;     /* exactly: [t0, t1) */
	uint64_t from, to;   /* ... with what may belong to the next one as well */
};
#define SEARCHES_MAX 24

struct pieces {
	struct piece v[SEARCHES_MAX];
	size_t n;
	int searches;
	bool mapped; /* the map is known or was found */
};

int drift_slices(struct problem *p);
/* Follows the offset from slice k on, where it lies in [low, high]; at most `reach` slices each
 * way. */
int drift_track(struct problem *p, size_t from, size_t to, size_t k, int64_t low, int64_t high, size_t reach,
		struct piece *out, uint64_t *events, uint64_t *outside);
int drift_fit(struct problem *p, const struct piece *piece, struct sync_result *out);
/* Where between two pieces the offset jumps. */
int drift_cut(struct problem *p, struct piece *a, struct piece *b);

#endif
