/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_TICKS_H
#define HYPTRACE_TICKS_H

#include "read/inputs.h"

/* Rates of clocks that count ticks, x86-tsc say, estimated from events that carry ns. */
struct tick_rate {
	double hz;
	double error;	   /* relative */
	const char *event; /* that it is by */
};

/*
 * By the ns that pass between hrtimer_expire_entry events, or by the runtime of sched_stat_runtime. The input
 * is loaded. -ENODATA: it has too few of these events, or they contradict each other; -ENOMEM.
 */
int tick_rate_estimate(const struct input *in, struct tick_rate *out);
/*
 * Gives each loaded input whose times are ticks a rate: its own estimate, or that of its host or guest, which
 * count alike. The log gets a line for each estimate, and for each file that stays in ticks. -ENOMEM.
 */
int inputs_convert_ticks(struct inputs *all, const struct log *log);

#endif
