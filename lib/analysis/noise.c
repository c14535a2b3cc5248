// SPDX-License-Identifier: LGPL-2.1-or-later
/* Two series of slices, compared by drawing them again. */
#include "analysis/noise.h"

#include <stdlib.h>

/* splitmix64 (Steele, Lea, Flood 2014) */
static uint64_t noise_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

static double noise_mean(const double *v, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += v[i];
	return n ? sum / (double)n : 0;
}

static double noise_draw(const double *v, size_t n, uint64_t *state)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += v[(noise_random(state) >> 32) * n >> 32];
	return sum / (double)n;
}

static int compare_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

struct noise_answer noise_compare(const double *a, size_t n_a, const double *b, size_t n_b)
{
	struct noise_answer out = { .a = noise_mean(a, n_a), .b = noise_mean(b, n_b) };
	double differences[NOISE_DRAWS];
	uint64_t state = 1;

	if (n_a < NOISE_SLICES_MIN || n_b < NOISE_SLICES_MIN)
		return out;
	for (size_t i = 0; i < NOISE_DRAWS; i++)
		differences[i] = noise_draw(b, n_b, &state) - noise_draw(a, n_a, &state);
	qsort(differences, NOISE_DRAWS, sizeof(*differences), compare_double);
	out.low = differences[NOISE_DRAWS / 200];
	out.high = differences[NOISE_DRAWS - 1 - NOISE_DRAWS / 200];
	out.verdict = out.low > 0 ? NOISE_MORE : out.high < 0 ? NOISE_LESS : NOISE_SAME;
	return out;
}

const char *noise_word(enum noise_verdict verdict)
{
	static const char *const words[] = { [NOISE_UNKNOWN] = "too short",
					     [NOISE_SAME] = "same",
					     [NOISE_LESS] = "less",
					     [NOISE_MORE] = "more" };

	return words[verdict];
}
