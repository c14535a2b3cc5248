// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sync/fit.h"
#include "sync/math.h"

#define BISECTIONS 20
#define VIEW	   150 /* slices on each side that are looked at together */

/* ---- all slices together ------------------------------------------------------------------- */

/*
 * The slices as node i sees them: with its rate s and offset y there, the truth
 * at slice j lies in y + s * d[j], give or take what the rate may change on the
 * way. Those limits, d and play included, are low and high.
 */
struct view {
	double *d, *low, *high;
	size_t n;
	double rate; /* |s| at most */
};

/* The rates that offset y leaves; false: none. */
static bool rates_of(const struct view *v, double y, double *least, double *most)
{
	double a = -v->rate, b = v->rate;

	for (size_t j = 0; j < v->n; j++) {
		double d = v->d[j], low = v->low[j] - y, high = v->high[j] - y;

		if (d == 0) {
			if (low > 0 || high < 0)
				return false;
			continue;
		}
		low /= d;
		high /= d;
		a = num_max(a, d > 0 ? low : high);
		b = num_min(b, d > 0 ? high : low);
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
		a = num_max(a, v->low[j] - s * v->d[j]);
		b = num_min(b, v->high[j] - s * v->d[j]);
	}
	*least = a;
	*most = b;
	return a <= b;
}

typedef bool (*leaves_fn)(const struct view *v, double x, double *least, double *most);

/* How far from x, which is possible, towards `end` it stays so: the set is convex. */
static double reach(const struct view *v, leaves_fn leaves, double x, double end)
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
	if (num_abs(guess) <= v->rate && offsets_of(v, guess, &least, &most))
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

/* What the clocks' rate may change by between nodes i and j: bends that were found are in it. */
static void fill_view(const struct fit *f, size_t i, struct view *v)
{
	size_t from = i > VIEW ? i - VIEW : 0, to = i + VIEW < f->n ? i + VIEW + 1 : f->n;

	v->n = 0;
	v->rate = f->p->rate;
	for (size_t j = from; j < to; j++) {
		double d = fit_dist(&f->s[i], &f->s[j]);
		double bend = num_abs(f->bent[j] - f->bent[i]) + f->bend;
		double play = num_min(bend, 2 * v->rate) * num_abs(d);

		v->d[v->n] = d;
		v->low[v->n] = f->low[j] - play;
		v->high[v->n++] = f->high[j] + play;
	}
}

/* Narrows node i by all others; its line becomes the middle of what is left. */
static void see(struct fit *f, size_t i, struct view *v, double *low, double *high)
{
	size_t a = i ? i - 1 : 0, b = i + 1 < f->n ? i + 1 : i;
	double guess = (f->y[b] - f->y[a]) / fit_dist(&f->s[a], &f->s[b]);
	double s, least, most, slow, shigh, y;

	fill_view(f, i, v);
	*low = f->low[i];
	*high = f->high[i];
	if (!some_rate(v, guess, &s)) {
		f->conflicts++;
		f->slope[i] = 0;
		f->s[i].rate = f->p->rate;
		return;
	}
	offsets_of(v, s, &least, &most);
	y = (least + most) / 2;
	*low = reach(v, rates_of, y, f->low[i]);
	*high = reach(v, rates_of, y, f->high[i]);
	slow = reach(v, offsets_of, s, -v->rate);
	shigh = reach(v, offsets_of, s, v->rate);
	f->slope[i] = (slow + shigh) / 2;
	f->s[i].rate = num_min((shigh - slow) / 2 + f->bend + f->near[i], 2 * v->rate);
}

void fit_find_bends(struct fit *f)
{
	double before = 0, sum = 0;
	size_t last = 0;

	memset(f->near, 0, f->n * sizeof(*f->near));
	for (size_t a = 0, b; a + 1 < f->n; a = b) {
		double slope, bend, width = f->high[a] - f->low[a];

		b = fit_next_knot(f, a);
		slope = (f->y[b] - f->y[a]) / fit_dist(&f->s[a], &f->s[b]);
		bend = a ? 1.5 * num_abs(slope - before) + f->bend : 0;
		before = slope;
		for (size_t i = a;
		     bend > 0 && i < f->n && (i < a + 2 || fit_dist(&f->s[a], &f->s[i]) < 2 * width / bend);
		     i++)
			f->near[i] = num_max(f->near[i], bend);
		for (size_t i = a;
		     bend > 0 && i-- > 0 && (i + 2 > a || fit_dist(&f->s[i], &f->s[a]) < 2 * width / bend);)
			f->near[i] = num_max(f->near[i], bend);
	}
	for (size_t i = 0; i < f->n; i++) {
		sum += f->near[i];
		f->bent[i] = sum;
		last = f->near[i] > 0 ? i : last;
	}
	if (last) /* these clocks are being slewed */
		f->bend = num_max(f->bend, sum / (double)f->n);
}

int fit_see_all(struct fit *f)
{
	double *room = calloc(5 * (2 * VIEW + 1) + 2 * f->n, sizeof(*room));
	struct view v = { .d = room };
	double *low, *high;

	if (!room)
		return -ENOMEM;
	v.low = room + 2 * VIEW + 1;
	v.high = room + 2 * (2 * VIEW + 1);
	low = room + 5 * (2 * VIEW + 1);
	high = low + f->n;
	for (size_t i = 0; i < f->n; i++)
		see(f, i, &v, &low[i], &high[i]);
	memcpy(f->low, low, f->n * sizeof(*low));
	memcpy(f->high, high, f->n * sizeof(*high));
	free(room);
	return 0;
}
