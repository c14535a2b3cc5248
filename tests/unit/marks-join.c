// SPDX-License-Identifier: GPL-2.0-only
/*
 * Doorbells become events: a spool with the host's kvm_mmio and what was read of rings, both made up here.
 * What a real host and a real guest write is tests/data/hypertrace and the lab's.
 */
#include "spool-fixture.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "record/marks/rings.h"
#include "base/files.h"

#define MMIO_ID 300
#define MARK_ID 900
#define GPA	0x1004100c
#define TID	70 /* of vCPU 1 of the first guest */
#define PAGE	4096

static const char header_page[] = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
				  "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
				  "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
				  "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";
static const char mmio[] = "name: kvm_mmio\nID: 300\nformat:\n"
			   "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
			   "\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
			   "\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
			   "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
			   "\tfield:u32 type;\toffset:8;\tsize:4;\tsigned:0;\n"
			   "\tfield:u32 len;\toffset:12;\tsize:4;\tsigned:0;\n"
			   "\tfield:u64 gpa;\toffset:16;\tsize:8;\tsigned:0;\n"
			   "\tfield:u64 val;\toffset:24;\tsize:8;\tsigned:0;\n\nprint fmt: \"mmio\"\n";

struct mmio_record {
	uint16_t common_type;
	uint8_t flags, preempt;
	int32_t pid;
	uint32_t type, len;
	uint64_t gpa, val;
};

static struct buf rings; /* text hypertrace.rings */
static struct page_writer writer;
static int pages;
static char said[1024];

static void say(void *ctx, enum log_level level, const char *msg)
{
	snprintf(said, sizeof(said), "%s%s", level == LOG_WARN ? "warning: " : "", msg);
}

static const struct log to = { say, NULL };

static int emit_page(void *ctx, const void *page, size_t size)
{
	return write_all(pages, page, size);
}

static int setup(void **state)
{
	const struct spool_buffer b = { RINGS_BUFFER, "boot", "instances/hypertrace", "host", PAGE, 1 };
	struct buf formats = { 0 };
	struct fixture *f;

	spool_setup(state);
	f = *state;
	buf_printf(&formats, "kvm %zu\n%s", strlen(mmio), mmio);
	assert_int_equal(spool_append_text(f->s, "formats", formats.data, formats.len), 0);
	buf_release(&formats);
	assert_int_equal(spool_put_text(f->s, "header_page", header_page, strlen(header_page)), 0);
	assert_int_equal(spool_add_buffer(f->s, &b), 0);
	assert_int_equal(mark_keep_format(f->s, MARK_ID), 0);
	assert_int_equal(spool_set_number(f->s, "hypertrace_from", 100), 0);
	pages = spool_pages_fd(f->s, 0, 0);
	assert_true(pages >= 0);
	said[0] = 0;
	return page_writer_init(&writer, PAGE, emit_page, NULL);
}

static int teardown(void **state)
{
	buf_release(&rings);
	page_writer_release(&writer);
	close(pages);
	return spool_teardown(state);
}

/* A block of `client` in the first guest; its events' arg1 is their number. */
static void block_of(uint32_t guest, uint32_t client, uint64_t from, uint64_t seen, uint64_t first,
		     uint32_t n, bool missed)
{
	struct ring_block b = { from, seen, first, n, GPA, client, guest, missed ? 0 : n, 0 };

	buf_add(&rings, &b, sizeof(b));
	for (uint64_t i = first; i < first + b.events; i++)
		buf_add(&rings, &(struct ring_event){ i * 10, { i, 2, 3, 4 } }, sizeof(struct ring_event));
}

static void block(uint64_t from, uint64_t seen, uint64_t first, uint32_t n, bool missed)
{
	block_of(0, 0, from, seen, first, n, missed);
}

static void bell_of(uint64_t ts, int tid, uint64_t gpa, uint64_t val, uint32_t type)
{
	struct mmio_record r = { MMIO_ID, 1, 2, tid, type, 4, gpa, val };

	assert_int_equal(page_write(&writer, ts, &r, sizeof(r)), 0);
}

static void bell(uint64_t ts, uint64_t number)
{
	bell_of(ts, TID, GPA, number & 0xffff, 2);
}

/* "TS:CLIENT:ARG1 ..." of what the buffer has after the join; -N: N lost before. */
static const char *joined(struct fixture *f, const char *guests)
{
	static char text[1024];
	struct page_layout l = page_layout_default;
	uint8_t page[PAGE];
	size_t n = 0;
	int fd;

	assert_int_equal(page_flush(&writer, true), 0);
	assert_int_equal(spool_put_text(f->s, RINGS_GUESTS, guests, strlen(guests)), 0);
	assert_int_equal(spool_put_text(f->s, RINGS_EVENTS, rings.data, rings.len), 0);
	assert_int_equal(marks_join(f->s, &to), 0);
	assert_true(spool_is_rewritten(f->s, SPOOL_JOINED));
	assert_int_equal(marks_join(f->s, &to), 0); /* once is enough */
	fd = spool_pages_fd(f->s, 0, 0);
	text[0] = 0;
	for (off_t at = 0; pread(fd, page, PAGE, at) == PAGE; at += PAGE) {
		struct page_reader r;
		struct page_event ev;

		assert_int_equal(page_reader_init(&r, &l, page, PAGE), 0);
		if (r.missed)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "-%d ", (int)r.missed_count);
		while (page_next(&r, &ev) == 1) {
			uint32_t client;
			uint16_t type;
			uint64_t arg1;

			memcpy(&type, ev.data, 2);
			memcpy(&client, ev.data + 8, 4);
			memcpy(&arg1, ev.data + 24, 8);
			assert_int_equal(type, MARK_ID);
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%d:%u:%d ", (int)ev.ts, client,
					      (int)arg1);
		}
	}
	close(fd);
	return text;
}

#define ONE "guest\tGuest\nvcpu\t1\t70\n"

static void test_plain(void **state)
{
	block(110, 120, 1, 2, false);
	block(120, 130, 3, 1, false);
	bell(115, 1);
	bell(119, 2);
	bell(140, 3); /* long after it was seen */
	assert_string_equal(joined(*state, ONE), "115:0:1 119:0:2 140:0:3 ");
	assert_string_equal(said, "hypertrace: Guest: 3 events");
}

/* The record, byte for byte but for the header's type. */
static void test_record(void **state)
{
	const uint8_t head[8] = { 0, 0, 1, 2, 70, 0, 0, 0 };
	const struct ring_event ev = { 7, { 1, 0xcafe, 0xdead, 0xbeef } };
	uint8_t out[MARK_RECORD_MAX];
	char name[MARK_GUEST_MAX + 50];
	uint32_t loc;

	assert_int_equal(mark_put(out, MARK_ID, head, "Guest", -1, 3, &ev), 66);
	assert_memory_equal(out + 2, head + 2, 6);
	memcpy(&loc, out + 56, 4);
	assert_int_equal(loc, 6 << 16 | 60);
	assert_string_equal((char *)out + 60, "Guest");
	memset(name, 'x', sizeof(name));
	name[sizeof(name) - 1] = 0;
	assert_true(mark_put(out, MARK_ID, head, name, 0, 0, &ev) <= sizeof(out));
}

/* Doorbells without an event are lost ones, at their place; events without a doorbell are counted. */
static void test_losses(void **state)
{
	block(110, 120, 1, 2, false);
	block(120, 130, 3, 5, true);
	block(130, 140, 8, 3, false);
	bell(115, 1);
	bell(125, 4);
	bell(126, 5);
	bell(135, 9);
	assert_int_equal(page_write_lost(&writer, 4), 0);
	bell(139, 10);
	assert_string_equal(joined(*state, ONE), "115:0:1 -2 135:0:9 -4 139:0:10 ");
	assert_string_equal(
		said, "warning: hypertrace: Guest: 3 events, 7 lost: 5 overwritten before they were read, "
		      "2 without their doorbell; 2 doorbells had no event");
}

/* What was there before tracing was on, or after it was off, is no loss. */
static void test_bounds(void **state)
{
	struct fixture *f = *state;

	block(0, 90, 1, 5, true);
	block(90, 110, 6, 1, false);
	block(110, 120, 7, 1, false);
	block(190, 210, 8, 1, false);
	bell(115, 7);
	assert_int_equal(spool_set_number(f->s, "hypertrace_to", 200), 0);
	assert_string_equal(joined(f, ONE), "115:0:7 ");
	assert_string_equal(said, "hypertrace: Guest: 1 events");
}

/* An event goes to one doorbell; one that is too early or of another time round is not believed. */
static void test_not_invented(void **state)
{
	block(110, 120, 1, 3, false);
	block(200, 210, 70000, 3, false); /* what is between was neither read nor seen */
	bell(105, 1);
	bell(115, 2);
	bell(116, 2);
	bell(117, 60000);
	bell(220, 70001 - 65536); /* 4465: in the second block, not in the first */
	bell(221, 1);
	assert_string_equal(joined(*state, ONE), "-1 115:0:2 -2 220:0:70001 -1 ");
}

/* From far on: the numbers' upper parts follow from what was seen before. */
static void test_far(void **state)
{
	block(0, 90, 1, 1000000, true);
	block(110, 120, 1000001, 2, false);
	bell(115, 1000001);
	bell(116, 1000002);
	assert_string_equal(joined(*state, ONE), "115:0:1000001 116:0:1000002 ");
}

/* So many between two looks that 16 bits do not tell them apart: lost rather than guessed. */
static void test_ambiguous(void **state)
{
	block(110, 120, 1, 40000, true);
	block(110, 120, 40001, 100, false);
	bell(115, 40001);
	assert_string_equal(joined(*state, ONE), "-1 ");
}

/* Other devices' writes, reads of this one, other processes: none of the guest's marks. */
static void test_others(void **state)
{
	block(110, 120, 1, 3, false);
	bell_of(115, TID, GPA + 4, 1, 2);
	bell_of(115, TID, GPA, 1, 1);
	bell_of(115, 71, GPA, 1, 2);
	bell_of(116, TID, GPA, 5u << 16 | 1, 2); /* a client that has none */
	bell(117, 1);
	assert_string_equal(joined(*state, ONE), "-1 117:0:1 ");
}

/* Two guests with their devices at one address: the thread tells; one without known threads has the rest. */
static void test_guests(void **state)
{
	block_of(0, 1, 110, 120, 1, 1, false);
	block_of(1, 1, 110, 120, 1, 1, false);
	block_of(2, 2, 110, 120, 1, 1, false);
	bell_of(115, 71, GPA, 1 << 16 | 1, 2);
	bell_of(116, 70, GPA, 1 << 16 | 1, 2);
	bell_of(117, 99, GPA, 2 << 16 | 1, 2);
	assert_string_equal(joined(*state, "guest\tA\nvcpu\t0\t70\nguest\tB\nvcpu\t0\t71\nguest\tC\n"),
			    "115:1:1 116:1:1 117:2:1 ");
}

/* A kill in the middle of a write of rings, or of a join. */
static void test_killed(void **state)
{
	struct fixture *f = *state;

	block(110, 120, 1, 1, false);
	block(120, 130, 2, 1, false);
	rings.len -= 8;
	bell(115, 1);
	bell(125, 2);
	assert_int_equal(spool_rewrite_begin(f->s), 0);
	close(spool_rewrite_fd(f->s, 0, 0));
	assert_string_equal(joined(f, ONE), "115:0:1 -1 ");
}

static void test_bad_texts(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(spool_put_text(f->s, RINGS_EVENTS, "", 0), 0);
	assert_int_equal(marks_join(f->s, &to), -ENOENT); /* no guests */
	assert_int_equal(spool_put_text(f->s, RINGS_GUESTS, "vcpu\t1\t2\n", 9), 0);
	assert_int_equal(marks_join(f->s, &to), -EBADMSG);
	assert_false(spool_is_rewritten(f->s, SPOOL_JOINED));
	block_of(9, 0, 1, 2, 1, 1, false); /* of no guest */
	assert_int_equal(spool_put_text(f->s, RINGS_GUESTS, ONE, strlen(ONE)), 0);
	assert_int_equal(spool_put_text(f->s, RINGS_EVENTS, rings.data, rings.len), 0);
	assert_int_equal(marks_join(f->s, &to), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_plain, setup, teardown),
		cmocka_unit_test_setup_teardown(test_record, setup, teardown),
		cmocka_unit_test_setup_teardown(test_losses, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bounds, setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_invented, setup, teardown),
		cmocka_unit_test_setup_teardown(test_far, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ambiguous, setup, teardown),
		cmocka_unit_test_setup_teardown(test_others, setup, teardown),
		cmocka_unit_test_setup_teardown(test_guests, setup, teardown),
		cmocka_unit_test_setup_teardown(test_killed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bad_texts, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
