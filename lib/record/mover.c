// SPDX-License-Identifier: LGPL-2.1-or-later
/* The way of pages from the kernel or a socket into the spool: spliced, or copied where that cannot be. */
#include "record/mover.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PIPE_WANTED (1u << 20)

int mover_open(struct mover *m, int in, size_t size, bool padded, const struct drain *d)
{
	int room;

	*m = (struct mover){
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

void mover_close(struct mover *m)
{
	fd_close(&m->pipe[0]);
	fd_close(&m->pipe[1]);
	free(m->page);
}

ssize_t mover_copy(struct mover *m)
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

/* The next `left` bytes of the pipe, or some of them, through user space. */
static ssize_t copy_pipe(struct mover *m, size_t left)
{
	ssize_t n = read_all(m->pipe[0], m->page, left < m->size ? left : m->size);
	int ret;

	if (n <= 0)
		return n ? n : -EIO;
	ret = write_all(m->out, m->page, (size_t)n);
	return ret ? ret : n;
}

/* What is in the pipe must reach the file whole: by splice, else by copying. */
static int empty_pipe(struct mover *m, size_t left)
{
	while (left) {
		ssize_t n = m->copying ? copy_pipe(m, left)
				       : splice(m->pipe[0], NULL, m->out, NULL, left, SPLICE_F_MOVE);

		if (n < 0 && !m->copying) {
			if (errno != EINTR && errno != EINVAL)
				return -errno;
			m->copying = errno == EINVAL;
			continue;
		}
		if (n <= 0)
			return n ? (int)n : -EIO;
		left -= (size_t)n;
		m->stats->bytes += (size_t)n;
	}
	return 0;
}

ssize_t mover_move(struct mover *m)
{
	ssize_t n;
	int ret;

	if (m->copying)
		return mover_copy(m);
	n = splice(m->in, NULL, m->pipe[1], NULL, m->room, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
	if (n < 0 && errno == EINVAL) {
		m->copying = true;
		return mover_copy(m);
	}
	if (n <= 0)
		return n ? -errno : 0;
	ret = empty_pipe(m, (size_t)n);
	return ret ? ret : n;
}
