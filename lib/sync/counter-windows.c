// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Windows and counters together: seen through the counters, what is left of the
 * offset is one unknown number, CNTVOFF, which all windows bound together; a VM that
 * was stopped has another one before than after.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sync/counter-method-priv.h"
#include "sync/solver.h"

/* The two clocks as seen through their counters: no drift. */
#define NO_RATE 1e-8
#define NO_BEND 1e-9

/* The guest's times while its counter was in [e->start, to) to the host's as they would be with e's CNTVOFF.
 */
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

/* By what the curves may be wrong. */
static uint64_t curves_off(const struct counter_method *j)
{
	const struct curve *h = &j->host, *g = &j->guest;

	return (uint64_t)ceil(curve_off(h, h->v[0].counter, h->v[h->n - 1].counter) +
			      curve_off(g, g->v[0].counter, g->v[g->n - 1].counter));
}

/* The windows that [from, to] may have to do with, wider by `off`. */
static int widen_windows(const struct sync_host *in, uint64_t from, uint64_t to, uint64_t off,
			 struct sync_windows *out)
{
	for (size_t i = 0; i < in->windows.n; i++) {
		struct sync_window w = in->windows.v[i];

		w.a -= w.a > off ? off : w.a;
		w.b += off;
		if (w.b >= from && w.a <= to && sync_windows_add(out, &w))
			return -ENOMEM;
	}
	return 0;
}

/* What all knots leave of the offset; false: they contradict each other, or one is not sure. */
static bool common_range(const struct sync_result *r, int64_t *low, int64_t *high)
{
	*low = INT64_MIN;
	*high = INT64_MAX;
	for (size_t i = 0; i < r->n_knots; i++) {
		const struct sync_knot *k = &r->knots[i];

		if (k->class == SYNC_NONE || k->bound > INT64_MAX / 4)
			return false;
		*low = k->offset - (int64_t)k->bound > *low ? k->offset - (int64_t)k->bound : *low;
		*high = k->offset + (int64_t)k->bound < *high ? k->offset + (int64_t)k->bound : *high;
	}
	return *low > INT64_MIN && *low <= *high;
}

/* Where the guest was paused the offset would jump within it. */
static bool one_offset(const struct sync_result *r, const struct sync_guest *g)
{
	return r->n_knots && !r->n_cuts && r->knots[0].time <= g->first &&
	       r->knots[r->n_knots - 1].time >= g->last;
}

static int take_range(const struct counter_method *j, struct epoch *e, const struct sync_result *r)
{
	int64_t low, high, middle;

	if (!common_range(r, &low, &high))
		return -ENODATA;
	middle = low + (high - low) / 2;
	e->cntvoff += (uint64_t)(int64_t)llround((double)middle / j->host.ns);
	e->slack = (uint64_t)ceil((double)(high - low) / 2 / j->host.ns) + 1;
	return 0;
}

/* Takes over what the solver found besides the offset. */
static void take_map(struct sync_result *out, struct sync_result *r)
{
	if (!out->n_vcpus) {
		out->method = r->method;
		out->vcpus = r->vcpus;
		out->n_vcpus = r->n_vcpus;
		r->vcpus = NULL;
	}
	out->events += r->events;
	out->outside += r->outside;
	out->map_changed = out->map_changed || r->map_changed;
}

struct part_job {
	struct counter_method *j;
	const struct sync_evidence *events;
	uint64_t off; /* ns, of the curves */
	enum sync_class class;
	const struct log *log;
};

/* Narrows an epoch's CNTVOFF from what the pings leave to what the windows do. */
static int solve_part(struct part_job *job, struct epoch *e, uint64_t to)
{
	const struct sync_evidence *events = job->events;
	uint64_t reach = (uint64_t)((double)e->slack * job->j->host.ns) + job->off + 1;
	struct sync_guest mapped = { 0 };
	struct sync_host host = *events->host;
	struct sync_evidence seen = { &host, &mapped, events->vcpus, events->n_vcpus };
	struct sync_result r = { 0 };
	struct sync_input in;
	int32_t *pids = NULL;
	int ret = map_guest(job->j, e, to, events->guest, &mapped);

	host.windows = (struct sync_windows){ 0 };
	if (ret)
		goto out;
	host.begin = mapped.first - (mapped.first > reach ? reach : mapped.first);
	host.begin = host.begin > events->host->begin ? host.begin : events->host->begin;
	host.end = mapped.last + reach < events->host->end ? mapped.last + reach : events->host->end;
	ret = widen_windows(events->host, host.begin, host.end, job->off, &host.windows);
	if (ret)
		goto out;
	ret = sync_input_make(&in, &seen, &pids);
	if (ret)
		goto out;
	in.prior = (struct sync_prior){ true, mapped.first, 0, reach };
	in.steady = false;
	in.max_rate = NO_RATE;
	in.max_bend = NO_BEND;
	ret = sync_solve(&in, &r, job->log);
	if (ret)
		goto out;
	ret = r.class == SYNC_NONE || !one_offset(&r, &mapped) ? -ENODATA : take_range(job->j, e, &r);
	if (ret)
		goto out;
	job->class = r.class < job->class ? r.class : job->class;
	take_map(job->j->out, &r);
out:
	sync_result_release(&r);
	sync_guest_release(&mapped);
	free(host.windows.v);
	free(pids);
	return ret;
}

/* ---- the moment of a pause -------------------------------------------------------------- */

/* An event where its vCPU did not run with the one CNTVOFF happened with the other. */
static bool event_fits(const struct part_job *job, const struct thread *t, const struct epoch *e,
		       uint64_t counter)
{
	uint64_t slack = (uint64_t)((double)e->slack * job->j->host.ns) + job->off + 1;

	return thread_distance(t, curve_clock(&job->j->host, counter + e->cntvoff)) <= slack;
}

static void narrow_by(const struct part_job *job, const struct thread *t, const struct sync_cpu *c,
		      struct epoch *e)
{
	const uint64_t from = e->from, to = e->start;

	for (size_t i = 0; i < c->n; i++) {
		uint64_t counter = curve_counter(&job->j->guest, c->times[i]);

		if (counter <= from || counter >= to)
			continue;
		if (counter > e->from && !event_fits(job, t, e, counter))
			e->from = counter;
		if (counter < e->start && !event_fits(job, t, e - 1, counter))
			e->start = counter;
	}
}

/* Between the last event that the new CNTVOFF suits ill and the first one that the old one does. */
static int narrow_starts(struct part_job *job)
{
	const struct sync_windows *w = &job->events->host->windows;
	struct sync_input in = { .windows = w->v, .n_windows = w->n };
	struct problem p = { .in = &in, .log = job->log };
	int ret = windows_threads(&p);

	for (size_t i = 1; i < job->j->n && !ret; i++) {
		struct epoch *e = &job->j->epochs[i], before = *e;

		for (size_t k = 0; k < job->events->guest->n_cpus; k++) {
			const struct sync_cpu *c = &job->events->guest->cpus[k];
			const struct thread *t = windows_thread(&p, sync_pid(job->j->out, c->cpu));

			if (t)
				narrow_by(job, t, c, e);
		}
		if (e->from >= e->start) /* they contradict each other */
			*e = before;
	}
	windows_release(&p);
	return ret;
}

static int solve_parts(struct part_job *job)
{
	struct counter_method *j = job->j;

	for (size_t i = 0; i < j->n; i++) {
		uint64_t to = i + 1 < j->n ? j->epochs[i + 1].from : UINT64_MAX;
		int ret = solve_part(job, &j->epochs[i], to);

		if (ret)
			return ret;
	}
	return j->n > 1 ? narrow_starts(job) : 0;
}

int counter_solve_windows(const struct counter_log *host, const struct counter_log *guest,
			  const struct sync_evidence *events, struct sync_result *out, const struct log *log)
{
	struct counter_method j = { .out = out };
	struct part_job job = { .j = &j, .events = events, .class = SYNC_HARD, .log = log };
	const char *why;
	int ret;

	*out = (struct sync_result){ .method = "none" };
	if (!events->guest->n_cpus)
		return -ENODATA;
	ret = counter_method_begin(&j, host, guest, &why);
	if (ret)
		goto out;
	ret = counter_method_pings(&j, guest);
	if (!ret && !j.n)
		ret = -ENODATA;
	if (ret)
		goto out;
	job.off = curves_off(&j);
	ret = solve_parts(&job);
	if (!ret)
		ret = counter_method_knots(&j, job.class);
out:
	return counter_method_end(&j, ret);
}
