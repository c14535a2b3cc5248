/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_CLOCK_H
#define HYPTRACE_CLOCK_H

#include <stdint.h>

/* Now, ns of CLOCK_BOOTTIME, which the trace clock "boot" is. */
uint64_t boot_ns(void);
/* ... of CLOCK_MONOTONIC, for waiting. */
uint64_t mono_ns(void);

#endif
