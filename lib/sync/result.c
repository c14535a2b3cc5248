// SPDX-License-Identifier: LGPL-2.1-or-later
/* A guest's offsets as plain data: looking them up, and turning them into options. */
#include "sync/result.h"

#include "base/array.h"

const char *sync_class_name(enum sync_class c)
{
	static const char *const names[] = { "none", "ping", "soft", "hard" };

	return names[c];
}

void sync_result_release(struct sync_result *r)
{
	free(r->points);
	free(r->jumps);
	free(r->vcpus);
	free(r->bands);
	*r = (struct sync_result){ 0 };
}

/* The last point that is not after the time; the first for a time before all. */
static size_t point_at(const struct sync_result *r, uint64_t time)
{
	size_t i = array_lower_bound(r->points, r->n_points, sizeof(*r->points), u64_not_above, &time);

	return i ? i - 1 : 0;
}

bool sync_is_jump(const struct sync_result *r, size_t point)
{
	for (size_t i = 0; i < r->n_jumps; i++)
		if (r->jumps[i] == point)
			return true;
	return false;
}

int64_t sync_offset(const struct sync_result *r, uint64_t time)
{
	struct offset_point two[2];
	struct offset_table t = { two, 2 };
	size_t i;

	if (r->n_points < 2)
		return r->n_points ? r->points[0].offset : 0;
	i = point_at(r, time);
	i = i + 1 == r->n_points ? i - 1 : i;
	for (int k = 0; k < 2; k++)
		two[k] = (struct offset_point){ r->points[i + k].time, r->points[i + k].offset, 1, 0 };
	return (int64_t)(offset_apply(&t, OFFSET_INTERPOLATE, time) - time);
}

uint64_t sync_bound(const struct sync_result *r, uint64_t time)
{
	size_t i;

	if (!r->n_points || time < r->points[0].time || time > r->points[r->n_points - 1].time)
		return UINT64_MAX;
	i = point_at(r, time);
	if (i + 1 == r->n_points || time == r->points[i].time)
		return r->points[i].bound;
	return r->points[i].bound > r->points[i + 1].bound ? r->points[i].bound : r->points[i + 1].bound;
}

double sync_drift_ppm(const struct sync_result *r)
{
	double rise = 0, run = 0;

	for (size_t i = 1; i < r->n_points; i++) {
		if (sync_is_jump(r, i))
			continue;
		rise += (double)(r->points[i].offset - r->points[i - 1].offset);
		run += (double)(r->points[i].time - r->points[i - 1].time);
	}
	return run > 0 ? rise / run * 1e6 : 0;
}

double sync_coverage(const struct sync_result *r)
{
	return r->events ? 1 - (double)r->outside / (double)r->events : 0;
}

/* By halving the range of values: without room for a sorted copy, which could not be had. */
uint64_t sync_median_bound(const struct sync_result *r)
{
	uint64_t low = 0, high = UINT64_MAX;
	size_t n = 0;

	for (size_t i = 0; i < r->n_points; i++)
		n += r->points[i].bound != UINT64_MAX;
	while (n && low < high) {
		uint64_t mid = low + (high - low) / 2;
		size_t below = 0;

		for (size_t i = 0; i < r->n_points; i++)
			below += r->points[i].bound <= mid;
		if (below > n / 2)
			high = mid;
		else
			low = mid + 1;
	}
	return high;
}

int32_t sync_pid(const struct sync_result *r, unsigned int cpu)
{
	for (size_t i = 0; i < r->n_vcpus; i++)
		if (r->vcpus[i].cpu == cpu)
			return r->vcpus[i].pid;
	return 0;
}

int sync_time_shift(const struct sync_result *r, uint64_t host_id, uint32_t n_cpus, struct offset_shift *out)
{
	uint32_t n = (uint32_t)r->n_points;
	struct offset_point *v;
	uint64_t *bounds;
	int ret = -ENOMEM;

	*out = (struct offset_shift){ 0 };
	if (!n)
		return -ENODATA;
	v = calloc(n, sizeof(*v));
	bounds = calloc(n, sizeof(*bounds));
	if (!v || !bounds)
		goto out;
	for (uint32_t i = 0; i < n; i++) {
		v[i] = (struct offset_point){ r->points[i].time, r->points[i].offset, 1, 0 };
		bounds[i] = r->points[i].bound;
	}
	ret = offset_shift_fill(out, host_id, n_cpus, v, n)
		      ?: offset_shift_set_bounds(out, bounds, n, r->method, sync_class_name(r->class));
	if (ret)
		offset_shift_release(out);
out:
	free(bounds);
	free(v);
	return ret;
}

int sync_guest_option(const struct sync_result *r, const struct offset_vcpu *known, size_t n_known,
		      uint32_t n_cpus, char *name, uint64_t trace_id, struct buf *out)
{
	struct offset_guest guest = { .name = name, .trace_id = trace_id, .n = n_cpus };

	guest.vcpus = calloc(n_cpus + 1, sizeof(*guest.vcpus));
	if (!guest.vcpus)
		return -ENOMEM;
	for (uint32_t i = 0; i < n_cpus; i++)
		guest.vcpus[i] = (struct offset_vcpu){ i, (uint32_t)sync_pid(r, i) };
	for (size_t i = 0; i < n_known; i++)
		if (known[i].cpu < n_cpus && !guest.vcpus[known[i].cpu].pid)
			guest.vcpus[known[i].cpu].pid = known[i].pid;
	offset_guest_encode(&guest, out);
	free(guest.vcpus);
	return buf_status(out);
}
