// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A segment's slices seen from each of them: all pairs of an offset and a rate that suit
 * every slice in view form a convex set, whose extents narrow the corridor.
 */
#include <math.h>

#include "sync/solver.h"

/* Documentation/clock-sync.md has the reason for each number. */
#define BISECTIONS 20
#define VIEW	   150 /* slices on each side that are looked at together */

/*
 * The slices as node i sees them: with its rate s and offset y there, the truth
 * at slice j lies in y + s * d[j], give or take what the rate may change on the
 * way. Those limits, d and play included, are low and high.
 */
struct view {
	double d[2 * VIEW + 1], low[2 * VIEW + 1], high[2 * VIEW + 1];
	size_t n;
	double rate; /* |s| at most */
};

/* The rates that offset y leaves; false: none. */
static bool rates_of(const struct view *v, double y, double *least, double *most)
{
	double a = -v->rate, b = v->rate;

	for (size_t j = 0; j < v->n; j++) {
		double d = v->d[j], low = v->low[j] - y, high = v->high[j] - y, least_by, most_by;

		if (d == 0) {
			if (low > 0 || high < 0)
				return false;
			continue;
		}
		low /= d;
		high /= d;
		least_by = d > 0 ? low : high;
		most_by = d > 0 ? high : low;
		a = least_by > a ? least_by : a;
		b = most_by < b ? most_by : b;
	}
	*least = a;
	*most = b;
	return a <= b;
}

/* The offsets that rate s leaves. */
static bool offsets_of(const struct view *v, double s, double *least, double *most)
{
	double a = -FIT_FAR, b = FIT_FAR;

	for (size_t j = 0; j < v->n; j++) {
		double low = v->low[j] - s * v->d[j], high = v->high[j] - s * v->d[j];

		a = low > a ? low : a;
		b = high < b ? high : b;
	}
	*least = a;
	*most = b;
	return a <= b;
}

typedef bool (*leaves_fn)(const struct view *v, double x, double *least, double *most);

/* Farthest possible point from x, which is possible, towards `end`: the set is convex. */
static double view_reach(const struct view *v, leaves_fn leaves, double x, double end)
{
	double a, b;

	if (leaves(v, end, &a, &b))
		return end;
	for (int i = 0; i < BISECTIONS; i++) {
		double mid = (x + end) / 2;

		if (leaves(v, mid, &a, &b))
			x = mid;
		else
			end = mid;
	}
	return end;
}

/* A possible rate: the guess, or where the offsets' range is widest, for it is concave. */
static bool some_rate(const struct view *v, double guess, double *s)
{
	double a = -v->rate, b = v->rate, least, most;

	*s = guess;
	if (fabs(guess) <= v->rate && offsets_of(v, guess, &least, &most))
		return true;

	for (int i = 0; i < 2 * BISECTIONS; i++) {
		double x = a + (b - a) / 3, y = b - (b - a) / 3, wx, wy;

		offsets_of(v, x, &least, &most);
		wx = most - least;
		offsets_of(v, y, &least, &most);
		wy = most - least;
		if (wx < wy)
			a = x;
		else
			b = y;
	}
	*s = (a + b) / 2;
	return offsets_of(v, *s, &least, &most);
}

/* Narrows node i by all others; its line becomes the middle of what is left. */
static void see_node(struct fit *f, size_t i, struct view *v)
{
	size_t a = i ? i - 1 : 0, b = i + 1 < f->n ? i + 1 : i;
	size_t from = i > VIEW ? i - VIEW : 0, to = i + VIEW < f->n ? i + VIEW + 1 : f->n;
	double guess = (f->v[b].y - f->v[a].y) / fit_dist(&f->v[a], &f->v[b]);
	double s, least, most, slow, shigh, y;
	struct node *node = &f->v[i];

	/* allows for the change of the clocks' rate between nodes, bends that were found included */
	v->n = 0;
	v->rate = f->p->rate;
	for (size_t j = from; j < to; j++) {
		double d = fit_dist(node, &f->v[j]);
		double bend = fabs(f->v[j].bent - node->bent) + f->bend;
		double play = fmin(bend, 2 * v->rate) * fabs(d);

		v->d[v->n] = d;
		v->low[v->n] = f->v[j].low - play;
		v->high[v->n++] = f->v[j].high + play;
	}
	node->seen_low = node->low;
	node->seen_high = node->high;
	if (!some_rate(v, guess, &s)) {
		f->conflicts++;
		node->slope = 0;
		node->s.rate = f->p->rate;
		return;
	}
	offsets_of(v, s, &least, &most);
	y = (least + most) / 2;
	node->seen_low = view_reach(v, rates_of, y, node->low);
	node->seen_high = view_reach(v, rates_of, y, node->high);
	slow = view_reach(v, offsets_of, s, -v->rate);
	shigh = view_reach(v, offsets_of, s, v->rate);
	node->slope = (slow + shigh) / 2;
	node->s.rate = fmin((shigh - slow) / 2 + f->bend + node->near, 2 * v->rate);
}

void fit_find_bends(struct fit *f)
{
	double before = 0, sum = 0;
	size_t last = 0;

	for (size_t i = 0; i < f->n; i++)
		f->v[i].near = 0;
	for (size_t a = 0, b; a + 1 < f->n; a = b) {
		double slope, bend, width = f->v[a].high - f->v[a].low;

		b = fit_next_point(f, a);
		slope = (f->v[b].y - f->v[a].y) / fit_dist(&f->v[a], &f->v[b]);
		bend = a ? 1.5 * fabs(slope - before) + f->bend : 0;
		before = slope;
		for (size_t i = a;
		     bend > 0 && i < f->n && (i < a + 2 || fit_dist(&f->v[a], &f->v[i]) < 2 * width / bend);
		     i++)
			f->v[i].near = fmax(f->v[i].near, bend);
		for (size_t i = a;
		     bend > 0 && i-- > 0 && (i + 2 > a || fit_dist(&f->v[i], &f->v[a]) < 2 * width / bend);)
			f->v[i].near = fmax(f->v[i].near, bend);
	}
	for (size_t i = 0; i < f->n; i++) {
		sum += f->v[i].near;
		f->v[i].bent = sum;
		last = f->v[i].near > 0 ? i : last;
	}
	if (last) /* these clocks are being slewed */
		f->bend = fmax(f->bend, sum / (double)f->n);
}

void fit_see_all(struct fit *f)
{
	struct view v;

	for (size_t i = 0; i < f->n; i++)
		see_node(f, i, &v);
	for (size_t i = 0; i < f->n; i++) {
		f->v[i].low = f->v[i].seen_low;
		f->v[i].high = f->v[i].seen_high;
	}
}
