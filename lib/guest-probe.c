// SPDX-License-Identifier: LGPL-2.1-or-later
#include "guest-priv.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <linux/vm_sockets.h>
#include <unistd.h>

const char *guest_answer_name(enum guest_answer a)
{
	static const char *const names[] = { "unreachable", "refused", "silent", "listens" };

	return a < ARRAY_SIZE(names) ? names[a] : "unreachable";
}

static enum guest_answer answer_of(int error)
{
	switch (error) {
	case 0:
		return GUEST_LISTENS;
	case ECONNRESET: /* vsock's word for a closed port */
	case ECONNREFUSED:
		return GUEST_REFUSED;
	case ETIMEDOUT:
		return GUEST_SILENT;
	default:
		return GUEST_UNREACHABLE;
	}
}

static int wait_connected(int fd, int timeout_ms)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	int64_t deadline = guest_now_ms() + timeout_ms, left;
	int error = 0, n;
	socklen_t len = sizeof(error);

	do {
		left = deadline - guest_now_ms();
		n = poll(&p, 1, left > 0 ? (int)left : 0);
	} while (n < 0 && errno == EINTR);
	if (n <= 0)
		return n ? errno : ETIMEDOUT;
	return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) ? errno : error;
}

enum guest_answer guest_probe_agent(uint32_t cid, uint32_t port, int timeout_ms)
{
	struct sockaddr_vm a = { .svm_family = AF_VSOCK, .svm_cid = cid, .svm_port = port };
	int fd = socket(AF_VSOCK, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), error = 0;

	if (fd < 0)
		return GUEST_UNREACHABLE;
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)))
		error = errno == EINPROGRESS ? wait_connected(fd, timeout_ms) : errno;
	close(fd);
	return answer_of(error);
}

/* "CONNECT 823\n" is answered by "OK <host port>\n", or by closing. */
enum guest_answer guest_probe_unix(const char *path, uint32_t port, int timeout_ms)
{
	int64_t deadline = guest_now_ms() + timeout_ms;
	int fd = guest_unix_connect(path);
	struct buf in = { 0 };
	char text[32];
	ssize_t n;

	if (fd < 0)
		return fd == -ECONNREFUSED ? GUEST_REFUSED : GUEST_UNREACHABLE;
	snprintf(text, sizeof(text), "CONNECT %u\n", port);
	n = guest_sock_write(fd, text, deadline);
	while (!n && !(in.len && memchr(in.data, '\n', in.len))) {
		n = guest_sock_read(fd, &in, deadline);
		n = n > 0 ? 0 : n ? n : -ECONNRESET;
	}
	if (!n && (in.len < 3 || memcmp(in.data, "OK ", 3)))
		n = -EPROTO;
	buf_release(&in);
	close(fd);
	return answer_of((int)-n);
}
