// SPDX-License-Identifier: LGPL-2.1-or-later
/* The way of pages from the kernel or a socket into the spool: spliced, or copied where that cannot be. */
#include <poll.h>
#include <time.h>

#include "record/drain/source.h"

#define PIPE_WANTED (1u << 20)

int splice_open(struct splice *m, int in, size_t size, bool padded, const struct drain *d)
{
	int room;

	*m = (struct splice){
		.in = in, .out = d->out, .pipe = { -1, -1 }, .size = size, .padded = padded, .stats = d->stats
	};
	m->page = malloc(size);
	if (!m->page)
		return -ENOMEM;
	if (pipe2(m->pipe, O_CLOEXEC) < 0)
		return -errno;
	fcntl(m->pipe[1], F_SETPIPE_SZ, PIPE_WANTED);
	room = fcntl(m->pipe[1], F_GETPIPE_SZ);
	m->room = room > 0 ? (size_t)room : 65536;
	return 0;
}

void splice_close(struct splice *m)
{
	fd_close(&m->pipe[0]);
	fd_close(&m->pipe[1]);
	free(m->page);
}

ssize_t splice_copy(struct splice *m)
{
	ssize_t n = m->padded ? read_all(m->in, m->page, m->size) : read(m->in, m->page, m->size);
	int ret;

	if (n <= 0)
		return n < 0 && !m->padded ? -errno : n;
	if (m->padded) {
		memset(m->page + n, 0, m->size - (size_t)n);
		n = (ssize_t)m->size;
	}
	ret = write_all(m->out, m->page, (size_t)n);
	if (ret)
		return ret;
	m->stats->bytes += (size_t)n;
	return n;
}

/* Moves all bytes of the pipe to the file: by splice, else by copying. */
static int empty_pipe(struct splice *m, size_t left)
{
	while (left) {
		ssize_t n;
		int ret = 0;

		if (m->copying) {
			n = read_all(m->pipe[0], m->page, left < m->size ? left : m->size);
			ret = n < 0 ? (int)n : write_all(m->out, m->page, (size_t)n);
		} else {
			n = splice(m->pipe[0], NULL, m->out, NULL, left, SPLICE_F_MOVE);
			if (n < 0 && (errno == EINTR || errno == EINVAL)) {
				m->copying = errno == EINVAL;
				continue;
			}
			ret = n < 0 ? -errno : 0;
		}
		if (ret || !n)
			return ret ?: -EIO;
		left -= (size_t)n;
		m->stats->bytes += (size_t)n;
	}
	return 0;
}

ssize_t splice_move(struct splice *m)
{
	ssize_t n;
	int ret;

	if (m->copying)
		return splice_copy(m);
	n = splice(m->in, NULL, m->pipe[1], NULL, m->room, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	if (n < 0 && errno == EINVAL) {
		m->copying = true;
		return splice_copy(m);
	}
	if (n <= 0)
		return n ? -errno : 0;
	ret = empty_pipe(m, (size_t)n);
	return ret ? ret : n;
}

#define WAIT_MS 250

int rawpipe_wait(int fd, const struct drain *d)
{
	struct pollfd p[2] = { { .fd = d->stop_fd, .events = POLLIN }, { .fd = fd, .events = POLLIN } };
	struct timespec pause = { .tv_sec = (time_t)(d->sleep_us / 1000000),
				  .tv_nsec = (long)(d->sleep_us % 1000000) * 1000 };

	if (d->ring)
		return poll(p, 1, -1) < 0 && errno != EINTR ? -errno : 0;
	if (d->sleep_us)
		return ppoll(p, 1, &pause, NULL) < 0 && errno != EINTR ? -errno : 0;
	if (poll(p, 2, WAIT_MS) < 0 && errno != EINTR)
		return -errno;
	/* an error condition on the buffer would make this spin */
	if (p[1].revents & (POLLERR | POLLHUP | POLLNVAL) && !(p[1].revents & POLLIN))
		poll(p, 1, WAIT_MS);
	return 0;
}

static int drain_emit(void *ctx, const void *page, size_t size)
{
	struct drain_writer *o = ctx;
	int ret = pwrite_all(o->d->out, page, size, o->at);

	if (ret)
		return ret;
	o->at += size;
	o->d->stats->bytes += size;
	return 0;
}

int drain_writer_open(struct drain_writer *o, size_t page_size, struct drain *d)
{
	off_t end = lseek(d->out, 0, SEEK_CUR);

	*o = (struct drain_writer){ .d = d, .at = (uint64_t)end };
	return end < 0 ? -errno : page_writer_init(&o->w, page_size, drain_emit, o);
}

int drain_writer_sync(struct drain_writer *o)
{
	const void *page = page_writer_peek(&o->w);

	return page ? pwrite_all(o->d->out, page, o->w.size, o->at) : 0;
}
