// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * QEMU's machine protocol: a greeting, qmp_capabilities, then commands; one JSON
 * object a line, events in between. A monitor serves one client at a time: when
 * somebody else holds it there is no greeting, and the timeout ends the wait.
 */
#include "guest/guest-priv.h"

#include <errno.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "util/json.h"

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

static int qmp_query(struct guest *g, const struct guest_proc *p, int fd, const struct msg_wait *w)
{
	static const char *const say[] = { "", "{\"execute\":\"qmp_capabilities\"}\n",
					   "{\"execute\":\"query-cpus-fast\"}\n" };
	struct buf in = { 0 }, line = { 0 };
	int ret = 0;

	for (size_t i = 0; !ret && i < ARRAY_SIZE(say); i++)
		ret = guest_sock_write(fd, say[i], w) ?: qmp_answer(fd, &in, &line, w);
	if (!ret)
		ret = guest_cpus_fast(g, p->dir, (char *)line.data, line.len, GUEST_HOW_QMP);
	buf_release(&in);
	buf_release(&line);
	return ret;
}

int guest_ask_qmp(struct guest *g, const struct guest_proc *p)
{
	struct msg_wait w = guest_wait(guest_timeout(p->o));
	int fd, ret;

	if (!p->qmp)
		return 0;
	fd = transport_connect_path(p->qmp, &w);
	ret = fd < 0 ? fd : qmp_query(g, p, fd, &w);
	fd_close(&fd);
	if (ret)
		log_debug(p->o ? p->o->log : NULL, "pid %d: no answer on QMP socket %s: %s", g->pid, p->qmp,
			  strerror(-ret));
	return ret;
}
