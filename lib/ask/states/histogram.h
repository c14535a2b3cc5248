/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_HISTOGRAM_H
#define HYPTRACE_HISTOGRAM_H

#include "base/answer.h"

#include <math.h>

/*
 * Durations by their size, log-linear: values below 128 each have a bucket, above that each power of
 * two is cut into 64. A percentile is the middle of its bucket: wrong by at most 1/128 of its value
 * (HISTOGRAM_ERROR). Count, sum, least and greatest are exact.
 */
#define HISTOGRAM_ERROR (1.0 / 128)

/* Zero-initialised = empty. */
struct histogram {
	uint64_t n, sum, min, max; /* min, max: 0 while n is 0; the sum stops at UINT64_MAX */
	uint64_t *buckets;
	size_t room;
};

/* Buckets are made as they are needed. -ENOMEM. */
int histogram_add(struct histogram *h, uint64_t value);
/* Adds the values of `from` to h. -ENOMEM. */
int histogram_join(struct histogram *h, const struct histogram *from);
/* The value that the share 0 to 1 of all do not exceed; never below min or above max; 0 when empty. */
uint64_t histogram_at(const struct histogram *h, double share);
/* 0 when empty. */
double histogram_mean(const struct histogram *h);
void histogram_release(struct histogram *h);

/* Buckets for drawing: the next one that is not empty from *at on; false: there is none. */
bool histogram_next(const struct histogram *h, size_t *at, uint64_t *from, uint64_t *to, uint64_t *n);

/* ---- durations as columns of an answer: the same keys and values in every command ---------------- */

enum duration {
	DURATION_COUNT,
	DURATION_TOTAL,
	DURATION_MIN,
	DURATION_AVG,
	DURATION_P50,
	DURATION_P99,
	DURATION_P99_9,
	DURATION_MAX,
	DURATIONS
};
extern const struct answer_column duration_columns[DURATIONS];
/* The value in that column; 0 where h is empty. */
uint64_t duration_value(const struct histogram *h, enum duration d);

/* clang-format off */
/* Of one thing: its duration, and the bound of that. */
#define COLUMN_TOOK { "duration_ns", "took", ANSWER_DURATION }
#define COLUMN_BOUND { "bound_ns", "bound", ANSWER_DURATION }
/* clang-format on */

/* Durations summed up, where nobody asks for percentiles. Zero-initialised = empty. */
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

/* The +- of perf: the standard error of the mean, as a share of it. 0: there are fewer than two. */
static inline double sums_error(const struct sums *s)
{
	double n = (double)s->n, mean = sums_mean(s), square;

	if (s->n < 2 || mean <= 0)
		return 0;
	square = (s->squares - n * mean * mean) / (n - 1) / n;
	return square > 0 ? sqrt(square) / mean : 0;
}

#endif
