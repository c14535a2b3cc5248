// SPDX-License-Identifier: LGPL-2.1-or-later
#include "guest-priv.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define ANSWER_MAX (1u << 20)

int64_t guest_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* sun_path holds 108 bytes: a longer path goes by way of its directory's descriptor. */
static int connect_path(int fd, const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	const char *slash = strrchr(path, '/');
	char dir[4096];
	int at, n, ret;

	if (strlen(path) < sizeof(a.sun_path)) {
		memcpy(a.sun_path, path, strlen(path) + 1);
		return connect(fd, (struct sockaddr *)&a, sizeof(a)) ? -errno : 0;
	}
	if (!slash || (size_t)(slash - path) >= sizeof(dir))
		return -ENAMETOOLONG;
	memcpy(dir, path, (size_t)(slash - path));
	dir[slash - path] = 0;
	at = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (at < 0)
		return -errno;
	n = snprintf(a.sun_path, sizeof(a.sun_path), "/proc/self/fd/%d%s", at, slash);
	if (n < 0 || (size_t)n >= sizeof(a.sun_path))
		ret = -ENAMETOOLONG;
	else
		ret = connect(fd, (struct sockaddr *)&a, sizeof(a)) ? -errno : 0;
	close(at);
	return ret;
}

int guest_unix_connect(const char *path)
{
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int ret;

	if (fd < 0)
		return -errno;
	ret = connect_path(fd, path);
	if (!ret)
		return fd;
	close(fd);
	return ret;
}

static int wait_for(int fd, short events, int64_t deadline)
{
	struct pollfd p = { .fd = fd, .events = events };
	int64_t left;
	int n;

	do {
		left = deadline - guest_now_ms();
		n = left <= 0 ? 0 : poll(&p, 1, (int)left);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n ? 0 : -ETIMEDOUT;
}

int guest_sock_write(int fd, const char *text, int64_t deadline)
{
	size_t len = strlen(text);

	while (len) {
		ssize_t n = send(fd, text, len, MSG_NOSIGNAL);
		int ret;

		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		if (n > 0) {
			text += n;
			len -= (size_t)n;
			continue;
		}
		ret = wait_for(fd, POLLOUT, deadline);
		if (ret)
			return ret;
	}
	return 0;
}

ssize_t guest_sock_read(int fd, struct buf *in, int64_t deadline)
{
	char chunk[4096];
	ssize_t n;
	int ret;

	if (in->len > ANSWER_MAX)
		return -EFBIG;
	do {
		ret = wait_for(fd, POLLIN, deadline);
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
	int64_t deadline = guest_now_ms() + timeout_ms;
	struct buf in = { 0 }, request = { 0 };
	const char *body = NULL, *text;
	ssize_t n = 1;
	size_t len = 0;
	int fd = guest_unix_connect(path), ret;

	if (fd < 0)
		return fd;
	buf_printf(&request,
		   "GET %s HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n\r\n", what);
	text = buf_str(&request);
	ret = text ? guest_sock_write(fd, text, deadline) : -ENOMEM;
	while (!ret && n > 0 && !http_body(&in, &body, &len))
		n = guest_sock_read(fd, &in, deadline);
	if (!ret && n < 0)
		ret = (int)n;
	else if (!ret && (!body || strncmp((char *)in.data, "HTTP/1.1 200", 12)))
		ret = -EBADMSG;
	if (!ret)
		buf_add(out, body, len);
	buf_release(&request);
	buf_release(&in);
	close(fd);
	return ret ? ret : buf_status(out);
}
