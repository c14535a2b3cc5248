// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Windows and counters together: seen through the counters, what is left of the
 * offset is one unknown number, CNTVOFF, which all windows bound together.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exact-priv.h"

/* The two clocks as seen through their counters: no drift. */
#define NO_RATE 1e-8
#define NO_BEND 1e-9

/* The guest's times to the host's as they would be with this CNTVOFF. */
static int map_guest(const struct exact *j, uint64_t voff, const struct sync_guest *in, struct sync_guest *out)
{
	*out = (struct sync_guest){ .cpus = calloc(in->n_cpus + 1, sizeof(*out->cpus)) };
	if (!out->cpus)
		return -ENOMEM;
	for (; out->n_cpus < in->n_cpus; out->n_cpus++) {
		const struct sync_cpu *c = &in->cpus[out->n_cpus];
		struct sync_cpu *to = &out->cpus[out->n_cpus];

		*to = (struct sync_cpu){ .cpu = c->cpu, .times = calloc(c->n + 1, sizeof(*to->times)), .n = c->n };
		if (!to->times)
			return -ENOMEM;
		for (size_t i = 0; i < c->n; i++)
			to->times[i] = curve_clock(&j->host, curve_counter(&j->guest, c->times[i]) + voff);
	}
	return 0;
}

/* By what the curves may be wrong. */
static int widen(const struct exact *j, const struct sync_host *in, struct sync_windows *out)
{
	const struct curve *h = &j->host, *g = &j->guest;
	uint64_t off = (uint64_t)ceil(curve_off(h, h->v[0].counter, h->v[h->n - 1].counter) +
				      curve_off(g, g->v[0].counter, g->v[g->n - 1].counter));
	int ret = 0;

	for (size_t i = 0; i < in->windows.n && !ret; i++) {
		struct sync_window w = in->windows.v[i];

		w.a -= w.a > off ? off : w.a;
		w.b += off;
		ret = sync_windows_add(out, &w);
	}
	return ret;
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

static int take_range(struct exact *j, uint64_t voff, const struct sync_result *r)
{
	struct epoch e = { 0 };
	int64_t low, high;

	if (r->n_cuts || !common_range(r, &low, &high))
		return -ENODATA;
	e.voff = voff + (uint64_t)(int64_t)llround((double)(low + (high - low) / 2) / j->host.ns);
	e.slack = (uint64_t)ceil((double)(high - low) / 2 / j->host.ns) + 1;
	return exact_add_epoch(j, &e);
}

/*
 * The middle of what the pings leave, and how far it reaches. Where they tell of a
 * pause it is left to sync_files to find the moment.
 */
static int guess(struct exact *j, const struct counter_log *guest, uint64_t *voff, struct sync_prior *prior)
{
	int ret = exact_pings(j, guest);

	if (!ret && j->n != 1)
		ret = -ENODATA;
	if (ret)
		return ret;
	*voff = j->epochs[0].voff;
	*prior = (struct sync_prior){
		.valid = true,
		.time = curve_clock(&j->host, j->guest.v[j->guest.n / 2].counter + *voff),
		.bound = (uint64_t)((double)j->epochs[0].slack * j->host.ns) + 1,
	};
	j->n = 0;
	return 0;
}

/* Takes over what the solver found besides the offset. */
static void take_map(struct sync_result *out, struct sync_result *r)
{
	out->method = r->method;
	out->vcpus = r->vcpus;
	out->n_vcpus = r->n_vcpus;
	r->vcpus = NULL;
	out->events = r->events;
	out->outside = r->outside;
	out->unsure = r->unsure;
	out->map_changed = r->map_changed;
}

static int solve(struct exact *j, const struct exact_events *e, uint64_t voff, const struct sync_prior *prior,
		 const struct log *log)
{
	struct sync_windows windows = { 0 };
	struct sync_guest mapped = { 0 };
	struct sync_host host = *e->host;
	struct sync_result r = { 0 };
	struct sync_input in;
	int32_t *pids = NULL;
	int ret = map_guest(j, voff, e->guest, &mapped) ?: widen(j, e->host, &windows);

	host.windows = windows;
	if (!ret)
		ret = sync_input_make(&in, &host, &mapped, e->vcpus, e->n_vcpus, &pids);
	if (!ret) {
		in.prior = *prior;
		in.max_rate = NO_RATE;
		in.max_bend = NO_BEND;
		ret = sync_solve(&in, &r, log);
	}
	if (!ret)
		ret = r.class == SYNC_NONE ? -ENODATA : take_range(j, voff, &r);
	if (!ret)
		ret = exact_knots(j, r.class);
	if (!ret)
		take_map(j->out, &r);
	sync_result_release(&r);
	sync_guest_release(&mapped);
	free(windows.v);
	free(pids);
	return ret;
}

int exact_windows(const struct counter_log *host, const struct counter_log *guest,
		  const struct exact_events *events, struct sync_result *out, const struct log *log)
{
	struct exact j = { .out = out };
	struct sync_prior prior;
	const char *why;
	uint64_t voff;
	int ret;

	*out = (struct sync_result){ .method = "none" };
	if (!events->guest->n_cpus)
		return -ENODATA;
	ret = exact_begin(&j, host, guest, &why);
	if (!ret)
		ret = guess(&j, guest, &voff, &prior);
	if (!ret)
		ret = solve(&j, events, voff, &prior, log);
	return exact_end(&j, ret);
}
