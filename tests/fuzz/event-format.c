// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Event formats that are nearly right, made by the grammar of kernels' print formats out of the
 * input's bytes, and records of them: libtraceevent prints what our check lets through.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <traceevent/event-parse.h>
#include <traceevent/trace-seq.h>

#include "file/dat/format.h"
#include "read/tepfile.h"
#include "base/array.h"
#include "base/cursor.h"
#include "../leaks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define EVENTS		 2
#define DEPTH		 5
#define TEXT_MAX	 20000
#define FIRST_ID	 100
#define PICK(c, v)	 (v)[cursor_u8(c) % ARRAY_SIZE(v)]
#define RARELY(c, v, or) (cursor_u8(c) % 32 == 31 ? PICK(c, or) : PICK(c, v))

/* All fields are in each event, most of types that the grammar can use. */
static const char *const names[] = { "a", "b", "n", "d", "r", "z", "mac", "ip", "common_pid" };
static const char *const no_names[] = { "none", "__data_loc", "REC", "0" };

static void expr(struct cursor *c, struct buf *out, int depth);

static void number(struct cursor *c, struct buf *out)
{
	static const char *const some[] = { "1", "3", "4095", "10UL", "HZ", "0x7f" };
	static const char *const odd[] = {
		"0", "65536", "2000000000", "0x7fffffff", "08", "0xffffffffffffffff", "unsigned long"
	};

	buf_addstr(out, RARELY(c, some, odd));
}

static void operand_of(struct cursor *c, struct buf *out)
{
	static const char *const shapes[] = { "REC->%s",
					      "(REC)->%s",
					      "__get_dynamic_array(%s)",
					      "REC->%s[1]",
					      "((u32 *)__get_dynamic_array(%s))[2]",
					      "__get_str(%s)",
					      "__get_rel_dynamic_array(%s)",
					      "sizeof(REC->%s)" };

	buf_printf(out, PICK(c, shapes), RARELY(c, names, no_names));
}

/* Of what libtraceevent takes the address. */
static void array(struct cursor *c, struct buf *out)
{
	static const char *const shapes[] = { "REC->%s", "__get_dynamic_array(%s)" };

	buf_printf(out, PICK(c, shapes), cursor_u8(c) & 1 ? "d" : PICK(c, names));
}

static void pairs(struct cursor *c, struct buf *out, int depth)
{
	for (int i = cursor_u8(c) % 4; i; i--) {
		buf_addstr(out, "{ ");
		expr(c, out, depth);
		buf_printf(out, ", \"%c\" }%s", 'a' + i, i > 1 ? ", " : "");
	}
	buf_addstr(out, ")");
}

static void args(struct cursor *c, struct buf *out, int n, int depth)
{
	for (int i = 0; i < n; i++) {
		buf_addstr(out, i ? ", " : "");
		expr(c, out, depth);
	}
	buf_addstr(out, ")");
}

static void call(struct cursor *c, struct buf *out, int depth)
{
	static const char *const get[] = {
		"__get_str",	       "__get_bitmask",		  "__get_cpumask",
		"__get_dynamic_array", "__get_dynamic_array_len", "__get_rel_dynamic_array_len",
		"__get_rel_str",       "__get_sockaddr"
	};
	static const char *const print[] = { "__print_hex(", "__print_hex_str(", "__print_array(" };
	int n = cursor_u8(c) % 3;

	switch (cursor_u8(c) % 6) {
	case 0:
		buf_printf(out, "%s(%s)", PICK(c, get), cursor_u8(c) & 3 ? "d" : PICK(c, names));
		break;
	case 1:
		buf_addstr(out, n ? "__print_flags(" : "__print_symbolic(");
		expr(c, out, depth);
		buf_addstr(out, n ? ", \"|\", " : ", ");
		pairs(c, out, depth);
		break;
	case 2:
	case 3:
		buf_addstr(out, print[n]);
		array(c, out);
		buf_addstr(out, ", ");
		args(c, out, n == 2 ? 2 : 1, depth);
		break;
	case 4:
		buf_addstr(out, cursor_u8(c) & 1 ? "str_yes_no(" : "__builtin_expect(");
		args(c, out, n, depth);
		break;
	default:
		buf_addstr(out, "sizeof(int)");
	}
}

static void binary(struct cursor *c, struct buf *out, int depth)
{
	static const char *const ops[] = { "+", "-", "*", "/ 2 +", "% 3 +", "<<", ">>", "<",  ">",
					   "&", "|", "^", "&&",	   "||",    "==", "!=", "<=", ">=" };
	static const char *const odd[] = { "/", "%", "?:", "=", "->", "++", "[", "}", ".", "/ 2 *" };

	expr(c, out, depth);
	for (int i = cursor_u8(c) % 4; i; i--) {
		buf_printf(out, " %s ", RARELY(c, ops, odd));
		expr(c, out, depth);
	}
}

static void expr(struct cursor *c, struct buf *out, int depth)
{
	static const char *const before[] = { "(u32)", "(unsigned long)", "!", "-", "~", "(const char *)" };
	static const char *const odd[] = { "(", "&", "*", "{" };

	if (!depth-- || out->len > TEXT_MAX) {
		number(c, out);
		return;
	}
	switch (cursor_u8(c) % 8) {
	case 0:
		number(c, out);
		break;
	case 1:
	case 2:
		operand_of(c, out);
		break;
	case 3:
		buf_addstr(out, RARELY(c, before, odd));
		expr(c, out, depth);
		break;
	case 4:
		buf_addstr(out, "(");
		binary(c, out, depth);
		buf_addstr(out, ")");
		break;
	case 5:
		binary(c, out, depth);
		break;
	case 6:
		call(c, out, depth);
		break;
	default:
		expr(c, out, depth);
		buf_addstr(out, " ? ");
		expr(c, out, depth);
		buf_addstr(out, cursor_u8(c) & 31 ? " : " : " ");
		expr(c, out, depth);
	}
	if (cursor_u8(c) % 64 == 63)
		buf_addstr(out, "[3]");
}

static void fields(struct cursor *c, struct buf *out)
{
	static const char *const types[] = {
		"int %s",    "u8 %s[6]",  "char %s[16]", "const char * %s", "unsigned long %s[4]",
		"u8 %s[16]", "char %s[]", "cpumask_t %s"
	};
	static const unsigned int sizes[] = { 4, 6, 16, 8, 32, 16, 0, 64 };
	static const unsigned int odd[] = { 0, 1, 2, 3, 500 };
	unsigned int offset = 8;

	for (size_t i = 0; i + 1 < ARRAY_SIZE(names); i++) {
		uint8_t type = cursor_u8(c) % ARRAY_SIZE(types);
		bool loc = *names[i] == 'd' || *names[i] == 'r';
		unsigned int size = cursor_u8(c) % 32 == 31 ? PICK(c, odd) : loc ? 4 : sizes[type];

		buf_addstr(out, "\tfield:");
		buf_printf(out,
			   *names[i] == 'd' ? "__data_loc u32[] %s"
			   : loc	    ? "__rel_loc char[] %s"
					    : types[type],
			   names[i]);
		buf_printf(out, ";\toffset:%u;\tsize:%u;\tsigned:%d;\n", offset, size, type & 1);
		offset += cursor_u8(c) % 32 != 31 ? size : 60000;
	}
}

static void print_fmt(struct cursor *c, struct buf *out)
{
	static const char *const words[] = { "%d",     "%s",   "%*d", "%.*s",  "%pS",  "%pI4",	"%pI6c",
					     "%pISpc", "%pM",  "%pU", "%*phC", "%llx", "%-20s", "%%",
					     "%c",     "%hhd", "x=",  "%p",    "%pB",  "\\n" };
	static const char *const odd[] = { "%", "%2000000000d", "%ls", "%lllld", "\\\"", "\"" };
	int n = cursor_u8(c) % 5;

	buf_addstr(out, "\nprint fmt: \"");
	for (int i = 0; i < n; i++)
		buf_printf(out, "%s ", RARELY(c, words, odd));
	buf_addstr(out, "\"");
	for (int i = 0; i < n; i++) {
		buf_addstr(out, ", ");
		expr(c, out, DEPTH);
	}
	buf_addstr(out, "\n");
}

static void format(struct cursor *c, int i, struct buf *out)
{
	static const char *const event[] = { "e", "bprint", "print", "kvm_emulate_insn", "sched_switch" };

	buf_printf(out, "name: %s\nID: %d\nformat:\n", PICK(c, event), FIRST_ID + i);
	buf_addstr(out, "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
			"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
			"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
			"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n");
	if (cursor_u8(c) & 1)
		buf_addstr(out, "\tfield:unsigned long ip;\toffset:8;\tsize:8;\tsigned:0;\n"
				"\tfield:const char * fmt;\toffset:16;\tsize:8;\tsigned:0;\n"
				"\tfield:u32 buf[];\toffset:24;\tsize:0;\tsigned:0;\n");
	else
		fields(c, out);
	print_fmt(c, out);
}

/* A text of the input's bytes. */
static struct dat_text text(struct cursor *c)
{
	size_t n = cursor_u8(c);

	n = n < cursor_left(c) ? n : cursor_left(c);
	return (struct dat_text){ .data = cursor_take(c, n), .len = n };
}

static void print(struct tep_handle *tep, struct padded *room, const uint8_t *data, size_t len)
{
	struct tep_event *e = tep_find_event(tep, data[0] | data[1] << 8);
	struct tep_record rec = padded_record(room, data, len);
	struct trace_seq s;

	if (e && rec.size < tepfile_least_size(e))
		rec.size = tepfile_least_size(e);
	trace_seq_init(&s);
	tep_print_event(tep, &s, &rec, "%s %s %s", TEP_PRINT_LATENCY, TEP_PRINT_INFO, TEP_PRINT_INFO_RAW);
	trace_seq_destroy(&s);
}

static void print_records(struct tep_handle *tep, struct cursor *c, struct padded *room)
{
	for (int i = 0; i < EVENTS; i++) {
		uint8_t bytes[256];
		struct dat_text t = text(c);
		uint16_t id = (uint16_t)(FIRST_ID + i);

		memset(bytes, cursor_u8(c) % 32 == 31 ? 0xff : 2, sizeof(bytes));
		if (t.len)
			memcpy(bytes, t.data, t.len);
		memcpy(bytes, &id, sizeof(id));
		print(tep, room, bytes, t.len < 8 ? 8 : t.len);
	}
}

/* As record writes it. */
static void mend(const struct buf *t)
{
	struct event_format f;
	struct buf out = { 0 };
	const char *why;

	if (!event_format_parse((const char *)t->data, t->len, &f))
		print_format_fixup(&f, &out, &why);
	event_format_release(&f);
	buf_release(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct padded room;
	struct cursor c = cursor_at(data, size);
	struct reader_format formats[EVENTS];
	struct buf texts[EVENTS] = { 0 };
	struct reader_info info = { .page_size = 4096, .formats = formats, .n_formats = EVENTS };
	struct tep_handle *tep = tep_alloc();
	size_t failed;

	if (!tep || (!room.data && padded_init(&room)))
		abort();
	tep_set_loglevel(TEP_LOG_NONE);
	info.printk = text(&c);
	info.kallsyms = text(&c);
	info.cmdlines = text(&c);
	for (int i = 0; i < EVENTS; i++) {
		format(&c, i, &texts[i]);
		mend(&texts[i]);
		formats[i].system = i ? "kvm" : "ftrace";
		formats[i].text = (struct dat_text){ buf_str(&texts[i]), texts[i].len };
	}
	if (getenv("HYPTRACE_FUZZ_SHOW"))
		for (int i = 0; i < EVENTS; i++)
			fprintf(stderr, "%s", buf_str(&texts[i]));
	if (tepfile_load(tep, &info, &failed, NULL))
		abort();
	print_records(tep, &c, &room);
	tepfile_release(tep);
	for (int i = 0; i < EVENTS; i++)
		buf_release(&texts[i]);
	return 0;
}
