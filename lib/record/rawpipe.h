/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_RAWPIPE_H
#define HYPTRACE_RAWPIPE_H

#include "record/source.h"

/*
 * Moves whole sub-buffers of a host buffer from per_cpu/cpuN/trace_pipe_raw to
 * the spool, by splice: the pages never come through user space. Where the
 * kernel or the spool's file system cannot splice, they are copied.
 */

/*
 * Until d->stopping, then what is left, the last partly filled page too.
 * dir: the buffer's directory. An offline CPU's buffer (-ENODEV) is empty.
 */
int rawpipe_drain(int dirfd, unsigned int cpu, uint32_t page_size, struct drain *d);

/*
 * Waits until fd is readable, d is stopping, or 100 ms have passed (a reader
 * below the buffer's wake-up mark is not told). 0 or -errno.
 */
int rawpipe_wait(int fd, const struct drain *d);

#endif
