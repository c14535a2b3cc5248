// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * One piece without a jump. The slices' bands, each spread by what the clocks'
 * rates can differ, leave a corridor; a line with few knots stays inside it.
 * Along that line the rates differ by far less, so the slices are swept again,
 * and the corridor narrows.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sync/fit.h"
#include "util/array.h"

/* Documentation/clock-sync.md has the reason for each number. */
#define PASSES	     5
#define SPLITS	     8
#define BEND	     5e-6  /* what a rate changes by unseen, when nothing is said */
#define LINK_MAX     50e9  /* ns between knots: stock multiplies in 64 bits */
#define DOUBT_PART   0.05  /* of a slice's events at most, and ... */
#define DOUBT_CHANCE 3	   /* ... one in so many of those that chance would leave outside */
#define ROOM_BEND    0.5   /* part of the corridor, on each side of its middle, to find bends ... */
#define ROOM_LAST    0.125 /* ... and for the result */

/* ---- slices of a piece --------------------------------------------------------------- */

static void add_node(struct fit *f, const struct slice *s)
{
	f->v[f->n++].s = *s;
}

static int fit_init(struct fit *f, struct problem *p, const struct piece *piece)
{
	*f = (struct fit){ .p = p, .bend = p->in->max_bend > 0 ? p->in->max_bend : BEND };
	f->v = calloc(piece->last - piece->first + 2, sizeof(*f->v));
	if (!f->v)
		return -ENOMEM;
	add_node(f, &(struct slice){ .t0 = piece->t0, .t1 = piece->t0, .mid = piece->t0 });
	for (size_t i = piece->first; i < piece->last; i++) {
		struct slice s = p->slices[i];
		bool cut = s.t0 < piece->t0 || s.t1 > piece->t1;

		s.valid = s.valid && !cut && i >= piece->seen && i < piece->unseen;
		s.t0 = s.t0 < piece->t0 ? piece->t0 : s.t0;
		s.t1 = s.t1 > piece->t1 ? piece->t1 : s.t1;
		if (s.t0 >= s.t1)
			continue;
		if (cut)
			s.mid = s.t0 + (s.t1 - s.t0) / 2;
		if (s.mid <= f->v[f->n - 1].s.mid)
			continue;
		f->base = f->n == 1 || s.valid ? s.low : f->base;
		add_node(f, &s);
	}
	if (piece->t1 - 1 > f->v[f->n - 1].s.mid)
		add_node(f, &(struct slice){ .t0 = piece->t1, .t1 = piece->t1, .mid = piece->t1 - 1 });
	for (size_t i = 0; i < f->n; i++) {
		f->v[i].s.rate = p->rate;
		f->v[i].s.offset = f->base;
		f->v[i].s.slope = 0;
	}
	return 0;
}

/* ---- the corridor ---------------------------------------------------------------------- */

/* Narrows a node by what its neighbour allows. */
static void narrow_node(struct fit *f, struct node *a, const struct node *b)
{
	double play = f->p->rate * fabs(fit_dist(a, b));
	double low = b->low - play, high = b->high + play;

	if (low > a->high || high < a->low) {
		f->conflicts++;
		return;
	}
	a->low = low > a->low ? low : a->low;
	a->high = high < a->high ? high : a->high;
}

static void make_corridor(struct fit *f, bool hard)
{
	f->conflicts = 0;
	for (size_t i = 0; i < f->n; i++) {
		struct node *v = &f->v[i];

		v->low = v->s.valid ? (double)((hard ? v->s.low0 : v->s.low) - f->base) : -FIT_FAR;
		v->high = v->s.valid ? (double)((hard ? v->s.high0 : v->s.high) - f->base) : FIT_FAR;
	}
	for (size_t i = 1; i < f->n; i++)
		narrow_node(f, &f->v[i], &f->v[i - 1]);
	for (size_t i = f->n - 1; i-- > 0;)
		narrow_node(f, &f->v[i], &f->v[i + 1]);
}

/* ---- the line ------------------------------------------------------------------------------ */

static void link_to(struct fit *f, size_t a, size_t b)
{
	double rise = f->v[b].y - f->v[a].y, run = fit_dist(&f->v[a], &f->v[b]);

	for (size_t i = a + 1; i < b; i++)
		f->v[i].y = f->v[a].y + rise * fit_dist(&f->v[a], &f->v[i]) / run;
	f->v[b].knot = true;
}

/* From knot `a` as far as one line goes. Returns the next knot. */
static size_t stab_one(struct fit *f, size_t a, double room)
{
	double least = -FIT_FAR, most = FIT_FAR;
	size_t i;

	for (i = a + 1; i < f->n; i++) {
		double run = fit_dist(&f->v[a], &f->v[i]), mid = (f->v[i].low + f->v[i].high) / 2;
		double half = (f->v[i].high - f->v[i].low) * room;
		double low = (mid - half - f->v[a].y) / run, high = (mid + half - f->v[a].y) / run;

		if (low > most || high < least || (run > LINK_MAX && i > a + 1))
			break;
		least = low > least ? low : least;
		most = high < most ? high : most;
	}
	i--;
	f->v[i].y = f->v[a].y + (least + most) / 2 * fit_dist(&f->v[a], &f->v[i]);
	link_to(f, a, i);
	return i;
}

static void stab_all(struct fit *f, double room)
{
	for (size_t i = 0; i < f->n; i++)
		f->v[i].knot = false;
	f->v[0].knot = true;
	f->v[0].y = (f->v[0].low + f->v[0].high) / 2;
	for (size_t i = 0; i + 1 < f->n;)
		i = stab_one(f, i, room);
}

/* Corridor, bends, and all slices seen from each. */
static void narrow_all(struct fit *f, bool hard)
{
	size_t before;

	make_corridor(f, hard);
	stab_all(f, ROOM_BEND);
	fit_find_bends(f);
	before = f->conflicts;
	fit_see_all(f);
	if (f->conflicts > before)
		f->bend = fmin(f->bend * 4, f->p->rate);
}

static void set_lines(struct fit *f)
{
	for (size_t i = 0; i < f->n; i++) {
		f->v[i].s.offset = f->base + llround((f->v[i].low + f->v[i].high) / 2);
		f->v[i].s.slope = f->v[i].slope;
	}
}

static int sweep_again(struct fit *f)
{
	for (size_t i = 0; i < f->n; i++) {
		struct node *v = &f->v[i];
		double width = v->high - v->low, room = width / 8 + 2000;
		int64_t low = f->base + (int64_t)floor(v->low - room);
		int64_t high = f->base + (int64_t)ceil(v->high + room);
		int ret;

		if (v->s.t0 == v->s.t1)
			continue;
		v->s.valid = false;
		if (width > UINT32_MAX / 2)
			continue;
		ret = sweep_slice(f->p, &v->s, low, high);
		if (ret)
			return ret;
	}
	return 0;
}

static bool all_inside(const struct fit *f)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->v[i].s.t0 < f->v[i].s.t1 && f->v[i].s.best < f->v[i].s.n)
			return false;
	return true;
}

static bool any_valid(const struct fit *f)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->v[i].s.valid)
			return true;
	return false;
}

static int fit_passes(struct fit *f)
{
	for (int pass = 0; pass < PASSES && any_valid(f); pass++) {
		int ret;

		narrow_all(f, false);
		if (pass > 1 && !f->conflicts)
			break;
		set_lines(f);
		ret = sweep_again(f);
		if (ret)
			return ret;
	}
	return 0;
}

/* The corridor by all events where none is outside, else by the tau rule. */
static void narrow_last(struct fit *f)
{
	f->hard = all_inside(f);
	narrow_all(f, f->hard);
	if (!f->hard || !f->conflicts)
		return;
	f->hard = false;
	narrow_all(f, false);
}

/* ---- doubt --------------------------------------------------------------------------- */

static int compare_doubles(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

/*
 * A quarter of the slices have no larger part of their events outside, and what is
 * usual lies above that by two thirds of a deviation: windows are lost with all that is
 * in them. `v`: room for all.
 */
static double usual_part(const struct fit *f, double *v)
{
	double events = 0, part;
	size_t n = 0;

	for (size_t i = 0; i < f->n; i++)
		if (f->v[i].s.valid && f->v[i].s.n) {
			v[n++] = (double)(f->v[i].s.n - f->v[i].s.best) / f->v[i].s.n;
			events += f->v[i].s.n;
		}
	if (!n)
		return 0;
	qsort(v, n, sizeof(*v), compare_doubles);
	part = v[n / 4];
	return part + 0.67 * sqrt(2 * f->p->burst * part * (double)n / events);
}

/* As many more outside than usual are no jump: a small part of what chance would leave there. */
static double doubt_part(const struct problem *p)
{
	double n, outside = events_by_chance(p, p->map, 0, UINT64_MAX, &n);

	return n > 0 ? fmin(DOUBT_PART, outside / n / DOUBT_CHANCE) : DOUBT_PART;
}

/*
 * A stretch with far more events outside than the piece has elsewhere was
 * followed by chance: a jump that was not seen, say. What is too much adds up.
 */
static int mark_doubtful(struct fit *f)
{
	double *v = calloc(f->n, sizeof(*v)), part, sum = 0, usual = 0;
	double more = doubt_part(f->p);
	size_t since = 0;

	if (!v)
		return -ENOMEM;
	part = fmin(usual_part(f, v), f->p->least);
	free(v);
	for (size_t i = 0; i < f->n; i++) {
		double expect = part * f->v[i].s.n;

		if (!f->v[i].s.valid)
			continue;
		sum += (double)(f->v[i].s.n - f->v[i].s.best) - 1.3 * expect - more * f->v[i].s.n;
		usual += expect;
		if (sum <= 0) {
			sum = usual = 0;
			since = i + 1;
		} else if (sum > 8 + 2 * f->p->burst + 6 * sqrt(f->p->burst * usual)) {
			for (size_t k = since ? since - 1 : 0; k <= i + 1 && k < f->n; k++)
				f->v[k].unsure = true;
		}
	}
	return 0;
}

/* ---- the result ----------------------------------------------------------------------- */

/* How far the truth can leave the corridor between two nodes: it is convex but for bends. */
static double bulge(const struct fit *f, size_t i)
{
	return (f->bend + f->v[i].near + f->v[i - 1].near) * fit_dist(&f->v[i - 1], &f->v[i]) / 2;
}

/* Half width of the truth about the line, anywhere between the knots a and b; *unsure: there is doubt. */
static double link_bound(const struct fit *f, size_t a, size_t b, bool *unsure)
{
	double bound = 0;

	for (size_t i = a; i <= b; i++) {
		double below = f->v[i].y - f->v[i].low, above = f->v[i].high - f->v[i].y;
		double play = i > a ? bulge(f, i) : 0;

		*unsure = *unsure || f->v[i].unsure;
		bound = fmax(bound, fmax(below, above) + play);
	}
	return bound + 1; /* stock rounds */
}

/* More knots on long lines: the bound differs along them. */
static void split_links(struct fit *f)
{
	for (size_t a = 0, b; a + 1 < f->n; a = b) {
		size_t step;

		b = fit_next_knot(f, a);
		step = (b - a) / SPLITS + 1;
		for (size_t i = a + step; i < b; i += step)
			f->v[i].knot = true;
	}
}

static int put_knots(const struct fit *f, struct sync_result *r)
{
	struct sync_knot *v = realloc(r->knots, (r->n_knots + f->n + 2) * sizeof(*v));
	double before = 0;
	bool unsure_before = false;

	if (!v)
		return -ENOMEM;
	r->knots = v;
	for (size_t a = 0, b; a < f->n; a = b) {
		bool unsure = false;
		double after = 0, bound;

		b = fit_next_knot(f, a);
		if (b < f->n)
			after = link_bound(f, a, b, &unsure);
		bound = ceil(fmax(before, after));
		v[r->n_knots++] = (struct sync_knot){
			.time = f->v[a].s.mid,
			.offset = f->base + llround(f->v[a].y),
			.bound = bound < FIT_FAR / 2 ? (uint64_t)bound : UINT64_MAX,
			.class = bound >= FIT_FAR / 2 || unsure || unsure_before ? SYNC_NONE
				 : f->hard					 ? SYNC_HARD
										 : SYNC_SOFT,
		};
		before = after;
		unsure_before = unsure;
	}
	return 0;
}

/* A knot at `time`, as the line from knot `near` to knot `far` goes on, but without a bound. */
static void put_unsure(struct sync_result *r, size_t at, uint64_t time, size_t near, size_t far)
{
	const struct sync_knot *a = &r->knots[near], *b = &r->knots[far];
	double slope = (double)(b->offset - a->offset) / (double)(int64_t)(b->time - a->time);
	struct sync_knot k = { .time = time, .bound = UINT64_MAX };

	k.offset = a->offset + llround(slope * (double)(int64_t)(time - a->time));
	memmove(&r->knots[at + 1], &r->knots[at], (r->n_knots - at) * sizeof(k));
	r->knots[at] = k;
	r->n_knots++;
}

/* Around a jump some events could lie on either side of it. */
static void put_ends(const struct piece *piece, struct sync_result *r, size_t first)
{
	size_t last = r->n_knots - 1;

	if (last <= first)
		return;
	if (piece->to > piece->t1)
		put_unsure(r, last + 1, piece->to - 1, last, last - 1);
	if (piece->from < piece->t0)
		put_unsure(r, first, piece->from, first, first + 1);
}

static int put_bands(const struct fit *f, struct sync_result *r)
{
	struct sync_band *v = realloc(r->bands, (r->n_bands + f->n) * sizeof(*v));

	if (!v)
		return -ENOMEM;
	r->bands = v;
	for (size_t i = 0; i < f->n; i++)
		if (f->v[i].high - f->v[i].low < FIT_FAR / 2)
			v[r->n_bands++] =
				(struct sync_band){ f->v[i].s.mid, f->base + (int64_t)floor(f->v[i].low),
						    f->base + (int64_t)ceil(f->v[i].high) };
	return 0;
}

int drift_fit(struct problem *p, const struct piece *piece, struct sync_result *out)
{
	struct fit f;
	size_t first = out->n_knots;
	int ret = fit_init(&f, p, piece);

	if (ret || f.n < 2)
		goto out;
	ret = fit_passes(&f);
	if (ret || !any_valid(&f))
		goto out;
	narrow_last(&f);
	stab_all(&f, ROOM_LAST);
	split_links(&f);
	ret = mark_doubtful(&f);
	if (ret)
		goto out;
	if (first)
		ret = array_push(&out->cuts, &out->n_cuts, &first, sizeof(first));
	if (ret)
		goto out;
	ret = put_knots(&f, out);
	if (ret)
		goto out;
	put_ends(piece, out, first);
	ret = put_bands(&f, out);
out:
	free(f.v);
	return ret;
}
