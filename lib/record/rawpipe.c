// SPDX-License-Identifier: LGPL-2.1-or-later
/* Drains one CPU of a host buffer. */
#include "record/rawpipe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "record/mover.h"

#define WAIT_MS 100

int rawpipe_wait(int fd, const struct drain *d)
{
	struct pollfd p[2] = { { .fd = d->stop_fd, .events = POLLIN }, { .fd = fd, .events = POLLIN } };
	struct timespec pause = { .tv_sec = (time_t)(d->sleep_us / 1000000),
				  .tv_nsec = (long)(d->sleep_us % 1000000) * 1000 };

	if (d->sleep_us) {
		if (ppoll(p, 1, &pause, NULL) < 0 && errno != EINTR)
			return -errno;
		return 0;
	}
	if (poll(p, 2, WAIT_MS) < 0 && errno != EINTR)
		return -errno;
	/* an error condition on the buffer would make this spin */
	if (p[1].revents & (POLLERR | POLLHUP | POLLNVAL) && !(p[1].revents & POLLIN))
		poll(p, 1, WAIT_MS);
	return 0;
}

/* Bytes moved, 0: nothing is there now, or -errno. */
static ssize_t rawpipe_move(struct mover *m, ssize_t (*move)(struct mover *m))
{
	ssize_t n = move(m);

	return n == -EAGAIN || n == -EINTR || n == -ENODEV ? 0 : n;
}

/* A sub-buffer that is filled in part is not spliced. */
static ssize_t rawpipe_flush(struct mover *m, struct drain *d)
{
	unsigned int mark;
	ssize_t n;

	if (!drain_asked(d, &mark))
		return 0;
	n = rawpipe_move(m, mover_copy);
	atomic_store(&d->flushed, mark);
	return n;
}

static int rawpipe_run(struct mover *m, struct drain *d)
{
	ssize_t n = 0;

	while (n >= 0 && !atomic_load(d->stopping)) {
		n = rawpipe_move(m, mover_move);
		if (!n)
			n = rawpipe_flush(m, d);
		if (!n)
			n = rawpipe_wait(m->in, d);
	}
	while (n >= 0 && (n = rawpipe_move(m, mover_move)) > 0)
		;
	while (n >= 0 && (n = rawpipe_move(m, mover_copy)) > 0)
		;
	return (int)n;
}

int rawpipe_drain(int dirfd, unsigned int cpu, uint32_t page_size, struct drain *d)
{
	struct mover m;
	char path[64];
	int in, ret;

	snprintf(path, sizeof(path), "per_cpu/cpu%u/trace_pipe_raw", cpu);
	in = openat(dirfd, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (in < 0)
		return errno == ENODEV || errno == ENXIO ? 0 : -errno;
	ret = mover_open(&m, in, page_size, true, d);
	/* sub-buffers larger than the pipe's slots are not spliced by every kernel */
	m.copying = page_size != (uint32_t)sysconf(_SC_PAGESIZE);
	ret = ret ?: rawpipe_run(&m, d);
	mover_close(&m);
	close(in);
	return ret;
}
