/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SIGNIFICANCE_H
#define HYPTRACE_SIGNIFICANCE_H

#include "base/std.h"

/*
 * Decides whether two recordings differ in a figure by more than each of them differs from itself. Each is
 * cut into slices of equal length. Neighbouring slices are alike where things come in bursts, so the
 * uncertainty of a mean comes from the slices' slowest movements: the first cosines of the series, whose mean
 * square estimates the spectrum at frequency 0 (Mueller 2007; Lazarus, Lewis, Stock, Watson 2018).
 * Where the slowest two exceed the faster ones, the figure moves more slowly than the recording is long; the
 * interval then is made of these two, three times as wide, and a difference within it is not decided.
 */
#define SIGNIFICANCE_SLICES_MIN 32

enum verdict {
	VERDICT_UNKNOWN, /* too few slices, or these move too slowly */
	VERDICT_SAME,	 /* within the noise */
	VERDICT_LESS,	 /* the second one has less */
	VERDICT_MORE
};

/*
 * Values by slices; length: of all of them, in any unit that both series have. per: an event's values in the
 * same slices, of which none is negative and one is positive; the figure is then v of each such event (a
 * ratio estimate, of which only what v moves apart from per is noise). NULL: the figure is v's mean.
 */
struct slice_series {
	const double *v;
	size_t n;
	double length;
	const double *per;
};

struct significance {
	double a, b;	  /* means, or ratios */
	double low, high; /* of b - a: 99 % confidence */
	enum verdict verdict;
};

struct significance significance_of(const struct slice_series *a, const struct slice_series *b);
/* "same", "less", "more", "too short" */
const char *verdict_word(enum verdict verdict);

#endif
