// SPDX-License-Identifier: LGPL-2.1-or-later
/* A clock over its counter, from snapshots: a chord between each two, and how far it is off. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "sync/counter-method-priv.h"
#include "base/array.h"

#define SLEW_ALONE 5e-6 /* what a clock's rate may change by when nothing shows how it does */
#define SLEW_LEAST 1e-7 /* ... by more than its rates beside show */
#define WIDE	   4	/* brackets so many times wider than usual were interrupted */

static double chord_slope(const struct curve *c, size_t i)
{
	return (double)(c->v[i + 1].clock - c->v[i].clock) / (double)(c->v[i + 1].counter - c->v[i].counter);
}

int curve_make(struct curve *c, const struct counter_log *l)
{
	uint64_t *scratch = calloc(l->n_shots + 1, sizeof(*scratch)), wide;

	c->v = calloc(l->n_shots + 1, sizeof(*c->v));
	c->off = calloc(l->n_shots + 1, sizeof(*c->off));
	if (!scratch || !c->v || !c->off) {
		free(scratch);
		return -ENOMEM;
	}
	for (size_t i = 0; i < l->n_shots; i++)
		scratch[i] = l->shots[i].slack;
	qsort(scratch, l->n_shots, sizeof(*scratch), compare_u64);
	wide = l->n_shots ? WIDE * scratch[l->n_shots / 2] + WIDE : 0;
	free(scratch);
	/* those that are of use, in order; the outer ones are, whatever their width */
	for (size_t i = 0; i < l->n_shots; i++) {
		const struct counter_shot *s = &l->shots[i], *last = c->n ? &c->v[c->n - 1] : NULL;

		if (s->slack > wide && i && i + 1 < l->n_shots)
			continue;
		if (!last || (s->counter > last->counter && s->clock > last->clock))
			c->v[c->n++] = *s;
	}
	if (c->n < 2)
		return -ENODATA;
	c->ns = (double)(c->v[c->n - 1].clock - c->v[0].clock) /
		(double)(c->v[c->n - 1].counter - c->v[0].counter);
	for (size_t i = 0; i + 1 < c->n; i++)
		if (fabs(chord_slope(c, i) / c->ns - 1) > CURVE_STEP)
			return -ERANGE;
	/*
	 * Within an interval the clock's rate lies between those that the chords beside
	 * it and its own show: with a range of r it leaves its chord of T ticks by at most
	 * r T / 4.
	 */
	for (size_t i = 0; i + 1 < c->n; i++) {
		double s = chord_slope(c, i), range = 0;
		double ticks = (double)(c->v[i + 1].counter - c->v[i].counter);
		uint64_t slack = c->v[i].slack > c->v[i + 1].slack ? c->v[i].slack : c->v[i + 1].slack;

		if (i)
			range += fabs(s - chord_slope(c, i - 1));
		if (i + 2 < c->n)
			range += fabs(s - chord_slope(c, i + 1));
		range += (c->n == 2 ? SLEW_ALONE : SLEW_LEAST) * s;
		c->off[i] = ((double)slack + 1) * c->ns + range * ticks / 4;
	}
	return 0;
}

void curve_release(struct curve *c)
{
	free(c->v);
	free(c->off);
}

static bool clock_before(const void *entry, const void *key)
{
	return ((const struct counter_shot *)entry)->clock <= *(const uint64_t *)key;
}

/* The interval that holds the counter's value; the outer ones go on. */
static size_t curve_interval(const struct curve *c, uint64_t counter)
{
	return array_lower_bound(c->v + 1, c->n - 2, sizeof(*c->v), u64_not_above, &counter);
}

uint64_t curve_clock(const struct curve *c, uint64_t counter)
{
	size_t i = curve_interval(c, counter);
	double ticks = (double)(int64_t)(counter - c->v[i].counter);

	return c->v[i].clock + (uint64_t)(int64_t)llround(ticks * chord_slope(c, i));
}

uint64_t curve_counter(const struct curve *c, uint64_t clock)
{
	size_t i = array_lower_bound(c->v + 1, c->n - 2, sizeof(*c->v), clock_before, &clock);
	double ns = (double)(int64_t)(clock - c->v[i].clock);

	return c->v[i].counter + (uint64_t)(int64_t)llround(ns / chord_slope(c, i));
}

double curve_off(const struct curve *c, uint64_t from, uint64_t to)
{
	size_t i = curve_interval(c, from), end = curve_interval(c, to);
	double off = 0;

	for (; i <= end; i++) {
		double ticks = (double)(c->v[i + 1].counter - c->v[i].counter), beyond = 0;

		if (!i && from < c->v[i].counter)
			beyond = (double)(c->v[i].counter - from) / ticks;
		if (i + 2 == c->n && to > c->v[i + 1].counter)
			beyond = fmax(beyond, (double)(to - c->v[i + 1].counter) / ticks);
		off = fmax(off, c->off[i] * (1 + 4 * beyond));
	}
	return off;
}

double curve_sag(const struct curve *c, uint64_t from, uint64_t to)
{
	double base = (double)(int64_t)(curve_clock(c, to) - curve_clock(c, from)), sag = 0;
	uint64_t start = curve_clock(c, from);

	if (to <= from)
		return 0;
	for (size_t i = curve_interval(c, from); i < c->n && c->v[i].counter < to; i++)
		if (c->v[i].counter > from)
			sag = fmax(sag, fabs((double)(int64_t)(c->v[i].clock - start) -
					     base * (double)(c->v[i].counter - from) / (double)(to - from)));
	return sag;
}
