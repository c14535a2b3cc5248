/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A FAKE agent's sockets and messages, after trace-cmd 3.1.6's trace-msg.c and
 * with none of hyptrace's own code.
 */
#ifndef FAKE_AGENT_H
#define FAKE_AGENT_H

#include <arpa/inet.h>
#include <endian.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "fake-agent-data.h"

#define CPUS_MAX 64
#define PAGES	 20 /* of a CPU, before CLOSE; one more comes after it */

enum { CLOSE, SEND_DATA = 3, FIN_DATA, NOT_SUPP, TRACE_REQ, TRACE_RESP, CLOSE_RESP };

struct scenario;

struct agent {
	const struct scenario *s;
	const char *path; /* NULL: TCP */
	FILE *log;
	int listener, control;
	int data_listeners[CPUS_MAX], data[CPUS_MAX];
	uint32_t cpus, ports[CPUS_MAX];
	uint64_t trace_id;
};

static inline void die(const char *what)
{
	perror(what);
	exit(1);
}

static inline void say(struct agent *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static inline void say(struct agent *a, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfprintf(a->log, fmt, ap);
	va_end(ap);
	fputc('\n', a->log);
	fflush(a->log);
}

/* ---- sockets ------------------------------------------------------------------- */

static inline bool put(int fd, const void *data, size_t n)
{
	for (const char *p = data; n;) {
		ssize_t done = send(fd, p, n, MSG_NOSIGNAL);

		if (done <= 0)
			return false;
		p += done;
		n -= (size_t)done;
	}
	return true;
}

static inline bool get(int fd, void *data, size_t n)
{
	return !n || recv(fd, data, n, MSG_WAITALL) == (ssize_t)n;
}

static inline int listen_tcp(uint32_t *port)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(in);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || bind(fd, (void *)&in, len) || listen(fd, 8) || getsockname(fd, (void *)&in, &len))
		die("tcp");
	*port = ntohs(in.sin_port);
	return fd;
}

static inline int listen_unix(const char *path)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(un.sun_path, sizeof(un.sun_path), "%s", path);
	unlink(path);
	if (fd < 0 || bind(fd, (void *)&un, sizeof(un)) || listen(fd, 8))
		die(path);
	return fd;
}

/* "CONNECT PORT"; returns the port. */
static inline uint32_t read_connect(int fd)
{
	char line[64] = "";

	for (size_t n = 0; n < sizeof(line) - 1 && get(fd, line + n, 1) && line[n] != '\n'; n++)
		;
	return strncmp(line, "CONNECT ", 8) ? 0 : (uint32_t)atoi(line + 8);
}

static inline int take(struct agent *a, int listener, uint32_t port)
{
	int fd = accept(listener, NULL, NULL);

	if (fd < 0)
		die("accept");
	if (a->path && (read_connect(fd) != port || !put(fd, "OK 1073741824\n", 14)))
		die("CONNECT");
	return fd;
}

static inline void head(struct agent *a, uint32_t size, uint32_t cmd, uint32_t fixed)
{
	uint32_t h[3] = { htobe32(size), htobe32(cmd), htobe32(fixed) };

	put(a->control, h, sizeof(h));
}

static inline bool message(struct agent *a, uint32_t cmd, const void *data, size_t n)
{
	struct bytes b = { 0 };
	bool ok;

	ADD(&b, uint32_t, htobe32(12 + (uint32_t)n));
	ADD(&b, uint32_t, htobe32(cmd));
	ADD(&b, uint32_t, 0);
	add(&b, data, n);
	ok = put(a->control, b.p, b.n);
	drop(&b);
	return ok;
}

/* ---- the right way ------------------------------------------------------------------ */

static inline void say_request(struct agent *a, const uint8_t *body, uint32_t len)
{
	uint64_t id;
	char args[8192];
	uint32_t n = 0, args_len = 0;

	memcpy(&id, body + 8, 8);
	/* be32 id 0, length, number; the strings; then the protocols' parameter, id 1 */
	if (len >= 28)
		memcpy(&args_len, body + 20, 4);
	args_len = be32toh(args_len);
	len = args_len < len && 24 + args_len < len ? 24 + args_len : len;
	for (uint32_t i = 28; i + 1 < len && n < sizeof(args) - 1; i++)
		args[n++] = body[i] ? (char)body[i] : '|';
	args[n] = 0;
	say(a, "asked %llu: %s", (unsigned long long)be64toh(id), args);
}

static inline bool take_request(struct agent *a)
{
	static uint8_t body[8192];
	uint32_t h[3], len;

	if (!get(a->control, h, sizeof(h)))
		return false;
	len = be32toh(h[0]) - 12;
	if (be32toh(h[1]) != TRACE_REQ || len > sizeof(body) || !get(a->control, body, len))
		die("no request");
	say_request(a, body, len);
	return true;
}

static inline void answer_with(struct agent *a, uint32_t cpus, uint32_t page_size, const void *ports,
			       size_t n)
{
	struct bytes b = { 0 };

	ADD(&b, uint32_t, htobe32(52 + (uint32_t)n));
	ADD(&b, uint32_t, htobe32(TRACE_RESP));
	ADD(&b, uint32_t, htobe32(40));
	ADD(&b, uint32_t, 0);
	ADD(&b, uint32_t, htobe32(cpus));
	ADD(&b, uint32_t, htobe32(page_size));
	ADD(&b, uint64_t, htobe64(a->trace_id));
	add(&b, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 20); /* no time synchronisation */
	add(&b, ports, n);
	put(a->control, b.p, b.n);
	drop(&b);
}

static inline void answer_as(struct agent *a, uint32_t cpus, uint32_t page_size)
{
	struct bytes ports = { 0 };
	char text[16];

	for (uint32_t i = 0; i < a->cpus; i++) {
		snprintf(text, sizeof(text), "%u", a->ports[i]);
		add_str(&ports, text);
	}
	answer_with(a, cpus, page_size, ports.p, ports.n);
	drop(&ports);
}

static inline void send_part(struct agent *a, const struct bytes *b)
{
	for (size_t at = 0, n; at < b->n; at += n) {
		n = b->n - at < 8180 ? b->n - at : 8180;
		message(a, SEND_DATA, b->p + at, n);
	}
}

static inline void send_metadata(struct agent *a, enum flaw flaw)
{
	struct bytes b = metadata(a->trace_id, a->cpus, flaw);

	send_part(a, &b);
	message(a, FIN_DATA, "", 0);
	drop(&b);
}

static inline void take_data(struct agent *a)
{
	for (uint32_t i = 0; i < a->cpus; i++)
		a->data[i] = take(a, a->path ? a->listener : a->data_listeners[i], a->ports[i]);
	say(a, "data");
}

static inline void send_pages(struct agent *a, uint32_t first, uint32_t n)
{
	uint8_t page[PAGE];

	for (uint32_t i = first; i < first + n; i++)
		for (uint32_t cpu = 0; cpu < a->cpus; cpu++) {
			make_page(page, i * EVENTS, i);
			put(a->data[cpu], page, PAGE);
		}
}

static inline void close_data(struct agent *a)
{
	for (uint32_t i = 0; i < a->cpus; i++) {
		if (a->data[i] >= 0)
			close(a->data[i]);
		a->data[i] = -1;
	}
}

#endif
