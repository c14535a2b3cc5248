// SPDX-License-Identifier: LGPL-2.1-or-later
/* UNIX sockets of VMMs: lines for QMP, one GET for HTTP. */
#include "guest/guest-priv.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER_MAX (1u << 20)

struct msg_wait guest_wait(int timeout_ms)
{
	return (struct msg_wait){ .deadline = msg_now() + timeout_ms, .stop_fd = -1 };
}

int guest_sock_write(int fd, const char *text, const struct msg_wait *w)
{
	return msg_send(fd, text, strlen(text), w);
}

ssize_t guest_sock_read(int fd, struct buf *in, const struct msg_wait *w)
{
	char chunk[4096];
	ssize_t n;
	int ret;

	if (in->len > ANSWER_MAX)
		return -EFBIG;
	do {
		ret = msg_poll(fd, POLLIN, w);
		if (ret)
			return ret;
		n = recv(fd, chunk, sizeof(chunk), 0);
	} while (n < 0 && (errno == EAGAIN || errno == EINTR));
	if (n < 0)
		return -errno;
	buf_add(in, chunk, (size_t)n);
	return in->bad ? -ENOMEM : n;
}

/* Whether the answer is whole: head, and as much body as it announces. */
static bool http_body(struct buf *in, const char **body, size_t *len)
{
	const char *text = buf_str(in), *end = text ? strstr(text, "\r\n\r\n") : NULL;
	const char *field = text ? strcasestr(text, "\r\ncontent-length:") : NULL;
	unsigned long long want;

	if (!end || !field || field > end || sscanf(field + 17, "%llu", &want) != 1)
		return false;
	if (in->len - (size_t)(end + 4 - text) < want)
		return false;
	*body = end + 4;
	*len = (size_t)want;
	return true;
}

int guest_http_get(const char *path, const char *what, struct buf *out, int timeout_ms)
{
	char *request =
		str_printf("GET %s HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n\r\n", what);
	struct msg_wait w = guest_wait(timeout_ms);
	struct buf in = { 0 };
	const char *body = NULL;
	size_t len = 0;
	int fd = request ? transport_connect_path(path, &w) : -ENOMEM;
	ssize_t n = fd < 0 ? fd : guest_sock_write(fd, request, &w) ?: 1;

	while (n > 0 && !http_body(&in, &body, &len))
		n = guest_sock_read(fd, &in, &w);
	if (n >= 0 && (!body || strncmp((char *)in.data, "HTTP/1.1 200", 12)))
		n = -EBADMSG;
	if (n >= 0)
		buf_add(out, body, len);
	fd_close(&fd);
	buf_release(&in);
	free(request);
	return n < 0 ? (int)n : buf_status(out);
}
