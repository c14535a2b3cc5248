// SPDX-License-Identifier: LGPL-2.1-or-later
/* The hypervisor's event formats as the file has them. */
#include <stdlib.h>
#include <string.h>

#include "record/hyp/text-pattern.h"

void hypevents_format_head(const char *name, unsigned int id, struct buf *out)
{
	buf_printf(out, "name: %s\nID: %u\nformat:\n", name, id);
	buf_addstr(out, "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
			"\tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n"
			"\tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n"
			"\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n");
}

static void format_field(const char *type, const char *name, size_t offset, unsigned int size, bool is_signed,
			 struct buf *out)
{
	buf_printf(out, "\tfield:%s%s%s;\toffset:%zu;\tsize:%u;\tsigned:%d;\n", type,
		   type[strlen(type) - 1] == '*' ? "" : " ", name, offset, size, is_signed);
}

/* Elements of "args[4]", 0 when that is no array of whole ones. */
static unsigned int array_len(const struct event_field *f)
{
	const char *bracket = strchr(f->name, '[');
	unsigned long n = bracket ? strtoul(bracket + 1, NULL, 10) : 0;

	if (!n || n > f->size || f->size % n)
		return 0;
	return (unsigned int)n;
}

/* One field in a list of them, conversion into fmt and argument into args. */
static void list_field(const struct event_field *f, struct buf *fmt, struct buf *args)
{
	static const char *const conv[2][9] = {
		{ [1] = "%u", [2] = "%u", [4] = "%u", [8] = "0x%llx" },
		{ [1] = "%hhd", [2] = "%hd", [4] = "%d", [8] = "%lld" },
	};
	int n = (int)strcspn(f->name, "[");
	unsigned int elems = array_len(f);
	const char *sep = fmt->len ? " " : "";

	if (!strncmp(f->type, "__data_loc", 10) && strstr(f->type, "char")) {
		buf_printf(fmt, "%s%.*s=%%s", sep, n, f->name);
		buf_printf(args, ", __get_str(%.*s)", n, f->name);
	} else if (!strncmp(f->type, "__data_loc", 10)) {
		buf_printf(fmt, "%s%.*s=%%s", sep, n, f->name);
		buf_printf(args, ", __print_hex(__get_dynamic_array(%.*s), __get_dynamic_array_len(%.*s))", n,
			   f->name, n, f->name);
	} else if (elems && !strcmp(f->type, "char")) {
		buf_printf(fmt, "%s%.*s=%%s", sep, n, f->name);
		buf_printf(args, ", REC->%.*s", n, f->name);
	} else if (elems) {
		buf_printf(fmt, "%s%.*s=%%s", sep, n, f->name);
		buf_printf(args, ", __print_array(REC->%.*s, %u, %u)", n, f->name, elems, f->size / elems);
	} else if (!f->name[n] && f->size <= 8 && conv[f->is_signed][f->size]) {
		buf_printf(fmt, "%s%.*s=%s", sep, n, f->name, conv[f->is_signed][f->size]);
		buf_printf(args, ", REC->%.*s", n, f->name);
	}
}

void hypevents_format(const struct hypevents *e, size_t i, struct buf *out)
{
	if (i >= e->n) {
		hypevents_format_head("hyp_unknown", e->unknown_id, out);
		format_field("int", "id", 8, 4, true, out);
		format_field("__data_loc char[]", "text", 12, 4, false, out);
		format_field("__data_loc u8[]", "data", 16, 4, false, out);
		buf_addstr(out, "\nprint fmt: \"id=%d %s%s\", REC->id, __get_str(text), "
				"__print_hex(__get_dynamic_array(data), __get_dynamic_array_len(data))\n");
	} else if (e->v[i].as_text) {
		hypevents_format_head(e->v[i].name, e->v[i].id, out);
		format_field("__data_loc char[]", "text", 8, 4, false, out);
		buf_addstr(out, "\nprint fmt: \"%s\", __get_str(text)\n");
	} else {
		const struct hypevent *ev = &e->v[i];
		const struct event_format *f = &ev->fmt;

		hypevents_format_head(ev->name, ev->id, out);
		for (size_t k = 0; k < f->n_fields; k++) {
			const struct event_field *v = &f->fields[k];

			/* fields that the text lacks are not in the record */
			if (e->raw || hyptext_pattern_has(ev->pattern, k))
				format_field(v->type, v->name, hyp_written_offset(f, v), v->size,
					     v->is_signed, out);
		}
		/* also without fields, as the kernel's own formats: libtraceevent wants both blank lines */
		buf_addstr(out, "\nprint fmt: ");
		if (ev->pattern) {
			hyptext_pattern_print(ev->pattern, e, f, out);
		} else {
			struct buf fmt = { 0 }, args = { 0 };

			for (size_t k = 0; k < f->n_fields; k++)
				list_field(&f->fields[k], &fmt, &args);
			if (buf_status(&fmt) || buf_status(&args))
				out->bad = true;
			buf_printf(out, "\"%s\"%s", fmt.len ? buf_str(&fmt) : "",
				   args.len ? buf_str(&args) : "");
			buf_release(&fmt);
			buf_release(&args);
		}
		buf_addstr(out, "\n");
	}
}
