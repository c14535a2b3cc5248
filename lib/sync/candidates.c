// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A cold start: how many events would fall into windows at each offset at all,
 * coarsely, is the correlation of the events' histogram with the windows' share
 * of each bin: two Fourier transforms.
 */
#include <complex.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sync/solver.h"
#include "base/array.h"

#define BITS_MAX  20
#define BIN_MIN	  20000	 /* ns */
#define CPUS_MAX  4	 /* those with most events say enough */
#define APART_MIN 200000 /* ns between candidates */

typedef double complex cplx;

struct transform {
	size_t n;
	cplx *root; /* n / 2 */
	cplx *z, *sum;
	uint64_t bin; /* ns */
	uint64_t t0, t1;
};

static void fourier(const struct transform *f, cplx *z)
{
	for (size_t i = 1, j = 0; i < f->n; i++) {
		size_t bit = f->n >> 1;

		for (; j & bit; bit >>= 1)
			j ^= bit;
		j ^= bit;
		if (i < j) {
			cplx t = z[i];

			z[i] = z[j];
			z[j] = t;
		}
	}
	for (size_t len = 2; len <= f->n; len <<= 1) {
		size_t half = len / 2, step = f->n / len;

		for (size_t i = 0; i < f->n; i += len)
			for (size_t k = 0; k < half; k++) {
				double a = creal(z[i + k + half]), b = cimag(z[i + k + half]);
				double c = creal(f->root[k * step]), d = cimag(f->root[k * step]);
				cplx t = a * c - b * d + (a * d + b * c) * I, u = z[i + k];

				z[i + k] = u + t;
				z[i + k + half] = u - t;
			}
	}
}

/* Events into the real part. */
static void add_events(struct transform *f, const struct sync_cpu *c)
{
	size_t end = cpu_lower(c, f->t1);

	for (size_t i = cpu_lower(c, f->t0); i < end; i++)
		f->z[(c->times[i] - f->t0) / f->bin] += 1;
}

/* Each bin's part that windows cover into the imaginary one. */
static void add_windows(struct transform *f, const struct problem *p, const struct thread *t)
{
	for (size_t i = 0; i < t->n; i++) {
		uint64_t a = t->v[i].a, b = t->v[i].b;

		if (t->v[i].unknown || b <= p->host0 || a >= p->host1)
			continue;
		a = a < p->host0 ? 0 : a - p->host0;
		b = (b > p->host1 ? p->host1 : b) - p->host0;
		for (uint64_t k = a / f->bin; k * f->bin < b; k++) {
			uint64_t from = k * f->bin > a ? k * f->bin : a;
			uint64_t to = (k + 1) * f->bin < b ? (k + 1) * f->bin : b;

			f->z[k] += I * ((double)(to - from) / (double)f->bin);
		}
	}
}

/* With a map: the CPUs with most events, each on its thread. Without: all on all. */
static void correlate(struct transform *f, const struct problem *p, bool mapped)
{
	bool done[4096] = { 0 };

	for (int round = 0; round < (mapped ? CPUS_MAX : 1); round++) {
		size_t best = SIZE_MAX, most = 0;

		for (size_t i = 0; i < p->in->n_cpus && i < ARRAY_SIZE(done) && mapped; i++) {
			const struct sync_cpu *c = &p->in->cpus[i];
			size_t n = cpu_lower(c, f->t1) - cpu_lower(c, f->t0);

			if (!done[i] && p->map[i] >= 0 && n > most) {
				most = n;
				best = i;
			}
		}
		if (mapped && best == SIZE_MAX)
			return;
		memset(f->z, 0, f->n * sizeof(cplx));
		for (size_t i = 0; i < p->in->n_cpus; i++)
			if (!mapped || i == best)
				add_events(f, &p->in->cpus[i]);
		for (size_t i = 0; i < p->n_threads; i++)
			if (!mapped || i == (size_t)p->map[best])
				add_windows(f, p, &p->threads[i]);
		/* takes both spectra out of z and adds conj(E) * W to the sum */
		fourier(f, f->z);
		for (size_t i = 0; i < f->n; i++) {
			cplx x = f->z[i], y = conj(f->z[-i & (f->n - 1)]);

			f->sum[i] += conj((x + y) / 2) * ((x - y) / (2 * I));
		}
		if (mapped)
			done[best] = true;
	}
}

/* Guest time t0 would be at host0 + lag. */
static int64_t lag_offset(const struct transform *f, const struct problem *p, size_t i)
{
	int64_t lag = i > f->n - (f->t1 - f->t0) / f->bin - 1 ? (int64_t)i - (int64_t)f->n : (int64_t)i;

	return (int64_t)(p->host0 - f->t0) + lag * (int64_t)f->bin;
}

/* The highest places, each some way from those before. */
static int take_peaks(const struct transform *f, const struct problem *p, struct candidate *v, size_t max)
{
	size_t apart = APART_MIN / f->bin + 2, found = 0;
	uint64_t slack = (apart + 2) * f->bin + (uint64_t)(p->rate * (double)(f->t1 - f->t0) / 2);

	for (; found < max; found++) {
		size_t best = 0;

		for (size_t i = 1; i < f->n; i++)
			if (creal(f->sum[i]) > creal(f->sum[best]))
				best = i;
		if (creal(f->sum[best]) <= 0)
			break;
		v[found] = (struct candidate){ lag_offset(f, p, best), slack };
		for (size_t k = 0; k <= 2 * apart; k++)
			f->sum[(best + k - apart) & (f->n - 1)] = -1;
	}
	return (int)found;
}

int find_candidates(struct problem *p, uint64_t t0, uint64_t t1, struct candidate *v, size_t max)
{
	uint64_t span = p->host1 - p->host0 + (t1 - t0);
	const struct sync_prior *prior = &p->in->prior;
	struct transform f = { .n = 1024, .t0 = t0, .t1 = t1 };
	int ret = -ENOMEM;

	f.bin = span / ((1u << BITS_MAX) - 4) + 1;
	f.bin = f.bin < BIN_MIN ? BIN_MIN : f.bin;
	while (f.n < span / f.bin + 2)
		f.n *= 2;
	f.root = malloc(f.n / 2 * sizeof(cplx));
	f.z = malloc(f.n * sizeof(cplx));
	f.sum = calloc(f.n, sizeof(cplx));
	if (!f.root || !f.z || !f.sum)
		goto out;
	for (size_t i = 0; i < f.n / 2; i++)
		f.root[i] = cexp(-2 * M_PI * I * (double)i / (double)f.n);
	correlate(&f, p, map_any(p));
	/* the inverse, up to the order: conj in and out; the result is real */
	for (size_t i = 0; i < f.n; i++)
		f.sum[i] = conj(f.sum[i]);
	fourier(&f, f.sum);
	/* a prior leaves only some of the lags */
	for (size_t i = 0; i < f.n && prior->valid; i++) {
		int64_t d = lag_offset(&f, p, i) - prior->offset;
		double far = (double)prior->bound + 2.0 * (double)f.bin +
			     p->rate * fabs((double)(int64_t)(t0 - prior->time));

		if (fabs((double)d) > far)
			f.sum[i] = -1;
	}
	ret = take_peaks(&f, p, v, max);
out:
	free(f.root);
	free(f.z);
	free(f.sum);
	return ret;
}
