// SPDX-License-Identifier: LGPL-2.1-or-later
/* Android's raw records, from pages as the hypervisor fills them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "file/dat/page.h"
#include "tep.h"
#include "base/array.h"

#define TYPE "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n"

static const char *const formats[] = {
	"name: hyp_enter\nID: 1\nformat:\n" TYPE "print fmt: \" \", \n",
	"name: host_hcall\nID: 3\nformat:\n" TYPE "\tfield:unsigned int id;\toffset:2;\tsize:4;\tsigned:0;\n"
	"\tfield:u8 invalid;\toffset:6;\tsize:1;\tsigned:0;\n\n"
	"print fmt: \"id=%u invalid=%u\", REC->id, REC->invalid\n",
	"name: vcpu_run\nID: 4\nformat:\n" TYPE "\tfield:pid_t vcpu;\toffset:2;\tsize:4;\tsigned:1;\n\n"
	"print fmt: \"vcpu=%d\", REC->vcpu\n",
	"name: vendor_say\nID: 5\nformat:\n" TYPE
	"\tfield:__data_loc char[] what;\toffset:2;\tsize:4;\tsigned:0;\n\n"
	"print fmt: \"%s\", __get_str(what)\n",
};

static void init(struct hypevents *e)
{
	assert_int_equal(hypevents_init(e, "hyp"), 0);
	e->raw = true;
	for (size_t i = 0; i < ARRAY_SIZE(formats); i++)
		assert_int_equal(hypevents_add(e, formats[i], strlen(formats[i])), 0);
	assert_int_equal(hypevents_number(e, 0x1234), 0);
}

static void check(const struct hypevents *e, const void *rec, size_t len, const void *want, size_t want_len,
		  const char *text)
{
	struct tep_handle *tep = judge_new(e);
	uint8_t out[128];
	char have[128];

	assert_int_equal(hypraw_record(e, rec, len, out, sizeof(out)), want_len);
	assert_memory_equal(out, want, want_len);
	judge_print(tep, out, want_len, have, sizeof(have));
	assert_string_equal(have, text);
	tep_free(tep);
}

static void known_records(void **state)
{
	struct hypevents e;

	init(&e);
	check(&e, "\1\0", 2, "\x34\x12\0\0\0\0\0\0", 8, " ");
	check(&e, "\3\0\x2a\0\0\0\1", 7, "\x35\x12\0\0\0\0\0\0\x2a\0\0\0\1", 13, "id=42 invalid=1");
	/* the kernel's padding stays behind */
	check(&e, "\3\0\x2a\0\0\0\1\xee", 8, "\x35\x12\0\0\0\0\0\0\x2a\0\0\0\1", 13, "id=42 invalid=1");
	/* a vCPU's pid is the record's */
	check(&e, "\4\0\x57\0\0\0", 6, "\x36\x12\0\0\x57\0\0\0\x57\0\0\0", 12, "vcpu=87");
	/* strings move with the record */
	check(&e, "\5\0\6\0\3\0hi\0", 9, "\x37\x12\0\0\0\0\0\0\x0c\0\3\0hi\0", 15, "what=hi");
	hypevents_release(&e);
}

static void unknown_record(void **state)
{
	struct hypevents e;

	init(&e);
	check(&e, "\x63\0\xca\xfe", 4, "\x38\x12\0\0\0\0\0\0\x63\0\0\0\x14\0\1\0\x15\0\2\0\0\xca\xfe", 23,
	      "id=99 ca fe");
	check(&e, "\x63\0", 2, "\x38\x12\0\0\0\0\0\0\x63\0\0\0\x14\0\1\0\x15\0\0\0\0", 21, "id=99 ");
	hypevents_release(&e);
}

static void refused(void **state)
{
	struct hypevents e;
	uint8_t out[64];

	init(&e);
	assert_int_equal(hypraw_record(&e, "\1", 1, out, sizeof(out)), -EBADMSG);
	assert_int_equal(hypraw_record(&e, "", 0, out, sizeof(out)), -EBADMSG);
	assert_int_equal(hypraw_record(&e, "\3\0\x2a\0\0\0", 6, out, sizeof(out)), -EBADMSG);
	assert_int_equal(hypraw_record(&e, "\3\0\x2a\0\0\0\1", 7, out, 7 + HYP_RECORD_EXTRA), 13);
	assert_int_equal(hypraw_record(&e, "\3\0\x2a\0\0\0\1", 7, out, 6 + HYP_RECORD_EXTRA), -EMSGSIZE);
	hypevents_release(&e);
}

/* Three records, 9, 15 and 10 bytes in the buffer: the hypervisor does not round. */
static void from_a_page(void **state)
{
	static const uint8_t events[] = { 0, 0, 0, 0, 6,  0, 0, 0, 1, 0, /* hyp_enter */
					  0, 2, 0, 0, 11, 0, 0, 0, 3, 0, 7, 0, 0,
					  0, 0, 0, 1, 0,  0, 6, 0, 0, 0, 1, 0 };
	const uint64_t ts = 5000, commit = sizeof(events);
	const char *const want[] = { " ", "id=7 invalid=0", " " };
	struct tep_handle *tep;
	uint8_t page[4096] = { 0 };
	struct page_reader r;
	struct page_event ev;
	struct hypevents e;
	size_t n = 0;

	init(&e);
	tep = judge_new(&e);
	memcpy(page, &ts, 8);
	memcpy(page + 8, &commit, 8);
	memcpy(page + 16, events, sizeof(events));
	assert_int_equal(page_reader_init(&r, &page_layout_default, page, sizeof(page)), 0);
	while (page_next(&r, &ev) == 1) {
		uint8_t out[64];
		char text[64];
		ssize_t len = hypraw_record(&e, ev.data, ev.len, out, sizeof(out));

		assert_true(len > 0 && n < ARRAY_SIZE(want));
		judge_print(tep, out, (size_t)len, text, sizeof(text));
		assert_string_equal(text, want[n++]);
	}
	assert_int_equal(n, 3);
	tep_free(tep);
	hypevents_release(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_records),
		cmocka_unit_test(unknown_record),
		cmocka_unit_test(refused),
		cmocka_unit_test(from_a_page),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
