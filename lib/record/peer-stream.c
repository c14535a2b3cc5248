// SPDX-License-Identifier: LGPL-2.1-or-later
/* The pages of a guest's vCPU: from its agent's connection into the spool, until either ends. */
#include "record/peer-priv.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>

#include "record/mover.h"

#define PIECE (1u << 20) /* bytes, where the stream is copied */

/*
 * An end before CLOSE is a loss. But a CPU that was never online has no buffer in
 * the kernel (ring_buffer_wait: -ENODEV), and trace-cmd's agent then ends its stream at once.
 */
static int early_end(struct peer *p, const struct drain *d)
{
	unsigned int n = d->stats->bytes ? p->source.n_cpus : atomic_fetch_add(&p->n_unused, 1) + 1;

	if (n >= p->source.n_cpus)
		return -ECONNRESET;
	if (n == 1) /* there may be hundreds */
		log_info(p->o.log, "guest %s: its agent has nothing of some of its %u CPUs (offline?)",
			 p->o.name, p->source.n_cpus);
	return 0;
}

/*
 * Until the agent ends the stream. After CLOSE (which all guests get before the
 * first is waited for) it may take its time, but a pause or endless pages end it.
 */
static int take_pages(struct peer *p, struct mover *m, const struct drain *d)
{
	int64_t quiet = INT64_MAX, end = INT64_MAX;

	for (;;) {
		struct pollfd pfd = { .fd = m->in, .events = POLLIN };
		ssize_t n = mover_move(m);

		if (!n)
			return atomic_load(&p->closing) ? 0 : early_end(p, d);
		if (n < 0 && n != -EAGAIN && n != -EINTR)
			return (int)n;
		if (n > 0)
			quiet = INT64_MAX;
		if (atomic_load(&p->closing)) {
			end = end < INT64_MAX ? end : peer_patience(p);
			quiet = quiet < INT64_MAX ? quiet : msg_now() + p->o.timeout_ms;
			if (msg_now() > quiet || msg_now() > end)
				return -ETIMEDOUT;
		}
		if (n <= 0)
			poll(&pfd, 1, 100);
	}
}

/* Waits until start() is through. false: the end came before. */
static bool wait_for_start(const struct peer *p, const struct drain *d)
{
	struct pollfd pfd[2] = { { .fd = p->start_fd, .events = POLLIN },
				 { .fd = d->stop_fd, .events = POLLIN } };

	while (poll(pfd, 2, -1) < 0 && errno == EINTR && !atomic_load(d->stopping))
		;
	return pfd[0].revents;
}

int peer_drain(struct source *s, unsigned int cpu, struct drain *d)
{
	struct peer *p = peer_of(s);
	struct mover m;
	char step[48];
	int ret;

	if (!wait_for_start(p, d))
		return 0;
	ret = mover_open(&m, p->data[cpu], PIECE, false, d) ?: take_pages(p, &m, d);
	mover_close(&m);
	if (ret == -ENOSPC || !ret)
		return ret;
	/* the guest died, was paused or lies: what it sent is kept, the others go on */
	if (!atomic_exchange(&p->lost, ret)) {
		snprintf(step, sizeof(step), "the data of its CPU %u", cpu);
		peer_failed(p, step, ret);
	}
	return 0;
}
