/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_COUNTER_H
#define HYPTRACE_COUNTER_H

#include "clock/marks.h"

/*
 * The machine's counter, which all its clocks are made from: CNTVCT_EL0 on
 * arm64 (what a host reads there is the physical count, a guest reads it less
 * its CNTVOFF), the TSC on x86. And snapshots that tie it to a trace clock.
 */
bool counter_there(void);
/* Ordered with the loads before and after it. 0: there is none. */
uint64_t counter_read(void);

/* At `counter` +- slack ticks the clock showed `clock`. */
struct counter_shot {
	uint64_t counter, slack;
	uint64_t clock; /* ns */
};

/*
 * The narrowest of so many brackets. marks: opened for at least COUNTER_MARKS.
 * -ENODATA: the clock could not be read once; -ENOTSUP: no counter.
 */
#define COUNTER_MARKS 16
int counter_shoot(struct clock_marks *marks, struct counter_shot *out);

#endif
