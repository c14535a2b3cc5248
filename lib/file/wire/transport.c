// SPDX-License-Identifier: LGPL-2.1-or-later
/* Stream sockets to or from a guest: vsock, TCP, UNIX, and their addresses as text. */
#include "file/wire/transport.h"
#include "base/files.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <linux/vm_sockets.h>
#include <sys/un.h>

#define SOCK_FLAGS	  (SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC)
#define QUEUE_MS	  10	   /* until a full queue is tried again */
#define VSOCK_WAIT_MAX_MS 86400000 /* a day */

union sock {
	struct sockaddr any;
	struct sockaddr_vm vm;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_un un;
};

/* fd, or the error; then fd is closed. */
static int keep_or_close(int fd, int error)
{
	if (!error)
		return fd;
	fd_close(&fd);
	return error;
}

static int address_port(const char *s, uint32_t *port)
{
	uint64_t n;

	if (parse_u64(s, &n) || n > UINT32_MAX)
		return -EINVAL;
	*port = (uint32_t)n;
	return 0;
}

static int parse_vsock(struct transport_addr *a, const char *s)
{
	const char *colon = strchr(s, ':');
	char cid[24];

	if (!colon)
		return address_port(s, &a->port);
	if ((size_t)(colon - s) >= sizeof(cid))
		return -EINVAL;
	memcpy(cid, s, (size_t)(colon - s));
	cid[colon - s] = 0;
	return address_port(cid, &a->cid) ? -EINVAL : address_port(colon + 1, &a->port);
}

bool transport_is_ip(const char *host)
{
	struct in6_addr ip;

	return inet_pton(AF_INET, host, &ip) == 1 || inet_pton(AF_INET6, host, &ip) == 1;
}

int transport_parse(struct transport_addr *a, const char *text)
{
	if (!strcmp(text, "vsock") || !strncmp(text, "vsock:", 6)) {
		a->kind = TRANSPORT_VSOCK;
		return text[5] ? parse_vsock(a, text + 6) : 0;
	}
	if (!strncmp(text, "tcp:", 4)) {
		const char *s = text + 4, *end = *s == '[' ? strchr(s, ']') : NULL;
		const char *colon = end ? end + 1 : strrchr(s, ':');
		size_t len;

		a->kind = TRANSPORT_TCP;
		if (*s == '[' && !end)
			return -EINVAL;
		/* a bare IPv6 address has more than one colon and no port */
		if (!end && colon && strchr(s, ':') != colon)
			colon = NULL;
		if (end)
			s++;
		len = end ? (size_t)(end - s) : colon ? (size_t)(colon - s) : strlen(s);
		if (len >= sizeof(a->host))
			return -EINVAL;
		memcpy(a->host, s, len);
		a->host[len] = 0;
		if (!transport_is_ip(a->host))
			return -EINVAL;
		if (colon && *colon &&
		    (*colon != ':' || address_port(colon + 1, &a->port) || a->port > UINT16_MAX))
			return -EINVAL;
		return 0;
	}
	if (strncmp(text, "unix:", 5) || !text[5])
		return -EINVAL;
	a->kind = TRANSPORT_UNIX;
	if (strlen(text + 5) >= sizeof(((struct sockaddr_un *)0)->sun_path))
		return -ENAMETOOLONG;
	strcpy(a->host, text + 5);
	return 0;
}

const char *transport_text(const struct transport_addr *a, char *text, size_t len)
{
	if (a->kind == TRANSPORT_UNIX)
		snprintf(text, len, "unix:%s", a->host);
	else if (a->kind == TRANSPORT_TCP)
		snprintf(text, len, strchr(a->host, ':') ? "tcp:[%s]:%u" : "tcp:%s:%u", a->host, a->port);
	else if (a->cid == TRANSPORT_CID_ANY)
		snprintf(text, len, "vsock:%u", a->port);
	else
		snprintf(text, len, "vsock:%u:%u", a->cid, a->port);
	return text;
}

static int to_sock(const struct transport_addr *a, union sock *s, socklen_t *len)
{
	memset(s, 0, sizeof(*s));
	if (a->kind == TRANSPORT_TCP) {
		uint16_t port = a->port == TRANSPORT_PORT_ANY ? 0 : htons((uint16_t)a->port);

		if (!*a->host || inet_pton(AF_INET6, a->host, &s->in6.sin6_addr) == 1) {
			s->in6.sin6_family = AF_INET6;
			s->in6.sin6_port = port;
			*len = sizeof(s->in6);
			return 0;
		}
		if (inet_pton(AF_INET, a->host, &s->in.sin_addr) != 1)
			return -EINVAL;
		s->in.sin_family = AF_INET;
		s->in.sin_port = port;
		*len = sizeof(s->in);
		return 0;
	}
	if (a->kind == TRANSPORT_VSOCK) {
		s->vm.svm_family = AF_VSOCK;
		s->vm.svm_cid = a->cid;
		s->vm.svm_port = a->port;
		*len = sizeof(s->vm);
		return 0;
	}
	if (strlen(a->host) >= sizeof(s->un.sun_path))
		return -ENAMETOOLONG;
	s->un.sun_family = AF_UNIX;
	strcpy(s->un.sun_path, a->host);
	*len = sizeof(s->un);
	return 0;
}

static int from_sock(const union sock *s, struct transport_addr *a)
{
	*a = (struct transport_addr){ 0 };
	switch (s->any.sa_family) {
	case AF_VSOCK:
		a->kind = TRANSPORT_VSOCK;
		a->cid = s->vm.svm_cid;
		a->port = s->vm.svm_port;
		return 0;
	case AF_INET:
		a->kind = TRANSPORT_TCP;
		a->port = ntohs(s->in.sin_port);
		inet_ntop(AF_INET, &s->in.sin_addr, a->host, sizeof(a->host));
		return 0;
	case AF_INET6:
		a->kind = TRANSPORT_TCP;
		a->port = ntohs(s->in6.sin6_port);
		/* IPv4 within IPv6 is IPv4. */
		if (IN6_IS_ADDR_V4MAPPED(&s->in6.sin6_addr))
			inet_ntop(AF_INET, &s->in6.sin6_addr.s6_addr[12], a->host, sizeof(a->host));
		else
			inet_ntop(AF_INET6, &s->in6.sin6_addr, a->host, sizeof(a->host));
		return 0;
	case AF_UNIX:
		a->kind = TRANSPORT_UNIX;
		return 0;
	}
	return -EAFNOSUPPORT;
}

bool transport_same_host(const struct transport_addr *a, const struct transport_addr *b)
{
	struct in6_addr x, y;

	if (a->kind != b->kind)
		return false;
	if (a->kind == TRANSPORT_VSOCK)
		return a->cid == b->cid;
	if (a->kind == TRANSPORT_UNIX)
		return true;
	/* one address may be written in several ways */
	if (inet_pton(AF_INET6, a->host, &x) == 1 && inet_pton(AF_INET6, b->host, &y) == 1)
		return !memcmp(&x, &y, sizeof(x));
	return !strcmp(a->host, b->host);
}

int transport_local(int fd, struct transport_addr *local)
{
	union sock s = { 0 };
	socklen_t len = sizeof(s);

	return getsockname(fd, &s.any, &len) < 0 ? -errno : from_sock(&s, local);
}

static int new_socket(const struct transport_addr *a, const union sock *s)
{
	int fd = socket(s->any.sa_family, SOCK_FLAGS, 0), yes = 1, no = 0;

	if (fd < 0)
		return -errno;
	if (a->kind == TRANSPORT_TCP) {
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
		setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &yes, sizeof(yes));
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
		if (s->any.sa_family == AF_INET6 && !*a->host)
			setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &no, sizeof(no));
	}
	return fd;
}

/* Removes the socket file of a killed listener. */
static int clear_path(const struct transport_addr *a, const union sock *s, socklen_t len)
{
	struct stat st;
	int fd, ret = 0;

	if (lstat(a->host, &st) < 0)
		return 0;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	fd = socket(AF_UNIX, SOCK_FLAGS, 0);
	if (fd < 0)
		return -errno;
	if (!connect(fd, &s->any, len) || errno == EAGAIN)
		ret = -EADDRINUSE;
	else if (errno != ECONNREFUSED || unlink(a->host) < 0)
		ret = -errno;
	close(fd);
	return ret;
}

int transport_listen(const struct transport_addr *a, int backlog, uint32_t *port)
{
	struct transport_addr local = *a;
	socklen_t len = 0;
	union sock s;
	int fd, ret = to_sock(a, &s, &len);

	if (ret)
		return ret;
	fd = new_socket(a, &s);
	/* a kernel without IPv6 */
	if (fd == -EAFNOSUPPORT && a->kind == TRANSPORT_TCP && !*a->host) {
		strcpy(local.host, "0.0.0.0");
		return transport_listen(&local, backlog, port);
	}
	if (fd < 0)
		return fd;
	ret = a->kind == TRANSPORT_UNIX ? clear_path(a, &s, len) : 0;
	if (!ret && a->kind == TRANSPORT_UNIX)
		fchmod(fd, 0600); /* the mode that the new file gets */
	if (!ret && bind(fd, &s.any, len) < 0)
		ret = -errno;
	if (!ret && listen(fd, backlog) < 0) {
		ret = -errno;
		if (a->kind == TRANSPORT_UNIX)
			unlink(a->host);
	}
	if (!ret && port && a->kind != TRANSPORT_UNIX) {
		ret = transport_local(fd, &local);
		*port = local.port;
	}
	return keep_or_close(fd, ret);
}

int transport_accept(int fd, struct transport_addr *peer)
{
	union sock s = { 0 };
	socklen_t len = sizeof(s);
	int sd, yes = 1, ret;

	do
		sd = accept4(fd, &s.any, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
	while (sd < 0 && errno == EINTR);
	if (sd < 0)
		return -errno;
	/* a UNIX peer without a name may leave the family out */
	if (len < sizeof(sa_family_t))
		s.any.sa_family = AF_UNIX;
	ret = from_sock(&s, peer);
	if (!ret && peer->kind == TRANSPORT_TCP)
		setsockopt(sd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
	return keep_or_close(sd, ret);
}

bool transport_trusted_user(int fd)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) &&
	       (cred.uid == 0 || cred.uid == geteuid());
}

int transport_say_connect(int fd, uint32_t port, const struct msg_wait *w)
{
	char line[64];
	int len = snprintf(line, sizeof(line), "CONNECT %u\n", port);
	int ret = msg_send(fd, line, (size_t)len, w);

	/* one byte at a time: what follows the line is not ours */
	for (size_t n = 0; n + 1 < sizeof(line); n++) {
		ssize_t got;

		ret = ret ?: msg_poll(fd, POLLIN, w);
		if (ret)
			return ret;
		got = recv(fd, line + n, 1, MSG_DONTWAIT);
		if (got <= 0)
			return got ? -errno : -ECONNREFUSED;
		line[n + 1] = 0;
		if (line[n] == '\n')
			return strncmp(line, "OK", 2) ? -ECONNREFUSED : 0;
	}
	return -EPROTO;
}

/* A full queue of a UNIX listener is EAGAIN, and no event reports when it has space again. */
static int connect_once(int fd, const struct sockaddr *s, socklen_t len, const struct msg_wait *w)
{
	int64_t end = msg_wait_end(w);

	while (connect(fd, s, len) < 0) {
		int error = errno, ret;
		struct msg_wait nap = { .deadline = msg_now() + QUEUE_MS, .stop_fd = w->stop_fd };

		if (error == EINPROGRESS) {
			len = sizeof(int);
			ret = msg_poll(fd, POLLOUT, w);
			if (ret)
				return ret;
			return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0 ? -errno : -error;
		}
		if (error != EAGAIN)
			return -error;
		if (nap.deadline > end)
			return -ETIMEDOUT;
		ret = msg_poll(-1, 0, &nap);
		if (ret != -ETIMEDOUT)
			return ret;
	}
	return 0;
}

/* A path longer than a socket address goes by way of its directory's descriptor. */
static int path_to_sock(const char *path, struct sockaddr_un *un, int *dirfd)
{
	const char *slash = strrchr(path, '/');
	char *dir;
	int n;

	*un = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (strlen(path) < sizeof(un->sun_path)) {
		strcpy(un->sun_path, path);
		return 0;
	}
	dir = slash ? strndup(path, (size_t)(slash - path)) : NULL;
	if (!dir)
		return slash ? -ENOMEM : -ENAMETOOLONG;
	*dirfd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	free(dir);
	if (*dirfd < 0)
		return -errno;
	n = snprintf(un->sun_path, sizeof(un->sun_path), "/proc/self/fd/%d%s", *dirfd, slash);
	return (size_t)n < sizeof(un->sun_path) ? 0 : -ENAMETOOLONG;
}

int transport_connect_path(const char *path, const struct msg_wait *w)
{
	int dirfd = -1, fd = -1;
	struct sockaddr_un un;
	int ret = path_to_sock(path, &un, &dirfd);

	if (!ret) {
		fd = socket(AF_UNIX, SOCK_FLAGS, 0);
		ret = fd < 0 ? -errno : connect_once(fd, (struct sockaddr *)&un, sizeof(un), w);
	}
	fd_close(&dirfd);
	return keep_or_close(fd, ret);
}

int transport_connect(const struct transport_addr *a, const struct msg_wait *w)
{
	socklen_t len = 0;
	union sock s;
	int fd, ret;

	if (a->kind == TRANSPORT_UNIX) {
		fd = transport_connect_path(a->host, w);
		return fd < 0 || !a->port ? fd : keep_or_close(fd, transport_say_connect(fd, a->port, w));
	}
	ret = to_sock(a, &s, &len);
	fd = ret ? ret : new_socket(a, &s);
	if (fd >= 0 && a->kind == TRANSPORT_VSOCK) {
		int64_t ms = msg_wait_end(w) - msg_now();
		struct timeval t = { .tv_sec = (ms < VSOCK_WAIT_MAX_MS ? ms : VSOCK_WAIT_MAX_MS) / 1000 + 1 };

		/*
		 * Else the kernel gives a guest 2 s (VSOCK_DEFAULT_CONNECT_TIMEOUT), however long we
		 * would wait.
		 */
		if (ms > 0)
			setsockopt(fd, AF_VSOCK, SO_VM_SOCKETS_CONNECT_TIMEOUT, &t, sizeof(t));
	}
	return fd < 0 ? fd : keep_or_close(fd, connect_once(fd, &s.any, len, w));
}
