// SPDX-License-Identifier: LGPL-2.1-or-later
/* Event formats: the kernel's own, and texts that are wrong. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "file/dat/format.h"

#define COMMON "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"

static int parse(const char *text, struct event_format *f)
{
	return event_format_parse(text, strlen(text), f);
}

static void check_field(const struct event_field *f, const char *type, const char *name, unsigned int offset,
			unsigned int size, bool is_signed)
{
	assert_string_equal(f->type, type);
	assert_string_equal(f->name, name);
	assert_int_equal(f->offset, offset);
	assert_int_equal(f->size, size);
	assert_int_equal(f->is_signed, is_signed);
}

static void mainline_hyp_enter(void **state)
{
	static const char text[] = "name: hyp_enter\n"
				   "ID: 0\n"
				   "format:\n" COMMON "\n"
				   "\tfield:u8 reason;\toffset:2;\tsize:1;\tsigned:0;\n"
				   "\tfield:pid_t vcpu;\toffset:3;\tsize:4;\tsigned:1;\n"
				   "\n"
				   "print fmt: \"reason=%s vcpu=%d\", "
				   "__hyp_enter_exit_reason_str(REC->reason), REC->vcpu\n";
	struct event_format f;

	assert_int_equal(parse(text, &f), 0);
	assert_string_equal(f.name, "hyp_enter");
	assert_int_equal(f.id, 0);
	assert_int_equal(f.n_common, 1);
	check_field(&f.common[0], "unsigned short", "common_type", 0, 2, false);
	assert_int_equal(f.n_fields, 2);
	check_field(&f.fields[0], "u8", "reason", 2, 1, false);
	check_field(&f.fields[1], "pid_t", "vcpu", 3, 4, true);
	assert_string_equal(f.print_fmt, "\"reason=%s vcpu=%d\", "
					 "__hyp_enter_exit_reason_str(REC->reason), REC->vcpu");
	assert_ptr_equal(event_format_field(&f, "vcpu"), &f.fields[1]);
	assert_ptr_equal(event_format_field(&f, "common_type"), &f.common[0]);
	assert_null(event_format_field(&f, "vcp"));
	event_format_release(&f);
	assert_null(f.name);
}

static void host_sched_switch(void **state)
{
	static const char text[] =
		"name: sched_switch\nID: 316\nformat:\n" COMMON
		"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
		"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
		"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
		"\tfield:char prev_comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
		"\tfield:pid_t prev_pid;\toffset:24;\tsize:4;\tsigned:1;\n"
		"\tfield:__data_loc char[] what;\toffset:28;\tsize:4;\tsigned:0;\n"
		"\tfield:void *ptr;\toffset:32;\tsize:8;\tsigned:0;\n\n"
		"print fmt: \"prev_comm=%s\",\n\tREC->prev_comm\n\n";
	struct event_format f;

	assert_int_equal(parse(text, &f), 0);
	assert_int_equal(f.id, 316);
	assert_int_equal(f.n_common, 4);
	check_field(&f.common[3], "int", "common_pid", 4, 4, true);
	assert_int_equal(f.n_fields, 4);
	check_field(&f.fields[0], "char", "prev_comm[16]", 8, 16, false);
	check_field(&f.fields[2], "__data_loc char[]", "what", 28, 4, false);
	check_field(&f.fields[3], "void *", "ptr", 32, 8, false);
	assert_ptr_equal(event_format_field(&f, "prev_comm"), &f.fields[0]);
	assert_string_equal(f.print_fmt, "\"prev_comm=%s\",\n\tREC->prev_comm");
	event_format_release(&f);
}

static void no_fields(void **state)
{
	struct event_format f;

	assert_int_equal(parse("name: hyp_exit\nID: 12\nformat:\n" COMMON "\nprint fmt: \" \", \n", &f), 0);
	assert_int_equal(f.n_common, 1);
	assert_int_equal(f.n_fields, 0);
	assert_string_equal(f.print_fmt, "\" \",");
	event_format_release(&f);
}

/* the text may be cut after any byte */
static void truncated(void **state)
{
	static const char text[] =
		"name: selftest\nID: 2\nformat:\n" COMMON "\n\tfield:u64 id;\toffset:2;\tsize:8;\tsigned:0;\n"
		"\nprint fmt: \"id=%llu\", REC->id\n";
	struct event_format f;

	for (size_t len = 0; len < sizeof(text); len++) {
		int ret = event_format_parse(text, len, &f);

		assert_true(!ret || ret == -EBADMSG);
		assert_true(!ret == !!f.name);
		event_format_release(&f);
	}
}

static void refused(void **state)
{
	static const char *const bad[] = {
		"",
		"ID: 1\nformat:\n" COMMON,
		"name: a\nformat:\n" COMMON,
		"name: a\nID: 1\n",
		"name: a\nID: 1\n" COMMON "format:\n",
		"name: a\nID: -1\nformat:\n" COMMON,
		"name: a\nID: 99999999999\nformat:\n" COMMON,
		"name: a\nname: b\nID: 1\nformat:\n" COMMON,
		"name: a\nID: 1\nformat:\n\tfield:x;\toffset:0;\tsize:2;\n",
		"name: a\nID: 1\nformat:\n\tfield:int x;\toffset:0;\n",
		"name: a\nID: 1\nformat:\n\tfield:int x;\tsize:4;\n",
		"name: a\nID: 1\nformat:\n\tfield:int x;\toffset:65533;\tsize:4;\n",
		"name: a\nID: 1\nformat:\n\tfield:int x;\toffset:4294967295;\tsize:4;\n",
		"name: a\nID: 1\nformat:\n\tfield:int x;\toffset:0;\tsize:4;\tcolour:3;\n",
		"name: a\nID: 1\nformat:\nwhat is this\n",
	};
	struct event_format f;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(parse(bad[i], &f), -EBADMSG);
		assert_null(f.name);
	}
	assert_int_equal(event_format_parse("name: a\0b\nID: 1\nformat:\n", 23, &f), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mainline_hyp_enter),
		cmocka_unit_test(host_sched_switch),
		cmocka_unit_test(no_fields),
		cmocka_unit_test(truncated),
		cmocka_unit_test(refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
