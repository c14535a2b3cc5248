// SPDX-License-Identifier: LGPL-2.1-or-later
/* Whether an agent listens in a guest: a connection, closed at once. */
#include "guest/guest-priv.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

const char *guest_answer_name(enum guest_answer a)
{
	static const char *const names[] = { "unreachable", "refused", "silent", "listens" };

	return a < ARRAY_SIZE(names) ? names[a] : "unreachable";
}

enum guest_answer guest_probe(const struct guest *g, uint32_t port, int timeout_ms)
{
	struct transport_addr a = { .kind = TRANSPORT_VSOCK, .cid = g->cid, .port = port };
	struct msg_wait w = guest_wait(timeout_ms);
	int fd;

	if (g->uds) {
		a.kind = TRANSPORT_UNIX;
		if (strlen(g->uds) >= sizeof(a.host))
			return GUEST_UNREACHABLE;
		strcpy(a.host, g->uds);
	}
	fd = transport_connect(&a, &w);
	if (fd >= 0) {
		close(fd);
		return GUEST_LISTENS;
	}
	if (fd == -ECONNRESET || fd == -ECONNREFUSED) /* the first is vsock's word for a closed port */
		return GUEST_REFUSED;
	return fd == -ETIMEDOUT ? GUEST_SILENT : GUEST_UNREACHABLE;
}
