// SPDX-License-Identifier: LGPL-2.1-or-later
/* A cold start: the likeliest offsets are followed, and the best one is taken where it is clear. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sync/solver.h"
#include "base/array.h"

/* Documentation/clock-sync.md has the reason for each number. */
#define CHUNK_NS      1000000000ull
#define CHUNK_MAX     16000000000ull
#define CHUNK_EVENTS  1000
#define CANDIDATES    64
#define SECOND	      16 /* of them looked at again ... */
#define CLOSE	      6	 /* ... and closely */
#define REACH_FIRST   2	 /* slices on each side */
#define REACH_SECOND  10
#define REACH_CLOSE   200
#define EVENTS_MIN    30
#define OUTSIDE_USUAL 0.15
#define OUTSIDE_COSTS 4
#define OUTSIDE_CLEAN 0.005
#define CHANCE_SIGMAS 6
#define SLACK_MAX     40000000 /* ns */
#define SLACK_PART    64       /* of the host's capture at most: its ends are no windows */
#define PLACES	      5	       /* to begin at, when the first has a jump in it, say */
#define CHANCE_PART   3	       /* well below chance: one in so many of the events it leaves outside */
#define AROUND	      2	       /* slices on each side that show how well a track fits there */
#define ROOM	      1000     /* ns on each side of an offset that is looked at again */

/* ---- finding where to begin -------------------------------------------------------------- */

struct hit {
	int64_t low, high; /* at slice k */
	struct track track;
	double rank;
	int *map; /* in maps */
};

struct search {
	struct problem *p;
	size_t from, to, k; /* slices; k is where it begins */
	double luck;	    /* of the best hit: its events outside against those that chance would leave */
	struct candidate cand[CANDIDATES];
	struct hit hits[CANDIDATES];
	int n;
	int *before; /* p->map before it, and with the best place */
	int *best;
	int maps[]; /* the hits', and these */
};

static void copy_map(const struct problem *p, int *to, const int *from)
{
	memcpy(to, from, p->in->n_cpus * sizeof(*to));
}

static int follow_hit(struct search *s, struct hit *h, int64_t low, int64_t high, size_t reach)
{
	struct problem *p = s->p;
	int ret = tracks_follow(p, s->from, s->to, s->k, low, high, reach, &h->track);

	h->low = p->slices[s->k].low;
	h->high = p->slices[s->k].high;
	h->rank = (double)h->track.events - (1.0 + OUTSIDE_COSTS) * (double)h->track.outside;
	return ret;
}

/* Again, from what an earlier look left, at slice k. */
static int follow_again(struct search *s, struct hit *h, int64_t low, int64_t high, size_t reach)
{
	return follow_hit(s, h, low - ROOM, high + ROOM, reach);
}

/*
 * Near one candidate: what could be must end inside of what was looked at, or
 * there is more of it; a place without an end is no hit.
 */
static int try_candidate(struct search *s, struct hit *h, int64_t offset, int64_t slack)
{
	int64_t most = (int64_t)((s->p->host1 - s->p->host0) / SLACK_PART);

	most = most > SLACK_MAX ? SLACK_MAX : most;
	for (; slack <= most; slack *= 2) {
		int ret = follow_hit(s, h, offset - slack, offset + slack, REACH_FIRST);

		if (ret || (h->low > offset - slack && h->high < offset + slack))
			return ret;
	}
	h->track.events = h->track.outside = 0;
	h->rank = 0;
	return 0;
}

static int compare_hits(const void *a, const void *b)
{
	const struct hit *x = a, *y = b;

	return ORDER(y->rank, x->rank);
}

/* Looks again at the best n, as far as `reach`, and sorts them. */
static int look_again(struct search *s, int n, size_t reach)
{
	n = n < s->n ? n : s->n;
	for (int i = 0; i < n; i++) {
		struct hit *h = &s->hits[i];
		int ret;

		if (!h->track.events)
			continue;
		copy_map(s->p, s->p->map, h->map);
		ret = follow_again(s, h, h->low, h->high, reach);
		if (ret)
			return ret;
	}
	qsort(s->hits, (size_t)n, sizeof(*s->hits), compare_hits);
	return 0;
}

/* The part of the events that would be outside if they had nothing to do with the windows. */
static double part_by_chance(const struct search *s, const struct hit *h)
{
	double n, outside = events_by_chance(s->p, h->map, h->track.segment.t0, h->track.segment.t1, &n);

	return n > 0 ? outside / n : 0;
}

/* Is the best one good, and clearly better than any other place? */
static bool is_clear(const struct search *s)
{
	const struct hit *best = &s->hits[0];
	double outside = (double)best->track.outside, margin = 8 + 6 * sqrt(outside * s->p->burst);
	double part = outside / (double)(best->track.events + 1);
	double events = (double)best->track.events, chance;

	if (!s->n || best->track.events < EVENTS_MIN || part > OUTSIDE_MAX)
		return false;
	/* so few outside is no chance */
	chance = part_by_chance(s, best) * events;
	if (outside >= OUTSIDE_CLEAN * events &&
	    chance - outside <= CHANCE_SIGMAS * sqrt(chance * s->p->burst))
		return false;
	/* so many outside can be chance, unless anywhere else there are far more */
	if (part > OUTSIDE_USUAL)
		margin += outside / 2;
	for (int i = 1; i < s->n && i < CLOSE; i++)
		if (best->low > s->hits[i].high || s->hits[i].low > best->high) /* another place */
			return best->rank - s->hits[i].rank >= (1 + OUTSIDE_COSTS) * margin;
	return true;
}

/* 1: found, with the map in p->map and the hit in hits[0]; 0: not; -errno. */
static int search_once(struct search *s, bool mapped)
{
	struct problem *p = s->p;
	const struct track *best = &s->hits[0].track;
	const struct slice *v = p->slices;
	size_t a = s->k, b = s->k + 1;
	uint64_t t0, t1, away;
	int ret;

	s->luck = 1;
	/* slices about the middle of [from, to) with events enough */
	for (;;) {
		t0 = v[a].t0;
		t1 = v[b - 1].t1;
		if (t1 - t0 >= CHUNK_MAX || (a == s->from && b == s->to))
			break;
		if (t1 - t0 >= CHUNK_NS && slice_events(p, t0, t1) >= CHUNK_EVENTS)
			break;
		a -= a > s->from;
		b += b < s->to;
	}
	s->n = find_candidates(p, t0, t1, s->cand, CANDIDATES);
	if (s->n < 0)
		return s->n;
	/* the candidates' offsets hold for the middle of the chunk */
	away = (uint64_t)(p->rate * fabs((double)(int64_t)(v[s->k].mid - (t0 + (t1 - t0) / 2))));
	for (int i = 0; i < s->n; i++) {
		int64_t slack = (int64_t)(s->cand[i].slack + away), at = s->cand[i].offset;
		struct hit *h = &s->hits[i];

		ret = mapped ? 0 : map_solve(p, s->k, at - slack, at + slack);
		if (ret)
			return ret;
		h->map = s->maps + (size_t)i * p->in->n_cpus;
		copy_map(p, h->map, p->map);
		ret = try_candidate(s, h, at, slack);
		if (ret)
			return ret;
	}
	qsort(s->hits, (size_t)s->n, sizeof(*s->hits), compare_hits);
	ret = look_again(s, SECOND, REACH_SECOND) ?: look_again(s, CLOSE, REACH_CLOSE);
	if (ret || !is_clear(s))
		return ret;
	copy_map(p, p->map, s->hits[0].map);
	s->luck = (double)best->outside / (part_by_chance(s, &s->hits[0]) * (double)best->events + 1);
	p->part = (double)best->outside / (double)best->events;
	return 1;
}

/* ---- segments --------------------------------------------------------------------------------- */

/* From slice k: with the map that there is, and where that does badly without it. As search_once. */
static int search_place(struct search *s, const struct segments *all, size_t k)
{
	struct problem *p = s->p;
	struct hit first;
	int found = 0, ret;

	s->k = k;
	memset(s->hits, 0, sizeof(s->hits));
	if (all->mapped)
		found = search_once(s, true);
	first = s->hits[0];
	if (found < 0 || all->n || p->n_threads < 2 ||
	    (found && (double)first.track.outside < OUTSIDE_USUAL * (double)first.track.events))
		return found;
	copy_map(p, s->best, p->map);
	map_clear(p);
	ret = search_once(s, false);
	if (ret < 0 || (ret && (!found || s->hits[0].rank > first.rank * 1.02 + 50)))
		return ret;
	copy_map(p, p->map, s->best);
	s->hits[0] = first;
	return found;
}

/* The best of several places to begin at; the first that lies well below chance will do. */
static int search_places(struct search *s, struct segments *all)
{
	static const unsigned int eighths[PLACES] = { 4, 2, 6, 1, 7 };
	struct problem *p = s->p;
	int *map = s->best + p->in->n_cpus;
	struct hit best = { 0 };
	double luck = 0;
	size_t k = 0;
	int found = 0;

	copy_map(p, s->before, p->map);
	copy_map(p, map, p->map);
	for (int i = 0; i < PLACES; i++) {
		int ret;

		if (i && (s->to - s->from < 6 || all->searches++ >= SEARCHES_MAX))
			break;
		copy_map(p, p->map, s->before);
		ret = search_place(s, all, s->from + (s->to - s->from) * eighths[i] / 8);
		if (ret < 0)
			return ret;
		if (ret && (!found || s->luck < luck)) {
			found = 1;
			luck = s->luck;
			best = s->hits[0];
			k = s->k;
			copy_map(p, map, p->map);
		}
		if (found && luck * CHANCE_PART < 1)
			break;
	}
	copy_map(p, p->map, map);
	if (!found)
		return 0;
	s->hits[0] = best;
	s->k = k;
	p->part = (double)best.track.outside / (double)best.track.events;
	return 1;
}

/* Events outside and all, of slice k and those beside it. */
static double part_around(const struct problem *p, const struct segment *segment, size_t k, double *n)
{
	size_t a = k - segment->first > AROUND ? k - AROUND : segment->first;
	size_t b = segment->last - k > AROUND ? k + AROUND + 1 : segment->last;
	double outside = 0;

	*n = 0;
	for (size_t i = a; i < b; i++) {
		*n += p->slices[i].n;
		outside += p->slices[i].n - p->slices[i].best;
	}
	return *n > 0 ? outside / *n : 1;
}

/*
 * A track that began beside the truth can still have met it on its way. Where it
 * fits clearly better than where it began it is followed from there, both ways.
 */
static int begin_anew(struct search *s, struct hit *h)
{
	struct problem *p = s->p;
	const struct segment *segment = &h->track.segment;
	double n, other, here = part_around(p, segment, s->k, &n), least = here;
	size_t best = s->k, old = s->k;
	struct hit first = *h;
	int ret;

	for (size_t i = segment->first; i < segment->last; i++) {
		double part = part_around(p, segment, i, &other);

		if (other >= EVENTS_MIN && p->slices[i].valid && part < least) {
			least = part;
			best = i;
		}
	}
	if ((here - 1.3 * least) * n < 8 + 6 * sqrt(p->burst * least * n))
		return 0;
	s->k = best;
	ret = follow_again(s, h, p->slices[best].low, p->slices[best].high, SIZE_MAX);
	/* what it does not reach any more is searched anew */
	if (ret || (double)h->track.outside * (double)first.track.events <=
			   (double)first.track.outside * (double)h->track.events)
		return ret;
	s->k = old;
	return follow_again(s, h, first.low, first.high, SIZE_MAX);
}

/* Later in the guest is later in the host, and most of what is there could be checked. */
static bool fits_others(const struct problem *p, const struct segments *all, const struct track *t)
{
	const struct slice *first = &p->slices[t->segment.first];
	const struct slice *last = &p->slices[t->segment.last - 1];

	if (!all->n)
		return true;
	if (t->events < slice_events(p, t->segment.t0, t->segment.t1) / 2)
		return false;
	for (size_t i = 0; i < all->n; i++) {
		const struct segment *o = &all->v[i];
		const struct slice *a = &p->slices[o->first], *b = &p->slices[o->last - 1];

		if (o->last <= t->segment.first
			    ? first->mid + (uint64_t)slice_middle(first) < b->mid + (uint64_t)slice_middle(b)
			    : last->mid + (uint64_t)slice_middle(last) > a->mid + (uint64_t)slice_middle(a))
			return false;
	}
	return true;
}

int search_segments(struct problem *p, struct segments *all, size_t from, size_t to)
{
	size_t n = p->in->n_cpus;
	struct search *s;
	struct hit *h;
	struct segment segment;
	int ret;

	if (to - from < 1 || all->n == SEARCHES_MAX || all->searches++ >= SEARCHES_MAX)
		return 0;
	s = calloc(1, sizeof(*s) + (CANDIDATES + 3) * n * sizeof(s->maps[0]));
	if (!s)
		return -ENOMEM;
	s->p = p;
	s->from = from;
	s->to = to;
	s->before = s->maps + CANDIDATES * n;
	s->best = s->before + n;
	h = &s->hits[0];
	ret = search_places(s, all);
	if (ret != 1)
		goto out;
	all->mapped = true;
	ret = follow_again(s, h, h->low, h->high, SIZE_MAX) ?: begin_anew(s, h);
	if (ret || !fits_others(p, all, &h->track))
		goto out;
	segment = h->track.segment;
	all->v[all->n++] = segment;
	ret = segment.first - from < 2 ? 0 : search_segments(p, all, from, segment.first);
	if (ret)
		goto out;
	ret = to - segment.last < 2 ? 0 : search_segments(p, all, segment.last, to);
out:
	free(s);
	return ret;
}
