// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * QEMU's machine protocol: a greeting, qmp_capabilities, then commands; one JSON object a line, events in
 * between. A monitor serves one client at a time: when another client holds it there is no greeting, and the
 * timeout ends the wait. HTTP has one GET, an agent a connection without a byte.
 */
#include <poll.h>
#include <sys/socket.h>

#include "record/guest/guest-priv.h"
#include "base/json.h"

#define ANSWER_MAX    (1u << 20)
#define PROBE_HOLD_MS 200

/* For one answer, from now on; cannot be cancelled. */
static struct msg_wait guest_wait(int timeout_ms)
{
	return (struct msg_wait){ .deadline = msg_now() + timeout_ms, .stop_fd = -1 };
}

/* Appends to `in`. 0: end of stream; -EFBIG beyond 1 MiB, -ETIMEDOUT. */
static ssize_t guest_sock_read(int fd, struct buf *in, const struct msg_wait *w)
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

/* True if the answer is whole: head, and as much body as it announces. */
static bool http_body(struct buf *in, const char **body, size_t *len)
{
	const char *text = buf_str(in), *end = text ? strstr(text, "\r\n\r\n") : NULL;
	const char *field = text ? strcasestr(text, "\r\ncontent-length:") : NULL;
	unsigned long long want;

	if (!end || !field || field > end || sscanf(field + 17, "%llu", &want) != 1 ||
	    in->len - (size_t)(end + 4 - text) < want)
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
	ssize_t n = fd < 0 ? fd : msg_send(fd, request, strlen(request), &w) ?: 1;

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

int guest_cpus_fast(struct guest *g, int dir, const char *text, size_t len, enum guest_how how)
{
	struct json_value all, list, row, v;
	uint64_t cpu, tid;
	size_t at = 0;

	if (json_parse(text, len, &all))
		return -EBADMSG;
	if (!json_member(all, "return", &list))
		return -ENOMSG;
	while (json_item(list, &at, &row)) {
		if (!json_member(row, "cpu-index", &v) || !json_get_u64(v, &cpu) || cpu >= UINT_MAX ||
		    !json_member(row, "thread-id", &v) || !json_get_u64(v, &tid) || !tid || tid > INT_MAX)
			continue;
		if (dir >= 0)
			tid = (uint64_t)guest_host_tid(dir, (pid_t)tid);
		if (tid)
			guest_set_vcpu(g, (unsigned int)cpu, (pid_t)tid, how);
	}
	return 0;
}

/* The next line that is an answer ("return", or the greeting); events are passed over. */
static int qmp_answer(int fd, struct buf *in, struct buf *line, const struct msg_wait *w)
{
	struct json_value all, v;

	for (;;) {
		uint8_t *nl = in->len ? memchr(in->data, '\n', in->len) : NULL;
		size_t n;

		if (!nl) {
			ssize_t got = guest_sock_read(fd, in, w);

			if (got <= 0)
				return got ? (int)got : -EPIPE;
			continue;
		}
		n = (size_t)(nl + 1 - in->data);
		line->len = 0;
		buf_add(line, in->data, n);
		memmove(in->data, in->data + n, in->len - n);
		in->len -= n;
		if (line->bad)
			return -ENOMEM;
		if (json_parse((char *)line->data, line->len, &all))
			return -EBADMSG;
		if (json_member(all, "error", &v))
			return -EPROTO;
		if (json_member(all, "QMP", &v) || json_member(all, "return", &v))
			return 0;
	}
}

int guest_ask_qmp(struct guest *g, const struct guest_proc *p)
{
	static const char *const say[] = { "", "{\"execute\":\"qmp_capabilities\"}\n",
					   "{\"execute\":\"query-cpus-fast\"}\n" };
	struct msg_wait w = guest_wait(guest_timeout(p->o));
	struct buf in = { 0 }, line = { 0 };
	int fd, ret;

	if (!p->qmp)
		return 0;
	fd = transport_connect_path(p->qmp, &w);
	ret = fd < 0 ? fd : 0;
	for (size_t i = 0; !ret && i < ARRAY_SIZE(say); i++)
		ret = msg_send(fd, say[i], strlen(say[i]), &w) ?: qmp_answer(fd, &in, &line, &w);
	ret = ret ?: guest_cpus_fast(g, p->dir, (char *)line.data, line.len, GUEST_HOW_QMP);
	buf_release(&in);
	buf_release(&line);
	fd_close(&fd);
	if (ret)
		log_debug(p->o ? p->o->log : NULL, "pid %d: no answer on QMP socket %s: %s", g->pid, p->qmp,
			  strerror(-ret));
	return ret;
}

const char *guest_answer_name(enum guest_answer a)
{
	static const char *const names[] = { "unreachable", "refused", "silent", "busy", "listens" };

	return a < ARRAY_SIZE(names) ? names[a] : "unreachable";
}

enum guest_answer guest_probe(const struct guest *g, uint32_t port, int timeout_ms)
{
	struct transport_addr a = { .kind = TRANSPORT_VSOCK, .cid = g->cid, .port = port };
	struct msg_wait w = guest_wait(timeout_ms);
	bool closed;
	char byte;
	int fd;

	if (g->uds) {
		a.kind = TRANSPORT_UNIX;
		if (strlen(g->uds) >= sizeof(a.host))
			return GUEST_UNREACHABLE;
		strcpy(a.host, g->uds);
	}
	fd = transport_connect(&a, &w);
	if (fd == -ECONNRESET || fd == -ECONNREFUSED) /* the first is vsock's word for a closed port */
		return GUEST_REFUSED;
	if (fd < 0)
		return fd == -ETIMEDOUT ? GUEST_SILENT : GUEST_UNREACHABLE;
	/*
	 * trace-cmd's agent notes its child's pid after fork(): a child that has ended by then stays noted,
	 * and it refuses every recorder from then on. So the connection stays for a while, and is left when
	 * that child has gone.
	 */
	w = guest_wait(PROBE_HOLD_MS);
	closed = !msg_poll(fd, POLLIN, &w) && recv(fd, &byte, 1, MSG_DONTWAIT) <= 0;
	if (!closed) {
		shutdown(fd, SHUT_WR);
		w = guest_wait(PROBE_HOLD_MS);
		msg_poll(fd, POLLIN, &w);
	}
	close(fd);
	return closed ? GUEST_BUSY : GUEST_LISTENS;
}
