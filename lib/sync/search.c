// SPDX-License-Identifier: LGPL-2.1-or-later
/* A cold start: the likeliest offsets are followed, and the best one is taken where it is clear. */
#include <complex.h>

#include "sync/solver.h"

#define BITS_MAX  20
#define BIN_MIN	  20000	 /* ns */
#define BIN_WIDE  100000 /* ns; beyond it only for a long capture */
#define BIN_PART  8	 /* of a window */
#define CPUS_MAX  4	 /* those with most events say enough */
#define APART_MIN 200000 /* ns between candidates */

typedef double complex cplx;

struct candidate {
	int64_t offset; /* give or take slack, in the middle of [t0, t1) */
	uint64_t slack;
};

/*
 * Counts, coarsely, the events that would fall into windows at each offset at all: the correlation of the
 * events' histogram with the windows' share of each bin, by two Fourier transforms.
 */
struct transform {
	size_t n;
	cplx *root; /* n / 2 */
	cplx *z, *sum;
	uint64_t bin; /* ns */
	uint64_t t0, t1;
};

static void fourier(const struct transform *f, cplx *z)
{
	for (size_t i = 1, j = 0; i < f->n; i++) {
		size_t bit = f->n >> 1;

		for (; j & bit; bit >>= 1)
			j ^= bit;
		j ^= bit;
		if (i < j) {
			cplx t = z[i];

			z[i] = z[j];
			z[j] = t;
		}
	}
	for (size_t len = 2; len <= f->n; len <<= 1) {
		size_t half = len / 2, step = f->n / len;

		for (size_t i = 0; i < f->n; i += len)
			for (size_t k = 0; k < half; k++) {
				double a = creal(z[i + k + half]), b = cimag(z[i + k + half]);
				double c = creal(f->root[k * step]), d = cimag(f->root[k * step]);
				cplx t = a * c - b * d + (a * d + b * c) * I, u = z[i + k];

				z[i + k] = u + t;
				z[i + k + half] = u - t;
			}
	}
}

/* Events into the real part. */
static void add_events(struct transform *f, const struct sync_cpu *c)
{
	size_t end = cpu_lower(c, f->t1);

	for (size_t i = cpu_lower(c, f->t0); i < end; i++)
		f->z[(c->times[i] - f->t0) / f->bin] += 1;
}

/* Each bin's part that windows cover into the imaginary one. */
static void add_windows(struct transform *f, const struct problem *p, const struct thread *t)
{
	for (size_t i = 0; i < t->n; i++) {
		uint64_t a = t->v[i].a, b = t->v[i].b;

		if (t->v[i].unknown || b <= p->host0 || a >= p->host1)
			continue;
		a = a < p->host0 ? 0 : a - p->host0;
		b = (b > p->host1 ? p->host1 : b) - p->host0;
		for (uint64_t k = a / f->bin; k * f->bin < b; k++) {
			uint64_t from = k * f->bin > a ? k * f->bin : a;
			uint64_t to = (k + 1) * f->bin < b ? (k + 1) * f->bin : b;

			f->z[k] += I * ((double)(to - from) / (double)f->bin);
		}
	}
}

/* With a map: the CPUs with most events, each on its thread. Without: all on all. */
static void correlate(struct transform *f, const struct problem *p, bool mapped)
{
	bool done[4096] = { 0 };

	for (int round = 0; round < (mapped ? CPUS_MAX : 1); round++) {
		size_t best = SIZE_MAX, most = 0;

		for (size_t i = 0; i < p->in->n_cpus && i < ARRAY_SIZE(done) && mapped; i++) {
			const struct sync_cpu *c = &p->in->cpus[i];
			size_t n = cpu_lower(c, f->t1) - cpu_lower(c, f->t0);

			if (!done[i] && p->map[i] >= 0 && n > most) {
				most = n;
				best = i;
			}
		}
		if (mapped && best == SIZE_MAX)
			return;
		memset(f->z, 0, f->n * sizeof(cplx));
		for (size_t i = 0; i < p->in->n_cpus; i++)
			if (!mapped || i == best)
				add_events(f, &p->in->cpus[i]);
		for (size_t i = 0; i < p->n_threads; i++)
			if (!mapped || i == (size_t)p->map[best])
				add_windows(f, p, &p->threads[i]);
		/* takes both spectra out of z and adds conj(E) * W to the sum */
		fourier(f, f->z);
		for (size_t i = 0; i < f->n; i++) {
			cplx x = f->z[i], y = conj(f->z[-i & (f->n - 1)]);

			f->sum[i] += conj((x + y) * 0.5) * ((x - y) * (-0.5 * I));
		}
		if (mapped)
			done[best] = true;
	}
}

/* Guest time t0 would be at host0 + lag. */
static int64_t lag_offset(const struct transform *f, const struct problem *p, size_t i)
{
	int64_t lag = i > f->n - (f->t1 - f->t0) / f->bin - 1 ? (int64_t)i - (int64_t)f->n : (int64_t)i;

	return (int64_t)(p->host0 - f->t0) + lag * (int64_t)f->bin;
}

#define BLOCK 1024 /* of lags */

static size_t highest_of_block(const struct transform *f, size_t block)
{
	size_t best = block * BLOCK;

	for (size_t i = best + 1; i < (block + 1) * BLOCK; i++)
		if (creal(f->sum[i]) > creal(f->sum[best]))
			best = i;
	return best;
}

/* The highest places, each some way from those before; top: room for each block's. */
static int take_peaks(const struct transform *f, const struct problem *p, size_t *top, struct candidate *v,
		      size_t max)
{
	size_t apart = APART_MIN / f->bin + 2, found = 0, blocks = f->n / BLOCK;
	uint64_t slack = (apart + 2) * f->bin + (uint64_t)(p->rate * (double)(f->t1 - f->t0) / 2);

	for (size_t i = 0; i < blocks; i++)
		top[i] = highest_of_block(f, i);
	for (; found < max; found++) {
		size_t best = top[0];

		for (size_t i = 1; i < blocks; i++)
			if (creal(f->sum[top[i]]) > creal(f->sum[best]))
				best = top[i];
		if (creal(f->sum[best]) <= 0)
			break;
		v[found] = (struct candidate){ lag_offset(f, p, best), slack };
		for (size_t k = 0; k <= 2 * apart; k++)
			f->sum[(best + k - apart) & (f->n - 1)] = -1;
		for (size_t k = 0; k <= 2 * apart + BLOCK; k += BLOCK) {
			size_t block = ((best + k - apart) & (f->n - 1)) / BLOCK;

			top[block] = highest_of_block(f, block);
		}
	}
	return (int)found;
}

/* ns of a bin: a part of a window's mean length. A bin as fine as the shortest gains nothing where all are
 * long. */
static uint64_t bin_of_windows(const struct problem *p)
{
	uint64_t sum = 0, n = 0, bin;

	for (size_t i = 0; i < p->n_threads; i++)
		for (size_t k = 0; k < p->threads[i].n; k++) {
			const struct span *w = &p->threads[i].v[k];

			sum += w->unknown ? 0 : w->b - w->a;
			n += !w->unknown;
		}
	bin = n ? sum / n / BIN_PART : 0;
	return bin < BIN_MIN ? BIN_MIN : bin > BIN_WIDE ? BIN_WIDE : bin;
}

/* Likeliest offsets of the guest's [t0, t1), the best first; their number or -ENOMEM. */
static int find_candidates(struct problem *p, uint64_t t0, uint64_t t1, struct candidate *v, size_t max)
{
	uint64_t span = p->host1 - p->host0 + (t1 - t0);
	const struct sync_prior *prior = &p->in->prior;
	struct transform f = { .n = BLOCK, .t0 = t0, .t1 = t1 };
	size_t *top;
	int ret = -ENOMEM;

	f.bin = bin_of_windows(p);
	if (f.bin < span / ((1u << BITS_MAX) - 4) + 1)
		f.bin = span / ((1u << BITS_MAX) - 4) + 1;
	while (f.n < span / f.bin + 2)
		f.n *= 2;
	f.root = malloc(f.n / 2 * sizeof(cplx));
	f.z = malloc(f.n * sizeof(cplx));
	f.sum = calloc(f.n, sizeof(cplx));
	top = malloc(f.n / BLOCK * sizeof(*top));
	if (!f.root || !f.z || !f.sum || !top)
		goto out;
	for (size_t i = 0; i < f.n / 2; i++)
		f.root[i] = cexp(-2 * M_PI * I * (double)i / (double)f.n);
	correlate(&f, p, map_any(p));
	/* the inverse, up to the order: conj in and out; the result is real */
	for (size_t i = 0; i < f.n; i++)
		f.sum[i] = conj(f.sum[i]);
	fourier(&f, f.sum);
	/* a prior leaves only some of the lags */
	for (size_t i = 0; i < f.n && prior->valid; i++) {
		int64_t d = lag_offset(&f, p, i) - prior->offset;
		double far = (double)prior->bound + 2.0 * (double)f.bin +
			     p->rate * fabs((double)(int64_t)(t0 - prior->time));

		if (fabs((double)d) > far)
			f.sum[i] = -1;
	}
	ret = take_peaks(&f, p, top, v, max);
out:
	free(f.root);
	free(f.z);
	free(f.sum);
	free(top);
	return ret;
}

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
#define SLACK_PART    64       /* of the host's capture at most: outside it there are no windows */
#define PLACES	      5	       /* to begin at, when the first has a jump in it, say */
#define CHANCE_PART   3	       /* well below chance: one in so many of the events it leaves outside */
#define AROUND	      2	       /* slices on each side that show how well a track fits there */
#define ROOM	      1000     /* ns on each side of an offset that is looked at again */

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
	if (segment.first - from >= 2)
		ret = search_segments(p, all, from, segment.first);
	if (!ret && to - segment.last >= 2)
		ret = search_segments(p, all, segment.last, to);
out:
	free(s);
	return ret;
}
