// SPDX-License-Identifier: LGPL-2.1-or-later
/* Durations in log-linear buckets. */
#include "analysis/histogram.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define LINEAR 128u /* values below have a bucket each */
#define HALF   64u  /* buckets of each power of two above */

static size_t bucket_of(uint64_t value)
{
	unsigned int shift;

	if (value < LINEAR)
		return (size_t)value;
	shift = 57u - (unsigned int)__builtin_clzll(value); /* leaves 7 bits, the first of them set */
	return LINEAR + (size_t)(shift - 1) * HALF + (size_t)((value >> shift) - HALF);
}

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

static int histogram_room(struct histogram *h, size_t buckets)
{
	size_t room = h->room ?: LINEAR;
	uint64_t *v;

	while (room < buckets)
		room *= 2;
	if (room == h->room)
		return 0;
	v = realloc(h->buckets, room * sizeof(*v));
	if (!v)
		return -ENOMEM;
	memset(v + h->room, 0, (room - h->room) * sizeof(*v));
	h->buckets = v;
	h->room = room;
	return 0;
}

static void histogram_sums(struct histogram *h, uint64_t n, uint64_t sum, uint64_t min, uint64_t max,
			   double squares)
{
	h->min = !h->n || min < h->min ? min : h->min;
	h->max = max > h->max ? max : h->max;
	h->n += n;
	if (__builtin_add_overflow(h->sum, sum, &h->sum))
		h->sum = UINT64_MAX;
	h->squares += squares;
}

int histogram_add(struct histogram *h, uint64_t value)
{
	size_t bucket = bucket_of(value);

	if (bucket >= h->room && histogram_room(h, bucket + 1))
		return -ENOMEM;
	h->buckets[bucket]++;
	histogram_sums(h, 1, value, value, value, (double)value * (double)value);
	return 0;
}

int histogram_join(struct histogram *h, const struct histogram *from)
{
	if (!from->n)
		return 0;
	if (histogram_room(h, from->room))
		return -ENOMEM;
	for (size_t i = 0; i < from->room; i++)
		h->buckets[i] += from->buckets[i];
	histogram_sums(h, from->n, from->sum, from->min, from->max, from->squares);
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

double histogram_deviation(const struct histogram *h)
{
	double mean = histogram_mean(h), square = h->n ? h->squares / (double)h->n - mean * mean : 0;

	return square > 0 ? sqrt(square) : 0;
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
