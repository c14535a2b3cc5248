// SPDX-License-Identifier: LGPL-2.1-or-later
/* Event formats that would lead libtraceevent astray, and what it gets instead; those of kernels. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>
#include <traceevent/event-parse.h>
#include <traceevent/trace-seq.h>

#include "file/dat/format.h"
#include "read/tepfile.h"
#include "base/array.h"
#include "base/files.h"

#define COMMON                                                                                               \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"                               \
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"                               \
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"                       \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"
#define FIELDS                                                                                               \
	"\tfield:u32 n;\toffset:8;\tsize:4;\tsigned:0;\n"                                                    \
	"\tfield:u8 mac[6];\toffset:12;\tsize:6;\tsigned:0;\n"                                               \
	"\tfield:__data_loc char[] str;\toffset:20;\tsize:4;\tsigned:0;\n"                                   \
	"\tfield:__rel_loc u32[] rel;\toffset:24;\tsize:4;\tsigned:0;\n"                                     \
	"\tfield:char tail[];\toffset:28;\tsize:0;\tsigned:0;\n\n"
#define HEAD "name: e\nID: 700\nformat:\n" COMMON FIELDS "print fmt: "

/* ---- what the check says -------------------------------------------------------------- */

#define ZERO "divides by what may be 0"
#define DEEP "is nested deeper than any kernel's"
#define WIDE "has too many arguments or too great a width"

static char *repeat(const char *before, const char *what, size_t n, const char *after)
{
	struct buf b = { 0 };

	buf_addstr(&b, before);
	for (size_t i = 0; i < n; i++)
		buf_addstr(&b, what);
	buf_addstr(&b, after);
	assert_non_null(buf_str(&b));
	return (char *)b.data;
}

/* want: the print format that libtraceevent gets, "" for none; NULL: fmt itself. */
static void check_one(const char *fmt, const char *want, const char *why)
{
	struct buf in = { 0 };
	struct checked_format f;

	buf_printf(&in, "%s%s\n", HEAD, fmt);
	assert_int_equal(format_check(buf_str(&in), in.len, &f), 0);
	assert_int_equal(f.id, 700);
	assert_string_equal(f.name, "e");
	assert_memory_equal(buf_str(&f.text), HEAD, strlen(HEAD));
	f.text.data[f.text.len - 1] = '\0';
	assert_string_equal((char *)f.text.data + strlen(HEAD), want ? want : fmt);
	if (why)
		assert_string_equal(f.why, why);
	else
		assert_null(f.why);
	checked_format_release(&f);
	buf_release(&in);
}

static void test_refused(void **state)
{
	static const struct {
		const char *fmt, *want, *why;
	} rows[] = {
		/* SIGFPE when it prints, or when it reads */
		{ "\"%d\", REC->n / 0", "", ZERO },
		{ "\"%d\", 1 % 0x0", "", ZERO },
		{ "\"%d\", 1 / 08", "", ZERO }, /* an octal 0 */
		{ "\"%d\", REC->n / REC->n", "", ZERO },
		{ "\"%d\", REC->n / (1 - 1)", "", ZERO },
		{ "\"%d\", REC->n / -1", "", ZERO },
		{ "\"%d\", REC->n / HZ", "", ZERO },
		{ "\"%d\", REC->n / 2 * 0", "", ZERO }, /* to libtraceevent REC->n / (2 * 0) */
		{ "\"%d\", REC->n / 2 / 0", "", ZERO },
		{ "\"%d\", REC->n / 2 * 3", "", ZERO },
		{ "\"%d\", REC->n / 2 + 0", NULL, NULL },
		{ "\"%d\", (REC->n / 1000L) % 64", NULL, NULL },
		{ "\"%d\", REC->n / sizeof(u64)", NULL, NULL },
		/* memory */
		{ "\"%2000000000d\", REC->n", "", WIDE },
		{ "\"%.2000000000d\", REC->n", "", WIDE },
		{ "\"%-4096d\", REC->n", NULL, NULL },
		{ "\"%4097d\", REC->n", "", WIDE },
		{ "\"%*d\", REC->n, 3", "\"%*d\", ((REC->n) & 65535), 3", NULL },
		{ "\"%.*s %d\", REC->n, __get_str(str), 1",
		  "\"%.*s %d\", ((REC->n) & 65535), __get_str(str), 1", NULL },
		{ "\"%*d\", 16, 3", NULL, NULL },
		{ "\"%ls\", REC->mac", "", "has a conversion that is none" },
		{ "\"%zs\", REC->mac", "", "has a conversion that is none" },
		/* beyond the record */
		{ "\"%d\", REC->mac[1000000]", "\"%d\", REC->mac[((1000000) & 4095)]", NULL },
		{ "\"%d\", REC->mac[REC->n]", "\"%d\", REC->mac[((REC->n) & 4095)]", NULL },
		{ "\"%d\", REC->mac[3]", NULL, NULL },
		{ "\"%s\", __print_hex(REC->mac, REC->n)",
		  "\"%s\", __print_hex(REC->mac, ((REC->n) & 65535))", NULL },
		{ "\"%s\", __print_array(REC->mac, REC->n, 8)",
		  "\"%s\", __print_array(REC->mac, ((REC->n) & 65535), 8)", NULL },
		{ "\"%s\", __print_hex(REC->mac, 6)", NULL, NULL },
		/* NULL, or what is no pointer, to libtraceevent */
		{ "\"%d\", REC->none", "", NULL },
		{ "\"%s\", __print_flags(REC->none, \"|\", { 1, \"a\" })", "", NULL },
		{ "\"%s\", __print_hex(5, 3)", "", NULL },
		{ "\"%s\", __print_hex((u8 *)REC->mac, 3)", "", NULL },
		{ "\"%s\", __get_cpumask(none)", "", NULL },
		{ "\"%s\", __get_bitmask(n)", "", NULL },
		{ "\"%d\", __get_rel_dynamic_array_len(rel)", "", NULL },
		{ "\"%d\", __le16_to_cpup(REC->n)", "", NULL },
		{ "\"%d\", sizeof(int)", "", NULL }, /* frees a word twice */
		{ "\"%d\", sizeof(unsigned long)", NULL, NULL },
		{ "\"%d\", sizeof(", "", NULL },
		{ "\"%d\", REC->mac[1][2]", "", NULL },
		{ "\"%d\", REC->n ? 1 : 2 = 3", "", NULL },
		{ "\"%d\", REC->n ? 1 : REC->mac[1]", "", NULL },
		{ "\"%d\", REC->n ? 1 : (REC->mac)[1]", "", NULL },
		{ "\"%d\", REC->n ? 1 : (u8)(u32)REC->mac[1]", "", NULL },
		{ "\"%d\", REC->n ? 1 : -REC->mac[1]", NULL, NULL },
		{ "\"%d\", REC->n ? REC->mac[2] : (REC->mac[1])", NULL, NULL },
		/* no end */
		{ "\"%d", "", NULL },
		{ "\"%d\", (REC->n", "", NULL },
		{ "\"%s\", __print_symbolic(REC->n, { 1, \"a\"", "", NULL },
		{ "\"a\\\\\", REC->n", "", NULL },
		{ "\"\xe9\", REC->n", "", NULL },
		{ "", "", NULL },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		check_one(rows[i].fmt, rows[i].want, rows[i].why);
}

/* Each of these ended libtraceevent's stack, or took minutes. */
static void test_nesting(void **state)
{
	static const struct {
		const char *before, *what;
		size_t n;
		const char *after, *why;
	} rows[] = {
		{ "\"%d\", ", "(", 40000, "1", DEEP },
		{ "\"%d\", ", "!", 40000, "1", DEEP },
		{ "\"%d\", ", "(u8)", 10000, "1", DEEP },
		{ "\"%d\", 1", " + 1", 10000, "", DEEP },
		{ "\"%d\", ", "1 ? 2 : ", 5000, "3", DEEP },
		{ "\"%d\", ", "f(", 20000, "", DEEP },
		{ "\"%d\", ", "REC->mac[", 5000, "1", DEEP },
		{ "\"%d\", REC->n", ", 1", 20000, "", "has too many arguments" },
		{ "\"", "%d", 20000, "\"", WIDE },
		{ "\"", "x", 70000, "\"", "is longer than any kernel's" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		char *fmt = repeat(rows[i].before, rows[i].what, rows[i].n, rows[i].after);

		check_one(fmt, "", rows[i].why);
		free(fmt);
	}
}

/* What libtraceevent takes for an event's fields */
static void test_fields(void **state)
{
	static const char *const bad[] = {
		"field:int x[;\toffset:8;\tsize:4;\tsigned:1;",
		"field:int x[3;\toffset:8;\tsize:4;\tsigned:1;",
		"field:__attribute__((user)) int x;\toffset:8;\tsize:4;\tsigned:1;",
		"field:int x\"y;\toffset:8;\tsize:4;\tsigned:1;",
		"field:__data_loc char[] x;\toffset:8;\tsize:2;\tsigned:1;",
		"field:__rel_loc char[] x;\toffset:8;\tsize:8;\tsigned:1;",
		"field:int x;\toffset:65533;\tsize:4;\tsigned:1;",
		"field:int common_pid;\toffset:8;\tsize:2;\tsigned:1;",
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct buf in = { 0 };
		struct checked_format f;

		buf_printf(&in, "name: e\nID: 700\nformat:\n" COMMON "\t%s\n\nprint fmt: \"\"\n", bad[i]);
		assert_int_equal(format_check(buf_str(&in), in.len, &f), -EBADMSG);
		checked_format_release(&f);
		buf_release(&in);
	}
}

/* ---- what libtraceevent makes of it ------------------------------------------------------- */

struct rig {
	struct tep_handle *tep;
	struct padded room;
	size_t failed;
	char said[512];
};

static void keep_message(void *ctx, enum log_level level, const char *msg)
{
	struct rig *r = ctx;

	snprintf(r->said + strlen(r->said), sizeof(r->said) - strlen(r->said), "%s\n", msg);
}

static void rig_load(struct rig *r, const char *system, const char *format, const char *printk)
{
	struct reader_format one = { .system = system, .text = { format, strlen(format) } };
	struct reader_info info = {
		.page_size = 4096, .formats = &one, .n_formats = 1, .printk = { printk, strlen(printk) }
	};
	struct log log = { keep_message, r };

	*r = (struct rig){ .tep = tep_alloc() };
	assert_non_null(r->tep);
	tep_set_loglevel(TEP_LOG_NONE);
	assert_int_equal(padded_init(&r->room), 0);
	assert_int_equal(tepfile_load(r->tep, &info, &r->failed, &log), 0);
}

static void rig_release(struct rig *r)
{
	padded_release(&r->room);
	tepfile_release(r->tep);
}

/* Of the start of what it prints, which may be long. */
static void check_print(struct rig *r, const void *data, size_t len, const char *want)
{
	struct tep_record rec = padded_record(&r->room, data, len);
	struct trace_seq s;

	trace_seq_init(&s);
	tep_print_event(r->tep, &s, &rec, "%s", TEP_PRINT_INFO);
	trace_seq_terminate(&s);
	assert_true(s.len < 1 << 20);
	assert_int_equal(strncmp(s.buffer, want, strlen(want)), 0);
	trace_seq_destroy(&s);
}

static void test_hostile_record(void **state)
{
	static const struct {
		const char *fmt, *want;
	} rows[] = {
		{ "\"%*d|\", REC->n, 3", "   " },
		{ "\"%.*s|\", REC->n, __get_str(str)", "|" },
		{ "\"%s|\", __print_hex(REC->mac, REC->n)", "01 02 03 04 05 06 " },
		{ "\"%s|\", __print_array(REC->mac, REC->n, 8)", "" },
		{ "\"%s|\", __print_array(__get_dynamic_array(str), REC->n, 8)", "" },
		{ "\"%s|\", __print_array(__get_rel_dynamic_array(rel), REC->n, 8)", "" },
		{ "\"%d|\", REC->mac[REC->n]", "0|" },
		{ "\"%d|\", ((u32 *)__get_dynamic_array(str))[REC->n]", "0|" },
		{ "\"%s|\", __get_bitmask(str)", "|" },
		{ "\"%s|\", __get_str(rel)", "|" },
		{ "\"%pI6c %pI4 %pU\", REC->mac, REC->mac, REC->mac", "INVALIDIPv6 INVALIDIPv4 INVALIDUUID" },
		{ "\"%d\", REC->n / REC->n", "[FAILED TO PARSE] n=4294967295 mac=ARRAY[01, 02," },
	};
	static const uint8_t data[] = { 700 & 255, 700 >> 8, 0,	   0,	 1,    0,    0,	   0,	0xff, 0xff,
					0xff,	   0xff,     1,	   2,	 3,    4,    5,	   6,	0,    0,
					0xff,	   0xff,     0xff, 0xff, 0xff, 0xff, 0xff, 0xff };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct buf format = { 0 };
		struct rig r;

		buf_printf(&format, "%s%s\n", HEAD, rows[i].fmt);
		rig_load(&r, "kvm", buf_str(&format), "");
		check_print(&r, data, sizeof(data), rows[i].want);
		check_print(&r, data, 8, "");
		rig_release(&r);
		buf_release(&format);
	}
}

/* What the log says, once; the record's fields are there. */
static void test_said(void **state)
{
	struct rig r;

	rig_load(&r, "kvm", HEAD "\"%d\", 1 / REC->n\n", "");
	assert_string_equal(r.said,
			    "the print format of kvm:e divides by what may be 0: its fields are shown\n");
	assert_int_equal(r.failed, 1);
	rig_release(&r);
	rig_load(&r, "kvm", "name: e\nID: 700\nformat:\n" COMMON "\tfield:int x[;\toffset:8;\tsize:4;\n", "");
	assert_string_equal(r.said, "format 0, of system kvm, is no event's: its events stay unknown\n");
	rig_release(&r);
	rig_load(&r, "kvm", HEAD "\"%s\", vendor_name(REC->n)\n", ""); /* libtraceevent does not know it */
	assert_string_equal(r.said, "");
	assert_int_equal(r.failed, 0);
	rig_release(&r);
}

#define BPRINT                                                                                               \
	"name: bprint\nID: 6\nformat:\n" COMMON "\tfield:unsigned long ip;\toffset:8;\tsize:8;\tsigned:0;\n" \
	"\tfield:const char * fmt;\toffset:16;\tsize:8;\tsigned:0;\n"                                        \
	"\tfield:u32 buf[];\toffset:24;\tsize:0;\tsigned:0;\n\nprint fmt: \"%s\", REC->fmt\n"

/* libtraceevent reads behind a line without ':', in front of one that is short, and behind a last '%'. */
static void test_printk_formats(void **state)
{
	static const struct {
		const char *printk, *want;
	} rows[] = {
		{ "0x1000 : \"n=%d\\n\"\n", "0x2a: n=7" },
		{ "0x1000 : \"a\"\n", "0x2a: a" },
		{ "0x1000 : \"\"\n", "0x2a: " },
		{ "0x1000 : \"\\n\"\n", "0x2a: " },
		{ "0x1000 :", "0x2a: " },
		{ "0x1000", "0x2a: (NO FORMAT FOUND at 1000)" },
		{ "0x1000 : \"100%\"\n", "0x2a: 100%" },
		{ "0x1000 : \"%*d\"\n", "0x2a: %*d" },
		{ "0x1000 : \"%2000000000d\"\n", "0x2a: %2000000000d" },
		{ "0x1000 : \"%ls\"\n", "0x2a: %ls" },
	};
	struct {
		uint16_t type;
		uint8_t rest[2];
		int32_t pid;
		uint64_t ip, fmt;
		uint32_t buf[1];
	} record = { .type = 6, .ip = 0x2a, .fmt = 0x1000, .buf = { 7 } };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct rig r;

		rig_load(&r, "ftrace", BPRINT, rows[i].printk);
		check_print(&r, &record, 28, rows[i].want);
		rig_release(&r);
	}
}

static void test_bprint_without_fields(void **state)
{
	static const uint8_t data[32] = { 6 };
	struct rig r;

	rig_load(&r, "ftrace", "name: bprint\nID: 6\nformat:\n" COMMON "\nprint fmt: \"%d\", 1\n", "");
	check_print(&r, data, sizeof(data), "[FAILED TO PARSE]");
	rig_release(&r);
}

/* ---- kernels' ----------------------------------------------------------------------------- */

static void test_kernels_own(void **state)
{
	static const char *const names[] = { "sched_switch", "kvm_entry", "kvm_exit",
					     "function",     "hyp_enter", "hyp_exit" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct buf path = { 0 }, text = { 0 };
		struct checked_format f;
		const char *was, *is;

		buf_printf(&path, "tests/data/formats/%s", names[i]);
		assert_int_equal(read_file(buf_str(&path), 1 << 20, &text), 0);
		assert_int_equal(format_check(buf_str(&text), text.len, &f), 0);
		assert_null(f.why);
		was = strstr((char *)text.data, "print fmt:");
		is = strstr(buf_str(&f.text), "print fmt:");
		assert_int_equal(strncmp(is, was, strcspn(was, "\n")), 0);
		checked_format_release(&f);
		buf_release(&path);
		buf_release(&text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused),	    cmocka_unit_test(test_nesting),
		cmocka_unit_test(test_fields),	    cmocka_unit_test(test_hostile_record),
		cmocka_unit_test(test_said),	    cmocka_unit_test(test_printk_formats),
		cmocka_unit_test(test_kernels_own), cmocka_unit_test(test_bprint_without_fields),
	};

	return cmocka_run_group_tests_name("print-format", tests, NULL, NULL);
}
