/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_TRANSPORT_H
#define HYPTRACE_TRANSPORT_H

#include "file/wire/msg.h"

/*
 * Stream sockets to or from a guest: vsock, TCP, and UNIX sockets, which VMMs without vhost-vsock
 * (Firecracker, vhost-device-vsock) put in place of the guest's vsock: one path for all ports, and
 * the connecting side first sends "CONNECT port\n" and reads "OK port\n".
 *
 * All descriptors are non-blocking and close-on-exec. Addresses are numeric: nothing here asks a name server.
 */

enum transport_kind { TRANSPORT_VSOCK, TRANSPORT_TCP, TRANSPORT_UNIX };

#define TRANSPORT_CID_HOST 2u
#define TRANSPORT_CID_ANY  UINT32_MAX
#define TRANSPORT_PORT_ANY UINT32_MAX /* listen: the kernel's choice */

struct transport_addr {
	enum transport_kind kind;
	uint32_t port; /* UNIX, connect: 0 = send no CONNECT */
	uint32_t cid;  /* VSOCK; listen: TRANSPORT_CID_ANY */
	/* TCP: "192.0.2.1" or "2001:db8::1", "" = any to listen on; UNIX: the path */
	char host[512];
};

/*
 * "vsock", "vsock:PORT", "vsock:CID:PORT", "tcp:ADDR", "tcp:ADDR:PORT" (an IPv6
 * address in [brackets] when a port follows), "unix:PATH". What is left out stays
 * as it is in *a. -EINVAL; -ENAMETOOLONG: a path that no socket address takes.
 */
int transport_parse(struct transport_addr *a, const char *text);
/* True if it is a numeric IPv4 or IPv6 address. */
bool transport_is_ip(const char *host);
/* The same form again, for messages; returns text. */
const char *transport_text(const struct transport_addr *a, char *text, size_t len);

/*
 * A listening descriptor, or -errno. TCP and vsock: *port (if not NULL) is the one it got. UNIX:
 * mode 0600; an existing socket without a listener is replaced, one with a listener is -EADDRINUSE.
 */
int transport_listen(const struct transport_addr *a, int backlog, uint32_t *port);
/* The other end of an accepted connection. -EAGAIN: none is waiting. */
int transport_accept(int fd, struct transport_addr *peer);
/* True if the process at the other end of a UNIX socket is root's or our own user's. */
bool transport_trusted_user(int fd);
/* True if two addresses name the same machine (their ports do not count). */
bool transport_same_host(const struct transport_addr *a, const struct transport_addr *b);
/* The address that an accepted connection came to; its kind as in *peer. */
int transport_local(int fd, struct transport_addr *local);

/*
 * A connected descriptor, CONNECT done, or -errno. A UNIX path may be longer than
 * a socket address takes; when its listener's queue is full, the call waits for room.
 */
int transport_connect(const struct transport_addr *a, const struct msg_wait *w);
/* A UNIX socket without CONNECT, whatever it speaks. */
int transport_connect_path(const char *path, const struct msg_wait *w);
/* Only the CONNECT, for a socket that is connected already: -ECONNREFUSED, -EPROTO. */
int transport_say_connect(int fd, uint32_t port, const struct msg_wait *w);

#endif
