// SPDX-License-Identifier: LGPL-2.1-or-later
/* Parts of a program for an event's text while it is made: numbers and strings of the print format's
 * arguments, pieces, memory, and what does not compile. */
#include <ctype.h>
#include <dlfcn.h>
#include <stdarg.h>

#include "read/text.h"

void text_refuse(struct text_build *b, const char *fmt, ...)
{
	va_list ap;

	if (b->ret)
		return;
	b->ret = -ENOTSUP;
	va_start(ap, fmt);
	vsnprintf(b->why, TEXT_WHY_MAX, fmt, ap);
	va_end(ap);
}

bool text_since_1_8(void)
{
	return dlsym(RTLD_DEFAULT, "tep_get_sub_buffer_data_size");
}

void *text_alloc(struct text_build *b, size_t n)
{
	void *p = arena_alloc(&b->p->arena, n);

	if (!p)
		b->ret = -ENOMEM;
	return p;
}

const char *text_copy(struct text_build *b, const char *s, size_t len)
{
	char *copy = text_alloc(b, len + 1);

	return copy ? memcpy(copy, s, len) : NULL;
}

struct text_piece *text_piece_add(struct text_build *b, enum text_piece_kind kind)
{
	const struct text_piece piece = { .before = text_copy(b, buf_str(&b->before), b->before.len),
					  .before_len = b->before.len,
					  .kind = kind };

	if (!piece.before || array_push(&b->p->pieces, &b->p->n, &piece, sizeof(piece))) {
		b->ret = -ENOMEM;
		return NULL;
	}
	b->before.len = 0;
	return &b->p->pieces[b->p->n - 1];
}

/* A copy in the program's memory. */
static const struct text_expr *text_expr_keep(struct text_build *b, const struct text_expr e)
{
	struct text_expr *kept = text_alloc(b, sizeof(e));

	return kept ? memcpy(kept, &e, sizeof(e)) : NULL;
}

static const struct text_expr *text_expr_const(struct text_build *b, uint64_t value)
{
	return text_expr_keep(b, (struct text_expr){ .op = TEXT_CONST, .value = value });
}

struct text_place text_place(const struct tep_format_field *f)
{
	return (struct text_place){ .offset = (uint32_t)f->offset,
				    .size = (uint32_t)f->size,
				    .relative = f->flags & TEP_FIELD_IS_RELATIVE };
}

/* The field that an argument is, looked up by its name; NULL: none. */
static struct tep_format_field *text_arg_field(struct text_build *b, struct tep_print_arg *arg)
{
	return arg->field.field ? arg->field.field : tep_find_any_field(b->p->event, arg->field.name);
}

const struct text_expr *text_expr_load(struct text_build *b, const struct tep_format_field *f, bool raw)
{
	return text_expr_keep(
		b, (struct text_expr){ .op = raw ? TEXT_LOAD_RAW : TEXT_LOAD, .at = text_place(f) });
}

/* Bits that a cast keeps, by the type's name; the sign is never extended. */
static uint64_t text_type_mask(const char *type, size_t len)
{
	static const struct {
		const char *type;
		uint64_t mask;
	} masks[] = { { "u8", UINT8_MAX },
		      { "s8", UINT8_MAX },
		      { "char", UINT8_MAX },
		      { "u16", UINT16_MAX },
		      { "s16", UINT16_MAX },
		      { "short", UINT16_MAX },
		      { "u32", UINT32_MAX },
		      { "s32", UINT32_MAX },
		      { "int", UINT32_MAX },
		      { "unsigned char", UINT8_MAX },
		      { "unsigned short", UINT16_MAX },
		      { "unsigned int", UINT32_MAX } };

	for (size_t i = 0; i < ARRAY_SIZE(masks); i++)
		if (strlen(masks[i].type) == len && !memcmp(masks[i].type, type, len))
			return masks[i].mask;
	return UINT64_MAX;
}

static const struct text_expr *text_expr_mask(struct text_build *b, const struct text_expr *a, uint64_t mask)
{
	if (!a || (!(mask & (mask + 1)) && text_expr_most(a) <= mask))
		return a;
	return text_expr_keep(b, (struct text_expr){ .op = TEXT_MASK, .a = a, .value = mask });
}

/* left[right] */
static const struct text_expr *text_expr_index(struct text_build *b, struct tep_print_arg *arg)
{
	struct tep_print_arg *left = arg->op.left;
	const struct text_expr *item;
	const char *type = NULL;
	struct tep_format_field *f;
	struct text_expr e;
	size_t len;

	for (; left->type == TEP_PRINT_TYPE; left = left->typecast.item)
		type = type ? type : left->typecast.type;
	if (left->type != TEP_PRINT_FIELD && left->type != TEP_PRINT_DYNAMIC_ARRAY)
		return text_expr_const(b, 0);
	f = left->type == TEP_PRINT_FIELD ? text_arg_field(b, left) : left->dynarray.field;
	if (!f)
		return text_expr_const(b, 0);
	e = (struct text_expr){ .op = TEXT_INDEX,
				.item = f->elementsize,
				.at = text_place(f),
				.a = text_expr(b, arg->op.right) };
	if (left->type == TEP_PRINT_DYNAMIC_ARRAY) {
		e.op = TEXT_INDEX_DYNAMIC;
		e.at.dynamic = true;
		e.item = e.item ? e.item : sizeof(uint64_t);
	}
	item = e.a ? text_expr_keep(b, e) : NULL;
	/* what a pointer of that type points at: "u8 *" */
	len = type ? strlen(type) : 0;
	return len > 2 && type[len - 1] == '*' ? text_expr_mask(b, item, text_type_mask(type, len - 2))
					       : item;
}

/* By its first two characters, as libtraceevent knows it; TEXT_CONST: unknown, which counts as 0. */
static enum text_op text_op_of(const char *op)
{
	bool same = op[1] == op[0], equal = op[1] == '=', single = !op[1];

	switch (op[0]) {
	case '!':
		return single ? TEXT_NOT : equal ? TEXT_UNEQUAL : TEXT_CONST;
	case '~':
		return TEXT_INVERT;
	case '|':
		return single ? TEXT_OR : TEXT_LOGICAL_OR;
	case '&':
		return single ? TEXT_AND : TEXT_LOGICAL_AND;
	case '<':
		return single ? TEXT_LESS : same ? TEXT_SHIFT_LEFT : equal ? TEXT_LESS_EQUAL : TEXT_CONST;
	case '>':
		return single  ? TEXT_GREATER
		       : same  ? TEXT_SHIFT_RIGHT
		       : equal ? TEXT_GREATER_EQUAL
			       : TEXT_CONST;
	case '=':
		return equal ? TEXT_EQUAL : TEXT_CONST;
	case '-':
		return TEXT_SUBTRACT;
	case '+':
		return TEXT_ADD;
	case '/':
		return TEXT_DIVIDE;
	case '%':
		return TEXT_MODULO;
	case '*':
		return TEXT_MULTIPLY;
	default:
		return TEXT_CONST;
	}
}

static const struct text_expr *text_expr_choice(struct text_build *b, struct tep_print_arg *arg)
{
	struct tep_print_arg *sides = arg->op.right;
	struct text_expr e;

	if (!sides || sides->type != TEP_PRINT_OP) {
		text_refuse(b, "a choice of nothing");
		return NULL;
	}
	e = (struct text_expr){ .op = TEXT_CHOICE,
				.a = text_expr(b, arg->op.left),
				.b = text_expr(b, sides->op.left),
				.c = text_expr(b, sides->op.right) };
	return e.a && e.b && e.c ? text_expr_keep(b, e) : NULL;
}

static const struct text_expr *text_expr_op(struct text_build *b, struct tep_print_arg *arg)
{
	struct text_expr e;

	if (!strcmp(arg->op.op, "["))
		return text_expr_index(b, arg);
	if (!strcmp(arg->op.op, "?"))
		return text_expr_choice(b, arg);
	e = (struct text_expr){ .op = text_op_of(arg->op.op),
				.a = text_expr(b, arg->op.left),
				.b = text_expr(b, arg->op.right) };
	if (!e.a || !e.b)
		return NULL;
	if (e.a->op == TEXT_CONST && e.b->op == TEXT_CONST)
		return text_expr_const(b, text_eval(&e, NULL));
	if (e.op == TEXT_AND && e.b->op == TEXT_CONST)
		return text_expr_mask(b, e.a, e.b->value);
	return text_expr_keep(b, e);
}

const struct text_expr *text_expr(struct text_build *b, struct tep_print_arg *arg)
{
	const struct tep_format_field *f;
	const struct text_expr *item;
	struct text_expr e;
	uint64_t value;

	switch (arg->type) {
	case TEP_PRINT_ATOM:
		/* a number, or a name of the kernel's symbols, for which libtraceevent has no call */
		value = strtoull(arg->atom.atom, NULL, 0);
		if (value || isdigit((unsigned char)*arg->atom.atom))
			return text_expr_const(b, value);
		text_refuse(b, "the symbol %s", arg->atom.atom);
		return NULL;
	case TEP_PRINT_FIELD:
		f = text_arg_field(b, arg);
		return f ? text_expr_load(b, f, false) : text_expr_const(b, 0);
	case TEP_PRINT_TYPE:
		item = text_expr(b, arg->typecast.item);
		return text_expr_mask(b, item,
				      text_type_mask(arg->typecast.type, strlen(arg->typecast.type)));
	case TEP_PRINT_OP:
		return text_expr_op(b, arg);
	case TEP_PRINT_DYNAMIC_ARRAY_LEN:
		e = (struct text_expr){ .op = TEXT_LENGTH, .at = text_place(arg->dynarray.field) };
		e.at.dynamic = true;
		return text_expr_keep(b, e);
	case TEP_PRINT_DYNAMIC_ARRAY:
		text_refuse(b, "an address in libtraceevent's memory");
		return NULL;
	case TEP_PRINT_FUNC:
		text_refuse(b, "a function of a plugin");
		return NULL;
	default:
		return text_expr_const(b, 0);
	}
}

uint64_t text_expr_most(const struct text_expr *e)
{
	uint64_t a, b;

	switch (e->op) {
	case TEXT_CONST:
		return e->value;
	case TEXT_LOAD:
	case TEXT_LOAD_RAW:
		return e->at.size < 8 ? (1ull << 8 * e->at.size) - 1 : UINT64_MAX;
	case TEXT_INDEX:
	case TEXT_INDEX_DYNAMIC:
		return e->item < 8 ? (1ull << 8 * e->item) - 1 : UINT64_MAX;
	case TEXT_LENGTH:
		return e->at.size == 2 ? UINT32_MAX : UINT16_MAX;
	case TEXT_MASK:
		a = text_expr_most(e->a);
		return a < e->value ? a : e->value;
	case TEXT_CHOICE:
		a = text_expr_most(e->b);
		b = text_expr_most(e->c);
		return a > b ? a : b;
	default:
		return UINT64_MAX;
	}
}

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

/* True if libtraceevent, asked for the field alone, takes this conversion, which is %s. */
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

static void text_string_field(struct text_build *b, struct text_string *out, struct tep_print_arg *arg)
{
	struct tep_format_field *f = text_arg_field(b, arg);
	struct trace_seq s;
	void *zeros;
	int size;

	if (!f)
		return;
	out->at = text_place(f);
	out->field = f;
	out->kind = f->size ? TEXT_STRING_FIELD : TEXT_STRING_REST;
	if ((f->flags & TEP_FIELD_IS_ARRAY) || f->size != sizeof(uint64_t))
		return;
	out->kind = TEXT_STRING_PRINTK;
	if (f->flags & TEP_FIELD_IS_STRING || !text_field_is_shown(b, f)) {
		text_refuse(b, "the string at an address");
		return;
	}
	/* sorts the formats, while nobody else asks for one */
	size = f->offset + f->size;
	zeros = text_alloc(b, (size_t)size);
	if (!zeros)
		return;
	trace_seq_init(&s);
	tep_print_field_content(&s, zeros, size, f);
	trace_seq_destroy(&s);
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

const struct text_string *text_string(struct text_build *b, struct tep_print_arg *arg)
{
	struct text_string *out = text_alloc(b, sizeof(*out));

	if (!out)
		return NULL;
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
	return b->ret ? NULL : out;
}
