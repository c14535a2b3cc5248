// SPDX-License-Identifier: LGPL-2.1-or-later
/* Prints %s: strings, flags and symbols by name, bytes, items, bit masks. */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "text-priv.h"
#include "base/array.h"

#define TEXT_ITEMS_MAX UINT16_MAX /* what a record may choose as their number (file/dat/print-format.h) */

/* ---- making ------------------------------------------------------------------------ */

/* Value of a flag or a symbol, as libtraceevent parses it. */
static int64_t text_name_value(const char *s)
{
	static const struct {
		const char *name;
		int64_t value;
	} known[] = { { "HI_SOFTIRQ", 0 },	{ "TIMER_SOFTIRQ", 1 },	    { "NET_TX_SOFTIRQ", 2 },
		      { "NET_RX_SOFTIRQ", 3 },	{ "BLOCK_SOFTIRQ", 4 },	    { "IRQ_POLL_SOFTIRQ", 5 },
		      { "TASKLET_SOFTIRQ", 6 }, { "SCHED_SOFTIRQ", 7 },	    { "HRTIMER_SOFTIRQ", 8 },
		      { "RCU_SOFTIRQ", 9 },	{ "HRTIMER_NORESTART", 0 }, { "HRTIMER_RESTART", 1 } };

	if (isdigit((unsigned char)*s))
		return (int64_t)strtoull(s, NULL, 0);
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (!strcmp(known[i].name, s))
			return known[i].value;
	return -1;
}

static void text_names(struct text_build *b, struct text_string *out, const struct tep_print_flag_sym *list)
{
	struct text_name *v;
	size_t n = 0;

	for (const struct tep_print_flag_sym *f = list; f; f = f->next)
		n++;
	v = text_alloc(b, (n + 1) * sizeof(*v));
	for (; v && list; list = list->next, out->n++) {
		v[out->n].value = text_name_value(list->value);
		v[out->n].len = strlen(list->str);
		v[out->n].s = text_copy(b, list->str, v[out->n].len);
	}
	out->names = v;
}

static void text_string_const(struct text_build *b, struct text_string *out, const char *s)
{
	out->kind = TEXT_STRING_CONST;
	out->len = strlen(s);
	out->s = text_copy(b, s, out->len);
}

/* Whether libtraceevent, asked for the field alone, takes this conversion, which is %s. */
static bool text_field_is_shown(struct text_build *b, const struct tep_format_field *f)
{
	for (size_t i = 0; i < b->n; i++) {
		const struct tep_print_arg *arg = b->v[i].arg;

		while (arg && arg->type == TEP_PRINT_TYPE)
			arg = arg->typecast.item;
		if (!arg || arg->type != TEP_PRINT_FIELD || arg->field.field != f)
			continue;
		return b->v[i].is == TEXT_IS_STRING && !b->v[i].count && arg == b->v[i].arg &&
		       (!i || b->v[i - 1].is != TEXT_IS_TEXT || b->v[i - 1].len < 2 ||
			strcmp(b->v[i - 1].s + b->v[i - 1].len - 2, "0x"));
	}
	return false;
}

/* Sorts the formats, while nobody else asks for one. */
static void text_settle_printk(struct text_build *b, struct tep_format_field *f)
{
	size_t size = (size_t)f->offset + (size_t)f->size;
	void *zeros = text_alloc(b, size);
	struct trace_seq s;

	if (!zeros)
		return;
	trace_seq_init(&s);
	tep_print_field_content(&s, zeros, (int)size, f);
	trace_seq_destroy(&s);
}

static void text_string_field(struct text_build *b, struct text_string *out, struct tep_print_arg *arg)
{
	struct tep_format_field *f = text_arg_field(b, arg);

	if (!f)
		return;
	out->at = text_place(f);
	out->field = f;
	out->kind = f->size ? TEXT_STRING_FIELD : TEXT_STRING_REST;
	if ((f->flags & TEP_FIELD_IS_ARRAY) || f->size != sizeof(uint64_t))
		return;
	out->kind = TEXT_STRING_PRINTK;
	if (f->flags & TEP_FIELD_IS_STRING || !text_field_is_shown(b, f))
		text_refuse(b, "the string at an address");
	else
		text_settle_printk(b, f);
}

/* An array's bytes or items. */
static void text_string_array(struct text_build *b, struct text_string *out, enum text_string_kind kind,
			      struct tep_print_arg *array, struct tep_print_arg *count)
{
	struct tep_format_field *f;

	if (array->type != TEP_PRINT_DYNAMIC_ARRAY && array->type != TEP_PRINT_FIELD) {
		text_refuse(b, "an array of nothing");
		return;
	}
	f = array->type == TEP_PRINT_FIELD ? text_arg_field(b, array) : array->dynarray.field;
	if (!f)
		return;
	out->kind = kind;
	out->at = text_place(f);
	out->at.dynamic = array->type == TEP_PRINT_DYNAMIC_ARRAY;
	out->value = text_expr(b, count);
	if (out->value && text_expr_most(out->value) > TEXT_ITEMS_MAX)
		text_refuse(b, "an array without a bound");
}

static void text_string_dynamic(struct text_build *b, struct text_string *out, enum text_string_kind kind,
				struct tep_format_field *f, const char *name)
{
	f = f ? f : tep_find_any_field(b->p->event, name);
	if (!f)
		return;
	out->kind = kind;
	out->at = text_place(f);
	out->at.dynamic = true;
}

static void text_string_choice(struct text_build *b, struct text_string *out, struct tep_print_arg *arg)
{
	struct tep_print_arg *sides = arg->op.right;

	if (*arg->op.op != '?')
		return;
	if (!sides || sides->type != TEP_PRINT_OP) {
		text_refuse(b, "a choice of nothing");
		return;
	}
	out->kind = TEXT_STRING_CHOICE;
	out->value = text_expr(b, arg->op.left);
	out->yes = text_string(b, sides->op.left);
	out->no = text_string(b, sides->op.right);
}

static void text_string_fill(struct text_build *b, struct text_string *out, struct tep_print_arg *arg)
{
	switch (arg->type) {
	case TEP_PRINT_ATOM:
		text_string_const(b, out, arg->atom.atom);
		break;
	case TEP_PRINT_FIELD:
		text_string_field(b, out, arg);
		break;
	case TEP_PRINT_FLAGS:
		text_string_const(b, out, arg->flags.delim ? arg->flags.delim : "");
		out->kind = TEXT_STRING_FLAGS;
		out->value = text_expr(b, arg->flags.field);
		text_names(b, out, arg->flags.flags);
		break;
	case TEP_PRINT_SYMBOL:
		out->kind = TEXT_STRING_SYMBOL;
		out->value = text_expr(b, arg->symbol.field);
		text_names(b, out, arg->symbol.symbols);
		break;
	case TEP_PRINT_HEX:
	case TEP_PRINT_HEX_STR:
		out->len = arg->type == TEP_PRINT_HEX;
		text_string_array(b, out, TEXT_STRING_HEX, arg->hex.field, arg->hex.size);
		break;
	case TEP_PRINT_INT_ARRAY:
		if (text_since_1_8()) { /* since 1.9 without a count, too */
			text_refuse(b, "__print_array");
			break;
		}
		text_string_array(b, out, TEXT_STRING_ITEMS, arg->int_array.field, arg->int_array.count);
		out->item = text_expr(b, arg->int_array.el_size);
		break;
	case TEP_PRINT_STRING:
		text_string_dynamic(b, out, TEXT_STRING_DYNAMIC, arg->string.field, arg->string.string);
		break;
	case TEP_PRINT_BITMASK:
		text_string_dynamic(b, out, TEXT_STRING_BITMASK, arg->bitmask.field, arg->bitmask.bitmask);
		break;
	case TEP_PRINT_CPUMASK:
		text_string_dynamic(b, out, TEXT_STRING_CPUS, arg->bitmask.field, arg->bitmask.bitmask);
		break;
	case TEP_PRINT_OP:
		text_string_choice(b, out, arg);
		break;
	case TEP_PRINT_FUNC:
		text_refuse(b, "a function of a plugin");
		break;
	default: /* libtraceevent prints nothing */
		if (arg->type > TEP_PRINT_CPUMASK)
			text_refuse(b, "what a newer libtraceevent knows");
		break;
	}
}

const struct text_string *text_string(struct text_build *b, struct tep_print_arg *arg)
{
	struct text_string *s = text_alloc(b, sizeof(*s));

	if (s)
		text_string_fill(b, s, arg);
	return b->ret ? NULL : s;
}

/* ---- running ------------------------------------------------------------------------ */

/* As %-10.4s would the text behind `at`, which stands in the buf already. */
static void text_fit(struct text_pen *pen, size_t at, const struct text_spec *spec,
		     const struct text_record *r)
{
	size_t count = spec->count ? text_eval(spec->count, r) : 0;
	size_t width = spec->width_is_arg ? count : (size_t)spec->width;
	size_t precision = spec->precision_is_arg ? count : (size_t)spec->precision;
	size_t len = (size_t)(pen->p - (char *)pen->out->data) - at, pad;
	char *s;

	len = len < precision ? len : precision;
	pad = len < width ? width - len : 0;
	if (!text_room(pen, pad))
		return;
	s = (char *)pen->out->data + at;
	if (pad && !spec->left)
		memmove(s + pad, s, len);
	memset(s + (spec->left ? len : 0), ' ', pad);
	pen->p = s + len + pad;
}

static void text_put_fitted(struct text_pen *pen, const struct text_spec *spec, const char *s, size_t len,
			    const struct text_record *r)
{
	size_t at = (size_t)(pen->p - (char *)pen->out->data);

	text_put(pen, s, len);
	if (!spec->plain && !pen->out->bad)
		text_fit(pen, at, spec, r);
}

/* The bytes of the record up to a NUL, at most max. */
static void text_put_bytes(struct text_pen *pen, const struct text_spec *spec, size_t at, size_t max,
			   const struct text_record *r)
{
	size_t left = at < r->len ? r->len - at : 0;
	const char *s = left ? (const char *)r->data + at : "";

	text_put_fitted(pen, spec, s, strnlen(s, left < max ? left : max), r);
}

static void text_put_flags(struct text_pen *pen, const struct text_spec *spec, const struct text_string *s,
			   const struct text_record *r)
{
	int64_t value = (int64_t)text_eval(s->value, r);
	bool some = false;

	for (size_t i = 0; i < s->n; i++) {
		const struct text_name *name = &s->names[i];

		if (!value && name->value < 0) {
			text_put_fitted(pen, spec, name->s, name->len, r);
			break;
		}
		if (name->value <= 0 || (value & name->value) != name->value)
			continue;
		if (some)
			text_put(pen, s->s, s->len);
		text_put_fitted(pen, spec, name->s, name->len, r);
		some = true;
		value &= ~name->value;
	}
	if (!value)
		return;
	if (some)
		text_put(pen, s->s, s->len);
	text_puts(pen, "0x");
	text_put_hex(pen, (uint64_t)value);
}

static void text_put_symbol(struct text_pen *pen, const struct text_spec *spec, const struct text_string *s,
			    const struct text_record *r)
{
	int64_t value = (int64_t)text_eval(s->value, r);

	for (size_t i = 0; i < s->n; i++)
		if (s->names[i].value == value) {
			text_put_fitted(pen, spec, s->names[i].s, s->names[i].len, r);
			return;
		}
	text_puts(pen, "0x");
	text_put_hex(pen, (uint64_t)value);
}

static void text_put_hexes(struct text_pen *pen, const struct text_string *s, const struct text_record *r)
{
	uint32_t len;
	size_t at = text_at(&s->at, r, &len), n = (uint32_t)text_eval(s->value, r);

	for (size_t i = 0; i < n; i++) {
		if (i && s->len)
			text_puts(pen, " ");
		text_put_byte(pen, (uint8_t)text_load(r, at + i, 1), false);
	}
}

static void text_put_items(struct text_pen *pen, const struct text_string *s, const struct text_record *r)
{
	uint32_t len;
	size_t at = text_at(&s->at, r, &len), n = (uint32_t)text_eval(s->value, r);
	int item = (int)text_eval(s->item, r);

	for (size_t i = 0; i < n; i++) {
		if (i)
			text_puts(pen, " ");
		if (item == 1 || item == 2 || item == 4 || item == 8) {
			text_put_decimal(pen, text_load(r, at, (size_t)item));
		} else {
			text_puts(pen, item < 0 ? "BAD SIZE:-" : "BAD SIZE:");
			text_put_decimal(pen, item < 0 ? -(uint64_t)item : (uint64_t)item);
			text_puts(pen, " 0x");
			text_put_hex(pen, text_load(r, at, 1));
			item = 1;
		}
		at += (size_t)item;
	}
}

/* "0-3,7" */
static void text_put_cpus(struct text_pen *pen, size_t at, uint32_t len, const struct text_record *r)
{
	const char *sep = "";
	int64_t first = -1;

	for (int64_t i = 0; i <= (int64_t)len * 8; i++) {
		bool is = i < (int64_t)len * 8 && text_load(r, at + (size_t)i / 8, 1) >> i % 8 & 1;

		if (is && first < 0)
			first = i;
		if (is || first < 0)
			continue;
		text_puts(pen, sep);
		text_put_decimal(pen, (uint64_t)first);
		if (i - 1 > first) {
			text_puts(pen, "-");
			text_put_decimal(pen, (uint64_t)i - 1);
		}
		sep = ",";
		first = -1;
	}
}

static void text_put_mask(struct text_pen *pen, const struct text_spec *spec, const struct text_string *s,
			  const struct text_record *r)
{
	size_t from = (size_t)(pen->p - (char *)pen->out->data);
	uint32_t len;
	size_t at = text_at(&s->at, r, &len);

	if (s->kind == TEXT_STRING_CPUS)
		text_put_cpus(pen, at, len, r);
	/* the highest bits first, a comma between 32 and 32 */
	for (uint32_t i = len; s->kind != TEXT_STRING_CPUS && i-- > 0;) {
		text_put_byte(pen, (uint8_t)text_load(r, at + i, 1), false);
		if (i && i % 4 == 0)
			text_puts(pen, ",");
	}
	if (!spec->plain && !pen->out->bad)
		text_fit(pen, from, spec, r);
}

/* libtraceevent knows which format lies at an address. */
static void text_put_printk(struct text_pen *pen, const struct text_string *s, const struct text_record *r,
			    struct text_scratch *own)
{
	uint64_t address = text_load(r, s->at.offset, s->at.size);

	memcpy(own->room.data + s->at.offset, &address, sizeof(address));
	if (own->room.used < s->at.offset + sizeof(address))
		own->room.used = s->at.offset + sizeof(address);
	trace_seq_reset(&own->seq);
	tep_print_field_content(&own->seq, own->room.data, (int)own->room.used, s->field);
	text_put(pen, own->seq.buffer, own->seq.len);
}

void text_put_string(struct text_pen *pen, const struct text_spec *spec, const struct text_string *s,
		     const struct text_record *r, struct text_scratch *own)
{
	uint32_t len;
	size_t at;

	while (s->kind == TEXT_STRING_CHOICE)
		s = text_eval(s->value, r) ? s->yes : s->no;
	switch (s->kind) {
	case TEXT_STRING_CONST:
		text_put_fitted(pen, spec, s->s, s->len, r);
		break;
	case TEXT_STRING_FIELD:
		text_put_bytes(pen, spec, s->at.offset, s->at.size, r);
		break;
	case TEXT_STRING_REST:
		text_put_bytes(pen, spec, s->at.offset, r->size - s->at.offset, r);
		break;
	case TEXT_STRING_DYNAMIC:
		at = text_at(&s->at, r, &len);
		if (len)
			text_put_bytes(pen, spec, at, SIZE_MAX, r);
		break;
	case TEXT_STRING_PRINTK:
		text_put_printk(pen, s, r, own);
		break;
	case TEXT_STRING_FLAGS:
		text_put_flags(pen, spec, s, r);
		break;
	case TEXT_STRING_SYMBOL:
		text_put_symbol(pen, spec, s, r);
		break;
	case TEXT_STRING_HEX:
		text_put_hexes(pen, s, r);
		break;
	case TEXT_STRING_ITEMS:
		text_put_items(pen, s, r);
		break;
	case TEXT_STRING_BITMASK:
	case TEXT_STRING_CPUS:
		text_put_mask(pen, spec, s, r);
		break;
	default:
		break;
	}
}
