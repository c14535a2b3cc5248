/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SIGNALS_H
#define HYPTRACE_SIGNALS_H

/* A descriptor that becomes readable at SIGINT, SIGTERM or SIGHUP, which are blocked. -errno. */
int stop_signals(void);
/* ... at SIGUSR1. */
int dump_signal(void);

#endif
