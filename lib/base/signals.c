// SPDX-License-Identifier: LGPL-2.1-or-later
/* Signals as descriptors. */
#include "base/std.h"
#include "base/signals.h"

#include <signal.h>
#include <sys/signalfd.h>

static int signals_fd(const int *signals, size_t n)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	for (size_t i = 0; i < n; i++)
		sigaddset(&set, signals[i]);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return -errno;
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

int stop_signals(void)
{
	return signals_fd((const int[]){ SIGINT, SIGTERM, SIGHUP }, 3);
}

int dump_signal(void)
{
	return signals_fd((const int[]){ SIGUSR1 }, 1);
}
