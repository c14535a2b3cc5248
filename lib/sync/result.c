// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sync/problem.h"

/* What a result says, and how it is written. */

static size_t knot_at(const struct sync_result *r, uint64_t time)
{
	size_t low = 0, high = r->n_knots;

	while (high - low > 1) {
		size_t mid = low + (high - low) / 2;

		if (r->knots[mid].time <= time)
			low = mid;
		else
			high = mid;
	}
	return low;
}

static bool is_cut(const struct sync_result *r, size_t knot)
{
	for (size_t i = 0; i < r->n_cuts; i++)
		if (r->cuts[i] == knot)
			return true;
	return false;
}

int64_t sync_offset(const struct sync_result *r, uint64_t time)
{
	struct offset_knot two[2];
	struct offset_table t = { two, 2 };
	size_t i;

	if (!r->n_knots)
		return 0;
	i = knot_at(r, time);
	if (r->n_knots == 1)
		return r->knots[0].offset;
	i = i + 1 == r->n_knots ? i - 1 : i;
	for (int k = 0; k < 2; k++)
		two[k] = (struct offset_knot){ r->knots[i + k].time, r->knots[i + k].offset, 1, 0 };
	return (int64_t)(offset_apply(&t, OFFSET_INTERPOLATE, time) - time);
}

uint64_t sync_bound(const struct sync_result *r, uint64_t time)
{
	size_t i;

	if (!r->n_knots || time < r->knots[0].time || time > r->knots[r->n_knots - 1].time)
		return UINT64_MAX;
	i = knot_at(r, time);
	if (i + 1 == r->n_knots || time == r->knots[i].time)
		return r->knots[i].bound;
	return r->knots[i].bound > r->knots[i + 1].bound ? r->knots[i].bound : r->knots[i + 1].bound;
}

double sync_drift_ppm(const struct sync_result *r)
{
	double rise = 0, run = 0;

	for (size_t i = 1; i < r->n_knots; i++) {
		if (is_cut(r, i))
			continue;
		rise += (double)(r->knots[i].offset - r->knots[i - 1].offset);
		run += (double)(r->knots[i].time - r->knots[i - 1].time);
	}
	return run > 0 ? rise / run * 1e6 : 0;
}

double sync_coverage(const struct sync_result *r)
{
	return r->events ? 1 - (double)r->outside / (double)r->events : 0;
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

uint64_t sync_median_bound(const struct sync_result *r)
{
	uint64_t *v = malloc((r->n_knots + 1) * sizeof(*v)), median = UINT64_MAX;
	size_t n = 0;

	for (size_t i = 0; i < r->n_knots && v; i++)
		if (r->knots[i].bound != UINT64_MAX)
			v[n++] = r->knots[i].bound;
	if (n) {
		qsort(v, n, sizeof(*v), by_value);
		median = v[n / 2];
	}
	free(v);
	return median;
}

/* ---- checking other offsets ---------------------------------------------------------- */

static int32_t pid_of(const struct sync_result *r, unsigned int cpu)
{
	for (size_t i = 0; i < r->n_vcpus; i++)
		if (r->vcpus[i].cpu == cpu)
			return r->vcpus[i].pid;
	return 0;
}

static void check_cpu(const struct problem *p, const struct sync_cpu *c, const struct thread *t,
		      const struct offset_shift *shift, struct sync_check *out)
{
	for (size_t k = 0; k < c->n; k++) {
		uint64_t at = offset_shift_apply(shift, c->cpu, c->times[k]), far;
		bool unknown;

		if (at < p->host0 || at > p->host1)
			continue;
		far = span_distance(t, at, &unknown);
		out->events++;
		out->outside += far > 0;
		out->worst = far > out->worst ? far : out->worst;
	}
}

int sync_check(const struct sync_input *in, const struct sync_result *map, const struct offset_shift *shift,
	       struct sync_check *out)
{
	struct problem p = { .in = in, .host0 = in->begin, .host1 = in->end };
	int ret = windows_threads(&p);

	*out = (struct sync_check){ 0 };
	if (!in->end)
		p.host1 = UINT64_MAX;
	for (size_t i = 0; i < in->n_cpus && !ret; i++) {
		int32_t pid = pid_of(map, in->cpus[i].cpu);

		for (size_t t = 0; t < p.n_threads && pid; t++)
			if (p.threads[t].pid == pid)
				check_cpu(&p, &in->cpus[i], &p.threads[t], shift, out);
	}
	windows_release(&p);
	return ret;
}

/* ---- options ------------------------------------------------------------------------------ */

int sync_time_shift(const struct sync_result *r, uint64_t host_id, uint32_t n_cpus, struct offset_shift *out)
{
	struct offset_knot *v;
	uint64_t *bounds;
	int ret = -ENOMEM;

	*out = (struct offset_shift){ 0 };
	if (!r->n_knots)
		return -ENODATA;
	v = calloc(r->n_knots, sizeof(*v));
	bounds = calloc(r->n_knots, sizeof(*bounds));
	for (size_t i = 0; i < r->n_knots && v && bounds; i++) {
		v[i] = (struct offset_knot){ r->knots[i].time, r->knots[i].offset, 1, 0 };
		bounds[i] = r->knots[i].bound;
	}
	if (v && bounds)
		ret = offset_shift_fill(out, host_id, n_cpus, v, (uint32_t)r->n_knots);
	if (!ret)
		ret = offset_shift_set_bounds(out, bounds, (uint32_t)r->n_knots, r->method,
					      sync_class_name(r->class));
	if (ret)
		offset_shift_release(out);
	free(bounds);
	free(v);
	return ret;
}

int sync_guest_option(const struct sync_result *r, const char *name, uint64_t guest_id,
		      struct offset_guest *out)
{
	uint32_t n = 0;

	*out = (struct offset_guest){ .trace_id = guest_id };
	for (size_t i = 0; i < r->n_vcpus; i++)
		n = r->vcpus[i].cpu >= n ? r->vcpus[i].cpu + 1 : n;
	out->name = strdup(name);
	out->vcpus = calloc(n ? n : 1, sizeof(*out->vcpus));
	if (!out->name || !out->vcpus) {
		offset_guest_release(out);
		return -ENOMEM;
	}
	out->n = n;
	for (uint32_t i = 0; i < n; i++)
		out->vcpus[i] = (struct offset_vcpu){ i, (uint32_t)pid_of(r, i) };
	return 0;
}
