// SPDX-License-Identifier: GPL-2.0-only
/* Accepts recorders, and starts serving the first that asks for a recording. */
#include "agent.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

/*
 * Connections without a request yet. A recorder sends its request at once, so idle probes do not
 * block it: with too many connections the one that has waited longest is dropped, but none before
 * its time is over; meanwhile new ones wait in the kernel's queue.
 */
#define PENDING_MAX 128
#define SPARED_MS   1000
#define REQUEST_MS  10000
#define ACCEPT_MAX  64	 /* at a time, so that the rest is served too */
#define FAILED_MS   1000 /* without new ones where they cannot be accepted, and wait in the queue */

struct pending {
	int fd;
	struct transport_addr peer;
	int64_t spared; /* until then it does not go for another */
	int64_t deadline;
	struct msg_reader reader;
};

struct server {
	struct agent *a;
	int done_fd;
	struct pending *pending[PENDING_MAX]; /* oldest first */
	size_t n_pending;
	int64_t failed_until; /* 0: the last one could be accepted */
	struct serving *serving;
};

static bool may_connect(const struct agent *a, int fd, const struct transport_addr *peer)
{
	switch (a->addr.kind) {
	case TRANSPORT_VSOCK:
		for (size_t i = 0; i < a->n_cids; i++)
			if (a->cids[i] == peer->cid)
				return true;
		return false;
	case TRANSPORT_TCP:
		return transport_same_host(peer, &a->peer);
	case TRANSPORT_UNIX:
		return transport_trusted_user(fd);
	}
	return false;
}

static void pending_drop(struct server *s, size_t i, bool close_it)
{
	if (close_it)
		close(s->pending[i]->fd);
	free(s->pending[i]);
	s->n_pending--;
	memmove(&s->pending[i], &s->pending[i + 1], (s->n_pending - i) * sizeof(s->pending[0]));
}

static void pending_refuse(struct server *s, size_t i, const char *why)
{
	struct msg_wait now_or_never = { .deadline = msg_now(), .stop_fd = -1 };

	agent_refuse(s->a, s->pending[i]->fd, why, now_or_never);
	pending_drop(s, i, true);
}

/* No more descriptors, or memory, for a while. */
static void accept_failed(struct server *s, int error)
{
	if (!s->failed_until)
		log_err(&s->a->log, "cannot accept a connection: %s", strerror(-error));
	s->failed_until = msg_now() + FAILED_MS;
}

static void pending_add(struct server *s, int fd, const struct transport_addr *peer)
{
	struct pending *p = calloc(1, sizeof(*p));
	int64_t ms = s->a->timeout_ms < REQUEST_MS ? s->a->timeout_ms : REQUEST_MS;

	if (!p) {
		accept_failed(s, -ENOMEM);
		close(fd);
		return;
	}
	if (s->n_pending == PENDING_MAX)
		pending_drop(s, 0, true);
	p->fd = fd;
	p->peer = *peer;
	p->spared = msg_now() + SPARED_MS;
	p->deadline = msg_now() + ms;
	s->pending[s->n_pending++] = p;
}

/* Time at which the next connection can be accepted; 0: now. */
static int64_t room_from(const struct server *s)
{
	int64_t now = msg_now();

	if (s->failed_until > now)
		return s->failed_until;
	return s->n_pending < PENDING_MAX || s->pending[0]->spared <= now ? 0 : s->pending[0]->spared;
}

static void accept_some(struct server *s)
{
	struct transport_addr peer;
	char text[128];

	for (int n = 0; n < ACCEPT_MAX && !room_from(s); n++) {
		int fd = transport_accept(s->a->listen_fd, &peer);

		if (fd == -ECONNABORTED)
			continue;
		if (fd < 0 && fd != -EAGAIN)
			accept_failed(s, fd);
		if (fd < 0)
			return;
		s->failed_until = 0;
		if (may_connect(s->a, fd, &peer)) {
			pending_add(s, fd, &peer);
			continue;
		}
		log_warn(&s->a->log, "%s may not connect", transport_text(&peer, text, sizeof(text)));
		close(fd);
	}
}

static void end_serving(struct server *s)
{
	eventfd_t n;

	if (s->serving)
		serving_join(s->serving);
	s->serving = NULL;
	eventfd_read(s->done_fd, &n);
}

static void pending_begin(struct server *s, size_t i, const struct msg *m)
{
	struct pending *p = s->pending[i];
	struct msg_trace_req req;
	char text[128];
	int ret;

	if (s->serving && atomic_load(&s->serving->ending))
		end_serving(s);
	if (s->serving || msg_get_trace_req(m, &req)) {
		pending_refuse(s, i,
			       s->serving ? "busy: another recorder is at work"
					  : "the request makes no sense");
		return;
	}
	log_info(&s->a->log, "a recorder from %s", transport_text(&p->peer, text, sizeof(text)));
	ret = serving_start(&s->serving, s->a, p->fd, &p->peer, &req, s->done_fd);
	if (ret)
		log_err(&s->a->log, "cannot serve it: %s", strerror(-ret));
	pending_drop(s, i, false);
}

/* "CONNECT port\n" of a UNIX socket. 1: done with the connection, 0: go on, -errno: away with it */
static int pending_connect(struct server *s, struct pending *p)
{
	char line[32];
	ssize_t n = recv(p->fd, line, sizeof(line) - 1, MSG_PEEK | MSG_DONTWAIT);
	char *end = n > 0 ? memchr(line, '\n', (size_t)n) : NULL;
	struct msg_wait w = { .deadline = msg_now(), .stop_fd = -1 };
	unsigned int port;
	int len;

	if (n <= 0 || line[0] != 'C')
		return 0;
	if (!end)
		return n < (ssize_t)sizeof(line) - 1 ? -EAGAIN : -EBADMSG;
	*end = 0;
	if (sscanf(line, "CONNECT %u", &port) != 1 || recv(p->fd, line, (size_t)(end - line) + 1, 0) < 0)
		return -EBADMSG;
	len = snprintf(line, sizeof(line), "OK %u\n", port);
	if (port == s->a->addr.port)
		return msg_send(p->fd, line, (size_t)len, &w);
	if (!s->serving || msg_send(p->fd, line, (size_t)len, &w) ||
	    !ports_offer(atomic_load(&s->serving->ports), port, p->fd))
		return -ECONNREFUSED;
	return 1;
}

static void pending_serve(struct server *s, size_t i)
{
	struct pending *p = s->pending[i];
	struct msg m;
	int ret = 0;

	if (p->peer.kind == TRANSPORT_UNIX && !p->reader.have)
		ret = pending_connect(s, p);
	if (ret == -EAGAIN) {
		/* the half of a line stays in the socket, which stays readable */
		poll(NULL, 0, 10);
		return;
	}
	if (ret > 0) {
		pending_drop(s, i, false);
		return;
	}
	ret = ret ?: msg_reader_step(&p->reader, p->fd, &m);
	if (ret < 0) {
		if (ret == -EBADMSG)
			log_warn(&s->a->log, "a connection that makes no sense");
		pending_drop(s, i, true);
		return;
	}
	if (!ret)
		return;
	if (m.cmd == MSG_TRACE_REQ)
		pending_begin(s, i, &m);
	else if (m.cmd == MSG_CLOSE)
		pending_drop(s, i, true);
	else
		pending_refuse(s, i, "only TRACE_REQ makes sense first");
}

int serve(struct agent *a)
{
	struct server s = { .a = a, .done_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC) };
	int ret = s.done_fd < 0 ? -errno : 0;

	while (!ret) {
		struct pollfd p[3 + PENDING_MAX] = {
			{ .fd = a->signal_fd, .events = POLLIN },
			{ .fd = s.done_fd, .events = POLLIN },
			{ .fd = room_from(&s) ? -1 : a->listen_fd, .events = POLLIN },
		};
		size_t n = s.n_pending;
		/* when the oldest connection is dropped, or new ones can be accepted */
		int64_t next = room_from(&s) ?: INT64_MAX, now;
		int ms = -1;

		for (size_t i = 0; i < n; i++)
			p[3 + i] = (struct pollfd){ .fd = s.pending[i]->fd, .events = POLLIN };
		if (n && s.pending[0]->deadline < next)
			next = s.pending[0]->deadline;
		if (next != INT64_MAX)
			ms = next > msg_now() ? (int)(next - msg_now()) : 0;
		if (poll(p, 3 + n, ms) < 0) {
			ret = errno == EINTR ? 0 : -errno;
			continue;
		}
		if (p[0].revents) /* asked to end */
			break;
		if (p[1].revents)
			end_serving(&s);
		/* from the last one, for they move up when one goes */
		for (size_t i = n; i-- > 0;)
			if (p[3 + i].revents)
				pending_serve(&s, i);
		if (p[2].revents)
			accept_some(&s);
		now = msg_now();
		while (s.n_pending && s.pending[0]->deadline <= now)
			pending_drop(&s, 0, true);
	}
	if (s.serving) {
		serving_cancel(s.serving);
		end_serving(&s);
	}
	while (s.n_pending)
		pending_drop(&s, 0, true);
	fd_close(&s.done_fd);
	return ret;
}
