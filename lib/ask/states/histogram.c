// SPDX-License-Identifier: LGPL-2.1-or-later
/* Durations in log-linear buckets, and the columns that answers show them in. */
#include "ask/states/histogram.h"

#define LINEAR 128u /* values below have a bucket each */
#define HALF   64u  /* buckets of each power of two above */

static uint64_t bucket_from(size_t bucket)
{
	size_t above = bucket - LINEAR;

	return bucket < LINEAR ? bucket : (HALF + above % HALF) << (above / HALF + 1);
}

/* Its last value. */
static uint64_t bucket_to(size_t bucket)
{
	return bucket < LINEAR ? bucket
			       : bucket_from(bucket) + ((1ull << ((bucket - LINEAR) / HALF + 1)) - 1);
}

static void histogram_sum(struct histogram *h, uint64_t n, uint64_t sum, uint64_t min, uint64_t max)
{
	h->min = !h->n || min < h->min ? min : h->min;
	h->max = max > h->max ? max : h->max;
	h->n += n;
	if (__builtin_add_overflow(h->sum, sum, &h->sum))
		h->sum = UINT64_MAX;
}

int histogram_add(struct histogram *h, uint64_t value)
{
	/* leaves 7 bits, the first of them set */
	unsigned int shift = value < LINEAR ? 0 : 57u - (unsigned int)__builtin_clzll(value);
	size_t bucket = (size_t)value;

	if (shift)
		bucket = LINEAR + (size_t)(shift - 1) * HALF + (size_t)((value >> shift) - HALF);
	if (bucket >= h->room && array_reach(&h->buckets, &h->room, bucket + 1, sizeof(*h->buckets)))
		return -ENOMEM;
	h->buckets[bucket]++;
	histogram_sum(h, 1, value, value, value);
	return 0;
}

int histogram_join(struct histogram *h, const struct histogram *from)
{
	if (!from->n)
		return 0;
	if (array_reach(&h->buckets, &h->room, from->room, sizeof(*h->buckets)))
		return -ENOMEM;
	for (size_t i = 0; i < from->room; i++)
		h->buckets[i] += from->buckets[i];
	histogram_sum(h, from->n, from->sum, from->min, from->max);
	return 0;
}

uint64_t histogram_at(const struct histogram *h, double share)
{
	double before = share * (double)h->n;
	uint64_t seen = 0, middle;
	size_t i = 0;

	if (!h->n)
		return 0;
	while (i + 1 < h->room && (double)(seen += h->buckets[i]) < before)
		i++;
	middle = bucket_from(i) + (bucket_to(i) - bucket_from(i)) / 2;
	return middle < h->min ? h->min : middle > h->max ? h->max : middle;
}

double histogram_mean(const struct histogram *h)
{
	return h->n ? (double)h->sum / (double)h->n : 0;
}

bool histogram_next(const struct histogram *h, size_t *at, uint64_t *from, uint64_t *to, uint64_t *n)
{
	while (*at < h->room && !h->buckets[*at])
		++*at;
	if (*at >= h->room)
		return false;
	*from = bucket_from(*at);
	*to = bucket_to(*at);
	*n = h->buckets[(*at)++];
	return true;
}

void histogram_release(struct histogram *h)
{
	free(h->buckets);
	*h = (struct histogram){ 0 };
}

const struct answer_column duration_columns[DURATIONS] = {
	[DURATION_COUNT] = { "count", "count", ANSWER_COUNT },
	[DURATION_TOTAL] = { "total_ns", "total", ANSWER_DURATION },
	[DURATION_MIN] = { "min_ns", "min", ANSWER_DURATION },
	[DURATION_AVG] = { "avg_ns", "avg", ANSWER_DURATION },
	[DURATION_P50] = { "p50_ns", "p50", ANSWER_DURATION },
	[DURATION_P99] = { "p99_ns", "p99", ANSWER_DURATION },
	[DURATION_P99_9] = { "p99_9_ns", "p99.9", ANSWER_DURATION },
	[DURATION_MAX] = { "max_ns", "max", ANSWER_DURATION },
};

uint64_t duration_value(const struct histogram *h, enum duration d)
{
	switch (d) {
	case DURATION_COUNT:
		return h->n;
	case DURATION_TOTAL:
		return h->sum;
	case DURATION_MIN:
		return h->min;
	case DURATION_AVG:
		return (uint64_t)(histogram_mean(h) + 0.5);
	case DURATION_P50:
		return histogram_at(h, 0.5);
	case DURATION_P99:
		return histogram_at(h, 0.99);
	case DURATION_P99_9:
		return histogram_at(h, 0.999);
	default:
		return h->max;
	}
}
