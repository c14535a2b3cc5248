/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_CLOCK_H
#define HYPTRACE_CLOCK_H

#include "base/std.h"
#include <time.h>

/* ns of that clock, now. */
static inline uint64_t clock_now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* The trace clock "boot"; and one for waiting. */
#define boot_ns() clock_now(CLOCK_BOOTTIME)
#define mono_ns() clock_now(CLOCK_MONOTONIC)

#endif
