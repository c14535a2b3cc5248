/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SYNC_SOLVER_H
#define HYPTRACE_SYNC_SOLVER_H

#include "sync/sync.h"
#include "base/array.h"

#include <math.h>

/* The solver's own data and steps: for the files of this room alone. */

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
 * here are absolute; the line is how they are expected to change inside.
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
	bool valid;	     /* low and high are bounds: there were events */
};

static inline int64_t slice_middle(const struct slice *s)
{
	return s->low + (s->high - s->low) / 2;
}

struct sweeper {
	uint32_t *lows, *highs, *scratch;
	size_t n, cap;
	size_t full; /* events that are inside at any offset looked at */
};

struct problem {
	const struct sync_input *in;
	struct thread *threads; /* by pid */
	size_t n_threads;
	int *map; /* index of each guest CPU's thread, -1 = none */
	uint64_t host0, host1;
	uint64_t guest0, guest1;
	double rate;  /* |host's against guest's - 1| at most */
	double burst; /* events in a window, about */
	double part;  /* of the events usually outside, as far as found so far */
	double least; /* of the segments' parts: what is usual in this capture */
	struct slice *slices;
	size_t n_slices;
	struct sweeper sweeper;
};

/* ---- windows.c: what each thread's windows leave, as spans */

/* Fills p->threads; windows_release it in any case. 0 or -ENOMEM. */
int windows_threads(struct problem *p);
void windows_release(struct problem *p);
/* NULL: that thread has no windows. */
const struct thread *windows_thread(const struct problem *p, int32_t pid);
/* Index of the span that holds the time or the first one behind it; n when there is none. */
size_t thread_span_at(const struct thread *t, uint64_t time);
/* ns to the nearest span; 0: inside. */
uint64_t thread_distance(const struct thread *t, uint64_t time);

/* ---- sweep.c: how many events are inside at each offset */

/*
 * Looks at offsets at the slice's mid in [low, high], and fills its n, best, low and
 * high by the map. 0, -ENOMEM, or -ERANGE: more than 4 s of them.
 */
int sweep_slice(struct problem *p, struct slice *s, int64_t low, int64_t high);
/* Index of the first event not before `time`. */
size_t cpu_lower(const struct sync_cpu *c, uint64_t time);
/* Events of all CPUs in [t0, t1). */
uint64_t slice_events(const struct problem *p, uint64_t t0, uint64_t t1);
/* Events in [t0, t1) and those of them outside if they were spread evenly, of CPUs with a thread. */
double events_by_chance(const struct problem *p, const int *map, uint64_t t0, uint64_t t1, double *n);

/* ---- vcpu-map.c: which thread is which CPU's */

/* No CPU has a thread. */
void map_clear(struct problem *p);
bool map_any(const struct problem *p); /* whether any CPU has a thread */
/* Makes p->map of the events near slice k, for offsets in [low, high]. 0 or an error of sweep_slice. */
int map_solve(struct problem *p, size_t k, int64_t low, int64_t high);
/*
 * Compares every assignment with all others at the offsets found; unclear ones
 * are taken out. Whether a better thread was found for a CPU.
 */
bool map_check(struct problem *p, const struct sync_result *r);

/* ---- tracks.c: slices, and the offset followed from one to the next */

/* A stretch of guest time without a jump. */
struct segment {
	size_t first, last;  /* slices [first, last) */
	size_t seen, unseen; /* of them, [seen, unseen) were followed: the others are another's */
	uint64_t t0, t1;     /* exactly: [t0, t1) */
	uint64_t from, to;   /* ... with what may belong to the next one as well */
};

/* Makes p->slices. 0 or -ENOMEM. */
int tracks_slices(struct problem *p);

/* Result of following an offset. */
struct track {
	struct segment segment;
	uint64_t events, outside;
};
/*
 * Follows the offset within slices [from, to) from slice k on, where it lies in [low,
 * high]; at most `reach` slices each way. 0 or an error of sweep_slice.
 */
int tracks_follow(struct problem *p, size_t from, size_t to, size_t k, int64_t low, int64_t high,
		  size_t reach, struct track *out);

/* ---- search.c: a cold start, and one beyond each jump */

#define SEARCHES_MAX 24
#define OUTSIDE_MAX  0.25 /* part of the events: with more there is no result */

struct segments {
	struct segment v[SEARCHES_MAX];
	size_t n;
	int searches;
	bool mapped; /* the map was given or found */
};
/*
 * Finds the segments between slices [from, to), in any order, and with them the map if
 * need be. 0 (also when there are none) or -ENOMEM.
 */
int search_segments(struct problem *p, struct segments *all, size_t from, size_t to);

/* ---- drift.c: a segment's line; appends its points, jump and bands to *out. 0 or -ENOMEM. */
int drift_fit(struct problem *p, const struct segment *segment, struct sync_result *out);

#endif
