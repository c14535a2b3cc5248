// SPDX-License-Identifier: LGPL-2.1-or-later
/* Patterns at work: an event's text into its fields, and the print format for the file. */
#include "record/hyp/text-pattern.h"

#include <ctype.h>
#include <string.h>

/* The text not yet read. */
struct rest {
	const char *p, *end;
};

/* ---- text into fields -------------------------------------------------------------- */

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
	if (it->conv == CONV_HEX && it->letter == 'X' && c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
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

/* %p prints a hash: 16 digits. */
static bool match_pointer(struct rest *t, uint8_t *at)
{
	static const struct pattern_item hex = { .conv = CONV_HEX, .letter = 'x', .zero = true };
	size_t digits;
	uint64_t v;

	if (!match_digits(&hex, t, &v, &digits) || digits != 16)
		return false;
	memcpy(at, &v, sizeof(v));
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

static bool match_literal(const struct pattern_item *it, struct rest *t)
{
	if ((size_t)(t->end - t->p) < it->literal_len || memcmp(t->p, it->literal, it->literal_len))
		return false;
	t->p += it->literal_len;
	return true;
}

static bool match_item(const struct pattern_item *it, const struct event_field *f, struct rest *t,
		       uint8_t *at, struct pattern_reason *reason)
{
	switch (it->conv) {
	case CONV_SIGNED:
	case CONV_UNSIGNED:
	case CONV_HEX:
		return match_number(it, f, t, at);
	case CONV_POINTER:
		return match_pointer(t, at);
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
	for (const struct pattern_item *it = p->v; match_literal(it, &t); it++) {
		const struct event_field *field;

		if (it->conv == CONV_NONE)
			return t.p == t.end;
		field = &f->fields[it->field];
		if (!match_item(it, field, &t, rec + hyp_written_offset(f, field), reason))
			return false;
	}
	return false;
}

/* ---- the print format for the file ---------------------------------------------------- */

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

void hyptext_pattern_print(const struct hyptext_pattern *p, const struct hypevents *e,
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
