/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_RAWPIPE_H
#define HYPTRACE_RAWPIPE_H

#include "record/source.h"

/*
 * Moves whole sub-buffers of one CPU of a host buffer from
 * per_cpu/cpuN/trace_pipe_raw to the spool (mover.h): until d->stopping, then what
 * is left, the last one too, which is filled in part. dirfd: the buffer's
 * directory; page_size: of its sub-buffers, bytes. An offline CPU's buffer
 * (-ENODEV) is empty. 0 or -errno.
 */
int rawpipe_drain(int dirfd, unsigned int cpu, uint32_t page_size, struct drain *d);

/*
 * Waits d->sleep_us, or when that is 0 until fd is readable or 100 ms have passed
 * (the kernel wakes no reader of a buffer that is filled below its mark); ends at
 * once when d is stopping. 0 or -errno.
 */
int rawpipe_wait(int fd, const struct drain *d);

#endif
