// SPDX-License-Identifier: LGPL-2.1-or-later
/* Print formats that libtraceevent cannot parse, and what they become. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <event-parse.h>

#include "file/dat/format.h"
#include "base/array.h"

#define HEAD                                                                                                 \
	"name: x\nID: 700\nformat:\n"                                                                        \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n"                             \
	"\tfield:int a;\toffset:8;\tsize:4;\tsigned:1;\n"                                                    \
	"\tfield:int b;\toffset:12;\tsize:4;\tsigned:1;\n\nprint fmt: "

/* A format file's text, its print format in other words. */
static int fixup(const char *text, size_t len, struct buf *out)
{
	const char *print_fmt = strstr(text, "print fmt: "), *why;
	struct event_format f;
	int ret;

	assert_int_equal(event_format_parse(text, len, &f), 0);
	buf_add(out, text, (size_t)(print_fmt - text) + strlen("print fmt: "));
	ret = print_format_fixup(&f, out, &why);
	if (ret == 1)
		buf_addstr(out, "\n");
	event_format_release(&f);
	return ret;
}

static void test_mended(void **state)
{
	static const struct {
		const char *fmt, *want; /* NULL: left as it is */
	} rows[] = {
		{ "\"%d\", REC->a ?: REC->b\n", "\"%d\", REC->a ? REC->a : REC->b\n" },
		{ "\"%d\", (REC->a & 3) ?: 7\n", "\"%d\", (REC->a & 3) ? (REC->a & 3) : 7\n" },
		{ "\"%s\", str_write_read(REC->a)\n", "\"%s\", ((REC->a) ? \"write\" : \"read\")\n" },
		{ "\"%s\", str_yes_no(!!(REC->a & 1))\n", "\"%s\", ((!!(REC->a & 1)) ? \"yes\" : \"no\")\n" },
		{ "\"a ?: b str_on_off(\", REC->a\n", NULL },
		{ "\"%d\", REC->a ? 1 : 2\n", NULL },
		{ "\"%d\", ?: 2\n", NULL },
		{ "\"%s\", my_str_on_off(REC->a)\n", NULL },
		{ "\"%s\", str_on_off(REC->a\n", NULL },
		{ "\"wf%c at: %d\", REC->a ? 'e' : 'i', REC->b\n",
		  "\"wf%s at: %d\", REC->a ? \"e\" : \"i\", REC->b\n" },
		{ "\"%c %c\", REC->a?'R':'W', REC->b ?'0':  '1'\n",
		  "\"%s %s\", REC->a?\"R\":\"W\", REC->b ?\"0\":  \"1\"\n" },
		{ "\"%c %s\", REC->a ? 'e' : 'i', str_on_off(REC->b)\n",
		  "\"%s %s\", REC->a ? \"e\" : \"i\", ((REC->b) ? \"on\" : \"off\")\n" },
		{ "\"%c %c\", REC->a ? 'e' : 'i', REC->b\n", NULL }, /* which %c is it? */
		{ "\"%c\", REC->a ? 'e' : REC->b\n", NULL },
		{ "\"%c '%d'\", REC->a ? 'e' : 'i', REC->b\n", NULL },
		{ "\"%c\", REC->a ? '\"' : 'i'\n", NULL },
		{ "\"%c\", REC->a ? 'e'\n", NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct buf in = { 0 }, out = { 0 };

		buf_printf(&in, "%s%s", HEAD, rows[i].fmt);
		assert_int_equal(fixup(buf_str(&in), in.len, &out) == 1, rows[i].want != NULL);
		if (rows[i].want)
			assert_string_equal(buf_str(&out) + strlen(HEAD), rows[i].want);
		buf_release(&in);
		buf_release(&out);
	}
}

static const char *print(const char *format, const void *data, int size)
{
	static char text[256];
	struct tep_handle *tep = tep_alloc();
	struct tep_record record = { .data = (void *)data, .size = size };
	struct buf out = { 0 };
	struct trace_seq s;

	tep_set_long_size(tep, 8);
	assert_int_equal(fixup(format, strlen(format), &out), 1);
	assert_int_equal(tep_parse_event(tep, buf_str(&out), out.len, "kvm"), 0);
	trace_seq_init(&s);
	tep_print_event(tep, &s, &record, "%s", TEP_PRINT_INFO);
	trace_seq_terminate(&s);
	snprintf(text, sizeof(text), "%s", s.buffer);
	trace_seq_destroy(&s);
	buf_release(&out);
	tep_free(tep);
	return text;
}

/* arch/arm64/kvm/trace_arm.h: what stock report shows without a plugin */
static void test_libtraceevent_reads_wfx(void **state)
{
	static const char wfx[] = HEAD "\"guest executed wf%c at: 0x%x\", REC->a ? 'e' : 'i', REC->b\n";
	uint8_t data[16] = { 0 };

	memcpy(data, &(uint16_t){ 700 }, 2);
	memcpy(data + 12, &(uint32_t){ 0xcafe }, 4);
	assert_string_equal(print(wfx, data, sizeof(data)), "guest executed wfi at: 0xcafe");
	data[8] = 1;
	assert_string_equal(print(wfx, data, sizeof(data)), "guest executed wfe at: 0xcafe");
}

/* arch/arm64/kvm/trace_handle_exit.h of Linux 7.2, as tracefs prints it. */
static const char sys_access[] =
	"name: kvm_sys_access\nID: 700\nformat:\n"
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
	"\tfield:unsigned long vcpu_pc;\toffset:8;\tsize:8;\tsigned:0;\n"
	"\tfield:bool is_write;\toffset:16;\tsize:1;\tsigned:0;\n"
	"\tfield:const char * name;\toffset:24;\tsize:8;\tsigned:0;\n"
	"\tfield:u8 Op0;\toffset:32;\tsize:1;\tsigned:0;\n\n"
	"print fmt: \"PC: %lx %s (%d) %s\", REC->vcpu_pc, REC->name ?: \"UNKN\", REC->Op0, "
	"str_write_read(REC->is_write)\n";

static void test_libtraceevent_reads_it(void **state)
{
	uint8_t data[40] = { 0 };

	memcpy(data, &(uint16_t){ 700 }, 2);
	memcpy(data + 8, &(uint64_t){ 0xffff8000 }, 8);
	data[16] = 1;
	data[32] = 3;
	assert_string_equal(print(sys_access, data, sizeof(data)), "PC: ffff8000 UNKN (3) write");
}

/* `((REC->a ?: 1) ?: 1) ...` doubled at each level; each unclosed call was read to the end. */
static void test_bounded(void **state)
{
	static const struct {
		const char *before, *open, *middle, *close;
		size_t n;
		int ret;
	} rows[] = {
		{ "\"%d\", ", "(", "REC->a", " ?: 1)", 3, 1 },
		{ "\"%d\", ", "(", "REC->a", " ?: 1)", 40, -E2BIG },
		{ "\"%d\", ", "(", "REC->a", " ?: 1)", 5000, -E2BIG },
		{ "\"%d\", ", "str_yes_no(", "", "", 5000, -E2BIG },
		{ "\"%d\", ", "str_yes_no(", "", "", 90000, -E2BIG },
		{ "\"%d\", ", "REC->a ?: ", "1", "", 50, 1 },
		{ "\"%d\", ", "REC->a ?: ", "1", "", 6000, -E2BIG },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct buf in = { 0 }, out = { 0 };

		buf_printf(&in, "%s%s", HEAD, rows[i].before);
		for (size_t n = 0; n < rows[i].n; n++)
			buf_addstr(&in, rows[i].open);
		buf_addstr(&in, rows[i].middle);
		for (size_t n = 0; n < rows[i].n; n++)
			buf_addstr(&in, rows[i].close);
		assert_int_equal(fixup(buf_str(&in), in.len, &out), rows[i].ret);
		assert_true(out.len < 3 * in.len);
		buf_release(&in);
		buf_release(&out);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mended),
		cmocka_unit_test(test_libtraceevent_reads_wfx),
		cmocka_unit_test(test_libtraceevent_reads_it),
		cmocka_unit_test(test_bounded),
	};

	return cmocka_run_group_tests_name("print-fixup", tests, NULL, NULL);
}
