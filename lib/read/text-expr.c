// SPDX-License-Identifier: LGPL-2.1-or-later
/* The numbers in a print format: libtraceevent's trees made smaller, and what they come to for a record. */
#include <ctype.h>

#include "text-priv.h"

static const struct text_expr *text_expr_const(struct text_build *b, uint64_t value)
{
	struct text_expr *e = text_alloc(b, sizeof(*e));

	if (e)
		*e = (struct text_expr){ .op = TEXT_CONST, .value = value };
	return e;
}

struct text_place text_place(const struct tep_format_field *f)
{
	return (struct text_place){ .offset = (uint32_t)f->offset,
				    .size = (uint32_t)f->size,
				    .relative = f->flags & TEP_FIELD_IS_RELATIVE };
}

struct tep_format_field *text_arg_field(struct text_build *b, struct tep_print_arg *arg)
{
	return arg->field.field ? arg->field.field : tep_find_any_field(b->p->event, arg->field.name);
}

const struct text_expr *text_expr_load(struct text_build *b, const struct tep_format_field *f, bool raw)
{
	struct text_expr *e = text_alloc(b, sizeof(*e));

	if (e)
		*e = (struct text_expr){ .op = raw ? TEXT_LOAD_RAW : TEXT_LOAD, .at = text_place(f) };
	return e;
}

/* A number, or a name that libtraceevent looks for among the kernel's symbols, which it has no call for. */
static const struct text_expr *text_expr_atom(struct text_build *b, const char *atom)
{
	uint64_t value = strtoull(atom, NULL, 0);

	if (!value && !isdigit((unsigned char)*atom)) {
		text_refuse(b, "the symbol %s", atom);
		return NULL;
	}
	return text_expr_const(b, value);
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

/* Of what a pointer of that type points at: "u8 *". */
static uint64_t text_item_mask(const char *type)
{
	size_t len = strlen(type);

	return len > 2 && type[len - 1] == '*' ? text_type_mask(type, len - 2) : UINT64_MAX;
}

static const struct text_expr *text_expr_mask(struct text_build *b, const struct text_expr *a, uint64_t mask)
{
	struct text_expr *e;

	if (!a || (!(mask & (mask + 1)) && text_expr_most(a) <= mask))
		return a;
	e = text_alloc(b, sizeof(*e));
	if (e)
		*e = (struct text_expr){ .op = TEXT_MASK, .a = a, .value = mask };
	return e;
}

/* left[right] */
static const struct text_expr *text_expr_index(struct text_build *b, struct tep_print_arg *arg)
{
	struct tep_print_arg *left = arg->op.left;
	const char *type = NULL;
	struct text_expr *e = text_alloc(b, sizeof(*e));
	struct tep_format_field *f;

	if (!e)
		return NULL;
	for (; left->type == TEP_PRINT_TYPE; left = left->typecast.item)
		type = type ? type : left->typecast.type;
	if (left->type != TEP_PRINT_FIELD && left->type != TEP_PRINT_DYNAMIC_ARRAY)
		return text_expr_const(b, 0);
	f = left->type == TEP_PRINT_FIELD ? text_arg_field(b, left) : left->dynarray.field;
	if (!f)
		return text_expr_const(b, 0);
	*e = (struct text_expr){ .op = TEXT_INDEX,
				 .item = f->elementsize,
				 .at = text_place(f),
				 .a = text_expr(b, arg->op.right) };
	if (left->type == TEP_PRINT_DYNAMIC_ARRAY) {
		e->op = TEXT_INDEX_DYNAMIC;
		e->at.dynamic = true;
		e->item = e->item ? e->item : sizeof(uint64_t);
	}
	return !e->a ? NULL : type ? text_expr_mask(b, e, text_item_mask(type)) : e;
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
	struct text_expr *e = text_alloc(b, sizeof(*e));

	if (!sides || sides->type != TEP_PRINT_OP) {
		text_refuse(b, "a choice of nothing");
		return NULL;
	}
	if (!e)
		return NULL;
	*e = (struct text_expr){ .op = TEXT_CHOICE,
				 .a = text_expr(b, arg->op.left),
				 .b = text_expr(b, sides->op.left),
				 .c = text_expr(b, sides->op.right) };
	return e->a && e->b && e->c ? e : NULL;
}

static const struct text_expr *text_expr_op(struct text_build *b, struct tep_print_arg *arg)
{
	struct text_expr *e;

	if (!strcmp(arg->op.op, "["))
		return text_expr_index(b, arg);
	if (!strcmp(arg->op.op, "?"))
		return text_expr_choice(b, arg);
	e = text_alloc(b, sizeof(*e));
	if (!e)
		return NULL;
	*e = (struct text_expr){ .op = text_op_of(arg->op.op),
				 .a = text_expr(b, arg->op.left),
				 .b = text_expr(b, arg->op.right) };
	if (!e->a || !e->b)
		return NULL;
	if (e->a->op == TEXT_CONST && e->b->op == TEXT_CONST)
		return text_expr_const(b, text_eval(e, NULL));
	return e->op == TEXT_AND && e->b->op == TEXT_CONST ? text_expr_mask(b, e->a, e->b->value) : e;
}

static const struct text_expr *text_expr_length(struct text_build *b, const struct tep_format_field *f)
{
	struct text_expr *e = text_alloc(b, sizeof(*e));

	if (!e)
		return NULL;
	*e = (struct text_expr){ .op = TEXT_LENGTH, .at = text_place(f) };
	e->at.dynamic = true;
	return e;
}

const struct text_expr *text_expr(struct text_build *b, struct tep_print_arg *arg)
{
	const struct tep_format_field *f;
	const struct text_expr *item;

	switch (arg->type) {
	case TEP_PRINT_ATOM:
		return text_expr_atom(b, arg->atom.atom);
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
		return text_expr_length(b, arg->dynarray.field);
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

uint64_t text_load_end(const struct text_record *r, size_t at, size_t n)
{
	uint8_t bytes[8] = { 0 };
	const struct text_record rest = { bytes, sizeof(bytes), sizeof(bytes) };

	if (at < r->len && n <= sizeof(bytes))
		memcpy(bytes, r->data + at, r->len - at < n ? r->len - at : n);
	return text_load(&rest, 0, n > sizeof(bytes) ? 0 : n);
}

static size_t text_at_dynamic(const struct text_place *p, const struct text_record *r, uint32_t *len)
{
	uint32_t offset, n;
	uint64_t loc;

	*len = 0;
	if (p->offset + p->size > r->size)
		return 0;
	loc = text_load(r, p->offset, p->size);
	offset = loc & UINT16_MAX;
	n = p->size == 2 ? r->size - offset : loc >> 16 & UINT16_MAX;
	if (offset + n <= r->size)
		*len = n;
	if (offset > r->size)
		offset = 0;
	return offset + (p->relative ? p->offset + p->size : 0);
}

size_t text_at(const struct text_place *p, const struct text_record *r, uint32_t *len)
{
	if (p->dynamic)
		return text_at_dynamic(p, r, len);
	*len = p->size;
	return p->offset;
}

static uint64_t text_eval_index(const struct text_expr *e, const struct text_record *r)
{
	uint64_t index = text_eval(e->a, r);
	uint32_t len, at = (uint32_t)text_at(&e->at, r, &len);

	at += (uint32_t)(e->at.dynamic ? index : index * e->item);
	return at > r->size || e->item > r->size - at ? 0 : text_load(r, at, e->item);
}

static uint64_t text_eval_of_two(enum text_op op, uint64_t a, uint64_t b)
{
	switch (op) {
	case TEXT_NOT:
		return !b;
	case TEXT_INVERT:
		return ~b;
	case TEXT_OR:
		return a | b;
	case TEXT_LOGICAL_OR:
		return a || b;
	case TEXT_AND:
		return a & b;
	case TEXT_LOGICAL_AND:
		return a && b;
	case TEXT_LESS:
		return a < b;
	case TEXT_LESS_EQUAL:
		return a <= b;
	case TEXT_GREATER:
		return a > b;
	case TEXT_GREATER_EQUAL:
		return a >= b;
	case TEXT_EQUAL:
		return a == b;
	case TEXT_UNEQUAL:
		return a != b;
	case TEXT_SHIFT_LEFT: /* by as many bits as the processor takes */
		return a << (b & 63);
	case TEXT_SHIFT_RIGHT:
		return a >> (b & 63);
	case TEXT_SUBTRACT:
		return a - b;
	case TEXT_ADD:
		return a + b;
	case TEXT_DIVIDE:
		return b ? a / b : 0;
	case TEXT_MODULO:
		return b ? a % b : 0;
	case TEXT_MULTIPLY:
		return a * b;
	default:
		return 0;
	}
}

uint64_t text_eval(const struct text_expr *e, const struct text_record *r)
{
	uint32_t len;

	switch (e->op) {
	case TEXT_CONST:
		return e->value;
	case TEXT_LOAD:
		return e->at.offset + e->at.size > r->size ? 0 : text_load(r, e->at.offset, e->at.size);
	case TEXT_LOAD_RAW:
		return text_load(r, e->at.offset, e->at.size);
	case TEXT_LENGTH:
		text_at(&e->at, r, &len);
		return len;
	case TEXT_INDEX:
	case TEXT_INDEX_DYNAMIC:
		return text_eval_index(e, r);
	case TEXT_CHOICE:
		return text_eval(text_eval(e->a, r) ? e->b : e->c, r);
	case TEXT_MASK:
		return text_eval(e->a, r) & e->value;
	default:
		return text_eval_of_two(e->op, text_eval(e->a, r), text_eval(e->b, r));
	}
}
