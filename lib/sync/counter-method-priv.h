/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_COUNTER_METHOD_PRIV_H
#define HYPTRACE_COUNTER_METHOD_PRIV_H

#include "sync/counter-method.h"

/* Shared by counter-method.c and counter-windows.c. */

#define CURVE_STEP 2e-3 /* no clock is slewed by so much: it was set */

/* From shot i to i + 1 a chord, off[i] ns being the furthest that the clock can be from it. */
struct curve {
	struct counter_shot *v;
	size_t n;
	double *off;
	double ns; /* of a tick, about */
};

/* Beyond the shots the outer chords go on. */
uint64_t curve_clock(const struct curve *c, uint64_t counter);
uint64_t curve_counter(const struct curve *c, uint64_t clock);
/* Largest distance of the clock from the curve between two values of the counter, ns. */
double curve_off(const struct curve *c, uint64_t from, uint64_t to);

/*
 * CNTVOFF from `start` on, a value of the guest's counter. It may have begun
 * anywhere from `from` on: in between there is no bound.
 */
struct epoch {
	uint64_t from, start;	 /* 0, 0: the first */
	uint64_t end;		 /* last value seen in it */
	uint64_t cntvoff, slack; /* ticks */
};

struct counter_method {
	struct curve host, guest;
	struct epoch *epochs;
	size_t n;
	struct sync_result *out;
	uint64_t *points; /* of the guest's counter, where points are wanted */
	size_t n_points;
};

/* Makes both curves. 0, -ENOMEM, -ENODATA with *why; counter_method_end it in any case. */
int counter_method_begin(struct counter_method *j, const struct counter_log *host,
			 const struct counter_log *guest, const char **why);
/* As many epochs as needed, each offset between the latest question and the earliest answer.
 * 0, -ENOMEM, -ENODATA: an answer before its question. */
int counter_method_pings(struct counter_method *j, const struct counter_log *guest);
/* Fills the result's points, jumps and class. 0 or -ENOMEM. */
int counter_method_points(struct counter_method *j, enum sync_class class);
/* Frees all but the result, that too on an error. ret: what failed before, and is returned. */
int counter_method_end(struct counter_method *j, int ret);

#endif
