// SPDX-License-Identifier: LGPL-2.1-or-later
/* Prints %s: strings, flags and symbols by name, bit masks. */
#include <ctype.h>

#include "text-priv.h"

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
	case TEP_PRINT_HEX:
	case TEP_PRINT_HEX_STR:
	case TEP_PRINT_INT_ARRAY:
		text_refuse(b, "an array's items");
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

void text_put_hex(struct buf *out, uint64_t v, int width)
{
	int n = (67 - __builtin_clzll(v | 1)) / 4;
	char *at = buf_room(out, TEXT_WIDTH_MAX);

	n = n < width ? width : n;
	if (!at)
		return;
	for (int i = n; i-- > 0; v >>= 4)
		at[i] = "0123456789abcdef"[v & 15];
	out->len += (size_t)n;
}

/* As %-10.4s would: the first bytes of s. */
static void text_put_fitted(struct buf *out, const struct text_spec *spec, const char *s, size_t len,
			    const struct text_record *r)
{
	size_t count = spec->count ? text_eval(spec->count, r) : 0;
	size_t width = spec->c.width_is_arg ? count : (size_t)spec->c.width;
	size_t precision = spec->c.precision_is_arg ? count : (size_t)spec->c.precision, pad;

	len = len < precision ? len : precision;
	pad = len < width ? width - len : 0;
	if (!spec->c.left && pad)
		buf_printf(out, "%*s", (int)pad, "");
	buf_add(out, s, len);
	if (spec->c.left && pad)
		buf_printf(out, "%*s", (int)pad, "");
}

/* The bytes of the record up to a NUL, at most max. */
static void text_put_bytes(struct buf *out, const struct text_spec *spec, size_t at, size_t max,
			   const struct text_record *r)
{
	size_t left = at < r->len ? r->len - at : 0;
	const char *s = left ? (const char *)r->data + at : "";

	text_put_fitted(out, spec, s, strnlen(s, left < max ? left : max), r);
}

/* Of a value that no name is of. */
static void text_put_nameless(struct buf *out, int64_t value)
{
	buf_addstr(out, "0x");
	text_put_hex(out, (uint64_t)value, 1);
}

static void text_put_flags(struct buf *out, const struct text_spec *spec, const struct text_string *s,
			   const struct text_record *r)
{
	int64_t value = (int64_t)text_eval(s->value, r);
	bool some = false;

	for (size_t i = 0; i < s->n; i++) {
		const struct text_name *name = &s->names[i];

		if (!value && name->value < 0) {
			text_put_fitted(out, spec, name->s, name->len, r);
			break;
		}
		if (name->value <= 0 || (value & name->value) != name->value)
			continue;
		if (some)
			buf_add(out, s->s, s->len);
		text_put_fitted(out, spec, name->s, name->len, r);
		some = true;
		value &= ~name->value;
	}
	if (!value)
		return;
	if (some)
		buf_add(out, s->s, s->len);
	text_put_nameless(out, value);
}

static void text_put_symbol(struct buf *out, const struct text_spec *spec, const struct text_string *s,
			    const struct text_record *r)
{
	int64_t value = (int64_t)text_eval(s->value, r);

	for (size_t i = 0; i < s->n; i++)
		if (s->names[i].value == value) {
			text_put_fitted(out, spec, s->names[i].s, s->names[i].len, r);
			return;
		}
	text_put_nameless(out, value);
}

/* "0-3,7" */
static void text_put_cpus(struct buf *out, size_t at, uint32_t len, const struct text_record *r)
{
	const char *sep = "";
	int64_t first = -1;

	for (int64_t i = 0; i <= (int64_t)len * 8; i++) {
		bool is = i < (int64_t)len * 8 && text_load(r, at + (size_t)i / 8, 1) >> i % 8 & 1;

		if (is && first < 0)
			first = i;
		if (is || first < 0)
			continue;
		buf_addstr(out, sep);
		buf_add_u64(out, (uint64_t)first);
		if (i - 1 > first) {
			buf_addstr(out, "-");
			buf_add_u64(out, (uint64_t)i - 1);
		}
		sep = ",";
		first = -1;
	}
}

static void text_put_mask(struct buf *out, const struct text_spec *spec, const struct text_string *s,
			  const struct text_record *r)
{
	struct buf mask = { 0 };
	uint32_t len;
	size_t at = text_at(&s->at, r, &len);

	if (s->kind == TEXT_STRING_CPUS)
		text_put_cpus(&mask, at, len, r);
	/* the highest bits first, a comma between 32 and 32 */
	for (uint32_t i = len; s->kind != TEXT_STRING_CPUS && i-- > 0;) {
		text_put_hex(&mask, text_load(r, at + i, 1), 2);
		if (i && i % 4 == 0)
			buf_addstr(&mask, ",");
	}
	out->bad |= mask.bad;
	text_put_fitted(out, spec, (const char *)mask.data, mask.len, r);
	buf_release(&mask);
}

/* libtraceevent knows which format lies at an address. */
static void text_put_printk(struct buf *out, const struct text_string *s, const struct text_record *r,
			    struct text_scratch *own)
{
	uint64_t address = text_load(r, s->at.offset, s->at.size);

	memcpy(own->room.data + s->at.offset, &address, sizeof(address));
	if (own->room.used < s->at.offset + sizeof(address))
		own->room.used = s->at.offset + sizeof(address);
	trace_seq_reset(&own->seq);
	tep_print_field_content(&own->seq, own->room.data, (int)own->room.used, s->field);
	buf_add(out, own->seq.buffer, own->seq.len);
}

void text_put_string(struct buf *out, const struct text_spec *spec, const struct text_string *s,
		     const struct text_record *r, struct text_scratch *own)
{
	uint32_t len;
	size_t at;

	while (s->kind == TEXT_STRING_CHOICE)
		s = text_eval(s->value, r) ? s->yes : s->no;
	switch (s->kind) {
	case TEXT_STRING_CONST:
		text_put_fitted(out, spec, s->s, s->len, r);
		break;
	case TEXT_STRING_FIELD:
		text_put_bytes(out, spec, s->at.offset, s->at.size, r);
		break;
	case TEXT_STRING_REST:
		text_put_bytes(out, spec, s->at.offset, r->size - s->at.offset, r);
		break;
	case TEXT_STRING_DYNAMIC:
		at = text_at(&s->at, r, &len);
		if (len)
			text_put_bytes(out, spec, at, SIZE_MAX, r);
		break;
	case TEXT_STRING_PRINTK:
		text_put_printk(out, s, r, own);
		break;
	case TEXT_STRING_FLAGS:
		text_put_flags(out, spec, s, r);
		break;
	case TEXT_STRING_SYMBOL:
		text_put_symbol(out, spec, s, r);
		break;
	case TEXT_STRING_BITMASK:
	case TEXT_STRING_CPUS:
		text_put_mask(out, spec, s, r);
		break;
	default:
		break;
	}
}
