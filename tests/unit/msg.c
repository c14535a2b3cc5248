// SPDX-License-Identifier: LGPL-2.1-or-later
/* Messages between recorder and agent: made, taken apart, cut off and bent. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "msg-host.h"
#include "file/wire/msg.h"

static void parse(const struct buf *b, struct msg *m)
{
	assert_int_equal(buf_status(b), 0);
	assert_int_equal(msg_parse(m, b->data, b->len), 0);
}

/* ---- the header ----------------------------------------------------------------- */

static ssize_t size_of(uint32_t size, uint32_t cmd, uint32_t fixed)
{
	uint32_t head[3] = { htobe32(size), htobe32(cmd), htobe32(fixed) };

	return msg_size(head);
}

static void test_sizes(void **state)
{
	assert_int_equal(size_of(12, MSG_CLOSE, 0), 12);
	assert_int_equal(size_of(8192, MSG_SEND_DATA, 0), 8192);
	assert_int_equal(size_of(8192, MSG_TRACE_REQ, 8180), 8192);
	assert_int_equal(size_of(0, MSG_CLOSE, 0), -EBADMSG);
	assert_int_equal(size_of(11, MSG_CLOSE, 0), -EBADMSG);
	assert_int_equal(size_of(8193, MSG_SEND_DATA, 0), -EBADMSG);
	assert_int_equal(size_of(UINT32_MAX, MSG_SEND_DATA, 0), -EBADMSG);
	assert_int_equal(size_of(28, MSG_TRACE_REQ, 17), -EBADMSG);
	assert_int_equal(size_of(28, MSG_TRACE_REQ, UINT32_MAX), -EBADMSG);
}

static void test_plain(void **state)
{
	/* the bytes of stock's CLOSE */
	static const uint8_t close_bytes[] = { 0, 0, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0 };
	struct buf b = { 0 };
	struct msg m;

	msg_add(&b, MSG_CLOSE, NULL, 0);
	assert_int_equal(b.len, sizeof(close_bytes));
	assert_memory_equal(b.data, close_bytes, b.len);
	parse(&b, &m);
	assert_int_equal(m.cmd, MSG_CLOSE);
	assert_int_equal(m.data_len, 0);
	assert_int_equal(msg_parse(&m, b.data, b.len - 1), -EBADMSG);
	buf_release(&b);
	msg_add(&b, MSG_SEND_DATA, close_bytes, MSG_DATA_MAX + 1);
	assert_int_equal(buf_status(&b), -ENOMEM);
	buf_release(&b);
	assert_string_equal(msg_name(MSG_TRACE_RESP), "TRACE_RESP");
	assert_string_equal(msg_name(77), "unknown");
}

static void test_close_resp(void **state)
{
	struct msg_sent_cpu cpus[2] = { { 4096, 0 }, { 1ull << 40, 7 } };
	struct msg_sent out = { .started = 123456789012345, .n_cpus = 2, .cpus = cpus }, in;
	struct msg_sent none = { 0 }, many = { .n_cpus = 511, .cpus = cpus };
	struct buf b = { 0 };
	struct msg m;

	msg_add_close_resp(&b, &out);
	parse(&b, &m);
	assert_int_equal(b.len, 12 + 8 + 8 + 2 * 16);
	assert_memory_equal(b.data + 12, "hyptrace", 8);
	assert_int_equal(b.data[12 + 8 + 8 + 6], 0x10); /* 4096, big-endian */
	assert_int_equal(msg_get_close_resp(&m, &in), 0);
	assert_int_equal(in.started, out.started);
	assert_int_equal(in.n_cpus, 2);
	assert_memory_equal(in.cpus, cpus, sizeof(cpus));
	msg_sent_release(&in);

	/* half a CPU, none, and somebody else's words */
	m.data_len -= 8;
	assert_int_equal(msg_get_close_resp(&m, &in), -EBADMSG);
	m.data_len = 16;
	assert_int_equal(msg_get_close_resp(&m, &in), -EBADMSG);
	m.data_len = 12;
	assert_int_equal(msg_get_close_resp(&m, &in), -EBADMSG);
	b.data[12] = 'x';
	assert_int_equal(msg_get_close_resp(&m, &in), -ENODATA);
	m.cmd = MSG_CLOSE;
	assert_int_equal(msg_get_close_resp(&m, &in), -EBADMSG);
	buf_release(&b);

	/* stock's; and what has no room in a message */
	msg_add_close_resp(&b, &none);
	assert_int_equal(b.len, 12);
	parse(&b, &m);
	assert_int_equal(msg_get_close_resp(&m, &in), -ENODATA);
	buf_release(&b);
	msg_add_close_resp(&b, &many);
	assert_int_equal(b.len, 12);
	buf_release(&b);
}

static void test_refusal(void **state)
{
	struct buf b = { 0 };
	struct msg m;
	char *reason;

	msg_add_refusal(&b, "busy\nnow");
	parse(&b, &m);
	assert_int_equal(m.cmd, MSG_NOT_SUPP);
	reason = msg_get_reason(&m);
	assert_string_equal(reason, "busy?now");
	free(reason);
	buf_release(&b);
	msg_add(&b, MSG_NOT_SUPP, NULL, 0);
	parse(&b, &m);
	assert_null(msg_get_reason(&m));
	buf_release(&b);
}

/* ---- TRACE_REQ ------------------------------------------------------------------- */

static void test_trace_req(void **state)
{
	struct msg_trace_req r = { .flags = 1, .trace_id = 0x0123456789abcdef }, got;
	struct buf b = { 0 };
	struct msg m;

	strlist_add(&r.args, "-C");
	strlist_add(&r.args, "boot");
	strlist_add(&r.protos, "kvm");
	strlist_add(&r.protos, "ptp");
	msg_add_trace_req(&b, &r);
	/* 12 + 16 + {8 + 4 + 3 + 5} + {8 + 4 + 4 + 1} */
	assert_int_equal(b.len, 65);
	parse(&b, &m);
	assert_int_equal(msg_get_trace_req(&m, &got), 0);
	assert_int_equal(got.flags, 1);
	assert_true(got.trace_id == r.trace_id);
	assert_int_equal(got.args.n, 2);
	assert_string_equal(got.args.v[1], "boot");
	assert_int_equal(got.protos.n, 2);
	assert_string_equal(got.protos.v[0], "kvm");
	assert_string_equal(got.protos.v[1], "ptp");
	msg_trace_req_release(&got);
	msg_trace_req_release(&r);
	buf_release(&b);
}

/* A request with these parameters. */
static int decode_params(const void *params, size_t len)
{
	uint8_t bytes[512] = { 0 };
	uint32_t head[3] = { htobe32((uint32_t)(28 + len)), htobe32(MSG_TRACE_REQ), htobe32(16) };
	struct msg_trace_req r;
	struct msg m;
	int ret;

	memcpy(bytes, head, sizeof(head));
	memcpy(bytes + 28, params, len);
	assert_int_equal(msg_parse(&m, bytes, 28 + len), 0);
	ret = msg_get_trace_req(&m, &r);
	if (!ret)
		msg_trace_req_release(&r);
	return ret;
}

#define PARAMS(s) decode_params(s, sizeof(s) - 1)

static void test_bad_params(void **state)
{
	assert_int_equal(PARAMS(""), 0);
	assert_int_equal(PARAMS("\0\0\0\0\0\0\0\6\0\0\0\1a\0"), 0);
	/* argc larger than the strings; larger than anything */
	assert_int_equal(PARAMS("\0\0\0\0\0\0\0\6\0\0\0\2a\0"), -EBADMSG);
	assert_int_equal(PARAMS("\0\0\0\0\0\0\0\6\xff\xff\xff\xff"
				"a\0"),
			 -EBADMSG);
	/* smaller than the strings */
	assert_int_equal(PARAMS("\0\0\0\0\0\0\0\10\0\0\0\1a\0b\0"), -EBADMSG);
	/* no NUL */
	assert_int_equal(PARAMS("\0\0\0\0\0\0\0\6\0\0\0\1ab"), -EBADMSG);
	/* beyond the message; negative */
	assert_int_equal(PARAMS("\0\0\0\0\0\0\0\7\0\0\0\1a\0"), -EBADMSG);
	assert_int_equal(PARAMS("\0\0\0\0\xff\xff\xff\xff\0\0\0\1a\0"), -EBADMSG);
	/* half a header, args twice */
	assert_int_equal(PARAMS("\0\0\0\0\0"), -EBADMSG);
	assert_int_equal(PARAMS("\0\0\0\0\0\0\0\6\0\0\0\1a\0\0\0\0\0\0\0\0\6\0\0\0\1a\0"), -EBADMSG);
	/* one that nobody knows yet */
	assert_int_equal(PARAMS("\0\0\0\7\0\0\0\2xy"), 0);
	/* protocols without the last NUL, without any */
	assert_int_equal(PARAMS("\0\0\0\1\0\0\0\4ptp\0"), 0);
	assert_int_equal(PARAMS("\0\0\0\1\0\0\0\3ptp"), -EBADMSG);
}

/* ---- TRACE_RESP --------------------------------------------------------------------- */

static void test_trace_resp(void **state)
{
	uint32_t ports[] = { 1, 4294967295u, 1024 };
	struct msg_trace_resp r = { .cpus = 3,
				    .page_size = 4096,
				    .trace_id = 77,
				    .proto = "ptp",
				    .tsync_port = 5,
				    .ports = ports },
			      got;
	struct buf b = { 0 };
	struct msg m;

	msg_add_trace_resp(&b, &r);
	parse(&b, &m);
	assert_int_equal(m.fixed_len, 40);
	assert_int_equal(msg_get_trace_resp(&m, &got), 0);
	assert_int_equal(got.cpus, 3);
	assert_int_equal(got.page_size, 4096);
	assert_int_equal(got.trace_id, 77);
	assert_int_equal(got.tsync_port, 5);
	assert_string_equal(got.proto, "ptp");
	assert_memory_equal(got.ports, ports, sizeof(ports));
	msg_trace_resp_release(&got);
	/* more CPUs than ports */
	b.data[MSG_HEAD + 7] = 4;
	assert_int_equal(msg_get_trace_resp(&m, &got), -EBADMSG);
	b.data[MSG_HEAD + 4] = 0xff;
	assert_int_equal(msg_get_trace_resp(&m, &got), -EBADMSG);
	m.fixed_len--;
	assert_int_equal(msg_get_trace_resp(&m, &got), -EBADMSG);
	buf_release(&b);
}

/* ---- TIME_SYNC ------------------------------------------------------------------------ */

static void test_sync(void **state)
{
	struct msg_ptp_probes *p = calloc(2, sizeof(*p));
	struct buf b = { 0 };
	struct msg_sync s;
	struct msg m;
	uint32_t series, flags;
	int64_t ts, offset;
	uint16_t cpu;

	msg_add_sync_probe(&b, 3);
	parse(&b, &m);
	assert_int_equal(msg_get_sync(&m, &s), 0);
	assert_true(msg_sync_is(&s, MSG_SYNC_NONE, MSG_SYNC_PROBE));
	assert_int_equal(msg_get_sync_probe(&s, &cpu), 0);
	assert_int_equal(cpu, 3);
	assert_int_equal(msg_get_ptp_start(&s, &series, &flags), -EBADMSG);
	buf_release(&b);

	p[0].series = 9;
	p[0].count = 2;
	p[0].ts[1] = -5;
	p[0].ids[1] = 2;
	msg_add_ptp_probes(&b, p);
	assert_int_equal(b.len, 12 + 20 + 8144);
	parse(&b, &m);
	assert_int_equal(msg_get_sync(&m, &s), 0);
	assert_true(msg_sync_is(&s, MSG_SYNC_PTP, MSG_PTP_PROBES));
	assert_int_equal(msg_get_ptp_probes(&s, &p[1]), 0);
	assert_memory_equal(&p[0], &p[1], sizeof(*p));
	/* a count beyond what is there */
	b.data[MSG_HEAD + 20 + 6] = 3;
	assert_int_equal(msg_get_ptp_probes(&s, &p[1]), -EBADMSG);
	buf_release(&b);

	msg_add_ptp_offset(&b, 1234567890123, -42);
	parse(&b, &m);
	msg_get_sync(&m, &s);
	assert_int_equal(msg_get_ptp_offset(&s, &ts, &offset), 0);
	assert_true(ts == 1234567890123 && offset == -42);
	buf_release(&b);
	free(p);
}

static void test_counter(void **state)
{
	const struct msg_counter_shot sent = { 7, 1ull << 60, (1ull << 60) + 9, 5, 6, 1234567890123 };
	struct msg_counter_shot got = { 0 };
	struct buf b = { 0 };
	struct msg_sync s;
	uint32_t number;
	struct msg m;

	msg_add_sync_number(&b, MSG_SYNC_COUNTER, MSG_COUNTER_ASK, 7);
	parse(&b, &m);
	assert_int_equal(msg_get_sync(&m, &s), 0);
	assert_true(msg_sync_is(&s, "counter", MSG_COUNTER_ASK));
	assert_int_equal(msg_get_sync_number(&s, &number), 0);
	assert_int_equal(number, 7);
	assert_int_equal(msg_get_counter_shot(&s, &got), -EBADMSG);
	buf_release(&b);

	msg_add_counter_shot(&b, &sent);
	parse(&b, &m);
	assert_int_equal(msg_get_sync(&m, &s), 0);
	assert_true(msg_sync_is(&s, "counter", MSG_COUNTER_SHOT));
	assert_int_equal(s.len, 48);
	assert_int_equal(msg_get_counter_shot(&s, &got), 0);
	assert_int_equal(got.number, sent.number);
	assert_int_equal(got.first, sent.first);
	assert_int_equal(got.last, sent.last);
	assert_int_equal(got.counter, sent.counter);
	assert_int_equal(got.slack, sent.slack);
	assert_int_equal(got.clock, sent.clock);
	s.len--;
	assert_int_equal(msg_get_counter_shot(&s, &got), -EBADMSG);
	buf_release(&b);
}

/* ---- the stream ------------------------------------------------------------------------- */

static void test_reader(void **state)
{
	struct msg_wait now = { .deadline = msg_now() + 20, .stop_fd = -1 };
	struct msg_reader *r = calloc(1, sizeof(*r));
	struct buf b = { 0 };
	struct msg m;
	int sv[2], stop[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
	msg_add(&b, MSG_SEND_DATA, "abc", 3);
	msg_add(&b, MSG_CLOSE, NULL, 0);
	for (size_t i = 0; i < 14; i++) {
		assert_int_equal(msg_reader_step(r, sv[0], &m), 0);
		assert_int_equal(msg_send(sv[1], b.data + i, 1, &now), 0);
	}
	assert_int_equal(msg_recv(sv[0], r, &now, &m), -ETIMEDOUT);
	assert_int_equal(msg_send(sv[1], b.data + 14, b.len - 14, &now), 0);
	assert_int_equal(msg_recv(sv[0], r, &now, &m), 0);
	assert_int_equal(m.data_len, 3);
	assert_memory_equal(m.data, "abc", 3);
	assert_int_equal(msg_recv(sv[0], r, &now, &m), 0);
	assert_int_equal(m.cmd, MSG_CLOSE);

	/* silent; and no longer silent than it may be, but too late */
	now = (struct msg_wait){ .deadline = msg_now() + 60000, .quiet_ms = 1, .stop_fd = -1 };
	assert_int_equal(msg_recv(sv[0], r, &now, &m), -ETIMEDOUT);
	now = (struct msg_wait){ .deadline = msg_now() + 1, .quiet_ms = 60000, .stop_fd = -1 };
	assert_int_equal(msg_recv(sv[0], r, &now, &m), -ETIME);

	assert_int_equal(pipe(stop), 0);
	assert_int_equal(write(stop[1], "", 1), 1);
	now = (struct msg_wait){ .deadline = INT64_MAX, .stop_fd = stop[0] };
	assert_int_equal(msg_recv(sv[0], r, &now, &m), -ECANCELED);

	assert_int_equal(send(sv[1], b.data, 5, 0), 5);
	close(sv[1]);
	assert_int_equal(msg_recv(sv[0], r, &now, &m), -ECONNRESET);
	r->have = 0;
	assert_int_equal(msg_recv(sv[0], r, &now, &m), -ENODATA);
	assert_int_equal(msg_send(sv[0], "x", 1, &now), -EPIPE);
	close(sv[0]);
	close(stop[0]);
	close(stop[1]);
	buf_release(&b);
	free(r);
}

/* A socket that keeps what each send() gave it apart. */
static void test_send_parts(void **state)
{
	struct msg_wait w = { .deadline = INT64_MAX, .stop_fd = -1 };
	size_t len = 2 * MSG_SEND_MAX + 1, got[4];
	uint8_t *bytes = calloc(1, len);
	int sv[2];

	assert_non_null(bytes);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sv), 0);
	assert_int_equal(msg_send(sv[1], bytes, len, &w), 0);
	close(sv[1]);
	for (size_t i = 0; i < 4; i++)
		got[i] = (size_t)recv(sv[0], bytes, len, 0);
	assert_int_equal(got[0], 28672);
	assert_int_equal(got[1], 28672);
	assert_int_equal(got[2], 1);
	assert_int_equal(got[3], 0);
	close(sv[0]);
	free(bytes);
}

static void test_reader_garbage(void **state)
{
	struct msg_wait w = { .deadline = INT64_MAX, .stop_fd = -1 };
	struct msg_reader *r = calloc(1, sizeof(*r));
	struct msg m;
	int sv[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, sv), 0);
	assert_int_equal(send(sv[1], "GET / HTTP/1.1\r\n", 16, 0), 16);
	assert_int_equal(msg_recv(sv[0], r, &w, &m), -EBADMSG);
	close(sv[0]);
	close(sv[1]);
	free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),	   cmocka_unit_test(test_plain),
		cmocka_unit_test(test_refusal),	   cmocka_unit_test(test_close_resp),
		cmocka_unit_test(test_trace_req),  cmocka_unit_test(test_bad_params),
		cmocka_unit_test(test_trace_resp), cmocka_unit_test(test_sync),
		cmocka_unit_test(test_reader),	   cmocka_unit_test(test_reader_garbage),
		cmocka_unit_test(test_counter),	   cmocka_unit_test(test_send_parts),
	};

	return cmocka_run_group_tests_name("msg", tests, NULL, NULL);
}
