// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The rewritten formats, judged by libtraceevent: each event that kernels are
 * known to have, one record of it, and what report prints.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "tep.h"
#include "base/array.h"

#define TYPE "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"

/* ---- formats as kernels show them ------------------------------------------------- */

struct field {
	const char *decl; /* "u8 reason" */
	unsigned int size;
	bool is_signed;
};

/* Packed from offset 2, as kernel/trace/trace_remote.c prints it. */
static void kernel_format(struct buf *out, const char *name, unsigned int id, const struct field *f,
			  const char *print_fmt)
{
	unsigned int offset = 2;

	buf_printf(out, "name: %s\nID: %u\nformat:\n" TYPE "\n", name, id);
	for (size_t i = 0; f[i].decl; i++) {
		buf_printf(out, "\tfield:%s;\toffset:%u;\tsize:%u;\tsigned:%d;\n", f[i].decl, offset,
			   f[i].size, f[i].is_signed);
		offset += f[i].size;
	}
	buf_printf(out, "%sprint fmt: %s\n", f[0].decl ? "\n" : "", print_fmt);
}

static void add(struct hypevents *e, const char *name, unsigned int id, const struct field *f,
		const char *print_fmt, int want)
{
	struct buf text = { 0 };

	kernel_format(&text, name, id, f, print_fmt);
	assert_int_equal(hypevents_add(e, buf_str(&text), text.len), want);
	buf_release(&text);
}

#define FFA_FIELDS                                                                                           \
	{ "u64 func_id", 8, 0 }, { "u64 res_a1", 8, 0 }, { "u64 res_a2", 8, 0 }, { "u64 res_a3", 8, 0 },     \
		{ "u64 res_a4", 8, 0 }, { "int handled", 4, 1 },                                             \
	{                                                                                                    \
		"int err", 4, 1                                                                              \
	}
#define FFA_FMT                                                                                              \
	"\"ffa_func=0x%llx a1=0x%llx a2=0x%llx a3=0x%llx a4=%llx handled=%d err=%d\", "                      \
	"REC->func_id, REC->res_a1, REC->res_a2, REC->res_a3, REC->res_a4, REC->handled, REC->err"

static const struct known {
	const char *name;
	struct field fields[12];
	const char *print_fmt;
	uint64_t values[12]; /* of a record */
	const char *raw;     /* what is printed of the raw record */
	const char *text;    /* what mainline's text would be; NULL: has none */
} known[] = {
	{ "hyp_enter", {}, "\" \", ", {}, " ", NULL },
	{ "hyp_exit",
	  { { "u8 reason", 1, 0 }, { "pid_t vcpu", 4, 1 } },
	  "\"reason=%s vcpu=%d\", __hyp_enter_exit_reason_str(REC->reason), REC->vcpu",
	  { 6, 87 },
	  "reason=6 vcpu=87",
	  "reason=eret_host vcpu=87" },
	{ "host_hcall",
	  { { "unsigned int id", 4, 0 }, { "u8 invalid", 1, 0 } },
	  "\"id=%u invalid=%u\", REC->id, REC->invalid",
	  { 4000000000, 1 },
	  "id=4000000000 invalid=1",
	  "id=4000000000 invalid=1" },
	{ "host_smc",
	  { { "u64 id", 8, 0 }, { "u8 forwarded", 1, 0 } },
	  "\"id=%llu forwarded=%u\", REC->id, REC->forwarded",
	  { 3288334337, 255 },
	  "id=3288334337 forwarded=255",
	  "id=3288334337 forwarded=255" },
	{ "host_mem_abort",
	  { { "u64 esr", 8, 0 }, { "u64 addr", 8, 0 } },
	  "\"esr=0x%llx addr=0x%llx\", REC->esr, REC->addr",
	  { 0x92000007, 0xfedcba9876543210 },
	  "esr=0x92000007 addr=0xfedcba9876543210",
	  "esr=0x92000007 addr=0xfedcba9876543210" },
	{ "__hyp_printk",
	  { { "u8 fmt_id", 1, 0 },
	    { "u64 a", 8, 0 },
	    { "u64 b", 8, 0 },
	    { "u64 c", 8, 0 },
	    { "u64 d", 8, 0 } },
	  "\"%s\", __hyp_printk_str(REC->fmt_id, REC->a, REC->b, REC->c, REC->d)",
	  { 3, 1, 2, 3, 0xffff },
	  "fmt_id=3 a=0x1 b=0x2 c=0x3 d=0xffff",
	  "cpu 1 is up" },
	{ "host_ffa_call",
	  { FFA_FIELDS },
	  FFA_FMT,
	  { 0x84000060, 1, 2, 3, 0xabc, 1, (uint64_t)-22 },
	  "ffa_func=0x84000060 a1=0x1 a2=0x2 a3=0x3 a4=abc handled=1 err=-22",
	  "ffa_func=0x84000060 a1=0x1 a2=0x2 a3=0x3 a4=abc handled=1 err=-22" },
	{ "guest_ffa_call",
	  { FFA_FIELDS, { "u64 exit_code", 8, 0 }, { "u64 vm_handle", 8, 0 } },
	  "\"exit_code=%llu vm=0x%llx err=%d\", REC->exit_code, REC->vm_handle, REC->err",
	  { 1, 2, 3, 4, 5, 6, (uint64_t)-1, 2, 0x1000 },
	  "exit_code=2 vm=0x1000 err=-1",
	  "exit_code=2 vm=0x1000 err=-1" },
	{ "psci_mem_protect",
	  { { "u64 count", 8, 0 }, { "u64 was", 8, 0 } },
	  "\"count=%llu was=%llu\", REC->count, REC->was",
	  { 1, UINT64_MAX },
	  "count=1 was=18446744073709551615",
	  "count=1 was=18446744073709551615" },
	{ "iommu_idmap",
	  { { "u64 from", 8, 0 }, { "u64 to", 8, 0 }, { "int prot", 4, 1 } },
	  "\"from=0x%llx to=0x%llx prot=0x%x\", REC->from, REC->to, REC->prot",
	  { 0x1000, 0x2000, 0x80000007 },
	  "from=0x1000 to=0x2000 prot=0x80000007",
	  "from=0x1000 to=0x2000 prot=0x80000007" },
	{ "iommu_idmap_complete", { { "bool map", 1, 0 } }, "\"map=%d\", REC->map", { 1 }, "map=1", "map=1" },
	{ "vcpu_illegal_trap",
	  { { "u64 esr", 8, 0 } },
	  "\"esr_el2=%llx\", REC->esr",
	  { 0x62300000 },
	  "esr_el2=62300000",
	  "esr_el2=62300000" },
	{ "power_lock",
	  { { "pid_t vm", 4, 1 }, { "u64 device", 8, 0 }, { "bool lock", 1, 0 }, { "int ret", 4, 1 } },
	  "\"vm=%d device=0x%llx lock=%d ret=%d\", REC->vm, REC->device, REC->lock, REC->ret",
	  { (uint64_t)-1, 0xbeef, 0, (uint64_t)-110 },
	  "vm=-1 device=0xbeef lock=0 ret=-110",
	  "vm=-1 device=0xbeef lock=0 ret=-110" },
	{ "func",
	  { { "unsigned long ip", 8, 0 }, { "unsigned long parent", 8, 0 } },
	  "\"%ps <- %ps\", (void *)REC->ip, (void *)REC->parent",
	  { 0xffffffc008001000, 0xffffffc008002000 },
	  "0xffffffc008001000 <- 0xffffffc008002000",
	  "handle_trap <- __host_hvc" },
	{ "func_ret",
	  { { "unsigned long ip", 8, 0 } },
	  "\"%ps\", (void *)REC->ip",
	  { 0xffffffc008001000 },
	  "0xffffffc008001000",
	  "handle_trap" },
	{ "selftest", { { "u64 id", 8, 0 } }, "\"id=%llu\", REC->id", { 42 }, "id=42", "id=42" },
	{ "hyp_printk",
	  { { "u16 fmt_id", 2, 0 }, { "u64 args[]", 0, 0 } },
	  "\"%s\", hyp_printk_print(REC)",
	  { 9 },
	  "fmt_id=9",
	  "mapped 3 pages at 0x1000" },
	/* not of any kernel: types, signs, widths */
	{ "vendor_small",
	  { { "s8 a", 1, 1 }, { "s16 b", 2, 1 }, { "s32 c", 4, 1 }, { "s64 d", 8, 1 }, { "u16 e", 2, 0 } },
	  "\"%d|%d|%d|%lld|%u\", REC->a, REC->b, REC->c, REC->d, REC->e",
	  { 0x80, 0xffff, 0xfffffffe, (uint64_t)-3, 65535 },
	  "-128|-1|-2|-3|65535",
	  "-128|-1|-2|-3|65535" },
	{ "vendor_width",
	  { { "u32 a", 4, 0 }, { "u32 b", 4, 0 }, { "u64 c", 8, 0 }, { "int d", 4, 1 }, { "u32 e", 4, 0 } },
	  "\"[%5u] [%08x] [0x%016llx] [%-4d] [%#x] 100%%\", REC->a, REC->b, REC->c, REC->d, REC->e",
	  { 7, 0xab, 0xcd, (uint64_t)-5, 0x10 },
	  "[    7] [000000ab] [0x00000000000000cd] [-5  ] [0x10] 100%",
	  "[    7] [000000ab] [0x00000000000000cd] [-5  ] [0x10] 100%" },
	{ "vendor_strings",
	  { { "char comm[8]", 8, 0 }, { "char c", 1, 0 }, { "u32 n", 4, 0 } },
	  "\"comm=%s c=%c n=%u\", REC->comm, REC->c, REC->n",
	  { 0x6f6c6c6568, 'x', 3 }, /* "hello" */
	  "comm=hello c=x n=3",
	  "comm=hello c=x n=3" },
	{ "vendor_pointer",
	  { { "void *p", 8, 0 } },
	  "\"p=%p\", REC->p",
	  { 0x1234abcd },
	  "p=000000001234abcd",
	  "p=000000001234abcd" },
	{ "vendor_function",
	  { { "u32 a", 4, 0 }, { "s64 b", 8, 1 }, { "u16 c[2]", 4, 0 } },
	  "\"a=%s\", __print_flags(vendor(REC->a), \"|\", {1, \"x\"})",
	  { 5, (uint64_t)-5, 0x20001 },
	  "a=5 b=-5 c=", /* 1.7: "1 2", 1.8: "{0x1,0x2}" */
	  "a=x|y" },
	{ "vendor_no_text", {}, "", {}, "", "" },
};

static void add_known(struct hypevents *e, bool raw)
{
	assert_int_equal(hypevents_init(e, raw ? "hyp" : "hypervisor"), 0);
	e->raw = raw;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		add(e, known[i].name, (unsigned int)i, known[i].fields, known[i].print_fmt, 0);
	assert_int_equal(hypevents_number(e, 2000), 0);
}

static size_t kernel_record(const struct known *k, unsigned int id, uint8_t *out)
{
	size_t at = 2;

	memcpy(out, &(uint16_t){ (uint16_t)id }, 2);
	for (size_t i = 0; k->fields[i].decl; i++) {
		memcpy(out + at, &k->values[i], k->fields[i].size);
		at += k->fields[i].size;
	}
	return at;
}

static void raw_events_print(void **state)
{
	struct tep_handle *tep;
	struct hypevents e;

	add_known(&e, true);
	tep = judge_new(&e);
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		uint8_t rec[256], out[512];
		char text[512];
		size_t len = kernel_record(&known[i], (unsigned int)i, rec);
		ssize_t n = hypraw_record(&e, rec, len, out, sizeof(out));

		assert_true(n >= HYP_HEADER_SIZE);
		judge_print(tep, out, (size_t)n, text, sizeof(text));
		if (!strcmp(known[i].name, "vendor_function"))
			text[strlen(known[i].raw)] = 0;
		assert_string_equal(text, known[i].raw);
	}
	tep_free(tep);
	hypevents_release(&e);
}

struct last {
	uint8_t data[4096];
	size_t len;
};

static int keep(void *ctx, const struct hyprecord *r)
{
	struct last *l = ctx;

	assert_true(r->len <= sizeof(l->data));
	memcpy(l->data, r->data, r->len);
	l->len = r->len;
	return 0;
}

static void text_events_print(void **state)
{
	struct tep_handle *tep;
	struct hypevents e;
	struct hyptext *t;

	add_known(&e, false);
	tep = judge_new(&e);
	t = hyptext_new(&e);
	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		struct last l = { .len = 0 };
		char line[256], text[512];
		uint16_t id;

		if (!known[i].text)
			continue;
		snprintf(line, sizeof(line), "[000]\t    1.000001: %s %s\n", known[i].name, known[i].text);
		assert_int_equal(hyptext_feed(t, line, strlen(line), keep, &l), 0);
		memcpy(&id, l.data, 2);
		assert_int_equal(id, 2000 + i);
		judge_print(tep, l.data, l.len, text, sizeof(text));
		assert_string_equal(text, known[i].text);
	}
	assert_int_equal(hyptext_bad_lines(t), 0);
	hyptext_free(t);
	tep_free(tep);
	hypevents_release(&e);
}

/* Which events keep their fields on the way through text. */
static void events_kept_as_text(void **state)
{
	static const char *const as_text[] = { "__hyp_printk",	  "func",	   "func_ret", "hyp_printk",
					       "vendor_function", "vendor_no_text" };
	struct hypevents e;
	size_t n = 0;

	add_known(&e, false);
	for (size_t i = 0; i < e.n; i++)
		if (e.v[i].as_text)
			assert_string_equal(e.v[i].fmt.name, as_text[n++]);
	assert_int_equal(n, ARRAY_SIZE(as_text));
	hypevents_release(&e);
}

/* ---- the text of a format ------------------------------------------------------------ */

#define COMMON                                                                                               \
	"\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"                               \
	"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"                               \
	"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"                       \
	"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n"

static const struct field enter_fields[] = { { "u8 reason", 1, 0 }, { "pid_t vcpu", 4, 1 }, { NULL, 0, 0 } };
static const char enter_fmt[] = "\"reason=%s vcpu=%d\", __hyp_enter_exit_reason_str(REC->reason), REC->vcpu";
static const struct field no_fields[] = { { NULL, 0, 0 } };
static const struct field id_field[] = { { "u64 id", 8, 0 }, { NULL, 0, 0 } };

static void check_format(const struct hypevents *e, size_t i, const char *want)
{
	struct buf text = { 0 };

	hypevents_format(e, i, &text);
	assert_string_equal(buf_str(&text), want);
	buf_release(&text);
}

static void formats_of_mainline(void **state)
{
	struct hypevents e;

	assert_int_equal(hypevents_init(&e, "hypervisor"), 0);
	add(&e, "selftest", 2, id_field, "\"id=%llu\", REC->id", 0);
	add(&e, "hyp_enter", 0, enter_fields, enter_fmt, 0);
	add(&e, "func", 1, id_field, "\"%ps\", (void *)REC->id", 0);
	assert_int_equal(hypevents_number(&e, 1500), 0);
	assert_int_equal(hypevents_reason(&e, "eret_guest", 10), 7);
	assert_int_equal(hypevents_reason(&e, "nap", 3), 128);
	assert_int_equal(hypevents_reason(&e, "nap", 3), 128);
	assert_int_equal(hypevents_reason(&e, "doze", 4), 129);

	check_format(&e, 0,
		     "name: hyp_enter\nID: 1500\nformat:\n" COMMON
		     "\tfield:u8 reason;\toffset:8;\tsize:1;\tsigned:0;\n"
		     "\tfield:pid_t vcpu;\toffset:9;\tsize:4;\tsigned:1;\n"
		     "\nprint fmt: \"reason=%s vcpu=%d\", __print_symbolic(REC->reason, "
		     "{ 0, \"smc\" }, { 1, \"hvc\" }, { 2, \"sys\" }, { 3, \"psci\" }, "
		     "{ 4, \"host_abort\" }, { 5, \"guest_exit\" }, { 6, \"eret_host\" }, "
		     "{ 7, \"eret_guest\" }, { 8, \"unknown\" }, { 128, \"nap\" }, "
		     "{ 129, \"doze\" }), REC->vcpu\n");
	check_format(&e, 1,
		     "name: func\nID: 1501\nformat:\n" COMMON
		     "\tfield:__data_loc char[] text;\toffset:8;\tsize:4;\tsigned:0;\n"
		     "\nprint fmt: \"%s\", __get_str(text)\n");
	check_format(&e, 2,
		     "name: selftest\nID: 1502\nformat:\n" COMMON
		     "\tfield:u64 id;\toffset:8;\tsize:8;\tsigned:0;\n"
		     "\nprint fmt: \"id=%llu\", REC->id\n");
	check_format(&e, 3,
		     "name: hyp_unknown\nID: 1503\nformat:\n" COMMON
		     "\tfield:int id;\toffset:8;\tsize:4;\tsigned:1;\n"
		     "\tfield:__data_loc char[] text;\toffset:12;\tsize:4;\tsigned:0;\n"
		     "\tfield:__data_loc u8[] data;\toffset:16;\tsize:4;\tsigned:0;\n"
		     "\nprint fmt: \"id=%d %s%s\", REC->id, __get_str(text), "
		     "__print_hex(__get_dynamic_array(data), __get_dynamic_array_len(data))\n");
	hypevents_release(&e);
}

static void fields_without_text_are_left_out(void **state)
{
	static const struct field f[] = { { "u32 shown", 4, 0 }, { "u32 hidden", 4, 0 }, { NULL, 0, 0 } };
	struct hypevents e;

	assert_int_equal(hypevents_init(&e, "hypervisor"), 0);
	add(&e, "half", 0, f, "\"shown=%u\", REC->shown", 0);
	assert_int_equal(hypevents_number(&e, 10), 0);
	check_format(&e, 0,
		     "name: half\nID: 10\nformat:\n" COMMON
		     "\tfield:u32 shown;\toffset:8;\tsize:4;\tsigned:0;\n"
		     "\nprint fmt: \"shown=%u\", REC->shown\n");
	hypevents_release(&e);
}

/* ---- the set --------------------------------------------------------------------------- */

static void set_of_events(void **state)
{
	struct hypevents e;

	assert_int_equal(hypevents_init(&e, "hypervisor"), 0);
	add(&e, "hyp_exit", 1, enter_fields, enter_fmt, 0);
	add(&e, "hyp_enter", 0, enter_fields, enter_fmt, 0);
	add(&e, "selftest", 7, id_field, "\"id=%llu\", REC->id", 0);
	add(&e, "selftest", 8, id_field, "\"id=%llu\", REC->id", -EEXIST);
	add(&e, "other", 7, id_field, "\"id=%llu\", REC->id", -EEXIST);
	add(&e, "bad name", 9, no_fields, "\"\"", -EBADMSG);
	add(&e, "big_id", 65536, no_fields, "\"\"", -EBADMSG);
	assert_int_equal(hypevents_add(&e, "rubbish", 7), -EBADMSG);
	assert_int_equal(e.n, 3);
	assert_string_equal(e.v[0].fmt.name, "hyp_enter");
	assert_int_equal(e.v[0].body_len, 5);
	assert_int_equal(e.v[0].vcpu_offset, 9);
	assert_int_equal(e.v[2].vcpu_offset, -1);
	assert_ptr_equal(hypevents_by_hyp_id(&e, 7), &e.v[2]);
	assert_null(hypevents_by_hyp_id(&e, 5));
	assert_ptr_equal(hypevents_by_name(&e, "hyp_exit and more", 8), &e.v[1]);
	assert_null(hypevents_by_name(&e, "hyp_exi", 7));
	assert_int_equal(hypevents_number(&e, 32765), -ERANGE);
	assert_int_equal(hypevents_number(&e, 4000000000), -ERANGE);
	assert_int_equal(hypevents_number(&e, 32764), 0);
	assert_int_equal(e.v[2].id, 32766);
	assert_int_equal(e.unknown_id, 32767);
	hypevents_release(&e);
}

static void formats_refused(void **state)
{
	static const char *const bad[] = {
		"name: a\nID: 1\nformat:\n",
		"name: a\nID: 1\nformat:\n\tfield:int "
		"common_type;\toffset:0;\tsize:4;\tsigned:1;\n",
		"name: a\nID: 1\nformat:\n" TYPE "\n\tfield:int x;\toffset:1;\tsize:4;\tsigned:1;\n",
		"name: a\nID: 1\nformat:\n" TYPE "\tfield:u64 common_x;\toffset:2;\tsize:8;\tsigned:0;\n",
		"name: a\nID: 1\nformat:\n" TYPE "\n\tfield:int x[;\toffset:2;\tsize:4;\tsigned:1;\n",
		"name: a\nID: 1\nformat:\n" TYPE "\n\tfield:int x:y;\toffset:2;\tsize:4;\tsigned:1;\n",
		"name: a\nID: 1\nformat:\n" TYPE "\n\tfield:i%t x;\toffset:2;\tsize:4;\tsigned:1;\n",
	};
	struct hypevents e;

	assert_int_equal(hypevents_init(&e, "hyp"), 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(hypevents_add(&e, bad[i], strlen(bad[i])), -EBADMSG);
	hypevents_release(&e);
}

static void reasons_run_out(void **state)
{
	struct hypevents e;
	char s[16];

	assert_int_equal(hypevents_init(&e, "hyp"), 0);
	for (int i = 128; i < 256; i++) {
		snprintf(s, sizeof(s), "why_%d", i);
		assert_int_equal(hypevents_reason(&e, s, strlen(s)), i);
	}
	assert_int_equal(hypevents_reason(&e, "one_more", 8), -ENOSPC);
	assert_int_equal(hypevents_reason(&e, "smc", 3), 0);
	assert_int_equal(hypevents_reason(&e, "a\", \"b", 6), -EINVAL);
	assert_int_equal(hypevents_reason(&e, "", 0), -EINVAL);
	hypevents_release(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(raw_events_print),
		cmocka_unit_test(text_events_print),
		cmocka_unit_test(events_kept_as_text),
		cmocka_unit_test(formats_of_mainline),
		cmocka_unit_test(fields_without_text_are_left_out),
		cmocka_unit_test(set_of_events),
		cmocka_unit_test(formats_refused),
		cmocka_unit_test(reasons_run_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
