// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sync/fit.h"
#include "sync/math.h"

/*
 * One piece without a jump. The slices' bands, each spread by what the clocks'
 * rates can differ, leave a corridor; a line with few knots stays inside it.
 * Along that line the rates differ by far less, so the slices are swept again,
 * and the corridor narrows.
 */

#define PASSES	     5
#define SPLITS	     8
#define BEND	     5e-6  /* what a rate changes by unseen, when nothing is said */
#define LINK_MAX     50e9  /* ns between knots: stock multiplies in 64 bits */
#define DOUBT_PART   0.05  /* of a slice's events at most, and ... */
#define DOUBT_CHANCE 3	   /* ... one in so many of those that chance would leave outside */
#define ROOM_BEND    0.5   /* part of the corridor, on each side of its middle, to find bends ... */
#define ROOM_LAST    0.125 /* ... and for the result */

/* ---- slices of a piece --------------------------------------------------------------- */

static int fit_init(struct fit *f, struct problem *p, const struct piece *piece)
{
	size_t room = piece->last - piece->first + 2;

	*f = (struct fit){ .p = p };
	f->s = calloc(room, sizeof(*f->s));
	f->low = calloc(room, sizeof(double));
	f->high = calloc(room, sizeof(double));
	f->y = calloc(room, sizeof(double));
	f->slope = calloc(room, sizeof(double));
	f->near = calloc(room, sizeof(double));
	f->bent = calloc(room, sizeof(double));
	f->knot = calloc(room, sizeof(bool));
	f->unsure = calloc(room, sizeof(bool));
	if (!f->s || !f->low || !f->high || !f->y || !f->slope || !f->near || !f->bent || !f->knot ||
	    !f->unsure)
		return -ENOMEM;
	f->bend = p->in->max_bend > 0 ? p->in->max_bend : BEND;
	f->s[f->n++] = (struct slice){ .t0 = piece->t0, .t1 = piece->t0, .mid = piece->t0 };
	for (size_t i = piece->first; i < piece->last; i++) {
		struct slice s = p->slices[i];
		bool cut = s.t0 < piece->t0 || s.t1 > piece->t1;

		if (i < piece->seen || i >= piece->unseen)
			s.told = false;
		s.t0 = s.t0 < piece->t0 ? piece->t0 : s.t0;
		s.t1 = s.t1 > piece->t1 ? piece->t1 : s.t1;
		if (s.t0 >= s.t1)
			continue;
		if (cut) {
			s.mid = s.t0 + (s.t1 - s.t0) / 2;
			s.told = false;
		}
		if (s.mid <= f->s[f->n - 1].mid)
			continue;
		f->base = f->n == 1 || s.told ? s.low : f->base;
		f->s[f->n++] = s;
	}
	if (piece->t1 - 1 > f->s[f->n - 1].mid)
		f->s[f->n++] = (struct slice){ .t0 = piece->t1, .t1 = piece->t1, .mid = piece->t1 - 1 };
	for (size_t i = 0; i < f->n; i++) {
		f->s[i].rate = p->rate;
		f->s[i].offset = f->base;
		f->s[i].slope = 0;
	}
	return 0;
}

static void fit_release(struct fit *f)
{
	free(f->s);
	free(f->low);
	free(f->high);
	free(f->y);
	free(f->slope);
	free(f->near);
	free(f->bent);
	free(f->knot);
	free(f->unsure);
}

/* ---- the corridor ---------------------------------------------------------------------- */

/* Narrows node i by what its neighbour j allows. */
static void narrow(struct fit *f, size_t i, size_t j)
{
	const struct slice *a = &f->s[i], *b = &f->s[j];
	double play = f->p->rate * num_abs(fit_dist(a, b));
	double low = f->low[j] - play, high = f->high[j] + play;

	if (low > f->high[i] || high < f->low[i]) {
		f->conflicts++;
		return;
	}
	f->low[i] = low > f->low[i] ? low : f->low[i];
	f->high[i] = high < f->high[i] ? high : f->high[i];
}

static void corridor(struct fit *f, bool hard)
{
	f->conflicts = 0;
	for (size_t i = 0; i < f->n; i++) {
		const struct slice *s = &f->s[i];

		f->low[i] = s->told ? (double)((hard ? s->low0 : s->low) - f->base) : -FIT_FAR;
		f->high[i] = s->told ? (double)((hard ? s->high0 : s->high) - f->base) : FIT_FAR;
	}
	for (size_t i = 1; i < f->n; i++)
		narrow(f, i, i - 1);
	for (size_t i = f->n - 1; i-- > 0;)
		narrow(f, i, i + 1);
}

/* ---- the line ------------------------------------------------------------------------------ */

static void link_to(struct fit *f, size_t a, size_t b)
{
	double rise = f->y[b] - f->y[a], run = fit_dist(&f->s[a], &f->s[b]);

	for (size_t i = a + 1; i < b; i++)
		f->y[i] = f->y[a] + rise * fit_dist(&f->s[a], &f->s[i]) / run;
	f->knot[b] = true;
}

/* From knot `a` as far as one line goes. Returns the next knot. */
static size_t stab_one(struct fit *f, size_t a, double room)
{
	double least = -FIT_FAR, most = FIT_FAR;
	size_t i;

	for (i = a + 1; i < f->n; i++) {
		double run = fit_dist(&f->s[a], &f->s[i]), mid = (f->low[i] + f->high[i]) / 2;
		double half = (f->high[i] - f->low[i]) * room;
		double low = (mid - half - f->y[a]) / run, high = (mid + half - f->y[a]) / run;

		if (low > most || high < least || (run > LINK_MAX && i > a + 1))
			break;
		least = low > least ? low : least;
		most = high < most ? high : most;
	}
	i--;
	f->y[i] = f->y[a] + (least + most) / 2 * fit_dist(&f->s[a], &f->s[i]);
	link_to(f, a, i);
	return i;
}

static void stab(struct fit *f, double room)
{
	memset(f->knot, 0, f->n * sizeof(*f->knot));
	f->knot[0] = true;
	f->y[0] = (f->low[0] + f->high[0]) / 2;
	for (size_t i = 0; i + 1 < f->n;)
		i = stab_one(f, i, room);
}

/* Corridor, bends, and all slices seen from each. */
static int narrow_all(struct fit *f, bool hard)
{
	size_t before;
	int ret;

	corridor(f, hard);
	stab(f, ROOM_BEND);
	fit_find_bends(f);
	before = f->conflicts;
	ret = fit_see_all(f);
	if (f->conflicts > before)
		f->bend = num_min(f->bend * 4, f->p->rate);
	return ret;
}

static void set_lines(struct fit *f)
{
	for (size_t i = 0; i < f->n; i++) {
		f->s[i].offset = f->base + num_round((f->low[i] + f->high[i]) / 2);
		f->s[i].slope = f->slope[i];
	}
}

static int sweep_again(struct fit *f)
{
	for (size_t i = 0; i < f->n; i++) {
		struct slice *s = &f->s[i];
		double width = f->high[i] - f->low[i], room = width / 8 + 2000;
		int64_t low = f->base + (int64_t)num_floor(f->low[i] - room);
		int64_t high = f->base + (int64_t)num_ceil(f->high[i] + room);
		int ret;

		if (s->t0 == s->t1)
			continue;
		s->told = false;
		if (width > UINT32_MAX / 2)
			continue;
		ret = sweep_slice(f->p, s, low, high);
		if (ret)
			return ret;
	}
	return 0;
}

static bool all_inside(const struct fit *f)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->s[i].t0 < f->s[i].t1 && f->s[i].best < f->s[i].n)
			return false;
	return true;
}

static bool has_told(const struct fit *f)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->s[i].told)
			return true;
	return false;
}

static int fit_passes(struct fit *f)
{
	int ret = 0;

	for (int pass = 0; pass < PASSES && !ret && has_told(f); pass++) {
		ret = narrow_all(f, false);
		if (ret || (pass > 1 && !f->conflicts))
			break;
		set_lines(f);
		ret = sweep_again(f);
	}
	return ret;
}

/* ---- what cannot be vouched for ---------------------------------------------------------- */

static int by_value(const void *a, const void *b)
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
		if (f->s[i].told && f->s[i].n) {
			v[n++] = (double)(f->s[i].n - f->s[i].best) / f->s[i].n;
			events += f->s[i].n;
		}
	if (!n)
		return 0;
	qsort(v, n, sizeof(*v), by_value);
	part = v[n / 4];
	return part + 0.67 * num_sqrt(2 * f->p->burst * part * (double)n / events);
}

/* As many more outside than usual are no jump: a small part of what chance would leave there. */
static double doubt_part(const struct problem *p)
{
	double n = 0, outside = 0;

	for (size_t i = 0; i < p->in->n_cpus; i++) {
		if (p->map[i] < 0)
			continue;
		n += (double)p->in->cpus[i].n;
		outside += (double)p->in->cpus[i].n * (1 - p->threads[p->map[i]].duty);
	}
	return n > 0 ? num_min(DOUBT_PART, outside / n / DOUBT_CHANCE) : DOUBT_PART;
}

/*
 * A stretch with far more events outside than the piece has elsewhere was
 * followed by chance: a jump that was not seen, say. What is too much adds up.
 */
static int doubt(struct fit *f)
{
	double *v = calloc(f->n, sizeof(*v)), part, sum = 0, usual = 0;
	double more = doubt_part(f->p);
	size_t since = 0;

	if (!v)
		return -ENOMEM;
	part = num_min(usual_part(f, v), f->p->least);
	free(v);
	for (size_t i = 0; i < f->n; i++) {
		double expect = part * f->s[i].n;

		if (!f->s[i].told)
			continue;
		sum += (double)(f->s[i].n - f->s[i].best) - 1.3 * expect - more * f->s[i].n;
		usual += expect;
		if (sum <= 0) {
			sum = usual = 0;
			since = i + 1;
		} else if (sum > 8 + 2 * f->p->burst + 6 * num_sqrt(f->p->burst * usual)) {
			for (size_t k = since ? since - 1 : 0; k <= i + 1 && k < f->n; k++)
				f->unsure[k] = true;
		}
	}
	return 0;
}

/* ---- the result ---------------------------------------------------------------------------------
 */

/* How far the truth can leave the corridor between two nodes: it is convex but for bends. */
static double bulge(const struct fit *f, size_t i)
{
	return (f->bend + f->near[i] + f->near[i - 1]) * fit_dist(&f->s[i - 1], &f->s[i]) / 2;
}

/* Half width of the truth about the line, anywhere between the knots a and b. */
static double link_bound(const struct fit *f, size_t a, size_t b)
{
	double bound = 0;

	for (size_t i = a; i <= b; i++) {
		double below = f->y[i] - f->low[i], above = f->high[i] - f->y[i];
		double play = 0;

		if (i > a)
			play = bulge(f, i);
		bound = num_max(bound, num_max(below, above) + play);
	}
	return bound + 1; /* stock rounds */
}

static bool link_unsure(const struct fit *f, size_t a, size_t b)
{
	for (size_t i = a; i <= b; i++)
		if (f->unsure[i])
			return true;
	return false;
}

/* More knots on long lines: the bound differs along them. */
static void split_links(struct fit *f)
{
	for (size_t a = 0, b; a + 1 < f->n; a = b) {
		size_t step;

		b = fit_next_knot(f, a);
		step = (b - a) / SPLITS + 1;
		for (size_t i = a + step; i < b; i += step)
			f->knot[i] = true;
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
		if (b < f->n) {
			after = link_bound(f, a, b);
			unsure = link_unsure(f, a, b);
		}
		bound = num_ceil(num_max(before, after));
		v[r->n_knots++] = (struct sync_knot){
			.time = f->s[a].mid,
			.offset = f->base + num_round(f->y[a]),
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

/* A knot at `time`, as the line from knot `near` to knot `far` goes on, but not vouched for. */
static void put_unsure(struct sync_result *r, size_t at, uint64_t time, size_t near, size_t far)
{
	const struct sync_knot *a = &r->knots[near], *b = &r->knots[far];
	double slope = (double)(b->offset - a->offset) / (double)(int64_t)(b->time - a->time);
	struct sync_knot k = { .time = time, .bound = UINT64_MAX };

	k.offset = a->offset + num_round(slope * (double)(int64_t)(time - a->time));
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
		if (f->high[i] - f->low[i] < FIT_FAR / 2)
			v[r->n_bands++] =
				(struct sync_band){ f->s[i].mid, f->base + (int64_t)num_floor(f->low[i]),
						    f->base + (int64_t)num_ceil(f->high[i]) };
	return 0;
}

static int put_cut(struct sync_result *r)
{
	size_t *v;

	if (!r->n_knots)
		return 0;
	v = realloc(r->cuts, (r->n_cuts + 1) * sizeof(*v));
	if (!v)
		return -ENOMEM;
	r->cuts = v;
	v[r->n_cuts++] = r->n_knots;
	return 0;
}

int drift_fit(struct problem *p, const struct piece *piece, struct sync_result *out)
{
	struct fit f;
	size_t first = out->n_knots;
	int ret = fit_init(&f, p, piece);

	if (!ret && f.n > 1)
		ret = fit_passes(&f);
	if (ret || f.n < 2 || !has_told(&f))
		goto out;
	f.hard = all_inside(&f);
	ret = narrow_all(&f, f.hard);
	if (!ret && f.hard && f.conflicts) {
		f.hard = false;
		ret = narrow_all(&f, false);
	}
	if (ret)
		goto out;
	stab(&f, ROOM_LAST);
	split_links(&f);
	ret = doubt(&f);
	if (!ret)
		ret = put_cut(out);
	if (!ret)
		ret = put_knots(&f, out);
	if (!ret)
		put_ends(piece, out, first);
	if (!ret)
		ret = put_bands(&f, out);
out:
	fit_release(&f);
	return ret;
}
