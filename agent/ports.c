// SPDX-License-Identifier: GPL-2.0-only
/* The ports for one recording's data, and the connections that come to them. */
#include "agent.h"
#include "base/files.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

struct port {
	uint32_t number;
	int wake;  /* readable: a connection is there */
	int given; /* UNIX: the connection, or -1 */
};

struct ports {
	struct transport_addr peer;
	pthread_mutex_t lock; /* of given */
	size_t n;
	struct port v[];
};

int ports_open(struct ports **out, const struct transport_addr *local, const struct transport_addr *peer,
	       size_t n)
{
	struct ports *p = calloc(1, sizeof(*p) + n * sizeof(p->v[0]));
	uint32_t base = 0;
	int ret = 0;

	if (!p)
		return -ENOMEM;
	p->peer = *peer;
	pthread_mutex_init(&p->lock, NULL);
	/* so that a late connection to an earlier session finds nothing */
	if (getrandom(&base, sizeof(base), 0) != sizeof(base))
		base = (uint32_t)msg_now();
	base = 0x10000 + (base & 0x3fffff00);
	for (; p->n < n && !ret; p->n += !ret) {
		struct port *port = &p->v[p->n];
		struct transport_addr a = *local;

		port->given = -1;
		port->number = base + (uint32_t)p->n;
		a.port = TRANSPORT_PORT_ANY;
		if (a.kind == TRANSPORT_VSOCK)
			a.cid = TRANSPORT_CID_ANY;
		port->wake = a.kind == TRANSPORT_UNIX ? eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)
						      : transport_listen(&a, 4, &port->number);
		if (port->wake < 0)
			ret = a.kind == TRANSPORT_UNIX ? -errno : port->wake;
	}
	if (ret)
		ports_free(p);
	else
		*out = p;
	return ret;
}

void ports_free(struct ports *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->n; i++) {
		fd_close(&p->v[i].wake);
		fd_close(&p->v[i].given);
	}
	pthread_mutex_destroy(&p->lock);
	free(p);
}

uint32_t ports_number(const struct ports *p, size_t i)
{
	return p->v[i].number;
}

int ports_accept(struct ports *p, size_t i, const struct msg_wait *w)
{
	struct port *port = &p->v[i];
	struct transport_addr peer;
	int ret;

	for (;;) {
		ret = msg_poll(port->wake, POLLIN, w);
		if (ret)
			return ret;
		if (p->peer.kind == TRANSPORT_UNIX) {
			int fd;

			pthread_mutex_lock(&p->lock);
			fd = port->given;
			port->given = -1;
			port->number = 0;
			pthread_mutex_unlock(&p->lock);
			ret = fd < 0 ? -EAGAIN : fd;
			break;
		}
		ret = transport_accept(port->wake, &peer);
		if (ret >= 0 && transport_same_host(&peer, &p->peer))
			break;
		if (ret >= 0)
			close(ret);
		else if (ret != -EAGAIN && ret != -ECONNABORTED)
			return ret;
	}
	close(port->wake);
	port->wake = -1;
	return ret;
}

bool ports_offer(struct ports *p, uint32_t number, int fd)
{
	bool taken = false;

	pthread_mutex_lock(&p->lock);
	for (size_t i = 0; i < p->n && number && !taken; i++) {
		if (p->v[i].number != number || p->v[i].given >= 0)
			continue;
		p->v[i].given = fd;
		taken = eventfd_write(p->v[i].wake, 1) == 0;
		if (!taken)
			p->v[i].given = -1;
	}
	pthread_mutex_unlock(&p->lock);
	return taken;
}
