// SPDX-License-Identifier: LGPL-2.1-or-later
/* Samples a guest's counter through its agent, by questions and answers in a thread of its own. */
#include "record/drain/peer.h"

#include <poll.h>
#include <sys/eventfd.h>

#define OUTER_ROUNDS 8 /* questions at the start and at the end */
#define INNER_ROUNDS 2
#define LAST_MS	     2000

static int ask_counter(struct peer_clock *c, struct counter_ping *ping, struct msg_counter_shot *shot)
{
	struct msg_wait w = { .deadline = msg_now() + LAST_MS, .stop_fd = -1 };
	struct msg_sync sync;
	struct buf b = { 0 };
	struct msg m;
	int ret;

	msg_add_sync_number(&b, MSG_SYNC_COUNTER, MSG_COUNTER_ASK, ++c->number);
	ping->sent = counter_read();
	ret = msg_send_buf(c->fd, &b, &w);
	/* for as long as the recording; then a little longer */
	w = (struct msg_wait){ .deadline = INT64_MAX, .stop_fd = c->end_fd };
	ret = ret ?: msg_recv(c->fd, &c->reader, &w, &m);
	if (ret == -ECANCELED) {
		if (!c->last_end)
			c->last_end = msg_now() + LAST_MS;
		w = (struct msg_wait){ .deadline = c->last_end, .stop_fd = -1 };
		ret = msg_recv(c->fd, &c->reader, &w, &m);
	}
	ping->back = counter_read();
	ret = ret ?: msg_get_sync(&m, &sync);
	if (ret)
		return ret;
	if (!msg_sync_is(&sync, MSG_SYNC_COUNTER, MSG_COUNTER_SHOT))
		return -EPROTO;
	ret = msg_get_counter_shot(&sync, shot);
	if (ret)
		return ret;
	ping->first = shot->first;
	ping->last = shot->last;
	return shot->number == c->number ? 0 : -EPROTO;
}

/*
 * All questions bound CNTVOFF; of the snapshots the narrowest is kept. While its VM is
 * stopped by the VMM no message goes to a guest (vhost_transport_send_pkt() of
 * drivers/vhost/vsock.c), but the connection lasts: the next round asks again.
 */
static int ask_rounds(struct peer_clock *c, int rounds)
{
	struct counter_shot best = { .slack = UINT64_MAX };
	struct msg_counter_shot shot;
	struct counter_ping ping;
	int ret = 0;

	for (int i = 0; i < rounds && !ret; i++) {
		ret = ask_counter(c, &ping, &shot) ?: counter_log_ping(&c->log, &ping);
		/* the snapshot was made between question and answer, whatever bounds the agent sent */
		if (ret || !shot.clock || shot.slack >= best.slack || shot.counter < shot.first ||
		    shot.counter > shot.last)
			continue;
		best = (struct counter_shot){ shot.counter, shot.slack, shot.clock };
	}
	if (ret == -EHOSTUNREACH)
		ret = 0;
	return best.clock && counter_log_shot(&c->log, &best) ? -ENOMEM : ret;
}

static void *clock_thread(void *arg)
{
	struct peer_clock *c = arg;
	struct pollfd p = { .fd = c->end_fd, .events = POLLIN };
	struct buf b = { 0 };
	int ret = ask_rounds(c, OUTER_ROUNDS), n;

	/* until the recording is over; then the last questions */
	while (!ret && (n = poll(&p, 1, c->interval_ms ? (int)c->interval_ms : -1)) <= 0)
		ret = !n ? ask_rounds(c, INNER_ROUNDS) : errno == EINTR ? 0 : -errno;
	ret = ret ?: ask_rounds(c, OUTER_ROUNDS);
	if (!ret) {
		struct msg_wait w = { .deadline = msg_now() + LAST_MS, .stop_fd = -1 };

		msg_add_sync(&b, MSG_SYNC_NONE, MSG_SYNC_STOP, NULL, 0);
		msg_send_buf(c->fd, &b, &w);
	}
	/* the agent waits for more as long as this is open */
	fd_close(&c->fd);
	return NULL;
}

int peer_clock_start(struct peer_clock **out, int fd, int64_t interval_ms)
{
	struct peer_clock *c = calloc(1, sizeof(*c));
	int ret;

	if (!c) {
		close(fd);
		return -ENOMEM;
	}
	c->fd = fd;
	c->interval_ms = interval_ms;
	c->end_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ret = c->end_fd < 0 ? errno : pthread_create(&c->thread, NULL, clock_thread, c);
	c->running = !ret;
	if (!ret)
		*out = c;
	else
		peer_clock_free(c);
	return -ret;
}

void peer_clock_end(struct peer_clock *c)
{
	if (c)
		eventfd_write(c->end_fd, 1);
}

const struct counter_log *peer_clock_log(struct peer_clock *c)
{
	if (!c)
		return NULL;
	peer_clock_end(c);
	if (c->running)
		pthread_join(c->thread, NULL);
	c->running = false;
	return &c->log;
}

void peer_clock_free(struct peer_clock *c)
{
	if (!c)
		return;
	if (c->end_fd >= 0)
		peer_clock_log(c);
	fd_close(&c->fd);
	fd_close(&c->end_fd);
	counter_log_release(&c->log);
	free(c);
}
