// SPDX-License-Identifier: LGPL-2.1-or-later
/* The counter method: a guest's clock by the machine's counter and its CNTVOFF, or by pings. */
#include <math.h>

#include "sync/counter-method-priv.h"

#define SLEW_ALONE 5e-6 /* what a clock's rate may change by when nothing shows how it does */
#define SLEW_LEAST 1e-7 /* ... by more than its rates beside show */
#define WIDE	   4	/* brackets so many times wider than usual were interrupted */

static double chord_slope(const struct curve *c, size_t i)
{
	return (double)(c->v[i + 1].clock - c->v[i].clock) / (double)(c->v[i + 1].counter - c->v[i].counter);
}

/* -ENODATA: fewer than two snapshots; -ERANGE: the clock was set; -ENOMEM. Release it in any case. */
static int curve_make(struct curve *c, const struct counter_log *l)
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
	 * Within an interval the clock's rate lies between those that the chords beside it and its own show:
	 * with a range of r it leaves its chord of T ticks by at most r T / 4.
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

static void curve_release(struct curve *c)
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

/* Largest distance of the curve from its own chord between two values of the counter, ns. */
static double curve_sag(const struct curve *c, uint64_t from, uint64_t to)
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

#define ROUNDING 3	     /* ns: two clocks' whole ns, and ours */
#define KNOTS_NS 40000000000 /* further apart stock's interpolation overflows */

/* Whether a CNTVOFF in [low, high] agrees with the guest's answer. */
static bool ping_fits(const struct counter_ping *p, uint64_t low, uint64_t high)
{
	return (int64_t)(high - (p->sent - p->first)) >= 0 && (int64_t)(p->back - p->last - low) >= 0;
}

/* All answers of the guest agree with the VM's CNTVOFFs. */
static bool pings_fit_vm(const struct counter_log *guest, const struct cntvoff_log *cntvoff, int32_t vm)
{
	for (size_t i = 0; i < guest->n_pings; i++) {
		bool fits = false;

		for (size_t k = 0; k < cntvoff->n_spans && !fits; k++)
			fits = cntvoff->spans[k].vm == vm &&
			       ping_fits(&guest->pings[i], cntvoff->spans[k].cntvoff,
					 cntvoff->spans[k].cntvoff);
		if (!fits)
			return false;
	}
	return guest->n_pings > 0;
}

static bool vm_has(const struct cntvoff_log *cntvoff, int32_t vm, const struct offset_vcpu *v, size_t n)
{
	for (size_t i = 0; i < cntvoff->n_vcpus; i++)
		for (size_t k = 0; k < n && cntvoff->vcpus[i].vm == vm; k++)
			if (v[k].pid && v[k].pid == (uint32_t)cntvoff->vcpus[i].pid)
				return true;
	return false;
}

#define VM_NONE	   0
#define VM_SEVERAL (-1)

/* Of VMs that were started together the one whose threads are the guest's. */
static int32_t vm_of_pings(const struct counter_log *guest, const struct cntvoff_log *cntvoff,
			   const struct offset_vcpu *v, size_t n)
{
	int32_t found = VM_NONE;

	for (size_t i = 0; i < cntvoff->n_spans; i++) {
		int32_t vm = cntvoff->spans[i].vm;

		if (vm == found || !pings_fit_vm(guest, cntvoff, vm))
			continue;
		if (vm_has(cntvoff, vm, v, n))
			return vm;
		found = found ? VM_SEVERAL : vm;
	}
	return found;
}

/*
 * While a VM is stopped its counter stands still, and no vCPU runs before the first load with the new offset:
 * what the guest's counter shows then parts the events of both exactly.
 */
static int epochs_of_vm(struct counter_method *j, const struct cntvoff_log *cntvoff, int32_t vm)
{
	for (size_t i = 0; i < cntvoff->n_spans; i++) {
		const struct cntvoff_span *s = &cntvoff->spans[i];
		struct epoch e = { .cntvoff = s->cntvoff };

		if (s->vm != vm)
			continue;
		e.end = curve_counter(&j->host, s->last) - s->cntvoff;
		if (j->n) {
			e.start = curve_counter(&j->host, s->first) - s->cntvoff;
			e.from = s->vague ? j->epochs[j->n - 1].end : e.start;
		}
		if (j->n && (e.start <= j->epochs[j->n - 1].start || e.from > e.start))
			return -ENODATA; /* a guest whose counter was set back */
		if (array_push(&j->epochs, &j->n, &e, sizeof(e)))
			return -ENOMEM;
	}
	return 0;
}

static int epochs_by_cntvoff(struct counter_method *j, const struct counter_log *guest,
			     const struct cntvoff_log *cntvoff, const struct offset_vcpu *vcpus, size_t n,
			     const char **why)
{
	struct cntvoff_span no_offset = { .cntvoff = 0 };
	const struct cntvoff_log zero = { .spans = &no_offset, .n_spans = 1 };
	int32_t vm = vm_of_pings(guest, cntvoff, vcpus, n);
	int ret;

	if (vm == VM_SEVERAL) {
		*why = "several VMs' CNTVOFFs fit its counter, and its vCPU threads are not known";
		return -ENODATA;
	}
	if (!vm && !pings_fit_vm(guest, &zero, VM_NONE)) {
		*why = cntvoff->n_spans ? "no VM's CNTVOFF fits its counter" : "its CNTVOFF is not known";
		return -ENODATA;
	}
	if (!vm)
		return array_push(&j->epochs, &j->n, &(struct epoch){ 0 }, sizeof(struct epoch));
	ret = epochs_of_vm(j, cntvoff, vm);
	if (ret == -ENODATA)
		*why = "its counter was set back";
	/* the vCPU threads that the probe saw */
	for (size_t i = 0; i < cntvoff->n_vcpus && !ret; i++) {
		const struct cntvoff_vcpu *seen = &cntvoff->vcpus[i];
		const struct sync_vcpu one = { .cpu = seen->id, .pid = seen->pid };

		if (seen->vm == vm)
			ret = array_push(&j->out->vcpus, &j->out->n_vcpus, &one, sizeof(one));
	}
	return ret;
}

/* Range of CNTVOFF that some of the pings allow. */
struct range {
	uint64_t low, high;
	size_t from, to; /* pings, [from, to) */
};

static void range_narrow(struct range *r, const struct counter_ping *p)
{
	uint64_t a = p->sent - p->first, b = p->back - p->last;

	r->low = (int64_t)(a - r->low) > 0 ? a : r->low;
	r->high = (int64_t)(r->high - b) > 0 ? b : r->high;
}

static struct range range_of(const struct counter_log *guest, size_t from, size_t to)
{
	const struct counter_ping *p = &guest->pings[from];
	struct range r = { p->sent - p->first, p->back - p->last, from, to };

	for (size_t i = from + 1; i < to; i++)
		range_narrow(&r, &guest->pings[i]);
	return r;
}

/* The pings from `from` on that one CNTVOFF suits. */
static struct range next_range(const struct counter_log *guest, size_t from)
{
	struct range r = range_of(guest, from, from + 1);

	while (r.to < guest->n_pings && ping_fits(&guest->pings[r.to], r.low, r.high))
		range_narrow(&r, &guest->pings[r.to++]);
	return r;
}

/*
 * A ping that was asked before a stop of the VM and answered after it fits both offsets, and bounds neither.
 */
int counter_method_pings(struct counter_method *j, const struct counter_log *guest)
{
	struct range now, next;
	struct epoch e;

	for (size_t i = 0; i < guest->n_pings; i++) {
		const struct counter_ping *p = &guest->pings[i];

		if ((int64_t)(p->back - p->last - (p->sent - p->first)) < 0)
			return -ENODATA;
	}
	for (size_t i = 0; i < guest->n_pings; i = next.from) {
		now = next_range(guest, i);
		next = (struct range){ .from = now.to };
		if (now.to < guest->n_pings) {
			next = next_range(guest, now.to);
			while (now.to > now.from + 1 &&
			       ping_fits(&guest->pings[now.to - 1], next.low, next.high))
				now.to--;
			now = range_of(guest, now.from, now.to);
		}
		e = (struct epoch){ .end = guest->pings[now.to - 1].last,
				    .cntvoff = now.low + (now.high - now.low) / 2,
				    .slack = (now.high - now.low + 1) / 2 };
		if (j->n) {
			e.from = j->epochs[j->n - 1].end;
			e.start = guest->pings[now.from].first;
		}
		if (array_push(&j->epochs, &j->n, &e, sizeof(e)))
			return -ENOMEM;
	}
	return 0;
}

/* Points want room between them: for one just before an epoch's start too. */
static void add_offset_point(struct counter_method *j, uint64_t at)
{
	uint64_t *last = j->n_points ? &j->points[j->n_points - 1] : NULL;
	bool start = false;

	for (size_t i = 1; i < j->n; i++) {
		if (at > j->epochs[i].from && at < j->epochs[i].start)
			return;
		start = start || at == j->epochs[i].start;
	}
	if (!last || curve_clock(&j->guest, at) - curve_clock(&j->guest, *last) > 2)
		j->points[j->n_points++] = at;
	else if (start)
		*last = at;
}

#define REACH 4 /* intervals beyond the snapshots */

/*
 * The recording begins before the first snapshot is there, and may go on after the
 * last: as far as the host's go the curve does too, with a bound that grows.
 */
static size_t add_reach(const struct counter_method *j, uint64_t *points)
{
	const struct counter_shot *g = j->guest.v, *h = j->host.v;
	size_t n = j->guest.n, used = 0;
	uint64_t first = g[0].counter, last = g[n - 1].counter, from = h[0].counter - j->epochs[0].cntvoff;
	uint64_t to = h[j->host.n - 1].counter - j->epochs[j->n - 1].cntvoff;
	uint64_t before = REACH * (g[1].counter - first), after = REACH * (last - g[n - 2].counter);

	before = before < first ? before : first;
	if ((double)before * j->guest.ns > (double)g[0].clock / 2) /* no clock shows less than 0 */
		before = 0;
	if (from < first)
		points[used++] = first - from < before ? from : first - before;
	last = last > j->epochs[j->n - 1].start ? last : j->epochs[j->n - 1].start;
	if (to > last)
		points[used++] = to - last < after ? to : last + after;
	return used;
}

static int choose_points(struct counter_method *j)
{
	const struct curve *g = &j->guest;
	uint64_t first = g->v[0].counter;
	size_t n = g->n + 2 * j->n + (size_t)((g->v[g->n - 1].clock - g->v[0].clock) / KNOTS_NS) + 3, used;

	j->points = calloc(n, sizeof(*j->points));
	if (!j->points)
		return -ENOMEM;
	used = add_reach(j, j->points);
	first = used && j->points[0] < first ? j->points[0] : first;
	for (size_t i = 0; i < g->n; i++) {
		uint64_t parts = i ? (g->v[i].clock - g->v[i - 1].clock) / KNOTS_NS : 0;

		for (uint64_t k = 1; k <= parts; k++)
			j->points[used++] = g->v[i - 1].counter +
					    (g->v[i].counter - g->v[i - 1].counter) / (parts + 1) * k;
		j->points[used++] = g->v[i].counter;
	}
	for (size_t i = 1; i < j->n; i++) {
		const struct epoch *e = &j->epochs[i];

		if (e->start <= first)
			continue;
		j->points[used++] = e->start;
		if (e->from < e->start && e->from > first)
			j->points[used++] = e->from;
	}
	qsort(j->points, used, sizeof(*j->points), compare_u64);
	for (size_t i = 0; i < used; i++)
		add_offset_point(j, j->points[i]);
	return 0;
}

static struct sync_offset_point *add_point(struct counter_method *j, uint64_t counter, const struct epoch *e,
					   enum sync_class class)
{
	struct sync_offset_point *k = &j->out->points[j->out->n_points++];

	k->time = curve_clock(&j->guest, counter);
	k->offset = (int64_t)(curve_clock(&j->host, counter + e->cntvoff) - k->time);
	k->class = class;
	return k;
}

/*
 * Half width between two points of one epoch. Of two points the larger bound holds in
 * between: beyond the snapshots the outer one has it.
 */
static uint64_t bound_between(const struct counter_method *j, const struct epoch *e, uint64_t from,
			      uint64_t to)
{
	uint64_t v = e->cntvoff;
	double ns = curve_off(&j->guest, from, to) + curve_off(&j->host, from + v, to + v) +
		    curve_sag(&j->host, from + v, to + v) + (double)e->slack * j->host.ns;

	return (uint64_t)ceil(ns) + ROUNDING;
}

/* One point at each point; at the start of an epoch another just before it. */
int counter_method_points(struct counter_method *j, enum sync_class class)
{
	uint64_t last = j->guest.v[j->guest.n - 1].counter;
	int ret = choose_points(j);

	if (ret)
		return ret;
	j->out->points = calloc(j->n_points + j->n, sizeof(*j->out->points));
	j->out->jumps = calloc(j->n, sizeof(*j->out->jumps));
	if (!j->out->points || !j->out->jumps)
		return -ENOMEM;
	for (size_t i = 0; i < j->n_points; i++) {
		uint64_t at = j->points[i], next = i + 1 < j->n_points ? j->points[i + 1] : at;
		const struct epoch *e = &j->epochs[j->n - 1];
		struct sync_offset_point *k;

		while (e > j->epochs && e->start > at)
			e--;
		/* the last point before an epoch: where that may have begun earlier, it has no bound */
		if (i && e->start == at && e != j->epochs) {
			bool vague = e->from < e->start;

			k = add_point(j, at, e - 1, vague ? SYNC_NONE : class);
			k->time--;
			k->bound = vague ? UINT64_MAX : bound_between(j, e - 1, j->points[i - 1], at);
			j->out->jumps[j->out->n_jumps++] = j->out->n_points;
		}
		k = add_point(j, at, e, class);
		if (next <= last)
			k->bound = bound_between(j, e, at, next);
		else
			k->bound =
				bound_between(j, e, at > last && e->start < at ? j->points[i - 1] : at, at);
	}
	j->out->class = class;
	return 0;
}

int counter_method_begin(struct counter_method *j, const struct counter_log *host,
			 const struct counter_log *guest, const char **why)
{
	const struct curve *h = &j->host, *g = &j->guest;
	int ret = curve_make(&j->host, host);

	*why = ret == -ERANGE ? "the host's clock was set" : "too few snapshots of the host's counter";
	if (ret)
		return ret == -ERANGE ? -ENODATA : ret;
	ret = curve_make(&j->guest, guest);
	*why = ret == -ERANGE ? "its clock was set" : "too few snapshots of its counter";
	if (ret)
		return ret == -ERANGE ? -ENODATA : ret;
	*why = "its clock and its counter do not belong together";
	/* both clocks count ns, on one counter; a guest's stands still at times, but never runs ahead */
	if (fabs(g->ns / h->ns - 1) < CURVE_STEP &&
	    g->v[g->n - 1].counter - g->v[0].counter <= h->v[h->n - 1].counter - h->v[0].counter)
		return 0;
	return -ENODATA;
}

int counter_method_end(struct counter_method *j, int ret)
{
	curve_release(&j->host);
	curve_release(&j->guest);
	free(j->epochs);
	free(j->points);
	if (ret)
		sync_result_release(j->out);
	return ret;
}

int counter_solve(const struct counter_log *host, const struct counter_log *guest,
		  const struct cntvoff_log *cntvoff, const struct offset_vcpu *vcpus, size_t n,
		  struct sync_result *out, const char **why)
{
	struct counter_method j = { .out = out };
	enum sync_class class = SYNC_HARD;
	int ret;

	*out = (struct sync_result){ .method = "counter" };
	ret = counter_method_begin(&j, host, guest, why)
		      ?: epochs_by_cntvoff(&j, guest, cntvoff, vcpus, n, why);
	/* soft where records of CNTVOFF were lost while it changed */
	for (size_t i = 1; !ret && i < j.n; i++)
		if (j.epochs[i].from < j.epochs[i].start)
			class = SYNC_SOFT;
	return counter_method_end(&j, ret ?: counter_method_points(&j, class));
}

int counter_solve_pings(const struct counter_log *host, const struct counter_log *guest,
			struct sync_result *out, const char **why)
{
	struct counter_method j = { .out = out };
	int ret;

	*out = (struct sync_result){ .method = "ping" };
	ret = counter_method_begin(&j, host, guest, why);
	if (!ret) {
		*why = "its answers make no sense";
		ret = counter_method_pings(&j, guest)
			      ?: j.n ? counter_method_points(&j, SYNC_PING)
				     : -ENODATA;
	}
	return counter_method_end(&j, ret);
}
