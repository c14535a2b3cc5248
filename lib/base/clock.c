// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads the clocks. */
#include "base/clock.h"

#include <time.h>

static uint64_t clock_now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

uint64_t boot_ns(void)
{
	return clock_now(CLOCK_BOOTTIME);
}

uint64_t mono_ns(void)
{
	return clock_now(CLOCK_MONOTONIC);
}
