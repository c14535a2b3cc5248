// SPDX-License-Identifier: LGPL-2.1-or-later
/* Compares two series of slices by their slowest movements. */
#include "ask/states/series.h"

#include <math.h>

#define COSINES		 6 /* make the uncertainty */
#define SLOW		 2 /* of them: drift, if they exceed those from FAST_FIRST to FAST_LAST */
#define FAST_FIRST	 5
#define FAST_LAST	 24
#define DRIFT		 10   /* so many times */
#define DRIFT_DOUBT	 2.8  /* so many times where a difference depends on it: 5 of 100 by chance */
#define DRIFT_FACTOR	 3    /* what moves slowly within a recording moves more between two */
#define OCCASIONS_CHANCE 0.02 /* six in recordings of one length; with their number's chance below 1 % */
#define EVENT_SLICES	 20   /* that have the event, at least: a few slices' noise says little of its size */
#define CLOCKS		 1e-5 /* of a figure: seconds of two machines differ by as much */

/* The distance of a slice's value from what the mean makes expect. */
static double slice_far(const struct slice_series *s, size_t i, double mean)
{
	return s->v[i] - mean * (s->per ? s->per[i] : 1);
}

/* So many slices of equally many events would weigh as these do; without an event all weigh the same. */
static double slices_with_events(const struct slice_series *s)
{
	double sum = 0, squares = 0;

	for (size_t i = 0; i < s->n && s->per; i++) {
		sum += s->per[i];
		squares += s->per[i] * s->per[i];
	}
	return s->per ? sum * sum / squares : (double)s->n;
}

/* The movements of a series by speed: mean squares of its cosines (DCT-II), for a length of 1. */
struct noise_power {
	double mean, all, used, slow, fast;
};

static struct noise_power noise_power(const struct slice_series *s)
{
	struct noise_power p = { 0 };
	double length = s->length / (double)s->n, per = 0;

	for (size_t i = 0; i < s->n; i++) {
		p.mean += s->v[i] / (double)s->n;
		per += (s->per ? s->per[i] : 1) / (double)s->n;
	}
	p.mean /= per;
	for (size_t i = 0; i < s->n; i++) {
		double far = slice_far(s, i, p.mean) / per;

		p.all += far * far / (double)(s->n - 1) * length;
	}
	for (unsigned int k = 1; k <= FAST_LAST; k++) {
		double sum = 0, power;

		for (size_t i = 0; i < s->n; i++)
			sum += slice_far(s, i, p.mean) / per *
			       cos(M_PI * k * ((double)i + 0.5) / (double)s->n);
		power = 2 * sum * sum / (double)s->n * length;
		p.used += k <= COSINES ? power / COSINES : 0;
		p.slow += k <= SLOW ? power / SLOW : 0;
		p.fast += k >= FAST_FIRST ? power / (FAST_LAST - FAST_FIRST + 1) : 0;
	}
	/* a clock's ticks move less slowly than by chance: that one tick is at an edge says nothing */
	p.used = p.used > p.all ? p.used : p.all;
	return p;
}

/*
 * The standard error of the difference: by each one's own noise, or by the noise of both in each, as it is if
 * they are the same; the greater. A short recording may have seen nothing of what there is.
 */
static double noise_error(double a, double length_a, double b, double length_b)
{
	double own = a / length_a + b / length_b, both = (a + b) / 2 * (1 / length_a + 1 / length_b);

	return sqrt(own > both ? own : both);
}

/* The 99.5th percentile of Student's t with df >= 4 (Abramowitz and Stegun 26.7.5). */
static double noise_student(double df)
{
	return 2.5758 + (4.917 + (8.834 + (12.14 + 12.06 / df) / df) / df) / df;
}

/*
 * True if it is no chance that only one of them has a thing: it has it for most of its time, or on so many
 * occasions that some had to fall into the other's time.
 */
static bool significance_only(const struct slice_series *has, const struct slice_series *has_not)
{
	size_t n = 0, occasions = 0;

	for (size_t i = 0; i < has->n; i++) {
		n += has->v[i] > 0;
		occasions += has->v[i] > 0 && !(i && has->v[i - 1] > 0);
	}
	return 3 * n >= 2 * has->n ||
	       pow(has->length / (has->length + has_not->length), (double)occasions) < OCCASIONS_CHANCE;
}

struct significance significance_of(const struct slice_series *a, const struct slice_series *b)
{
	struct noise_power x, y;
	struct significance out = { 0 };
	double own, parts, sure, half, wide, alone, far;
	bool drifts;

	if (a->n < SIGNIFICANCE_SLICES_MIN || b->n < SIGNIFICANCE_SLICES_MIN)
		return out;
	x = noise_power(a);
	y = noise_power(b);
	out.a = x.mean;
	out.b = y.mean;
	if (slices_with_events(a) < EVENT_SLICES || slices_with_events(b) < EVENT_SLICES)
		return out;
	far = fabs(out.b - out.a);
	own = x.used / a->length + y.used / b->length;
	parts = x.used * x.used / (a->length * a->length) + y.used * y.used / (b->length * b->length);
	sure = own > 0 ? noise_student(COSINES * own * own / parts) : 0;
	half = sure * noise_error(x.used, a->length, y.used, b->length);
	alone = sure * noise_error(x.all, a->length, y.all, b->length);
	wide = DRIFT_FACTOR * noise_student(2 * SLOW) * noise_error(x.slow, a->length, y.slow, b->length);
	drifts = x.slow + y.slow > (far > half ? DRIFT_DOUBT : DRIFT) * (x.fast + y.fast);
	if (drifts && wide > half)
		half = wide;
	half += CLOCKS * (fabs(out.a) + fabs(out.b)) / 2;
	if (half > far &&
	    ((out.a <= 0 && significance_only(b, a)) || (out.b <= 0 && significance_only(a, b))))
		half = 0.999 * far;
	out.low = out.b - out.a - half;
	out.high = out.b - out.a + half;
	if (far > half)
		out.verdict = out.b > out.a ? VERDICT_MORE : VERDICT_LESS;
	else /* slices that knew nothing of each other would differ: there are too few that do not */
		out.verdict = drifts || far > alone + CLOCKS * (fabs(out.a) + fabs(out.b)) ? VERDICT_UNKNOWN
											   : VERDICT_SAME;
	return out;
}

const char *verdict_word(enum verdict verdict)
{
	static const char *const words[] = { [VERDICT_UNKNOWN] = "too short",
					     [VERDICT_SAME] = "same",
					     [VERDICT_LESS] = "less",
					     [VERDICT_MORE] = "more" };

	return words[verdict];
}
