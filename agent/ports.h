/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HYPTRACE_AGENT_PORTS_H
#define HYPTRACE_AGENT_PORTS_H

#include "wire/transport.h"

/*
 * The ports of one session, for the data of each CPU and for time
 * synchronisation. vsock, TCP: a listening socket each. UNIX: numbers, whose
 * connections come through the agent's own socket (CONNECT).
 */
struct ports;

/* For connections from peer's machine to local's address. */
int ports_open(struct ports **out, const struct transport_addr *local, const struct transport_addr *peer,
	       size_t n);
void ports_free(struct ports *p);
uint32_t ports_number(const struct ports *p, size_t i);
/* Waits for the one connection of a port, then closes the port. fd or -errno. */
int ports_accept(struct ports *p, size_t i, const struct msg_wait *w);
/* UNIX: gives it the connection; false: no such port, or it has one. */
bool ports_offer(struct ports *p, uint32_t number, int fd);

#endif
