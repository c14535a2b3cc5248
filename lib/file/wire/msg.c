// SPDX-License-Identifier: LGPL-2.1-or-later
/* Messages between a recorder and an agent: their contents, built and parsed; sent and received whole. */
#include "file/wire/msg.h"
#include "base/clock.h"
#include "base/cursor.h"

#include <endian.h>
#include <poll.h>
#include <sys/socket.h>

/* Sizes of the fixed parts. */
#define REQ_FIXED  16u
#define RESP_FIXED 40u
#define SYNC_FIXED 20u

enum { PARAM_ARGS = 0, PARAM_PROTOS = 1 };

const char *msg_name(uint32_t cmd)
{
	static const char *const names[] = {
		"CLOSE",     "TINIT",	   "RINIT",	 "SEND_DATA", "FIN_DATA",    "NOT_SUPP",
		"TRACE_REQ", "TRACE_RESP", "CLOSE_RESP", "TIME_SYNC", "TRACE_PROXY", "CONT",
	};

	return cmd < ARRAY_SIZE(names) ? names[cmd] : "unknown";
}

static uint32_t get32(struct cursor *c)
{
	return be32toh(cursor_u32(c));
}

static uint64_t get64(struct cursor *c)
{
	return be64toh(cursor_u64(c));
}

static void add32(struct buf *b, uint32_t v)
{
	v = htobe32(v);
	buf_add(b, &v, sizeof(v));
}

static void add64(struct buf *b, uint64_t v)
{
	v = htobe64(v);
	buf_add(b, &v, sizeof(v));
}

ssize_t msg_size(const void *head)
{
	struct cursor c = cursor_at(head, MSG_HEAD);
	uint32_t size = get32(&c), fixed;

	get32(&c);
	fixed = get32(&c);
	return size < MSG_HEAD || size > MSG_MAX || fixed > size - MSG_HEAD ? -EBADMSG : (ssize_t)size;
}

int msg_parse(struct msg *m, const void *bytes, size_t len)
{
	struct cursor c = cursor_at(bytes, len);

	if (len < MSG_HEAD || msg_size(bytes) != (ssize_t)len)
		return -EBADMSG;
	get32(&c);
	m->cmd = get32(&c);
	m->fixed_len = get32(&c);
	m->fixed = cursor_take(&c, m->fixed_len);
	m->data_len = cursor_left(&c);
	m->data = cursor_take(&c, m->data_len);
	return c.bad ? -EBADMSG : 0;
}

static void add_head(struct buf *out, enum msg_cmd cmd, size_t fixed, size_t data)
{
	if (fixed + data > MSG_DATA_MAX)
		out->bad = true;
	add32(out, (uint32_t)(MSG_HEAD + fixed + data));
	add32(out, cmd);
	add32(out, (uint32_t)fixed);
}

void msg_add(struct buf *out, enum msg_cmd cmd, const void *data, size_t len)
{
	add_head(out, cmd, 0, len);
	buf_add(out, data, len);
}

void msg_add_refusal(struct buf *out, const char *reason)
{
	size_t len = strlen(reason) + 1;

	msg_add(out, MSG_NOT_SUPP, reason, len < MSG_DATA_MAX ? len : MSG_DATA_MAX);
}

char *msg_get_reason(const struct msg *m)
{
	char *text = m->data_len && *m->data ? strndup((const char *)m->data, m->data_len) : NULL;

	for (char *p = text; p && *p; p++)
		if (!isprint((unsigned char)*p))
			*p = '?';
	return text;
}

static const char sent_mark[8] = { 'h', 'y', 'p', 't', 'r', 'a', 'c', 'e' };

#define SENT_HEAD (sizeof(sent_mark) + 8)
#define SENT_CPU  16u

void msg_add_close_resp(struct buf *out, const struct msg_sent *s)
{
	size_t len = SENT_HEAD + (size_t)s->n_cpus * SENT_CPU;

	if (!s->n_cpus || len > MSG_DATA_MAX) {
		msg_add(out, MSG_CLOSE_RESP, NULL, 0);
		return;
	}
	add_head(out, MSG_CLOSE_RESP, 0, len);
	buf_add(out, sent_mark, sizeof(sent_mark));
	add64(out, s->started);
	for (uint32_t i = 0; i < s->n_cpus; i++) {
		add64(out, s->cpus[i].bytes);
		add64(out, s->cpus[i].lost);
	}
}

int msg_get_close_resp(const struct msg *m, struct msg_sent *s)
{
	struct cursor c = cursor_at(m->data, m->data_len);

	*s = (struct msg_sent){ 0 };
	if (m->cmd != MSG_CLOSE_RESP)
		return -EBADMSG;
	if (m->data_len < sizeof(sent_mark) || memcmp(m->data, sent_mark, sizeof(sent_mark)))
		return -ENODATA;
	cursor_take(&c, sizeof(sent_mark));
	s->started = get64(&c);
	if (c.bad || !cursor_left(&c) || cursor_left(&c) % SENT_CPU)
		return -EBADMSG;
	s->n_cpus = (uint32_t)(cursor_left(&c) / SENT_CPU);
	s->cpus = calloc(s->n_cpus, sizeof(*s->cpus));
	if (!s->cpus)
		return -ENOMEM;
	for (uint32_t i = 0; i < s->n_cpus; i++) {
		s->cpus[i].bytes = get64(&c);
		s->cpus[i].lost = get64(&c);
	}
	return 0;
}

void msg_sent_release(struct msg_sent *s)
{
	free(s->cpus);
	*s = (struct msg_sent){ 0 };
}

static void add_strings(struct buf *out, const struct strlist *l)
{
	for (size_t i = 0; i < l->n; i++)
		buf_add(out, l->v[i], strlen(l->v[i]) + 1);
}

/* be32 id, be32 length, and the bytes of b, which is released. */
static void add_param(struct buf *out, uint32_t id, struct buf *b)
{
	out->bad |= b->bad;
	add32(out, id);
	add32(out, (uint32_t)b->len);
	buf_add(out, b->data, b->len);
	buf_release(b);
}

void msg_add_trace_req(struct buf *out, const struct msg_trace_req *r)
{
	struct buf args = { 0 }, protos = { 0 }, data = { 0 };

	if (r->args.n) {
		add32(&args, (uint32_t)r->args.n);
		add_strings(&args, &r->args);
		add_param(&data, PARAM_ARGS, &args);
	}
	if (r->protos.n) {
		add_strings(&protos, &r->protos);
		buf_add(&protos, "", 1); /* without this NUL stock drops the last one */
		add_param(&data, PARAM_PROTOS, &protos);
	}
	add_head(out, MSG_TRACE_REQ, REQ_FIXED, data.len);
	add32(out, r->flags);
	add32(out, 0);
	add64(out, r->trace_id);
	out->bad |= data.bad;
	buf_add(out, data.data, data.len);
	buf_release(&data);
}

/* All that is left; empty ones only when asked for. */
static int get_strings(struct cursor *c, bool empty, struct strlist *out)
{
	while (cursor_left(c)) {
		const char *s = cursor_str(c);
		int ret = !s ? -EBADMSG : *s || empty ? strlist_add(out, s) : 0;

		if (ret)
			return ret;
	}
	return 0;
}

int msg_get_trace_req(const struct msg *m, struct msg_trace_req *r)
{
	struct cursor c = cursor_at(m->fixed, m->fixed_len);
	int ret;

	*r = (struct msg_trace_req){ 0 };
	if (m->cmd != MSG_TRACE_REQ)
		return -EBADMSG;
	r->flags = get32(&c);
	get32(&c); /* argc: stock sends 0 */
	r->trace_id = get64(&c);
	ret = c.bad ? -EBADMSG : 0;
	c = cursor_at(m->data, m->data_len);
	while (cursor_left(&c) && !ret) {
		uint32_t id = get32(&c), len = get32(&c), n;
		const void *data = cursor_take(&c, len);
		struct cursor param = cursor_at(data, c.bad ? 0 : len);

		if (c.bad) {
			ret = -EBADMSG;
		} else if (id == PARAM_ARGS) {
			n = get32(&param);
			ret = param.bad || r->args.n ? -EBADMSG : get_strings(&param, true, &r->args);
			ret = ret ?: r->args.n == n ? 0 : -EBADMSG;
		} else if (id == PARAM_PROTOS) {
			ret = get_strings(&param, false, &r->protos);
		}
	}
	if (ret)
		msg_trace_req_release(r);
	return ret;
}

void msg_trace_req_release(struct msg_trace_req *r)
{
	strlist_release(&r->args);
	strlist_release(&r->protos);
	*r = (struct msg_trace_req){ 0 };
}

/* At most 16 characters; a name that fills all has no NUL. */
static void add_proto(struct buf *out, const char *proto)
{
	char name[MSG_PROTO_LEN] = { 0 };

	memcpy(name, proto, strnlen(proto, sizeof(name)));
	buf_add(out, name, sizeof(name));
}

static void get_proto(struct cursor *c, char out[MSG_PROTO_LEN + 1])
{
	const char *name = cursor_take(c, MSG_PROTO_LEN);

	memset(out, 0, MSG_PROTO_LEN + 1);
	if (name)
		memcpy(out, name, strnlen(name, MSG_PROTO_LEN));
}

void msg_add_trace_resp(struct buf *out, const struct msg_trace_resp *r)
{
	struct buf ports = { 0 };

	for (uint32_t i = 0; i < r->cpus; i++) {
		buf_printf(&ports, "%u", r->ports[i]);
		buf_add(&ports, "", 1);
	}
	add_head(out, MSG_TRACE_RESP, RESP_FIXED, ports.len);
	add32(out, r->flags);
	add32(out, r->cpus);
	add32(out, r->page_size);
	add64(out, r->trace_id);
	add_proto(out, r->proto);
	add32(out, r->tsync_port);
	out->bad |= ports.bad;
	buf_add(out, ports.data, ports.len);
	buf_release(&ports);
}

static int get_ports(const struct msg *m, struct msg_trace_resp *r)
{
	struct cursor c = cursor_at(m->data, m->data_len);

	/* each takes a digit and a NUL */
	if (!r->cpus || r->cpus > MSG_CPUS_MAX || r->cpus > m->data_len / 2)
		return -EBADMSG;
	r->ports = calloc(r->cpus, sizeof(*r->ports));
	if (!r->ports)
		return -ENOMEM;
	for (uint32_t i = 0; i < r->cpus; i++) {
		const char *text = cursor_str(&c);
		uint64_t port;

		if (!text || parse_u64(text, &port) || port > UINT32_MAX)
			return -EBADMSG;
		r->ports[i] = (uint32_t)port;
	}
	return 0;
}

int msg_get_trace_resp(const struct msg *m, struct msg_trace_resp *r)
{
	struct cursor c = cursor_at(m->fixed, m->fixed_len);
	int ret;

	*r = (struct msg_trace_resp){ 0 };
	if (m->cmd != MSG_TRACE_RESP)
		return -EBADMSG;
	r->flags = get32(&c);
	r->cpus = get32(&c);
	r->page_size = get32(&c);
	r->trace_id = get64(&c);
	get_proto(&c, r->proto);
	r->tsync_port = get32(&c);
	ret = c.bad ? -EBADMSG : get_ports(m, r);
	if (ret)
		msg_trace_resp_release(r);
	return ret;
}

void msg_trace_resp_release(struct msg_trace_resp *r)
{
	free(r->ports);
	*r = (struct msg_trace_resp){ 0 };
}

void msg_add_sync(struct buf *out, const char *proto, uint32_t id, const void *payload, size_t len)
{
	add_head(out, MSG_TIME_SYNC, SYNC_FIXED, len);
	add_proto(out, proto);
	add32(out, id);
	buf_add(out, payload, len);
}

int msg_get_sync(const struct msg *m, struct msg_sync *s)
{
	struct cursor c = cursor_at(m->fixed, m->fixed_len);

	if (m->cmd != MSG_TIME_SYNC)
		return -EBADMSG;
	get_proto(&c, s->proto);
	s->id = get32(&c);
	s->payload = m->data;
	s->len = m->data_len;
	return c.bad ? -EBADMSG : 0;
}

bool msg_sync_is(const struct msg_sync *s, const char *proto, uint32_t id)
{
	return s->id == id && !strcmp(s->proto, proto);
}

int msg_get_sync_probe(const struct msg_sync *s, uint16_t *cpu)
{
	struct cursor c = cursor_at(s->payload, s->len);

	*cpu = cursor_u16(&c);
	return c.bad ? -EBADMSG : 0;
}

void msg_add_ptp_start(struct buf *out, uint32_t series, uint32_t flags)
{
	uint32_t v[2] = { htobe32(series), htobe32(flags) };

	msg_add_sync(out, MSG_SYNC_PTP, MSG_PTP_START, v, sizeof(v));
}

void msg_add_sync_number(struct buf *out, const char *proto, uint32_t id, uint32_t number)
{
	number = htobe32(number);
	msg_add_sync(out, proto, id, &number, sizeof(number));
}

int msg_get_sync_number(const struct msg_sync *s, uint32_t *number)
{
	struct cursor c = cursor_at(s->payload, s->len);

	*number = get32(&c);
	return c.bad ? -EBADMSG : 0;
}

int msg_get_ptp_probes(const struct msg_sync *s, struct msg_ptp_probes *p)
{
	struct cursor c = cursor_at(s->payload, s->len);
	size_t n;

	memset(p, 0, sizeof(*p));
	p->series = get32(&c);
	p->count = get32(&c);
	if (c.bad || p->count > MSG_PTP_SAMPLES)
		return -EBADMSG;
	n = cursor_left(&c) / 12;
	for (size_t i = 0; i < n && i < MSG_PTP_SAMPLES; i++) {
		p->ts[i] = (int64_t)get64(&c);
		p->ids[i] = get32(&c);
	}
	return n < p->count ? -EBADMSG : 0;
}

void msg_add_counter_shot(struct buf *out, const struct msg_counter_shot *shot)
{
	uint64_t v[] = { htobe64(shot->number),	 htobe64(shot->first), htobe64(shot->last),
			 htobe64(shot->counter), htobe64(shot->slack), htobe64(shot->clock) };

	msg_add_sync(out, MSG_SYNC_COUNTER, MSG_COUNTER_SHOT, v, sizeof(v));
}

int msg_get_counter_shot(const struct msg_sync *s, struct msg_counter_shot *shot)
{
	struct cursor c = cursor_at(s->payload, s->len);

	shot->number = (uint32_t)get64(&c);
	shot->first = get64(&c);
	shot->last = get64(&c);
	shot->counter = get64(&c);
	shot->slack = get64(&c);
	shot->clock = get64(&c);
	return c.bad ? -EBADMSG : 0;
}

void msg_add_ptp_offset(struct buf *out, int64_t ts, int64_t offset)
{
	uint64_t v[2] = { htobe64((uint64_t)ts), htobe64((uint64_t)offset) };

	msg_add_sync(out, MSG_SYNC_PTP, MSG_PTP_OFFSET, v, sizeof(v));
}

/* ---- on a socket, with a deadline and a way to break off ---- */

/* Longest single poll: what is farther away is waited for again. */
#define POLL_MS 60000

int64_t msg_now(void)
{
	return (int64_t)(mono_ns() / 1000000);
}

int64_t msg_wait_end(const struct msg_wait *w)
{
	int64_t quiet = w->quiet_ms ? msg_now() + w->quiet_ms : INT64_MAX;

	return quiet < w->deadline ? quiet : w->deadline;
}

int msg_poll(int fd, short events, const struct msg_wait *w)
{
	struct pollfd p[2] = { { .fd = fd, .events = events }, { .fd = w->stop_fd, .events = POLLIN } };
	int64_t end = msg_wait_end(w);

	for (;;) {
		int64_t left = end - msg_now();
		int n;

		if (left > POLL_MS)
			left = POLL_MS;
		n = poll(p, 2, left > 0 ? (int)left : 0);
		if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0)
			return p[1].revents ? -ECANCELED : 0;
		if (left <= 0)
			return w->quiet_ms && end == w->deadline ? -ETIME : -ETIMEDOUT;
	}
}

int msg_reader_step(struct msg_reader *r, int fd, struct msg *m)
{
	size_t want = MSG_HEAD;
	ssize_t n;

	for (;;) {
		if (r->have >= MSG_HEAD) {
			ssize_t size = msg_size(r->bytes);

			if (size < 0)
				return (int)size;
			want = (size_t)size;
		}
		if (r->have >= MSG_HEAD && r->have == want)
			break;
		n = recv(fd, r->bytes + r->have, want - r->have, MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN || errno == EWOULDBLOCK ? 0 : -errno;
		if (!n)
			return r->have ? -ECONNRESET : -ENODATA;
		r->have += (size_t)n;
	}
	r->have = 0;
	n = msg_parse(m, r->bytes, want);
	return n ? (int)n : 1;
}

int msg_recv(int fd, struct msg_reader *r, const struct msg_wait *w, struct msg *m)
{
	for (;;) {
		int ret = msg_reader_step(r, fd, m);

		if (ret)
			return ret < 0 ? ret : 0;
		ret = msg_poll(fd, POLLIN, w);
		if (ret)
			return ret;
	}
}

int msg_send(int fd, const void *bytes, size_t len, const struct msg_wait *w)
{
	const uint8_t *p = bytes;

	while (len) {
		ssize_t n = send(fd, p, len < MSG_SEND_MAX ? len : MSG_SEND_MAX, MSG_NOSIGNAL | MSG_DONTWAIT);
		int ret;

		if (n > 0) {
			p += n;
			len -= (size_t)n;
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK)
			return -errno;
		ret = msg_poll(fd, POLLOUT, w);
		if (ret)
			return ret;
	}
	return 0;
}

int msg_send_buf(int fd, struct buf *b, const struct msg_wait *w)
{
	int ret = buf_status(b) ?: msg_send(fd, b->data, b->len, w);

	buf_release(b);
	return ret;
}
