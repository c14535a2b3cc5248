// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Windows and counters together: seen through the counters, what is left of the offset is one unknown number,
 * CNTVOFF, which all windows bound together; a VM that was stopped has another one before than after.
 */
#include "sync/counter-method-priv.h"
#include "sync/solver.h"

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
			ret = sync_windows_add(&host.windows, &w);
	}
	ret = ret ?: sync_input_make(&in, &seen, &pids);
	if (ret)
		goto out;
	in.prior = (struct sync_prior){ true, mapped.first, 0, reach };
	in.steady = false;
	in.max_rate = NO_RATE;
	in.max_bend = NO_BEND;
	ret = sync_solve(&in, &r, job->log);
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

/* An event where its vCPU did not run with the one CNTVOFF happened with the other. */
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
	struct problem p = { .in = &in, .log = job->log };
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
			  const struct sync_evidence *events, struct sync_result *out, const struct log *log)
{
	struct counter_method j = { .out = out };
	const struct curve *h = &j.host, *g = &j.guest;
	struct part_job job = { .j = &j, .events = events, .class = SYNC_HARD, .log = log };
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
