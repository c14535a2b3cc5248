// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sync/math.h"
#include "sync/problem.h"

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
#define AROUND	      2	       /* slices on each side that tell how well a track fits there */

/* ---- finding where to begin -------------------------------------------------------------- */

struct hit {
	int64_t low, high; /* at slice k */
	struct piece piece;
	uint64_t events, outside;
	double rank;
	int *map;
};

struct search {
	struct problem *p;
	size_t from, to, k; /* slices; k is where it begins */
	bool mapped;
	double luck; /* of the best hit: its events outside against those that chance would leave */
	struct candidate cand[CANDIDATES];
	struct hit hits[CANDIDATES];
	int n;
};

/* Slices about the middle of [from, to) with events enough. */
static void chunk(const struct search *s, uint64_t *t0, uint64_t *t1)
{
	const struct slice *v = s->p->slices;
	size_t a = s->k, b = s->k + 1;

	for (;;) {
		uint64_t len = v[b - 1].t1 - v[a].t0;

		if (len >= CHUNK_MAX || (a == s->from && b == s->to))
			break;
		if (len >= CHUNK_NS && slice_events(s->p, v[a].t0, v[b - 1].t1) >= CHUNK_EVENTS)
			break;
		a -= a > s->from;
		b += b < s->to;
	}
	*t0 = v[a].t0;
	*t1 = v[b - 1].t1;
}

static int look(struct search *s, struct hit *h, int64_t low, int64_t high, size_t reach)
{
	struct problem *p = s->p;
	int ret = drift_track(p, s->from, s->to, s->k, low, high, reach, &h->piece, &h->events, &h->outside);

	h->low = p->slices[s->k].low;
	h->high = p->slices[s->k].high;
	h->rank = (double)h->events - (1.0 + OUTSIDE_COSTS) * (double)h->outside;
	return ret;
}

/*
 * Near one candidate: what could be must end inside of what was looked at, or
 * there is more of it; a place without an end tells nothing.
 */
static int look_near(struct search *s, struct hit *h, int64_t offset, int64_t slack)
{
	int64_t most = (int64_t)((s->p->host1 - s->p->host0) / SLACK_PART);
	int ret = 0;

	most = most > SLACK_MAX ? SLACK_MAX : most;
	for (; slack <= most; slack *= 2) {
		ret = look(s, h, offset - slack, offset + slack, REACH_FIRST);
		if (ret || (h->low > offset - slack && h->high < offset + slack))
			return ret;
	}
	h->events = h->outside = 0;
	h->rank = 0;
	return 0;
}

static int first_look(struct search *s, uint64_t mid)
{
	struct problem *p = s->p;
	size_t bytes = p->in->n_cpus * sizeof(int);
	uint64_t away = (uint64_t)(p->rate * num_abs((double)(int64_t)(p->slices[s->k].mid - mid)));
	int ret = 0;

	for (int i = 0; i < s->n && !ret; i++) {
		int64_t slack = (int64_t)(s->cand[i].slack + away), at = s->cand[i].offset;
		struct hit *h = &s->hits[i];
		uint64_t covered;

		h->map = malloc(bytes);
		if (!h->map)
			return -ENOMEM;
		if (!s->mapped)
			ret = map_solve(p, s->k, at - slack, at + slack, p->map, &covered);
		memcpy(h->map, p->map, bytes);
		if (!ret)
			ret = look_near(s, h, at, slack);
	}
	return ret;
}

static int by_rank(const void *a, const void *b)
{
	const struct hit *x = a, *y = b;

	return x->rank > y->rank ? -1 : x->rank < y->rank;
}

/* Looks again at the best n, as far as `reach`, and sorts them. */
static int look_again(struct search *s, int n, size_t reach)
{
	struct problem *p = s->p;
	int ret = 0;

	n = n < s->n ? n : s->n;
	for (int i = 0; i < n && !ret; i++) {
		struct hit *h = &s->hits[i];

		if (!h->events) /* it told nothing */
			continue;
		memcpy(p->map, h->map, p->in->n_cpus * sizeof(int));
		ret = look(s, h, h->low - 1000, h->high + 1000, reach);
	}
	qsort(s->hits, (size_t)n, sizeof(*s->hits), by_rank);
	return ret;
}

static int close_look(struct search *s)
{
	int ret;

	qsort(s->hits, (size_t)s->n, sizeof(*s->hits), by_rank);
	ret = look_again(s, SECOND, REACH_SECOND);
	return ret ? ret : look_again(s, CLOSE, REACH_CLOSE);
}

static bool same_place(const struct hit *a, const struct hit *b)
{
	return a->low <= b->high && b->low <= a->high;
}

/* The part of the events that would be outside if they had nothing to do with the windows. */
static double part_by_chance(const struct search *s, const struct hit *h)
{
	const struct problem *p = s->p;
	double n = 0, outside = 0;

	for (size_t i = 0; i < p->in->n_cpus; i++) {
		const struct sync_cpu *c = &p->in->cpus[i];
		size_t events = cpu_lower(c, h->piece.t1) - cpu_lower(c, h->piece.t0);

		if (h->map[i] < 0)
			continue;
		n += (double)events;
		outside += (double)events * (1 - p->threads[h->map[i]].duty);
	}
	return n > 0 ? outside / n : 0;
}

/* So few outside is no chance. */
static bool beats_chance(const struct search *s, const struct hit *h)
{
	double chance = part_by_chance(s, h) * (double)h->events;

	if ((double)h->outside < OUTSIDE_CLEAN * (double)h->events)
		return true;
	return chance - (double)h->outside > CHANCE_SIGMAS * num_sqrt(chance * s->p->burst);
}

/* Is the best one good, and clearly better than any other place? */
static bool is_clear(const struct search *s)
{
	const struct hit *best = &s->hits[0];
	double margin = 8 + 6 * num_sqrt((double)best->outside * s->p->burst);
	double part = (double)best->outside / (double)(best->events + 1);

	if (!s->n || best->events < EVENTS_MIN || part > OUTSIDE_MAX || !beats_chance(s, best))
		return false;
	/* so many outside can be chance, unless anywhere else there are far more */
	if (part > OUTSIDE_USUAL)
		margin += (double)best->outside / 2;
	for (int i = 1; i < s->n && i < CLOSE; i++)
		if (!same_place(best, &s->hits[i]))
			return best->rank - s->hits[i].rank >= (1 + OUTSIDE_COSTS) * margin;
	return true;
}

/* 1: found, with the map in p->map; 0: not; -errno. *rank tells how well. */
static int search_once(struct search *s, double *rank)
{
	uint64_t t0, t1;
	int ret;

	s->luck = 1;
	chunk(s, &t0, &t1);
	s->n = find_candidates(s->p, t0, t1, s->cand, CANDIDATES);
	ret = s->n < 0 ? s->n : first_look(s, t0 + (t1 - t0) / 2);
	if (!ret)
		ret = close_look(s);
	if (!ret && is_clear(s)) {
		memcpy(s->p->map, s->hits[0].map, s->p->in->n_cpus * sizeof(int));
		*rank = s->hits[0].rank;
		s->luck = (double)s->hits[0].outside /
			  (part_by_chance(s, &s->hits[0]) * (double)s->hits[0].events + 1);
		s->p->part = (double)s->hits[0].outside / (double)s->hits[0].events;
		ret = 1;
	}
	for (int i = 0; i < s->n; i++) {
		free(s->hits[i].map);
		s->hits[i].map = NULL;
	}
	return ret;
}

/* ---- pieces --------------------------------------------------------------------------------- */

/* With the map that is given, and where that does badly without it. */
static int search(struct problem *p, struct pieces *all, struct search *s)
{
	double rank = 0, other = 0;
	struct hit first;
	int found = 0, ret;
	int *map;

	s->mapped = all->mapped;
	if (s->mapped)
		found = search_once(s, &rank);
	if (found < 0 || all->n || p->n_threads < 2 ||
	    (found && (double)s->hits[0].outside < OUTSIDE_USUAL * (double)s->hits[0].events))
		return found;
	first = s->hits[0];
	map = malloc(p->in->n_cpus * sizeof(*map));
	if (!map)
		return -ENOMEM;
	memcpy(map, p->map, p->in->n_cpus * sizeof(*map));
	map_unknown(p);
	s->mapped = false;
	ret = search_once(s, &other);
	if (ret == 1 && (!found || other > rank * 1.02 + 50)) {
		found = 1;
	} else {
		memcpy(p->map, map, p->in->n_cpus * sizeof(*map));
		s->hits[0] = first;
	}
	free(map);
	return ret < 0 ? ret : found;
}

/* The best of several places to begin at; the first that lies well below chance will do. */
static int search_places(struct problem *p, struct pieces *all, struct search *s, size_t from, size_t to)
{
	static const unsigned int eighths[PLACES] = { 4, 2, 6, 1, 7 };
	size_t bytes = p->in->n_cpus * sizeof(*p->map);
	struct search *best = calloc(1, sizeof(*best));
	int *map = malloc(bytes), *before = malloc(bytes);
	int ret = 0, found = 0;

	if (!best || !map || !before) {
		ret = -ENOMEM;
		goto out;
	}
	memcpy(before, p->map, bytes);
	for (int i = 0; i < PLACES && ret >= 0; i++) {
		size_t k = from + (to - from) * eighths[i] / 8;

		if (i && (to - from < 6 || all->searches++ >= SEARCHES_MAX))
			break;
		*s = (struct search){ .p = p, .from = from, .to = to, .k = k };
		memcpy(p->map, before, bytes);
		ret = search(p, all, s);
		if (ret == 1 && (!found || s->luck < best->luck)) {
			found = 1;
			*best = *s;
			memcpy(map, p->map, bytes);
		}
		if (found && best->luck * CHANCE_PART < 1)
			break;
	}
	if (found) {
		*s = *best;
		memcpy(p->map, map, bytes);
		p->part = (double)s->hits[0].outside / (double)s->hits[0].events;
	} else {
		memcpy(p->map, before, bytes);
	}
out:
	free(best);
	free(map);
	free(before);
	return ret < 0 ? ret : found;
}

/* Events outside and all, of slice k and those beside it. */
static double part_around(const struct problem *p, const struct piece *piece, size_t k, double *n)
{
	size_t a = k - piece->first > AROUND ? k - AROUND : piece->first;
	size_t b = piece->last - k > AROUND ? k + AROUND + 1 : piece->last;
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
	double n, other, here = part_around(p, &h->piece, s->k, &n), least = here;
	size_t best = s->k, old = s->k;
	struct hit first = *h;
	int ret;

	for (size_t i = h->piece.first; i < h->piece.last; i++) {
		double part = part_around(p, &h->piece, i, &other);

		if (other >= EVENTS_MIN && p->slices[i].told && part < least) {
			least = part;
			best = i;
		}
	}
	if ((here - 1.3 * least) * n < 8 + 6 * num_sqrt(p->burst * least * n))
		return 0;
	s->k = best;
	ret = look(s, h, p->slices[best].low - 1000, p->slices[best].high + 1000, SIZE_MAX);
	/* what it does not reach any more is searched anew */
	if (!ret && (double)h->outside * (double)first.events > (double)first.outside * (double)h->events) {
		s->k = old;
		ret = look(s, h, first.low - 1000, first.high + 1000, SIZE_MAX);
	}
	return ret;
}

/* Later in the guest is later in the host, and most of what is there could be checked. */
static bool fits_others(const struct problem *p, const struct pieces *all, const struct hit *h)
{
	const struct slice *first = &p->slices[h->piece.first];
	const struct slice *last = &p->slices[h->piece.last - 1];

	if (!all->n)
		return true;
	if (h->events < slice_events(p, h->piece.t0, h->piece.t1) / 2)
		return false;
	for (size_t i = 0; i < all->n; i++) {
		const struct piece *o = &all->v[i];
		const struct slice *a = &p->slices[o->first], *b = &p->slices[o->last - 1];

		if (o->last <= h->piece.first
			    ? first->mid + (uint64_t)slice_middle(first) < b->mid + (uint64_t)slice_middle(b)
			    : last->mid + (uint64_t)slice_middle(last) > a->mid + (uint64_t)slice_middle(a))
			return false;
	}
	return true;
}

int search_pieces(struct problem *p, struct pieces *all, size_t from, size_t to)
{
	struct search *s;
	struct piece *piece;
	struct hit hit;
	int ret;

	if (to - from < 1 || all->n == SEARCHES_MAX || all->searches++ >= SEARCHES_MAX)
		return 0;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	ret = search_places(p, all, s, from, to);
	piece = &all->v[all->n];
	if (ret == 1) {
		all->mapped = true;
		ret = look(s, &s->hits[0], s->hits[0].low - 1000, s->hits[0].high + 1000, SIZE_MAX);
		if (!ret)
			ret = begin_anew(s, &s->hits[0]);
		hit = s->hits[0];
		if (!ret && !fits_others(p, all, &hit))
			goto out;
		*piece = hit.piece;
		all->n++;
		if (!ret && hit.piece.first - from >= 2)
			ret = search_pieces(p, all, from, hit.piece.first);
		if (!ret && to - hit.piece.last >= 2)
			ret = search_pieces(p, all, hit.piece.last, to);
	}
out:
	free(s);
	return ret;
}
