// SPDX-License-Identifier: LGPL-2.1-or-later
/* Makes tests of a filter that libtraceevent has parsed: one per comparison, which leads to the next. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "read/filter-priv.h"
#include "util/array.h"

/* An id has two bytes in a record. */
#define IDS 65536

struct filter_compiler {
	struct filter *f;
	const struct tep_event *event;
	int status;
};

/* The test's index; FILTER_REJECT and -ENOMEM in status. */
static uint32_t filter_add_test(struct filter_compiler *c, const struct filter_test *t)
{
	struct filter *f = c->f;

	if (f->n < UINT32_MAX && !array_push(&f->tests, &f->n, t, sizeof(*t)))
		return (uint32_t)(f->n - 1);
	c->status = -ENOMEM;
	return FILTER_REJECT;
}

/* ---- fields ------------------------------------------------------------------------- */

/* COMM and CPU, where the event has no field of that name, are libtraceevent's own. */
static void filter_test_special(struct filter_compiler *c, const struct tep_format_field *field,
				struct filter_test *t)
{
	t->of = FILTER_OF_CPU;
	if (strcmp(field->name, "COMM"))
		return;
	t->of = FILTER_OF_COMM;
	t->load = field_load_word(tep_find_common_field((struct tep_event *)c->event, "common_pid"));
}

static void filter_test_number(struct filter_compiler *c, const struct tep_format_field *field,
			       struct filter_test *t)
{
	t->load = field_load_word(field);
	if (!field->event)
		filter_test_special(c, field, t);
}

static void filter_test_text(struct filter_compiler *c, const struct tep_format_field *field,
			     struct filter_test *t)
{
	filter_test_number(c, field, t);
	if (!field->event)
		return;
	if (field->flags & TEP_FIELD_IS_STRING) {
		t->of = FILTER_OF_STRING;
		t->load = field_load(field);
	} else if (field->flags & (TEP_FIELD_IS_POINTER | TEP_FIELD_IS_LONG)) {
		t->of = FILTER_OF_FUNCTION;
		/* its table of functions is made by the first who asks: before there are threads */
		tep_find_function(c->f->parsed->tep, 0);
	}
}

/* ---- comparisons ---------------------------------------------------------------------- */

/* The constant of a comparison or an operation with a field. */
static bool filter_constant(const struct tep_filter_arg *left, const struct tep_filter_arg *right,
			    uint64_t *value)
{
	/* of an unknown field, or with a text: libtraceevent calls it an error, and no match */
	if (left->type != TEP_FILTER_ARG_FIELD || right->type != TEP_FILTER_ARG_VALUE ||
	    right->value.type != TEP_FILTER_NUMBER)
		return false;
	*value = right->value.val;
	return true;
}

static uint32_t filter_compile_num(struct filter_compiler *c, const struct tep_filter_arg *arg, uint32_t yes,
				   uint32_t no)
{
	struct filter_test t = { .kind = FILTER_IS_NUMBER, .yes = yes, .no = no };

	t.number.cmp = arg->num.type;
	if (!filter_constant(arg->num.left, arg->num.right, &t.number.value))
		return FILTER_REJECT;
	filter_test_number(c, arg->num.left->field.field, &t);
	return filter_add_test(c, &t);
}

static uint32_t filter_compile_exp(struct filter_compiler *c, const struct tep_filter_arg *arg, uint32_t yes,
				   uint32_t no)
{
	struct filter_test t = { .kind = FILTER_IS_NUMBER, .yes = yes, .no = no };

	t.number.exp = arg->exp.type;
	t.number.cmp = TEP_FILTER_CMP_NE;
	if (!filter_constant(arg->exp.left, arg->exp.right, &t.number.with))
		return FILTER_REJECT;
	if (!t.number.with && (t.number.exp == TEP_FILTER_EXP_DIV || t.number.exp == TEP_FILTER_EXP_MOD))
		return FILTER_REJECT;
	filter_test_number(c, arg->exp.left->field.field, &t);
	return filter_add_test(c, &t);
}

static uint32_t filter_compile_str(struct filter_compiler *c, const struct tep_filter_arg *arg, uint32_t yes,
				   uint32_t no)
{
	bool negated = arg->str.type == TEP_FILTER_CMP_NOT_MATCH || arg->str.type == TEP_FILTER_CMP_NOT_REGEX;
	bool text = arg->str.type == TEP_FILTER_CMP_MATCH || arg->str.type == TEP_FILTER_CMP_NOT_MATCH;
	struct filter_test t = { .kind = text ? FILTER_IS_TEXT : FILTER_IS_PATTERN,
				 .yes = negated ? no : yes,
				 .no = negated ? yes : no };

	if (text) {
		t.text.s = arg->str.val;
		t.text.len = strlen(arg->str.val);
	} else {
		t.pattern = (regex_t *)&arg->str.reg;
	}
	filter_test_text(c, arg->str.field, &t);
	return filter_add_test(c, &t);
}

/* ---- expressions ---------------------------------------------------------------------- */

/* From the last test to the first: each is told where it leads. Returns the first. */
static uint32_t filter_compile_arg(struct filter_compiler *c, const struct tep_filter_arg *arg, uint32_t yes,
				   uint32_t no)
{
	switch (arg->type) {
	case TEP_FILTER_ARG_BOOLEAN:
		return arg->boolean.value ? yes : no;
	case TEP_FILTER_ARG_NUM:
		return filter_compile_num(c, arg, yes, no);
	case TEP_FILTER_ARG_EXP:
		return filter_compile_exp(c, arg, yes, no);
	case TEP_FILTER_ARG_STR:
		return filter_compile_str(c, arg, yes, no);
	case TEP_FILTER_ARG_OP:
		break;
	default: /* filter_syntax() has no others */
		return FILTER_REJECT;
	}
	if (arg->op.type == TEP_FILTER_OP_NOT)
		return filter_compile_arg(c, arg->op.right, no, yes);
	if (arg->op.type == TEP_FILTER_OP_AND)
		yes = filter_compile_arg(c, arg->op.right, yes, no);
	else
		no = filter_compile_arg(c, arg->op.right, yes, no);
	return filter_compile_arg(c, arg->op.left, yes, no);
}

static size_t filter_count_ids(const struct tep_event_filter *parsed)
{
	size_t n = 0;

	for (int i = 0; i < parsed->filters; i++) {
		size_t id = (unsigned int)parsed->event_filters[i].event_id;

		if (id < IDS && id >= n)
			n = id + 1;
	}
	return n;
}

int filter_compile(struct filter *f)
{
	/* these two only take the places of what they are called */
	static const struct filter_test ends[FILTER_FIRST] = { 0 };
	struct filter_compiler c = { .f = f };

	for (size_t i = 0; i < FILTER_FIRST; i++)
		filter_add_test(&c, &ends[i]);
	f->n_entries = filter_count_ids(f->parsed);
	f->entry = calloc(f->n_entries + 1, sizeof(*f->entry));
	for (int i = 0; f->entry && i < f->parsed->filters; i++) {
		const struct tep_filter_type *of = &f->parsed->event_filters[i];

		c.event = of->event;
		if ((size_t)of->event_id < f->n_entries)
			f->entry[of->event_id] =
				filter_compile_arg(&c, of->filter, FILTER_ACCEPT, FILTER_REJECT);
	}
	return f->entry ? c.status : -ENOMEM;
}
