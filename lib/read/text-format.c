// SPDX-License-Identifier: LGPL-2.1-or-later
/* The texts and conversions of a print format's string, as libtraceevent takes it apart. */
#include <ctype.h>
#include <errno.h>

#include "text-priv.h"
#include "base/array.h"

#define TEXT_COUNT_MAX UINT16_MAX /* what a record may choose as a width (file/dat/print-format.h) */

static void text_conversion_push(struct text_build *b, const struct text_conversion *c)
{
	if (array_push(&b->v, &b->n, c, sizeof(*c)))
		b->ret = -ENOMEM;
}

/* Up to the next conversion. */
static const char *text_literal(struct text_build *b, const char *s)
{
	struct text_conversion c = { .is = TEXT_IS_TEXT };
	struct buf text = { 0 };

	for (; *s && (*s != '%' || s[1] == '%'); s++) {
		const char *at = strchr("n\nt\tr\r", s[1]);

		if (*s == '\\' && !s[1]) {
			text_refuse(b, "a backslash at the end");
			break;
		}
		if (*s == '\\' && isalpha((unsigned char)s[1]) && at)
			buf_add(&text, at + 1, 1);
		else
			buf_add(&text, *s == '\\' ? s + 1 : s, 1);
		s += *s == '\\' || *s == '%';
	}
	c.s = text_copy(b, buf_str(&text) ? buf_str(&text) : "", text.len);
	c.len = text.len;
	if (buf_status(&text))
		b->ret = -ENOMEM;
	buf_release(&text);
	text_conversion_push(b, &c);
	return s;
}

/* The argument in turn, which there must be: else libtraceevent takes the format for failed. */
static struct tep_print_arg *text_take(struct text_build *b, struct tep_print_arg **arg)
{
	struct tep_print_arg *taken = *arg;

	if (taken)
		*arg = taken->next;
	else
		text_refuse(b, "too few arguments");
	return taken;
}

/* At '%'. What libtraceevent does not know it shows as ">c<", and takes no argument. */
static const char *text_conversion_read(struct text_build *b, const char *s, struct tep_print_arg **arg)
{
	struct text_conversion c = { .s = s };
	char unknown[] = ">?<";

	for (s++; *s && strchr("#hlLzZ.-0123456789*", *s); s++) {
		if (*s == '*')
			c.count = text_take(b, arg);
		c.longs = *s == 'L' ? 2 : *s == 'z' || *s == 'Z' ? 1 : c.longs + (*s == 'l') - (*s == 'h');
	}
	if (!*s)
		return s;
	unknown[1] = *s;
	if (*s == 'p') {
		/* bytes of networks, hardware, uuids: libtraceevent prints them */
		if (s[1] && strchr("MmUhIi", s[1]))
			text_refuse(b, "%%p%c", s[1]);
		c.is = TEXT_IS_POINTER;
		s += s[1] && strchr("FfSs", s[1]);
	} else if (*s == 's') {
		c.is = TEXT_IS_STRING;
	} else if (strchr("duixXo", *s)) {
		c.is = TEXT_IS_INTEGER;
	} else {
		if (*s == 'c' && text_since_1_8())
			text_refuse(b, "%%c");
		c = (struct text_conversion){ .is = TEXT_IS_TEXT, .s = text_copy(b, unknown, 3), .len = 3 };
	}
	if (c.is != TEXT_IS_TEXT) {
		c.len = (size_t)(s + 1 - c.s);
		c.arg = text_take(b, arg);
	}
	text_conversion_push(b, &c);
	return s + 1;
}

void text_conversions(struct text_build *b)
{
	struct tep_print_arg *arg = b->p->event->print_fmt.args;
	const char *s = b->p->event->print_fmt.format;

	while (s && *s && !b->ret)
		s = *s == '%' && s[1] != '%' ? text_conversion_read(b, s, &arg) : text_literal(b, s);
}

/* The same conversion of a long long: "%-08.3llx". */
static const char *text_integer_format(struct text_build *b, const char *s, const struct conversion *scan)
{
	struct buf format = { 0 };
	const char *copy;

	buf_printf(&format, "%.*sll%c", (int)(scan->length - s), s, scan->letter);
	copy = text_copy(b, buf_str(&format) ?: "", format.len);
	buf_release(&format);
	return copy;
}

static bool text_spec(struct text_build *b, const struct text_conversion *c, struct text_spec *spec)
{
	static const uint8_t bits[] = { 8, 16, 32, 64, 64 };
	const char *end = c->s + c->len;
	struct conversion *of = &spec->c;
	bool ordered =
		conversion_scan(c->s + 1, end, of) == end && conversion_length_of(of, c->longs < 0 ? "h"
										      : c->longs   ? "lLzZ"
												   : "");

	spec->bits = c->longs >= -2 && c->longs <= 2 ? bits[c->longs + 2] : 0;
	if (!ordered || !spec->bits || (c->is == TEXT_IS_STRING && c->longs)) {
		text_refuse(b, "%.*s", (int)c->len, c->s);
		return false;
	}
	spec->plain =
		!of->left && !of->zero && !of->alternate && !of->width && of->precision < 0 && !c->count;
	spec->format = text_integer_format(b, c->s, of);
	spec->count = c->count ? text_expr(b, c->count) : NULL;
	if (spec->count && text_expr_most(spec->count) > TEXT_COUNT_MAX)
		text_refuse(b, "%.*s without a bound", (int)c->len, c->s);
	return !b->ret;
}

static enum text_piece_kind text_integer_kind(const struct text_spec *s)
{
	const struct conversion *c = &s->c;
	bool wide = c->zero && !c->left && !c->alternate && c->precision < 0 && !s->count &&
		    c->width <= TEXT_WIDTH_MAX;

	if (c->letter == 'x' && (s->plain || wide))
		return TEXT_HEX;
	if (c->letter == 'u' && (s->plain || wide))
		return TEXT_DECIMAL;
	return s->plain && strchr("di", c->letter) ? TEXT_SIGNED : TEXT_INTEGER;
}

static void text_integer_add(struct text_build *b, const struct text_conversion *c)
{
	struct text_spec spec;
	const struct text_expr *value = text_spec(b, c, &spec) ? text_expr(b, c->arg) : NULL;
	struct text_piece *p = value ? text_piece_add(b, text_integer_kind(&spec)) : NULL;

	if (!p)
		return;
	p->spec = spec;
	p->value = value;
}

/* Of %p: a function, or any other address; flags and a width change nothing. */
static void text_pointer_add(struct text_build *b, const struct text_conversion *c)
{
	char what = c->s[c->len - 1];
	const struct text_expr *value = text_expr(b, c->arg);
	struct text_piece *p;

	if (c->arg->type == TEP_PRINT_BSTRING)
		text_refuse(b, "a string of bprint's");
	p = text_piece_add(b, what == 'p' ? TEXT_POINTER : TEXT_FUNCTION);
	if (!p)
		return;
	p->value = value;
	p->offset = what == 'F' || what == 'S';
	if (what != 'p')
		tep_find_function(b->p->event->tep, 0); /* sorts the symbols, while nobody else asks */
}

static void text_string_add(struct text_build *b, const struct text_conversion *c)
{
	struct text_spec spec;
	const struct text_string *s = text_spec(b, c, &spec) ? text_string(b, c->arg) : NULL;
	struct text_piece *p;

	if (!s)
		return;
	if (s->kind == TEXT_STRING_CONST && spec.plain) {
		buf_add(&b->before, s->s, s->len);
		return;
	}
	p = text_piece_add(b, TEXT_STRING);
	if (!p)
		return;
	p->spec = spec;
	p->string = s;
}

void text_conversion_add(struct text_build *b, const struct text_conversion *c)
{
	switch (c->is) {
	case TEXT_IS_TEXT:
		buf_add(&b->before, c->s, strlen(c->s));
		break;
	case TEXT_IS_INTEGER:
		text_integer_add(b, c);
		break;
	case TEXT_IS_POINTER:
		text_pointer_add(b, c);
		break;
	case TEXT_IS_STRING:
		text_string_add(b, c);
		break;
	}
}
