// SPDX-License-Identifier: GPL-2.0-only
/*
 * set-clock: prints CLOCK_REALTIME - CLOCK_BOOTTIME in ns.
 * set-clock DIFFERENCE MAXERROR: sets CLOCK_REALTIME to CLOCK_BOOTTIME + DIFFERENCE ns, and has the kernel state that
 * it is held by somebody, and wrong by at most MAXERROR us.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/timex.h>
#include <time.h>

static long long now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int main(int argc, char **argv)
{
	long long difference = argc > 1 ? atoll(argv[1]) : 0, to;
	struct timex state = { .modes = ADJ_STATUS | ADJ_MAXERROR };

	if (argc == 1) {
		printf("%lld\n", now(CLOCK_REALTIME) - now(CLOCK_BOOTTIME));
		return 0;
	}
	if (argc != 3)
		return 2;
	to = now(CLOCK_BOOTTIME) + difference;
	if (clock_settime(CLOCK_REALTIME, &(struct timespec){ to / 1000000000, to % 1000000000 }))
		return 1;
	state.maxerror = atol(argv[2]);
	return adjtimex(&state) == TIME_OK ? 0 : 1;
}
