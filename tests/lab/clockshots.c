// SPDX-License-Identifier: GPL-2.0-only
/*
 * The truth about two clocks, without hyptrace: run in the host and in its
 * guest, static. KVM's PTP call (/dev/ptp0 in the guest) gives the host's
 * CLOCK_REALTIME and the guest's CLOCK_MONOTONIC_RAW of one instant.
 *
 * usage: clockshots host|guest SECONDS [MS]
 * Prints, every MS (50):
 *	host BOOT REAL-BOOT SLACK	at BOOT; the difference is true within SLACK
 *	guest BOOT REAL SLACK		when the guest's clock was BOOT, +- SLACK, the host's was REAL
 * all in ns. Exit status 3: no PTP call here.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <linux/ptp_clock.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>

#define ROUNDS 30

static int64_t now(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static int64_t ptp_ns(const struct ptp_clock_time *t)
{
	return t->sec * 1000000000 + t->nsec;
}

/* other - boot: between two readings of boot lies one of the other */
static int64_t difference(clockid_t other, int64_t *boot, int64_t *slack)
{
	int64_t best = 0;

	*slack = INT64_MAX;
	for (int i = 0; i < ROUNDS; i++) {
		int64_t before = now(CLOCK_BOOTTIME), at = now(other), after = now(CLOCK_BOOTTIME);

		if ((after - before + 1) / 2 >= *slack)
			continue;
		*slack = (after - before + 1) / 2;
		*boot = before + (after - before) / 2;
		best = at - *boot;
	}
	return best;
}

static int host(void)
{
	int64_t boot, slack, diff = difference(CLOCK_REALTIME, &boot, &slack);

	printf("host %" PRId64 " %" PRId64 " %" PRId64 "\n", boot, diff, slack);
	return 0;
}

static int guest(int fd)
{
	struct ptp_sys_offset_precise p;
	int64_t boot, slack, diff, raw;

	memset(&p, 0, sizeof(p));
	if (ioctl(fd, PTP_SYS_OFFSET_PRECISE, &p))
		return 3;
	diff = difference(CLOCK_MONOTONIC_RAW, &boot, &slack);
	raw = ptp_ns(&p.sys_monoraw);
	printf("guest %" PRId64 " %" PRId64 " %" PRId64 "\n", raw - diff, ptp_ns(&p.device), slack);
	return 0;
}

int main(int argc, char **argv)
{
	const struct timespec pause = { .tv_nsec = (argc == 4 ? atol(argv[3]) : 50) * 1000000 };
	int in_guest = argc >= 3 && !strcmp(argv[1], "guest");
	int fd = in_guest ? open("/dev/ptp0", O_RDONLY) : -1, ret = 0;
	int64_t end;

	if (argc != 3 && argc != 4)
		return 2;
	if (in_guest && fd < 0) {
		perror("/dev/ptp0");
		return 3;
	}
	setlinebuf(stdout);
	end = now(CLOCK_BOOTTIME) + atoll(argv[2]) * 1000000000;
	while (!ret && now(CLOCK_BOOTTIME) < end) {
		ret = in_guest ? guest(fd) : host();
		nanosleep(&pause, NULL);
	}
	return ret;
}
