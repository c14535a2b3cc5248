// SPDX-License-Identifier: LGPL-2.1-or-later
/* Patterns at work: an event's text into its fields, and the formats for the file. */
#include "record/hyp/text-pattern.h"

/* The text not yet read. */
struct rest {
	const char *p, *end;
};

/*
 * Value that the kernel prints for a field with the bits of v: C promotes types shorter than int,
 * then the conversion looks at 32 or 64 bits.
 */
static uint64_t printed(const struct pattern_item *it, const struct event_field *f, uint64_t v)
{
	unsigned int shift = 64 - f->size * 8;

	v = f->is_signed ? (uint64_t)((int64_t)(v << shift) >> shift) : v << shift >> shift;
	if (it->wide)
		return v;
	return it->conv == CONV_SIGNED ? (uint64_t)(int64_t)(int32_t)v : (uint32_t)v;
}

static int digit_of(const struct pattern_item *it, char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (it->conv == CONV_HEX && it->letter == 'x' && c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return it->conv == CONV_HEX && it->letter == 'X' && c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Digits as printf writes them: none needless unless filled up to the width. */
static bool match_digits(const struct pattern_item *it, struct rest *t, uint64_t *v, size_t *n)
{
	const unsigned int base = it->conv == CONV_HEX ? 16 : 10;
	const char *start = t->p;
	int d;

	for (*v = 0; t->p < t->end && (d = digit_of(it, *t->p)) >= 0; t->p++) {
		if (__builtin_mul_overflow(*v, (uint64_t)base, v) ||
		    __builtin_add_overflow(*v, (uint64_t)d, v))
			return false;
	}
	*n = (size_t)(t->p - start);
	return *n && (*n == 1 || *start != '0' || it->zero);
}

static bool match_number(const struct pattern_item *it, const struct event_field *f, struct rest *t,
			 uint8_t *at)
{
	const char *start = t->p;
	bool negative = false, filled;
	size_t digits, total;
	uint64_t v;
	uint8_t v8;
	uint16_t v16;
	uint32_t v32;

	while (it->width && !it->left && !it->zero && t->p < t->end && *t->p == ' ')
		t->p++;
	filled = t->p > start;
	if (it->conv == CONV_SIGNED && t->p < t->end && *t->p == '-') {
		negative = true;
		t->p++;
	}
	if (!match_digits(it, t, &v, &digits) || (negative && !v))
		return false;
	if (it->zero && digits > 1 && t->p[-(ptrdiff_t)digits] == '0')
		filled = true;
	while (it->left && t->p < t->end && *t->p == ' ' && (size_t)(t->p - start) < it->width) {
		t->p++;
		filled = true;
	}
	total = (size_t)(t->p - start);
	if (total < it->width || (filled && total != it->width))
		return false;
	if (it->conv == CONV_SIGNED && v > (uint64_t)INT64_MAX + negative)
		return false;
	if (negative)
		v = -v;
	if (printed(it, f, v) != v)
		return false;
	v8 = (uint8_t)v;
	v16 = (uint16_t)v;
	v32 = (uint32_t)v;
	memcpy(at,
	       f->size == 1   ? (void *)&v8
	       : f->size == 2 ? (void *)&v16
	       : f->size == 4 ? (void *)&v32
			      : (void *)&v,
	       f->size);
	return true;
}

/* Up to the next literal, or all. */
static bool match_string(const struct pattern_item *next, const struct event_field *f, struct rest *t,
			 uint8_t *at)
{
	size_t left = (size_t)(t->end - t->p), n = left;

	if (next->literal_len) {
		const char *p = memmem(t->p, left, next->literal, next->literal_len);

		if (!p)
			return false;
		n = (size_t)(p - t->p);
	}
	if (n > f->size || memchr(t->p, 0, n))
		return false;
	memcpy(at, t->p, n);
	t->p += n;
	return true;
}

static bool match_item(const struct pattern_item *it, const struct event_field *f, struct rest *t,
		       uint8_t *at, struct pattern_reason *reason)
{
	static const struct pattern_item hex = { .conv = CONV_HEX, .letter = 'x', .zero = true };
	size_t digits;
	uint64_t v;

	switch (it->conv) {
	case CONV_SIGNED:
	case CONV_UNSIGNED:
	case CONV_HEX:
		return match_number(it, f, t, at);
	case CONV_POINTER: /* %p prints a hash: 16 digits */
		if (!match_digits(&hex, t, &v, &digits) || digits != 16)
			return false;
		memcpy(at, &v, sizeof(v));
		return true;
	case CONV_STRING:
		return match_string(it + 1, f, t, at);
	case CONV_CHAR:
		if (t->p == t->end || !*t->p)
			return false;
		*at = (uint8_t)*t->p++;
		return true;
	case CONV_REASON:
		reason->field = it->field;
		reason->text = t->p;
		while (t->p < t->end && (isalnum((unsigned char)*t->p) || *t->p == '_'))
			t->p++;
		reason->len = (size_t)(t->p - reason->text);
		return reason->len && reason->len < 64;
	default:
		return false;
	}
}

bool hyptext_pattern_match(const struct hyptext_pattern *p, const struct event_format *f, const char *text,
			   size_t len, uint8_t *rec, struct pattern_reason *reason)
{
	struct rest t = { text, text + len };

	*reason = (struct pattern_reason){ 0 };
	for (const struct pattern_item *it = p->v;; it++) {
		const struct event_field *field;

		if ((size_t)(t.end - t.p) < it->literal_len || memcmp(t.p, it->literal, it->literal_len))
			return false;
		t.p += it->literal_len;
		if (it->conv == CONV_NONE)
			return t.p == t.end;
		field = &f->fields[it->field];
		if (!match_item(it, field, &t, rec + hyp_written_offset(f, field), reason))
			return false;
	}
}

/* libtraceevent sign-extends by the conversion's length, not by the field's. */
static const char *length_of(const struct pattern_item *it, const struct event_field *f)
{
	if (it->wide)
		return "ll";
	if (it->conv != CONV_SIGNED || !f->is_signed || f->size == 4)
		return "";
	return f->size == 1 ? "hh" : "h";
}

static void print_conv(const struct pattern_item *it, const struct event_field *f, bool raw, struct buf *out)
{
	switch (it->conv) {
	case CONV_NONE:
		break;
	case CONV_CHAR: /* libtraceevent has no %c, and prints one byte as a string */
	case CONV_STRING:
		buf_addstr(out, "%s");
		break;
	case CONV_REASON:
		buf_addstr(out, raw ? "%u" : "%s");
		break;
	case CONV_POINTER:
		buf_addstr(out, "%016llx");
		break;
	case CONV_SYMBOL:
		buf_printf(out, "%%p%c", it->letter);
		break;
	default:
		buf_printf(out, "%%%s%s", it->zero ? "0" : "", it->left ? "-" : "");
		if (it->width)
			buf_printf(out, "%u", it->width);
		buf_printf(out, "%s%c", length_of(it, f), it->letter);
	}
}

/*
 * Appends the print format as libtraceevent likes it, without "print fmt: ". Reasons are named from e, or
 * left as numbers when e->raw.
 */
static void hyptext_pattern_print(const struct hyptext_pattern *p, const struct hypevents *e,
				  const struct event_format *f, struct buf *out)
{
	buf_addstr(out, "\"");
	for (size_t i = 0; i < p->n; i++) {
		for (const char *s = p->v[i].literal; *s; s++)
			buf_printf(out, *s == '%' ? "%%%%" : "%c", *s);
		if (p->v[i].conv != CONV_NONE)
			print_conv(&p->v[i], &f->fields[p->v[i].field], e->raw, out);
	}
	buf_addstr(out, "\"");
	for (size_t i = 0; p->v[i].conv != CONV_NONE; i++) {
		const char *name = f->fields[p->v[i].field].name;
		int n = (int)strcspn(name, "[");

		buf_addstr(out, ", ");
		if (p->v[i].conv == CONV_REASON && !e->raw) {
			buf_printf(out, "__print_symbolic(REC->%s", name);
			for (size_t k = 0; k < hyp_reasons_n; k++)
				buf_printf(out, ", { %zu, \"%s\" }", k, hyp_reasons[k]);
			for (size_t k = 0; k < e->extra_reasons.n; k++)
				buf_printf(out, ", { %zu, \"%s\" }", HYP_REASON_EXTRA + k,
					   e->extra_reasons.v[k]);
			buf_addstr(out, ")");
		} else {
			buf_printf(out, "%sREC->%.*s", p->v[i].conv == CONV_SYMBOL ? "(void *)" : "", n,
				   name);
		}
	}
}

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

/* One field in a list of them, conversion into fmt and argument into args. */
static void list_field(const struct event_field *f, struct buf *fmt, struct buf *args)
{
	static const char *const conv[2][9] = {
		{ [1] = "%u", [2] = "%u", [4] = "%u", [8] = "0x%llx" },
		{ [1] = "%hhd", [2] = "%hd", [4] = "%d", [8] = "%lld" },
	};
	int n = (int)strcspn(f->name, "[");
	unsigned long count = f->name[n] ? strtoul(f->name + n + 1, NULL, 10) : 0;
	/* of "args[4]", 0 when that is no array of whole ones */
	unsigned int elems = count && count <= f->size && !(f->size % count) ? (unsigned int)count : 0;
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
