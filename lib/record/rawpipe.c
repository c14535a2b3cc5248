// SPDX-License-Identifier: LGPL-2.1-or-later
#include "record/rawpipe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PIPE_WANTED (1u << 20)
#define WAIT_MS	    100

struct rawpipe {
	int in, out;
	int pipe[2];
	size_t pipe_size;
	uint32_t page_size;
	uint8_t *page;
	bool copying; /* splice is not possible here */
	struct drain *d;
};

static int open_raw(int dirfd, unsigned int cpu)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "per_cpu/cpu%u/trace_pipe_raw", cpu);
	fd = openat(dirfd, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int rawpipe_open(struct rawpipe *r, int dirfd, unsigned int cpu, uint32_t page_size, struct drain *d)
{
	int size;

	*r = (struct rawpipe){ .in = -1, .pipe = { -1, -1 }, .out = d->out, .page_size = page_size, .d = d };
	r->in = open_raw(dirfd, cpu);
	if (r->in < 0)
		return r->in;
	r->page = malloc(page_size);
	if (!r->page)
		return -ENOMEM;
	if (pipe2(r->pipe, O_CLOEXEC) < 0)
		return -errno;
	fcntl(r->pipe[1], F_SETPIPE_SZ, PIPE_WANTED);
	size = fcntl(r->pipe[1], F_GETPIPE_SZ);
	r->pipe_size = size > 0 ? (size_t)size : 65536;
	/* sub-buffers larger than the pipe's slots are not spliced by every kernel */
	r->copying = page_size != (uint32_t)sysconf(_SC_PAGESIZE);
	return 0;
}

static void rawpipe_close(struct rawpipe *r)
{
	if (r->in >= 0)
		close(r->in);
	if (r->pipe[0] >= 0)
		close(r->pipe[0]);
	if (r->pipe[1] >= 0)
		close(r->pipe[1]);
	free(r->page);
}

/* What is in the pipe must reach the file whole: by splice, else by copying. */
static int empty_pipe(struct rawpipe *r, size_t left)
{
	while (left) {
		ssize_t n = r->copying ? -1 : splice(r->pipe[0], NULL, r->out, NULL, left, SPLICE_F_MOVE);

		if (n < 0 && !r->copying && errno == EINTR)
			continue;
		if (n < 0 && !r->copying && errno != EINVAL)
			return -errno;
		if (n < 0) {
			int ret;

			r->copying = true;
			n = read_all(r->pipe[0], r->page, left < r->page_size ? left : r->page_size);
			if (n <= 0)
				return n ? (int)n : -EIO;
			ret = write_all(r->out, r->page, (size_t)n);
			if (ret)
				return ret;
		}
		left -= (size_t)n;
		r->d->stats->bytes += (size_t)n;
	}
	return 0;
}

/* Bytes moved, 0: nothing there now, -errno. */
static ssize_t move_spliced(struct rawpipe *r)
{
	ssize_t n = splice(r->in, NULL, r->pipe[1], NULL, r->pipe_size, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	int ret;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n < 0 && errno == EINVAL) {
		r->copying = true;
		return 0;
	}
	if (n < 0)
		return -errno;
	ret = empty_pipe(r, (size_t)n);
	return ret ? ret : n;
}

/* One sub-buffer by read(2): also gives pages that are only partly filled. */
static ssize_t move_copied(struct rawpipe *r)
{
	ssize_t n = read_all(r->in, r->page, r->page_size);
	int ret;

	if (n == -EAGAIN || n == -EINTR || n == -ENODEV)
		return 0;
	if (n <= 0)
		return n;
	memset(r->page + n, 0, r->page_size - (size_t)n);
	ret = write_all(r->out, r->page, r->page_size);
	if (ret)
		return ret;
	r->d->stats->bytes += r->page_size;
	return n;
}

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

static int run(struct rawpipe *r)
{
	ssize_t n = 0;

	while (n >= 0 && !atomic_load(r->d->stopping)) {
		n = r->copying ? move_copied(r) : move_spliced(r);
		if (!n)
			n = rawpipe_wait(r->in, r->d);
	}
	if (n < 0)
		return (int)n;
	if (!r->copying)
		while ((n = move_spliced(r)) > 0)
			;
	while (n >= 0 && (n = move_copied(r)) > 0)
		;
	return (int)n;
}

int rawpipe_drain(int dirfd, unsigned int cpu, uint32_t page_size, struct drain *d)
{
	struct rawpipe r;
	int ret = rawpipe_open(&r, dirfd, cpu, page_size, d);

	if (ret == -ENODEV || ret == -ENXIO)
		ret = 0;
	else if (!ret)
		ret = run(&r);
	rawpipe_close(&r);
	return ret;
}
