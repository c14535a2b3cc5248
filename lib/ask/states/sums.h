/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SUMS_H
#define HYPTRACE_SUMS_H

#include <math.h>
#include "base/std.h"

/* Durations summed up, where nobody asks for percentiles (histogram.h). Zero-initialised = empty. */
struct sums {
	uint64_t n, sum, min, max; /* ns; the sum stops at UINT64_MAX */
	double squares;		   /* sum of squares */
};

static inline void sums_join(struct sums *s, const struct sums *from)
{
	if (!from->n)
		return;
	s->min = !s->n || from->min < s->min ? from->min : s->min;
	s->max = from->max > s->max ? from->max : s->max;
	s->n += from->n;
	if (__builtin_add_overflow(s->sum, from->sum, &s->sum))
		s->sum = UINT64_MAX;
	s->squares += from->squares;
}

static inline void sums_add(struct sums *s, uint64_t ns)
{
	const struct sums one = { 1, ns, ns, ns, (double)ns * (double)ns };

	sums_join(s, &one);
}

/* 0 when empty. */
static inline double sums_mean(const struct sums *s)
{
	return s->n ? (double)s->sum / (double)s->n : 0;
}

/*
 * The +- of perf: the standard error of the mean, as a share of it. 0: there are fewer than two.
 */
static inline double sums_error(const struct sums *s)
{
	double n = (double)s->n, mean = sums_mean(s), square;

	if (s->n < 2 || mean <= 0)
		return 0;
	square = (s->squares - n * mean * mean) / (n - 1) / n;
	return square > 0 ? sqrt(square) / mean : 0;
}

#endif
