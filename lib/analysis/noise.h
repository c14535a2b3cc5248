/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_NOISE_H
#define HYPTRACE_NOISE_H

#include "util/base.h"

/*
 * Whether two recordings differ in a figure by more than each of them differs from itself. Each is cut
 * into slices of equal length; slices are drawn again at random, as many as there are, and the means of
 * what was drawn compared, NOISE_DRAWS times (the bootstrap). What the middle 99 % of the
 * differences do not have on both sides of 0 is beyond the noise. The same slices give the same answer.
 */
#define NOISE_DRAWS	 1000
#define NOISE_SLICES_MIN 8 /* of fewer nothing can be said */

enum noise_verdict {
	NOISE_UNKNOWN, /* too few slices */
	NOISE_SAME,    /* within the noise */
	NOISE_LESS,    /* the second one has less */
	NOISE_MORE
};

struct noise_answer {
	double a, b;	  /* means */
	double low, high; /* of b - a: the middle 99 % */
	enum noise_verdict verdict;
};

/* Values of the slices of each. */
struct noise_answer noise_compare(const double *a, size_t n_a, const double *b, size_t n_b);
/* "same", "less", "more", "too short" */
const char *noise_word(enum noise_verdict verdict);

#endif
