// SPDX-License-Identifier: LGPL-2.1-or-later
/* The counter method: a guest's clock by the machine's counter and its CNTVOFF, or by pings. */
#include <math.h>

#include "sync/evidence.h"
#include "sync/solver.h"

#define CURVE_STEP 2e-3 /* no clock is slewed by so much: it was set */
#define SLEW_ALONE 5e-6 /* what a clock's rate may change by when nothing shows how it does */
#define SLEW_LEAST 1e-7 /* ... by more than its rates beside show */
#define WIDE	   4	/* brackets so many times wider than usual were interrupted */

/* From shot i to i + 1 a chord, off[i] ns being the furthest that the clock can be from it. */
struct curve {
	struct counter_shot *v;
	size_t n;
	double *off;
	double ns; /* of a tick, about */
};

/*
 * CNTVOFF from `start` on, a value of the guest's counter. It may have begun
 * anywhere from `from` on: in between there is no bound.
 */
struct epoch {
	uint64_t from, start;	 /* 0, 0: the first */
	uint64_t end;		 /* last value seen in it */
	uint64_t cntvoff, slack; /* ticks */
};

struct counter_method {
	struct curve host, guest;
	struct epoch *epochs;
	size_t n;
	struct sync_result *out;
	uint64_t *points; /* of the guest's counter, where points are wanted */
	size_t n_points;
};

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

/* Beyond the shots the outer chords go on. */
static uint64_t curve_clock(const struct curve *c, uint64_t counter)
{
	size_t i = curve_interval(c, counter);
	double ticks = (double)(int64_t)(counter - c->v[i].counter);

	return c->v[i].clock + (uint64_t)(int64_t)llround(ticks * chord_slope(c, i));
}

static uint64_t curve_counter(const struct curve *c, uint64_t clock)
{
	size_t i = array_lower_bound(c->v + 1, c->n - 2, sizeof(*c->v), clock_before, &clock);
	double ns = (double)(int64_t)(clock - c->v[i].clock);

	return c->v[i].counter + (uint64_t)(int64_t)llround(ns / chord_slope(c, i));
}

/* Largest distance of the clock from the curve between two values of the counter, ns. */
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

/* True if a CNTVOFF in [low, high] agrees with the guest's answer. */
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
 * As many epochs as needed, each offset between the latest question and the earliest answer. A ping that was
 * asked before a stop of the VM and answered after it fits both offsets, and bounds neither. 0, -ENOMEM,
 * -ENODATA: an answer before its question.
 */
static int counter_method_pings(struct counter_method *j, const struct counter_log *guest)
{
	struct range now, next;
	struct epoch e;

	for (const struct counter_ping *p = guest->pings; p < guest->pings + guest->n_pings; p++)
		if ((int64_t)(p->back - p->last - (p->sent - p->first)) < 0)
			return -ENODATA;
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

/* Fills the result's points, each epoch's start with another just before it, jumps and class. 0 or -ENOMEM.
 */
static int counter_method_points(struct counter_method *j, enum sync_class class)
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

/* Makes both curves. 0, -ENOMEM, -ENODATA with *why; counter_method_end it in any case. */
static int counter_method_begin(struct counter_method *j, const struct counter_log *host,
				const struct counter_log *guest, const char **why)
{
	const struct counter_ping *p = guest->pings;
	size_t n = guest->n_pings;
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
	if (fabs(j->guest.ns / j->host.ns - 1) < CURVE_STEP &&
	    (!n || p[n - 1].first - p[0].last <= p[n - 1].back - p[0].sent))
		return 0;
	return -ENODATA;
}

/* Frees all but the result, that too on an error. ret: what failed before, and is returned. */
static int counter_method_end(struct counter_method *j, int ret)
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

/*
 * ---- windows and counters together: seen through the counters, what is left of the offset is one unknown
 * number, CNTVOFF, which all windows bound together; a VM that was stopped has another one before than after
 */

/* The two clocks as seen through their counters: no drift. */
#define NO_RATE 1e-8
#define NO_BEND 1e-9

/* The guest's times while its counter was in [e->start, to), as the host's would be with e's CNTVOFF. */
static int map_guest(const struct counter_method *j, const struct epoch *e, uint64_t to,
		     const struct sync_guest *in, struct sync_guest *out)
{
	*out = (struct sync_guest){ .cpus = calloc(in->n_cpus + 1, sizeof(*out->cpus)) };
	if (!out->cpus)
		return -ENOMEM;
	for (; out->n_cpus < in->n_cpus; out->n_cpus++) {
		const struct sync_cpu *c = &in->cpus[out->n_cpus];
		struct sync_cpu *mapped = &out->cpus[out->n_cpus];

		*mapped = (struct sync_cpu){ .cpu = c->cpu, .times = calloc(c->n + 1, sizeof(uint64_t)) };
		if (!mapped->times)
			return -ENOMEM;
		for (size_t i = 0; i < c->n; i++) {
			uint64_t counter = curve_counter(&j->guest, c->times[i]), at;

			if (counter < e->start || counter >= to)
				continue;
			at = curve_clock(&j->host, counter + e->cntvoff);
			mapped->times[mapped->n++] = at;
			out->first = out->last && out->first < at ? out->first : at;
			out->last = out->last > at ? out->last : at;
		}
	}
	return 0;
}

/* Range of the offset that all points allow; false: they contradict each other, or one has no bound. */
static bool common_range(const struct sync_result *r, int64_t *low, int64_t *high)
{
	*low = INT64_MIN;
	*high = INT64_MAX;
	for (size_t i = 0; i < r->n_points; i++) {
		const struct sync_offset_point *k = &r->points[i];

		if (k->class == SYNC_NONE || k->bound > INT64_MAX / 4)
			return false;
		*low = k->offset - (int64_t)k->bound > *low ? k->offset - (int64_t)k->bound : *low;
		*high = k->offset + (int64_t)k->bound < *high ? k->offset + (int64_t)k->bound : *high;
	}
	return *low > INT64_MIN && *low <= *high;
}

struct part_job {
	struct counter_method *j;
	const struct sync_evidence *events;
	uint64_t off; /* ns, of the curves */
	enum sync_class class;
};

/* Narrows an epoch's CNTVOFF from what the pings leave to what the windows do. */
static int solve_part(struct part_job *job, struct epoch *e, uint64_t to)
{
	const struct sync_evidence *events = job->events;
	uint64_t reach = (uint64_t)((double)e->slack * job->j->host.ns) + job->off + 1;
	struct sync_guest mapped = { 0 };
	struct sync_host host = *events->host;
	struct sync_evidence seen = { &host, &mapped, events->vcpus, events->n_vcpus };
	struct sync_result r = { 0 }, *all = job->j->out;
	struct sync_input in;
	int32_t *pids = NULL;
	int64_t low, high, middle;
	int ret = map_guest(job->j, e, to, events->guest, &mapped);

	host.windows = (struct sync_windows){ 0 };
	if (ret)
		goto out;
	host.begin = mapped.first - (mapped.first > reach ? reach : mapped.first);
	host.begin = host.begin > events->host->begin ? host.begin : events->host->begin;
	host.end = mapped.last + reach < events->host->end ? mapped.last + reach : events->host->end;
	/* the windows that these times may have to do with, wider by the curves' error */
	for (size_t i = 0; i < events->host->windows.n && !ret; i++) {
		struct sync_window w = events->host->windows.v[i];

		w.a -= w.a > job->off ? job->off : w.a;
		w.b += job->off;
		if (w.b >= host.begin && w.a <= host.end)
			ret = array_push(&host.windows.v, &host.windows.n, &w, sizeof(w));
	}
	ret = ret ?: sync_input_make(&in, &seen, &pids);
	if (ret)
		goto out;
	in.prior = (struct sync_prior){ true, mapped.first, 0, reach };
	in.steady = false;
	in.max_rate = NO_RATE;
	in.max_bend = NO_BEND;
	ret = sync_solve(&in, &r);
	if (ret)
		goto out;
	ret = -ENODATA;
	/* one offset covers the guest's events: a pause of the guest would make it jump */
	if (r.class == SYNC_NONE || !r.n_points || r.n_jumps || r.points[0].time > mapped.first ||
	    r.points[r.n_points - 1].time < mapped.last || !common_range(&r, &low, &high))
		goto out;
	ret = 0;
	middle = low + (high - low) / 2;
	e->cntvoff += (uint64_t)(int64_t)llround((double)middle / job->j->host.ns);
	e->slack = (uint64_t)ceil((double)(high - low) / 2 / job->j->host.ns) + 1;
	job->class = r.class < job->class ? r.class : job->class;
	if (!all->n_vcpus) {
		all->method = r.method;
		all->vcpus = r.vcpus;
		all->n_vcpus = r.n_vcpus;
		r.vcpus = NULL;
	}
	all->events += r.events;
	all->outside += r.outside;
	all->worst = r.worst > all->worst ? r.worst : all->worst;
	all->map_changed = all->map_changed || r.map_changed;
out:
	sync_result_release(&r);
	sync_guest_release(&mapped);
	free(host.windows.v);
	free(pids);
	return ret;
}

/* True if the event can belong to e: if its vCPU did not run with one CNTVOFF then, it belongs to the other.
 */
static bool event_fits(const struct part_job *job, const struct thread *t, const struct epoch *e,
		       uint64_t counter)
{
	uint64_t slack = (uint64_t)((double)e->slack * job->j->host.ns) + job->off + 1;

	return thread_distance(t, curve_clock(&job->j->host, counter + e->cntvoff)) <= slack;
}

/* Between the last event that the new CNTVOFF suits ill and the first one that the old one does. */
static int narrow_starts(struct part_job *job)
{
	const struct sync_windows *w = &job->events->host->windows;
	struct sync_input in = { .windows = w->v, .n_windows = w->n };
	struct problem p = { .in = &in };
	int ret = windows_threads(&p);

	for (size_t i = 1; i < job->j->n && !ret; i++) {
		struct epoch *e = &job->j->epochs[i], before = *e;

		for (size_t k = 0; k < job->events->guest->n_cpus; k++) {
			const struct sync_cpu *c = &job->events->guest->cpus[k];
			const struct thread *t = windows_thread(&p, sync_pid(job->j->out, c->cpu));
			const uint64_t from = e->from, to = e->start;

			for (size_t n = 0; t && n < c->n; n++) {
				uint64_t counter = curve_counter(&job->j->guest, c->times[n]);

				if (counter <= from || counter >= to)
					continue;
				if (counter > e->from && !event_fits(job, t, e, counter))
					e->from = counter;
				if (counter < e->start && !event_fits(job, t, e - 1, counter))
					e->start = counter;
			}
		}
		if (e->from >= e->start) /* they contradict each other */
			*e = before;
	}
	windows_release(&p);
	return ret;
}

int counter_solve_windows(const struct counter_log *host, const struct counter_log *guest,
			  const struct sync_evidence *events, struct sync_result *out)
{
	struct counter_method j = { .out = out };
	const struct curve *h = &j.host, *g = &j.guest;
	struct part_job job = { .j = &j, .events = events, .class = SYNC_HARD };
	const char *why;
	int ret;

	*out = (struct sync_result){ .method = "none" };
	if (!events->guest->n_cpus)
		return -ENODATA;
	ret = counter_method_begin(&j, host, guest, &why)
		      ?: counter_method_pings(&j, guest)
		      ?: j.n ? 0 : -ENODATA;
	if (ret)
		goto out;
	job.off = (uint64_t)ceil(curve_off(h, h->v[0].counter, h->v[h->n - 1].counter) +
				 curve_off(g, g->v[0].counter, g->v[g->n - 1].counter));
	for (size_t i = 0; i < j.n && !ret; i++)
		ret = solve_part(&job, &j.epochs[i], i + 1 < j.n ? j.epochs[i + 1].from : UINT64_MAX);
	if (!ret && j.n > 1)
		ret = narrow_starts(&job);
	ret = ret ?: counter_method_points(&j, job.class);
out:
	return counter_method_end(&j, ret);
}
