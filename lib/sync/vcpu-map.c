// SPDX-License-Identifier: LGPL-2.1-or-later
/* Maps guest CPUs to host threads by the threads that could have run their events. */
#include "sync/solver.h"

#define SOLVE_EVENTS 48 /* per CPU, to begin with */
#define SOLVE_REACH  16 /* slices on each side */
#define CHECK_EVENTS 512
#define CHECK_MIN    30
#define PART_MIN     0.6 /* of a CPU's events inside: less is no match */

void map_clear(struct problem *p)
{
	for (size_t i = 0; i < p->in->n_cpus; i++)
		p->map[i] = -1;
}

bool map_any(const struct problem *p)
{
	for (size_t i = 0; i < p->in->n_cpus; i++)
		if (p->map[i] >= 0)
			return true;
	return false;
}

struct pair {
	double part;
	uint32_t best;
	size_t cpu, thread; /* indices */
};

static int compare_pairs(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;

	return ORDER(y->part, x->part) ?: ORDER(y->best, x->best);
}

int map_solve(struct problem *p, size_t k, int64_t low, int64_t high)
{
	size_t n = p->in->n_cpus * p->n_threads;
	uint64_t want = SOLVE_EVENTS * p->in->n_cpus;
	struct slice s = p->slices[k];
	struct pair *v = calloc(n + 1, sizeof(*v)), *next = v;
	bool *taken = calloc(p->n_threads + 1, sizeof(*taken));
	int ret = -ENOMEM;

	map_clear(p);
	if (!v || !taken)
		goto out;
	/* a stretch about slice k with events enough for each CPU */
	for (size_t i = 1; i <= SOLVE_REACH && slice_events(p, s.t0, s.t1) < want; i++) {
		s.t0 = p->slices[k > i ? k - i : 0].t0;
		s.t1 = p->slices[k + i < p->n_slices ? k + i : p->n_slices - 1].t1;
	}
	s.rate = p->rate;
	s.slope = 0;
	s.offset = low + (high - low) / 2;
	for (size_t i = 0; i < p->in->n_cpus; i++)
		for (size_t t = 0; t < p->n_threads; t++) {
			p->map[i] = (int)t;
			ret = sweep_slice(p, &s, low, high);
			p->map[i] = -1;
			if (ret)
				goto out;
			*next++ = (struct pair){ s.n ? (double)s.best / s.n : 0, s.best, i, t };
		}
	/* the best pairs first, until each CPU or each thread is taken */
	qsort(v, n, sizeof(*v), compare_pairs);
	for (size_t i = 0; i < n; i++) {
		if (v[i].part < PART_MIN || p->map[v[i].cpu] >= 0 || taken[v[i].thread])
			continue;
		p->map[v[i].cpu] = (int)v[i].thread;
		taken[v[i].thread] = true;
	}
	ret = 0;
out:
	free(v);
	free(taken);
	return ret;
}

static uint32_t outside_of(const struct problem *p, const struct sync_result *r, size_t cpu, size_t thread,
			   uint32_t *n)
{
	const struct sync_cpu *c = &p->in->cpus[cpu];
	size_t step = c->n / CHECK_EVENTS + 1;
	uint32_t out = 0;

	*n = 0;
	for (size_t i = 0; i < c->n; i += step) {
		uint64_t bound = sync_bound(r, c->times[i]);
		uint64_t at = c->times[i] + (uint64_t)sync_offset(r, c->times[i]);

		if (bound == UINT64_MAX || at < p->host0 || at > p->host1)
			continue;
		++*n;
		out += thread_distance(&p->threads[thread], at) > bound / 4;
	}
	return out;
}

bool map_check(struct problem *p, const struct sync_result *r)
{
	bool changed = false;

	for (size_t i = 0; i < p->in->n_cpus; i++) {
		bool given = p->in->pids && p->in->pids[i], clear;
		int before = p->map[i];
		/* events of one window go together, but only one in so many is looked at */
		size_t windows = p->in->cpus[i].n / CHECK_EVENTS + 1, thread = 0;
		double burst = p->burst / (double)windows;
		/* events, and outside of the two best threads */
		uint32_t n = 0, best = UINT32_MAX, second = UINT32_MAX, margin;

		for (size_t t = 0; t < p->n_threads; t++) {
			uint32_t seen, out = outside_of(p, r, i, t, &seen);

			n = seen > n ? seen : n;
			if (out < best) {
				second = best;
				best = out;
				thread = t;
			} else if (out < second) {
				second = out;
			}
		}
		margin = (uint32_t)(4 + 4 * sqrt(fmax(burst, 1) * best));
		clear = n >= CHECK_MIN && best <= n * (1 - PART_MIN) &&
			(second == UINT32_MAX || second >= best + margin);
		p->map[i] = clear ? (int)thread : given ? before : -1;
		changed = changed || p->map[i] != before;
	}
	/* the better one keeps a thread that two CPUs have */
	for (size_t i = 0; i < p->in->n_cpus; i++)
		for (size_t k = i + 1; k < p->in->n_cpus; k++) {
			uint32_t a, b, na, nb;

			if (p->map[i] < 0 || p->map[i] != p->map[k])
				continue;
			a = outside_of(p, r, i, (size_t)p->map[i], &na);
			b = outside_of(p, r, k, (size_t)p->map[k], &nb);
			p->map[(uint64_t)a * (nb + 1) <= (uint64_t)b * (na + 1) ? k : i] = -1;
		}
	return changed;
}
