// SPDX-License-Identifier: LGPL-2.1-or-later
/* Signals as descriptors. */
#include "base/signals.h"

#include <errno.h>
#include <signal.h>
#include <sys/signalfd.h>

static int signals_fd(const sigset_t *set)
{
	int fd;

	if (sigprocmask(SIG_BLOCK, set, NULL) < 0)
		return -errno;
	fd = signalfd(-1, set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

int stop_signals(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	return signals_fd(&set);
}

int dump_signal(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	return signals_fd(&set);
}
