// SPDX-License-Identifier: LGPL-2.1-or-later
/* Texts of name=value pairs: of events whose print format failed, or that are to be shown so. */
#include <string.h>

#include "text-priv.h"

/* How libtraceevent shows a number that no conversion shows. */
static struct text_spec text_raw_spec(const struct tep_format_field *f)
{
	struct text_spec spec = { .plain = true, .conversion = 'u', .bits = 64, .precision = -1 };

	if (f->flags & TEP_FIELD_IS_POINTER || f->flags & TEP_FIELD_IS_LONG)
		spec.conversion = 'x';
	if (f->flags & TEP_FIELD_IS_POINTER || !(f->flags & TEP_FIELD_IS_SIGNED))
		return spec;
	if (f->size != 4 || !(f->flags & TEP_FIELD_IS_LONG))
		spec.conversion = 'd';
	spec.bits = f->size == 4 ? 32 : f->size == 2 ? 16 : f->size == 1 ? 8 : 64;
	spec.width = f->size == 2 ? 2 : 0;
	spec.plain = !spec.width;
	return spec;
}

static void text_field_raw(struct text_build *b, const struct tep_format_field *f)
{
	struct text_spec spec = text_raw_spec(f);
	struct text_piece *p;

	if (!(f->flags & TEP_FIELD_IS_ARRAY)) {
		buf_addstr(&b->before, spec.conversion == 'x' ? "0x" : "");
		/* a char is what it is to the compiler */
		if (f->size == 1 && (char)-1 > 0 && spec.conversion == 'd')
			spec.conversion = 'u';
		text_integer_add(b, &spec, text_expr_load(b, f, true));
		return;
	}
	if (f->flags & TEP_FIELD_IS_STRING) {
		/* once it was none, it is never again one to libtraceevent */
		text_refuse(b, "the field %s, a string", f->name);
		return;
	}
	p = text_piece_add(b, TEXT_RAW_BYTES);
	if (!p)
		return;
	p->at = text_place(f);
	p->at.dynamic = f->flags & TEP_FIELD_IS_DYNAMIC;
}

static bool text_conversion_shows(const struct text_conversion *c, const struct tep_format_field *f)
{
	const struct tep_print_arg *arg = c->is == TEXT_IS_TEXT ? NULL : c->arg;

	while (arg && arg->type == TEP_PRINT_TYPE)
		arg = arg->typecast.item;
	return arg && arg->type == TEP_PRINT_FIELD && arg->field.field == f;
}

static bool text_ends_in_0x(const struct text_conversion *c)
{
	size_t len = c->is == TEXT_IS_TEXT ? strlen(c->s) : 0;

	return len > 1 && !strcmp(c->s + len - 2, "0x");
}

/*
 * The conversion that shows the field, from *next on and around; *next: the one behind it.
 * Behind the last one libtraceevent looks for no more. n: none. *hex: behind "0x".
 */
static size_t text_conversion_of(const struct text_build *b, const struct tep_format_field *f, size_t *next,
				 bool *hex)
{
	*hex = false;
	if (*next == b->n || f->flags & TEP_FIELD_IS_ARRAY)
		return b->n;
	for (size_t k = 0, i = *next; k < b->n; k++, i = i + 1 < b->n ? i + 1 : 0) {
		if (text_conversion_shows(&b->v[i], f)) {
			*next = i + 1;
			return i;
		}
		*hex = text_ends_in_0x(&b->v[i]);
	}
	return b->n;
}

void text_fields(struct text_build *b)
{
	size_t next = 0;

	if (text_since_1_8())
		text_refuse(b, "fields as name=value");
	for (const struct tep_format_field *f = b->p->event->format.fields; f && !b->ret; f = f->next) {
		bool hex;
		size_t i = text_conversion_of(b, f, &next, &hex);

		buf_printf(&b->before, " %s=", f->name);
		if (i == b->n) {
			text_field_raw(b, f);
			continue;
		}
		buf_addstr(&b->before, hex ? "0x" : "");
		text_conversion_add(b, &b->v[i]);
	}
}
