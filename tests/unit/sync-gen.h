/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef TESTS_SYNC_GEN_H
#define TESTS_SYNC_GEN_H

/*
 * A made-up host and guest whose clocks are known: vCPUs that enter and exit,
 * events in between, clocks that drift, are slewed and jump, and data that got
 * lost or bent on the way.
 */

#include "sync/sync.h"
#include "base/array.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GEN_BENDS 16

struct gen_bend {
	double c;      /* guest time from which on it holds */
	double offset; /* there */
	double rate;
	double pause; /* of the guest just before, in host time: the offset jumps */
	double step;  /* its clock was set forward by: times just before were never shown */
};

struct gen {
	uint64_t state;
	/* what is made */
	unsigned int n_vcpus;
	double length;				       /* ns */
	double run, gap, idle;			       /* mean ns inside, outside, and of the long sleeps */
	double every, first, last;		       /* ns between events; least from entry and to exit */
	double lost_windows, displaced, lost_one_side; /* parts, 0..1 */
	bool wrong_map, unknown_map;
	bool nothing; /* events have nothing to do with the windows */
	/* the truth */
	uint64_t guest0;
	int64_t offset0;
	struct gen_bend bends[GEN_BENDS];
	size_t n_bends;
	/* the data */
	struct sync_input in;
	struct sync_cpu *cpus;
	struct sync_windows windows;
	struct sync_point *points;
	size_t n_points, cap_points;
	int32_t *pids, *true_pids;
};

static inline uint64_t gen_u64(struct gen *g)
{
	uint64_t z = (g->state += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

static inline double gen_one(struct gen *g)
{
	return (double)(gen_u64(g) >> 11) * 0x1p-53;
}

/* Natural logarithm of 0 < x <= 1. */
static inline double gen_log(double x)
{
	double sum = 0, y, z, term;

	for (; x < 0.7; x *= 2)
		sum -= 0.69314718055994530942;
	y = (x - 1) / (x + 1);
	z = term = y;
	for (int i = 3; i < 30; i += 2) {
		term *= y * y;
		z += term / i;
	}
	return sum + 2 * z;
}

static inline double gen_exp(struct gen *g, double mean)
{
	return -mean * gen_log(1 - gen_one(g));
}

/* From 1 to top, small ones more often. */
static inline double gen_times(struct gen *g, double top)
{
	double x = gen_one(g);

	return 1 + (top - 1) * x * x;
}

/* Offset minus offset0 at a guest time counted from guest0. */
static inline double gen_shift(const struct gen *g, double c)
{
	size_t i = g->n_bends - 1;

	while (i && g->bends[i].c > c)
		i--;
	return g->bends[i].offset + g->bends[i].rate * (c - g->bends[i].c);
}

static inline int64_t gen_truth(const struct gen *g, uint64_t guest)
{
	return g->offset0 + llround(gen_shift(g, (double)(int64_t)(guest - g->guest0)));
}

/* Guest time of a host one, both from their starts; -1: the guest was paused. */
static inline double gen_guest(const struct gen *g, double h)
{
	size_t i = g->n_bends - 1;
	const struct gen_bend *b;

	while (i && g->bends[i].c + g->bends[i].offset - g->bends[i].pause > h)
		i--;
	b = &g->bends[i];
	if (h < b->c + b->offset)
		return -1;
	return b->c + (h - b->c - b->offset) / (1 + b->rate);
}

static inline void gen_clocks(struct gen *g, double ppm, unsigned int slews, unsigned int jumps)
{
	g->bends[0] = (struct gen_bend){ .rate = (2 * gen_one(g) - 1) * ppm * 1e-6 };
	g->n_bends = 1;
	for (unsigned int i = 0; i < slews + jumps; i++) {
		const struct gen_bend *b = &g->bends[i];
		double part = g->length / (slews + jumps + 1);
		double c = part * (i + 0.6 + 0.8 * gen_one(g));
		struct gen_bend n = { .c = c, .rate = b->rate };

		n.offset = b->offset + b->rate * (c - b->c);
		if (i % 2 == 0 ? i / 2 < jumps : (i + 1) / 2 >= slews + 1) {
			n.pause = 300e3 + gen_exp(g, 20e6);
			n.offset += n.pause;
		} else {
			n.rate = (2 * gen_one(g) - 1) * ppm * 1e-6;
		}
		g->bends[g->n_bends++] = n;
	}
}

/* The guest's clock is set forward once or twice: the offset falls by as much. */
static inline void gen_steps(struct gen *g, double ppm)
{
	unsigned int n = 1 + gen_u64(g) % 2;

	gen_clocks(g, ppm, 0, 0);
	for (unsigned int i = 0; i < n; i++) {
		const struct gen_bend *b = &g->bends[i];
		double step = 300e3 + gen_exp(g, 20e6);
		double c = g->length / (n + 1) * (i + 0.6 + 0.8 * gen_one(g));

		g->bends[g->n_bends++] = (struct gen_bend){ .c = c + step,
							    .offset = b->offset + b->rate * (c - b->c) - step,
							    .rate = b->rate,
							    .step = step };
	}
}

static inline bool gen_shown(const struct gen *g, uint64_t guest)
{
	double c = (double)(int64_t)(guest - g->guest0);

	for (size_t i = 0; i < g->n_bends; i++)
		if (c > g->bends[i].c - g->bends[i].step - 1 && c < g->bends[i].c)
			return false;
	return true;
}

static inline void gen_point(struct gen *g, double t, int32_t pid, bool enter, uint64_t host0)
{
	if (g->n_points == g->cap_points) {
		g->cap_points = g->cap_points * 2 + 1024;
		g->points = realloc(g->points, g->cap_points * sizeof(*g->points));
	}
	g->points[g->n_points++] = (struct sync_point){ host0 + (uint64_t)llround(t), pid, SYNC_KVM, enter };
}

/* The events of one stay in the guest, [a, b] in host time. */
static inline void gen_stay(struct gen *g, struct sync_cpu *c, size_t *cap, double a, double b)
{
	double h = a + g->first * (1 + gen_exp(g, 1));

	for (; h < b - g->last * (1 + gen_exp(g, 1)); h += gen_exp(g, g->every)) {
		double t = gen_guest(g, g->nothing ? gen_one(g) * g->length : h);

		if (t < 0)
			continue;
		if (gen_one(g) < g->displaced)
			t += (2 * gen_one(g) - 1) * 1e6;
		if (t < 0)
			continue;
		if (c->n == *cap) {
			*cap = *cap * 2 + 256;
			c->times = realloc(c->times, *cap * sizeof(*c->times));
		}
		c->times[c->n++] = g->guest0 + (uint64_t)llround(t);
	}
}

static inline void gen_vcpu(struct gen *g, unsigned int i, uint64_t host0)
{
	struct sync_cpu *c = &g->cpus[i];
	int32_t pid = g->true_pids[i];
	double end = g->length + gen_shift(g, g->length), t = gen_exp(g, g->gap);
	size_t cap = 0;

	c->cpu = i;
	while (t < end) {
		double a = t, b = a + 2 * g->first + gen_exp(g, g->run);
		bool lost = gen_one(g) < g->lost_windows;

		for (size_t k = 1; k < g->n_bends; k++) {
			const struct gen_bend *x = &g->bends[k];
			double h1 = x->c + x->offset, h0 = h1 - x->pause;

			if (x->pause > 0 && a < h1 && b > h0) {
				b = a < h0 ? h0 : a;
				t = h1;
			}
		}
		b = b > end ? end : b;
		if (b > a && !lost && !(gen_one(g) < g->lost_one_side))
			gen_point(g, a, pid, true, host0);
		if (b > a && !lost && !(gen_one(g) < g->lost_one_side))
			gen_point(g, b, pid, false, host0);
		if (b > a)
			gen_stay(g, c, &cap, a, b);
		t = (t > b ? t : b) + 500 + gen_exp(g, gen_one(g) < 0.05 ? g->idle : g->gap);
	}
	qsort(c->times, c->n, sizeof(*c->times), compare_u64);
}

static inline void gen_pids(struct gen *g)
{
	unsigned int n = g->n_vcpus;

	g->pids = calloc(n, sizeof(*g->pids));
	g->true_pids = calloc(n, sizeof(*g->true_pids));
	for (unsigned int i = 0; i < n; i++)
		g->true_pids[i] = 100 + (int32_t)((i * 7 + 3) % n) * 2;
	for (unsigned int i = 0; i < n; i++)
		g->pids[i] = g->true_pids[g->wrong_map ? (i + 1) % n : i];
	g->in.pids = g->unknown_map ? NULL : g->pids;
}

/* n_vcpus, length, run ... and the clocks are set. */
static inline void gen_make(struct gen *g)
{
	uint64_t host0;

	g->guest0 = gen_u64(g) % 1000000000000ull;
	g->offset0 = (int64_t)(gen_u64(g) % 1000000000000ull);
	host0 = g->guest0 + (uint64_t)g->offset0;
	gen_pids(g);
	g->in.n_cpus = g->n_vcpus;
	g->cpus = calloc(g->n_vcpus, sizeof(*g->cpus));
	g->in.cpus = g->cpus;
	for (unsigned int i = 0; i < g->n_vcpus; i++)
		gen_vcpu(g, i, host0);
	g->in.begin = host0;
	g->in.end = host0 + (uint64_t)(g->length + gen_shift(g, g->length));
	sync_windows_pair(&g->windows, g->points, g->n_points, g->in.begin, g->in.end, 0, 0);
	g->in.windows = g->windows.v;
	g->in.n_windows = g->windows.n;
}

/* Of the usual kind; the clocks and what is wrong with it come from the caller. */
static inline void gen_usual(struct gen *g, uint64_t seed, bool small)
{
	static const unsigned int vcpus[] = { 1, 2, 2, 4, 4, 8, 16, 64 };

	*g = (struct gen){ .state = seed * 7919 };
	g->n_vcpus = vcpus[gen_u64(g) % (ARRAY_SIZE(vcpus) - (small ? 3 : 0))];
	g->length = 0.5e9 + gen_one(g) * (small ? 0.2e9 : g->n_vcpus > 8 ? 1e9 : 4e9);
	g->run = 50e3 * gen_times(g, 20);
	g->gap = 20e3 * gen_times(g, 20);
	g->idle = 2e6 + gen_one(g) * 10e6;
	g->every = 20e3 * gen_times(g, 4);
	g->first = 500 * gen_times(g, 20);
	g->last = 500 * gen_times(g, 20);
}

/* Whether the truth lies inside at every point and in between. */
static inline bool gen_right(const struct gen *g, const struct sync_result *r, double *worst)
{
	bool right = true;

	*worst = 0;
	for (size_t i = 0; i < r->n_points; i++)
		for (int k = 0; k < 20; k++) {
			uint64_t next = i + 1 < r->n_points ? r->points[i + 1].time : r->points[i].time;
			uint64_t t = r->points[i].time + (next - r->points[i].time) / 20 * (uint64_t)k;
			uint64_t bound = sync_bound(r, t);
			double off = fabs((double)(sync_offset(r, t) - gen_truth(g, t)));

			if (bound == UINT64_MAX || off <= (double)bound || !gen_shown(g, t))
				continue;
			right = false;
			*worst = fmax(*worst, off - (double)bound);
		}
	return right;
}

static inline void gen_release(struct gen *g)
{
	for (unsigned int i = 0; i < g->n_vcpus; i++)
		free(g->cpus[i].times);
	free(g->cpus);
	free(g->windows.v);
	free(g->points);
	free(g->pids);
	free(g->true_pids);
}

#endif
