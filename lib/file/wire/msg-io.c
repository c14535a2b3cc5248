// SPDX-License-Identifier: LGPL-2.1-or-later
/* Messages on a socket: sent and received whole, with a deadline and a way to break off. */
#include "file/wire/msg.h"
#include "base/clock.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

/* Longest single poll: what is farther away is waited for again. */
#define POLL_MS 60000

int64_t msg_now(void)
{
	return (int64_t)(mono_ns() / 1000000);
}

int64_t msg_wait_end(const struct msg_wait *w)
{
	int64_t quiet = w->quiet_ms ? msg_now() + w->quiet_ms : INT64_MAX;

	return quiet < w->deadline ? quiet : w->deadline;
}

int msg_poll(int fd, short events, const struct msg_wait *w)
{
	struct pollfd p[2] = { { .fd = fd, .events = events }, { .fd = w->stop_fd, .events = POLLIN } };
	int64_t end = msg_wait_end(w);

	for (;;) {
		int64_t left = end - msg_now();
		int n;

		if (left > POLL_MS)
			left = POLL_MS;
		n = poll(p, 2, left > 0 ? (int)left : 0);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0 && p[1].revents)
			return -ECANCELED;
		if (n > 0)
			return 0;
		if (left <= 0)
			return w->quiet_ms && end == w->deadline ? -ETIME : -ETIMEDOUT;
	}
}

int msg_reader_step(struct msg_reader *r, int fd, struct msg *m)
{
	size_t want = MSG_HEAD;
	ssize_t n;

	for (;;) {
		if (r->have >= MSG_HEAD) {
			ssize_t size = msg_size(r->bytes);

			if (size < 0)
				return (int)size;
			want = (size_t)size;
		}
		if (r->have >= MSG_HEAD && r->have == want)
			break;
		n = recv(fd, r->bytes + r->have, want - r->have, MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -errno;
		if (!n)
			return r->have ? -ECONNRESET : -ENODATA;
		r->have += (size_t)n;
	}
	r->have = 0;
	n = msg_parse(m, r->bytes, want);
	return n ? (int)n : 1;
}

int msg_recv(int fd, struct msg_reader *r, const struct msg_wait *w, struct msg *m)
{
	for (;;) {
		int ret = msg_reader_step(r, fd, m);

		if (ret)
			return ret < 0 ? ret : 0;
		ret = msg_poll(fd, POLLIN, w);
		if (ret)
			return ret;
	}
}

int msg_send(int fd, const void *bytes, size_t len, const struct msg_wait *w)
{
	const uint8_t *p = bytes;

	while (len) {
		ssize_t n = send(fd, p, len < MSG_SEND_MAX ? len : MSG_SEND_MAX, MSG_NOSIGNAL | MSG_DONTWAIT);
		int ret;

		if (n > 0) {
			p += n;
			len -= (size_t)n;
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK)
			return -errno;
		ret = msg_poll(fd, POLLOUT, w);
		if (ret)
			return ret;
	}
	return 0;
}

int msg_send_buf(int fd, struct buf *b, const struct msg_wait *w)
{
	int ret = buf_status(b) ?: msg_send(fd, b->data, b->len, w);

	buf_release(b);
	return ret;
}
