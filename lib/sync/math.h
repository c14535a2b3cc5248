/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SYNC_MATH_H
#define HYPTRACE_SYNC_MATH_H

#include <stdint.h>

/* The little arithmetic that synchronisation needs, so that nothing links libm. */

static inline double num_abs(double x)
{
	return x < 0 ? -x : x;
}

static inline double num_min(double a, double b)
{
	return a < b ? a : b;
}

static inline double num_max(double a, double b)
{
	return a > b ? a : b;
}

/* These three: |x| < 2^63 */
static inline double num_floor(double x)
{
	double whole = (double)(int64_t)x;

	return whole > x ? whole - 1 : whole;
}

static inline double num_ceil(double x)
{
	return -num_floor(-x);
}

static inline int64_t num_round(double x)
{
	return (int64_t)(x < 0 ? x - 0.5 : x + 0.5);
}

/* Newton's method, from above: monotone, so it ends when it stops falling. */
static inline double num_sqrt(double x)
{
	double y = x > 1 ? x : 1, next;

	if (x <= 0)
		return 0;
	while ((next = (y + x / y) / 2) < y)
		y = next;
	return y;
}

#endif
