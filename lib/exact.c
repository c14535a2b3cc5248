// SPDX-License-Identifier: LGPL-2.1-or-later
#include "exact.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SLEW_ALONE 5e-6 /* what a clock's rate may change by when nothing shows how it does */
#define SLEW_LEAST 1e-7 /* ... by more than its rates beside show */
#define STEP	   2e-3 /* no clock is slewed by so much: it was set */
#define WIDE	   4    /* brackets so many times wider than usual were interrupted */
#define ROUNDING   3    /* ns: two clocks' whole ns, and ours */
#define KNOTS_NS   40000000000 /* further apart stock's interpolation overflows */

/* ---- a clock over its counter ---------------------------------------------------- */

/* From shot i to i + 1 a chord, off[i] ns being the furthest that the clock can be from it. */
struct curve {
	struct counter_shot *v;
	size_t n;
	double *off;
	double ns; /* of a tick, about */
};

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static uint64_t usual_slack(const struct counter_log *l, uint64_t *scratch)
{
	for (size_t i = 0; i < l->n_shots; i++)
		scratch[i] = l->shots[i].slack;
	qsort(scratch, l->n_shots, sizeof(*scratch), by_value);
	return scratch[l->n_shots / 2];
}

/* Those that are of use, in order; the outer ones are, whatever their width. */
static int take_shots(struct curve *c, const struct counter_log *l)
{
	uint64_t *scratch = calloc(l->n_shots + 1, sizeof(*scratch)), wide;

	c->v = calloc(l->n_shots + 1, sizeof(*c->v));
	c->off = calloc(l->n_shots + 1, sizeof(*c->off));
	if (!scratch || !c->v || !c->off) {
		free(scratch);
		return -ENOMEM;
	}
	wide = l->n_shots ? WIDE * usual_slack(l, scratch) + WIDE : 0;
	free(scratch);
	for (size_t i = 0; i < l->n_shots; i++) {
		const struct counter_shot *s = &l->shots[i], *last = c->n ? &c->v[c->n - 1] : NULL;

		if (s->slack > wide && i && i + 1 < l->n_shots)
			continue;
		if (!last || (s->counter > last->counter && s->clock > last->clock))
			c->v[c->n++] = *s;
	}
	return 0;
}

static double slope(const struct curve *c, size_t i)
{
	return (double)(c->v[i + 1].clock - c->v[i].clock) /
	       (double)(c->v[i + 1].counter - c->v[i].counter);
}

/*
 * Within an interval the clock's rate lies between those that the chords beside
 * and its own show: with a range of r it leaves its chord of T ticks by at most
 * r T / 4.
 */
static void find_off(struct curve *c, size_t i)
{
	double s = slope(c, i), range = 0, ticks = (double)(c->v[i + 1].counter - c->v[i].counter);
	uint64_t slack = c->v[i].slack > c->v[i + 1].slack ? c->v[i].slack : c->v[i + 1].slack;

	if (i)
		range += fabs(s - slope(c, i - 1));
	if (i + 2 < c->n)
		range += fabs(s - slope(c, i + 1));
	range += (c->n == 2 ? SLEW_ALONE : SLEW_LEAST) * s;
	c->off[i] = ((double)slack + 1) * c->ns + range * ticks / 4;
}

static int curve_make(struct curve *c, const struct counter_log *l)
{
	int ret = take_shots(c, l);

	if (ret)
		return ret;
	if (c->n < 2)
		return -ENODATA;
	c->ns = (double)(c->v[c->n - 1].clock - c->v[0].clock) /
		(double)(c->v[c->n - 1].counter - c->v[0].counter);
	for (size_t i = 0; i + 1 < c->n; i++)
		if (fabs(slope(c, i) / c->ns - 1) > STEP)
			return -ERANGE;
	for (size_t i = 0; i + 1 < c->n; i++)
		find_off(c, i);
	return 0;
}

static void curve_release(struct curve *c)
{
	free(c->v);
	free(c->off);
}

/* The interval that holds the counter's value; the outer ones go on. */
static size_t curve_interval(const struct curve *c, uint64_t counter)
{
	size_t low = 0, high = c->n - 1;

	while (high - low > 1) {
		size_t mid = low + (high - low) / 2;

		if (c->v[mid].counter <= counter)
			low = mid;
		else
			high = mid;
	}
	return low;
}

static uint64_t curve_clock(const struct curve *c, uint64_t counter)
{
	size_t i = curve_interval(c, counter);
	double ticks = (double)(int64_t)(counter - c->v[i].counter);

	return c->v[i].clock + (uint64_t)(int64_t)llround(ticks * slope(c, i));
}

static uint64_t curve_counter(const struct curve *c, uint64_t clock)
{
	size_t i = 0;

	while (i + 2 < c->n && c->v[i + 1].clock <= clock)
		i++;
	return c->v[i].counter +
	       (uint64_t)(int64_t)llround((double)(int64_t)(clock - c->v[i].clock) / slope(c, i));
}

/* How far the clock can be from the curve between two values of the counter, ns. */
static double curve_off(const struct curve *c, uint64_t from, uint64_t to)
{
	size_t i = curve_interval(c, from), end = curve_interval(c, to);
	double off = 0;

	for (; i <= end; i++) {
		double ticks = (double)(c->v[i + 1].counter - c->v[i].counter), beyond = 0;

		if (!i && from < c->v[i].counter)
			beyond = (double)(c->v[i].counter - from) / ticks;
		if (i + 2 == c->n && to > c->v[i + 1].counter)
			beyond = fmax(beyond, (double)(to - c->v[i + 1].counter) / ticks);
		off = fmax(off, c->off[i] * (1 + 2 * beyond));
	}
	return off;
}

/* How far the curve leaves its own chord between two values of the counter, ns. */
static double curve_sag(const struct curve *c, uint64_t from, uint64_t to)
{
	double base = (double)(int64_t)(curve_clock(c, to) - curve_clock(c, from)), sag = 0;
	uint64_t start = curve_clock(c, from);

	if (to <= from)
		return 0;
	for (size_t i = curve_interval(c, from); i < c->n && c->v[i].counter < to; i++)
		if (c->v[i].counter > from)
			sag = fmax(sag, fabs((double)(int64_t)(c->v[i].clock - start) -
					     base * (double)(c->v[i].counter - from) /
						     (double)(to - from)));
	return sag;
}

/* ---- CNTVOFF ------------------------------------------------------------------------- */

/* From this value of the guest's counter on. */
struct epoch {
	uint64_t start;
	uint64_t voff, slack; /* ticks */
	bool vague;	      /* it may have begun earlier */
};

struct job {
	struct curve host, guest;
	struct epoch *epochs;
	size_t n;
	struct sync_result *out;
	uint64_t *points; /* of the guest's counter, where knots are wanted */
	size_t n_points;
};

static bool ping_fits(const struct counter_ping *p, uint64_t voff)
{
	return (int64_t)(voff - (p->sent - p->first)) >= 0 && (int64_t)(p->back - p->last - voff) >= 0;
}

/* All answers of the guest agree with the VM's CNTVOFFs. */
static bool vm_fits(const struct counter_log *guest, const struct voff_log *voff, int32_t vm)
{
	for (size_t i = 0; i < guest->n_pings; i++) {
		bool fits = false;

		for (size_t k = 0; k < voff->n_spans && !fits; k++)
			fits = voff->spans[k].vm == vm && ping_fits(&guest->pings[i], voff->spans[k].voff);
		if (!fits)
			return false;
	}
	return guest->n_pings > 0;
}

static bool zero_fits(const struct counter_log *guest)
{
	for (size_t i = 0; i < guest->n_pings; i++)
		if (!ping_fits(&guest->pings[i], 0))
			return false;
	return guest->n_pings > 0;
}

/* 0: none. */
static int32_t find_vm(const struct counter_log *guest, const struct voff_log *voff)
{
	for (size_t i = 0; i < voff->n_spans; i++)
		if (vm_fits(guest, voff, voff->spans[i].vm))
			return voff->spans[i].vm;
	return 0;
}

static int add_epoch(struct job *j, const struct epoch *e)
{
	struct epoch *v = realloc(j->epochs, (j->n + 1) * sizeof(*v));

	if (!v)
		return -ENOMEM;
	j->epochs = v;
	v[j->n++] = *e;
	return 0;
}

/*
 * While a VM is stopped its counter stands still, and no vCPU runs before the
 * first load with the new offset: what the guest's counter shows then parts the
 * events of both exactly.
 */
static int epochs_of_vm(struct job *j, const struct voff_log *voff, int32_t vm)
{
	int ret = 0;

	for (size_t i = 0; i < voff->n_spans && !ret; i++) {
		const struct voff_span *s = &voff->spans[i];
		struct epoch e = { .voff = s->voff, .vague = s->vague };

		if (s->vm != vm)
			continue;
		if (j->n)
			e.start = curve_counter(&j->host, s->first) - s->voff;
		if (j->n && e.start <= j->epochs[j->n - 1].start)
			return -ENODATA; /* a guest whose counter was set back */
		ret = add_epoch(j, &e);
	}
	return ret;
}

static int epochs_known(struct job *j, const struct counter_log *guest, const struct voff_log *voff,
			const char **why)
{
	int32_t vm = find_vm(guest, voff);
	int ret;

	if (!vm && !zero_fits(guest)) {
		*why = voff->n_spans ? "no VM's CNTVOFF fits its counter" : "its CNTVOFF is not known";
		return -ENODATA;
	}
	if (!vm)
		return add_epoch(j, &(struct epoch){ 0 });
	ret = epochs_of_vm(j, voff, vm);
	if (ret == -ENODATA)
		*why = "its counter was set back";
	for (size_t i = 0; i < voff->n_vcpus && !ret; i++) {
		struct sync_vcpu *v;

		if (voff->vcpus[i].vm != vm)
			continue;
		v = realloc(j->out->vcpus, (j->out->n_vcpus + 1) * sizeof(*v));
		if (!v)
			return -ENOMEM;
		j->out->vcpus = v;
		v[j->out->n_vcpus++] = (struct sync_vcpu){ .cpu = voff->vcpus[i].id,
							   .pid = voff->vcpus[i].pid };
	}
	return ret;
}

/* As many offsets as needed, each between the latest question and the earliest answer. */
static int epochs_by_pings(struct job *j, const struct counter_log *guest)
{
	uint64_t low = 0, high = 0;
	int ret = 0;

	for (size_t i = 0; i < guest->n_pings && !ret; i++) {
		const struct counter_ping *p = &guest->pings[i];
		uint64_t a = p->sent - p->first, b = p->back - p->last;

		if ((int64_t)(b - a) < 0)
			return -ENODATA;
		if (!j->n || (int64_t)(a - high) > 0 || (int64_t)(low - b) > 0) {
			low = a;
			high = b;
			ret = add_epoch(j, &(struct epoch){ .start = j->n ? p->first : 0, .vague = j->n });
		}
		if (ret)
			break;
		low = (int64_t)(a - low) > 0 ? a : low;
		high = (int64_t)(high - b) > 0 ? b : high;
		j->epochs[j->n - 1].voff = low + (high - low) / 2;
		j->epochs[j->n - 1].slack = (high - low + 1) / 2;
	}
	return ret;
}

/* ---- knots -------------------------------------------------------------------------------- */

static bool is_start(const struct job *j, uint64_t counter)
{
	for (size_t i = 1; i < j->n; i++)
		if (j->epochs[i].start == counter)
			return true;
	return false;
}

/* Knots want room between them: for one just before an epoch's start too. */
static void add_point(struct job *j, uint64_t at)
{
	uint64_t *last = j->n_points ? &j->points[j->n_points - 1] : NULL;

	if (!last || curve_clock(&j->guest, at) - curve_clock(&j->guest, *last) > 2)
		j->points[j->n_points++] = at;
	else if (is_start(j, at))
		*last = at;
}

static int choose_points(struct job *j)
{
	const struct curve *g = &j->guest;
	uint64_t first = g->v[0].counter, last = g->v[g->n - 1].counter;
	size_t n = g->n + j->n + (size_t)((g->v[g->n - 1].clock - g->v[0].clock) / KNOTS_NS) + 1, used = 0;

	j->points = calloc(n, sizeof(*j->points));
	if (!j->points)
		return -ENOMEM;
	for (size_t i = 0; i < g->n; i++) {
		uint64_t parts = i ? (g->v[i].clock - g->v[i - 1].clock) / KNOTS_NS : 0;

		for (uint64_t k = 1; k <= parts; k++)
			j->points[used++] = g->v[i - 1].counter +
					    (g->v[i].counter - g->v[i - 1].counter) / (parts + 1) * k;
		j->points[used++] = g->v[i].counter;
	}
	for (size_t i = 0; i < j->n; i++)
		if (j->epochs[i].start > first && j->epochs[i].start < last)
			j->points[used++] = j->epochs[i].start;
	qsort(j->points, used, sizeof(*j->points), by_value);
	for (size_t i = 0; i < used; i++)
		add_point(j, j->points[i]);
	return 0;
}

static size_t epoch_at(const struct job *j, uint64_t counter)
{
	size_t i = j->n - 1;

	while (i && j->epochs[i].start > counter)
		i--;
	return i;
}

static struct sync_knot *add_knot(struct job *j, uint64_t counter, const struct epoch *e, enum sync_class class)
{
	struct sync_knot *k = &j->out->knots[j->out->n_knots++];

	k->time = curve_clock(&j->guest, counter);
	k->offset = (int64_t)(curve_clock(&j->host, counter + e->voff) - k->time);
	k->class = class;
	return k;
}

/* Half width between two points of one epoch. */
static uint64_t bound_between(const struct job *j, const struct epoch *e, uint64_t from, uint64_t to)
{
	uint64_t v = e->voff;
	double ns = curve_off(&j->guest, from, to) + curve_off(&j->host, from + v, to + v) +
		    curve_sag(&j->host, from + v, to + v) + (double)e->slack * j->host.ns;

	return (uint64_t)ceil(ns) + ROUNDING;
}

/* One knot at each point; at the start of an epoch another just before it. */
static void add_knots(struct job *j, enum sync_class class)
{
	for (size_t i = 0; i < j->n_points; i++) {
		uint64_t at = j->points[i], next = i + 1 < j->n_points ? j->points[i + 1] : at;
		const struct epoch *e = &j->epochs[epoch_at(j, at)];
		struct sync_knot *k;

		if (i && e->start == at && e != j->epochs) {
			k = add_knot(j, at, e - 1, class);
			k->time--;
			k->bound = bound_between(j, e - 1, j->points[i - 1], at);
			if (e->vague)
				j->out->knots[j->out->n_knots - 2].class = k->class = SYNC_NONE;
			j->out->cuts[j->out->n_cuts++] = j->out->n_knots;
		}
		k = add_knot(j, at, e, class);
		k->bound = bound_between(j, e, at, next);
	}
}

static int make_knots(struct job *j, enum sync_class class)
{
	int ret = choose_points(j);

	if (ret)
		return ret;
	j->out->knots = calloc(j->n_points + j->n, sizeof(*j->out->knots));
	j->out->cuts = calloc(j->n, sizeof(*j->out->cuts));
	if (!j->out->knots || !j->out->cuts)
		return -ENOMEM;
	add_knots(j, class);
	j->out->class = class;
	for (size_t i = 1; i < j->n; i++)
		if (j->epochs[i].vague && class == SYNC_HARD)
			j->out->class = SYNC_SOFT;
	return 0;
}

/* ---- both methods ------------------------------------------------------------------------------ */

static int prepare(struct job *j, const struct counter_log *host, const struct counter_log *guest,
		   const char **why)
{
	int ret = curve_make(&j->host, host);

	*why = ret == -ERANGE ? "the host's clock was set" : "too few snapshots of the host's counter";
	if (ret)
		return ret == -ERANGE ? -ENODATA : ret;
	ret = curve_make(&j->guest, guest);
	*why = ret == -ERANGE ? "its clock was set" : "too few snapshots of its counter";
	return ret == -ERANGE ? -ENODATA : ret;
}

static int end(struct job *j, int ret)
{
	curve_release(&j->host);
	curve_release(&j->guest);
	free(j->epochs);
	free(j->points);
	if (ret)
		sync_result_release(j->out);
	return ret;
}

int exact_solve(const struct counter_log *host, const struct counter_log *guest,
		const struct voff_log *voff, struct sync_result *out, const char **why)
{
	struct job j = { .out = out };
	int ret;

	*out = (struct sync_result){ .method = "exact" };
	ret = prepare(&j, host, guest, why);
	if (!ret)
		ret = epochs_known(&j, guest, voff, why);
	if (!ret)
		ret = make_knots(&j, SYNC_HARD);
	return end(&j, ret);
}

int exact_ping(const struct counter_log *host, const struct counter_log *guest,
	       struct sync_result *out, const char **why)
{
	struct job j = { .out = out };
	int ret;

	*out = (struct sync_result){ .method = "ping" };
	ret = prepare(&j, host, guest, why);
	if (!ret) {
		ret = epochs_by_pings(&j, guest);
		if (!ret && !j.n)
			ret = -ENODATA;
		*why = "its answers make no sense";
	}
	if (!ret)
		ret = make_knots(&j, SYNC_PING);
	return end(&j, ret);
}
