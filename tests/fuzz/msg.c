// SPDX-License-Identifier: LGPL-2.1-or-later
/* A message of any content: what is understood of it, encoded again, is understood the same. */
#include <stdlib.h>
#include <string.h>

#include "../unit/msg-host.h"
#include "file/wire/msg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
	if (!ok)
		abort();
}

static void again(struct buf *b, struct msg *m)
{
	must(!b->bad);
	must(!msg_parse(m, b->data, b->len));
}

static void same(const struct strlist *a, const struct strlist *b)
{
	must(a->n == b->n);
	for (size_t i = 0; i < a->n; i++)
		must(!strcmp(a->v[i], b->v[i]));
}

static void request(const struct msg *m)
{
	struct msg_trace_req a, b;
	struct buf out = { 0 };
	struct msg n;

	if (msg_get_trace_req(m, &a))
		return;
	msg_add_trace_req(&out, &a);
	/* one NUL more than before may be one too many */
	if (!out.bad) {
		again(&out, &n);
		must(!msg_get_trace_req(&n, &b));
		must(a.flags == b.flags && a.trace_id == b.trace_id);
		same(&a.args, &b.args);
		same(&a.protos, &b.protos);
		msg_trace_req_release(&b);
	}
	msg_trace_req_release(&a);
	buf_release(&out);
}

static void response(const struct msg *m)
{
	struct msg_trace_resp a, b;
	struct buf out = { 0 };
	struct msg n;

	if (msg_get_trace_resp(m, &a))
		return;
	msg_add_trace_resp(&out, &a);
	/* a hexadecimal port may have been shorter than the decimal one */
	if (!out.bad) {
		again(&out, &n);
		must(!msg_get_trace_resp(&n, &b));
		must(a.cpus == b.cpus && a.trace_id == b.trace_id && !strcmp(a.proto, b.proto));
		must(!memcmp(a.ports, b.ports, a.cpus * sizeof(*a.ports)));
		msg_trace_resp_release(&b);
	}
	msg_trace_resp_release(&a);
	buf_release(&out);
}

static void close_resp(const struct msg *m)
{
	struct buf out = { 0 };
	struct msg_sent a, b;
	struct msg n;

	if (!msg_get_close_resp(m, &a)) {
		msg_add_close_resp(&out, &a);
		again(&out, &n);
		must(!msg_get_close_resp(&n, &b) && a.started == b.started && a.n_cpus == b.n_cpus);
		must(!memcmp(a.cpus, b.cpus, a.n_cpus * sizeof(*a.cpus)));
		msg_sent_release(&b);
	}
	msg_sent_release(&a);
	buf_release(&out);
}

static void time_sync(const struct msg *m)
{
	static struct msg_ptp_probes p, q;
	struct msg_counter_shot shot;
	struct buf out = { 0 };
	struct msg_sync s, t;
	int64_t ts, offset;
	uint32_t v[2];
	uint16_t cpu;
	struct msg n;

	if (msg_get_sync(m, &s))
		return;
	msg_get_sync_probe(&s, &cpu);
	msg_get_ptp_start(&s, &v[0], &v[1]);
	msg_get_ptp_offset(&s, &ts, &offset);
	msg_get_sync_number(&s, &v[0]);
	msg_get_counter_shot(&s, &shot);
	if (msg_get_ptp_probes(&s, &p))
		return;
	msg_add_ptp_probes(&out, &p);
	again(&out, &n);
	must(!msg_get_sync(&n, &t) && !msg_get_ptp_probes(&t, &q));
	must(!memcmp(&p, &q, sizeof(p)));
	buf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct msg m;

	if (size >= MSG_HEAD)
		must(msg_size(data) <= (ssize_t)MSG_MAX);
	if (msg_parse(&m, data, size))
		return 0;
	free(msg_get_reason(&m));
	request(&m);
	response(&m);
	close_resp(&m);
	time_sync(&m);
	return 0;
}
