// SPDX-License-Identifier: LGPL-2.1-or-later
/* Asks filters about records, without libtraceevent but for names of tasks and functions. */
#include "read/filter.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "read/filter-priv.h"

/* A text in a record, or anywhere. */
struct filter_span {
	const char *s;
	size_t len;
};

/* ---- numbers -------------------------------------------------------------------------- */

static const char *filter_comm(const struct filter *f, const struct filter_test *t,
			       const struct filter_record *r)
{
	return tep_data_comm_from_pid(f->parsed->tep, (int)field_load_padded(&t->load, r->data, r->len));
}

static uint64_t filter_field(const struct filter *f, const struct filter_test *t,
			     const struct filter_record *r)
{
	if (t->of == FILTER_OF_CPU)
		return (uint64_t)(int)r->cpu;
	if (t->of == FILTER_OF_COMM) /* libtraceevent takes its address */
		return (uintptr_t)filter_comm(f, t, r);
	return field_load_padded(&t->load, r->data, r->len);
}

static uint64_t filter_calculate(enum tep_filter_exp_type type, uint64_t left, uint64_t right)
{
	switch (type) {
	case TEP_FILTER_EXP_ADD:
		return left + right;
	case TEP_FILTER_EXP_SUB:
		return left - right;
	case TEP_FILTER_EXP_MUL:
		return left * right;
	case TEP_FILTER_EXP_DIV:
		return left / right;
	case TEP_FILTER_EXP_MOD:
		return left % right;
	case TEP_FILTER_EXP_RSHIFT: /* as processors do what C leaves open */
		return left >> (right & 63);
	case TEP_FILTER_EXP_LSHIFT:
		return left << (right & 63);
	case TEP_FILTER_EXP_AND:
		return left & right;
	case TEP_FILTER_EXP_OR:
		return left | right;
	case TEP_FILTER_EXP_XOR:
		return left ^ right;
	default:
		return left;
	}
}

static bool filter_number(const struct filter *f, const struct filter_test *t, const struct filter_record *r)
{
	uint64_t v = filter_field(f, t, r);

	if (t->number.exp != TEP_FILTER_EXP_NONE)
		v = filter_calculate(t->number.exp, v, t->number.with);
	switch (t->number.cmp) {
	case TEP_FILTER_CMP_EQ:
		return v == t->number.value;
	case TEP_FILTER_CMP_NE:
		return v != t->number.value;
	case TEP_FILTER_CMP_GT:
		return v > t->number.value;
	case TEP_FILTER_CMP_LT:
		return v < t->number.value;
	case TEP_FILTER_CMP_GE:
		return v >= t->number.value;
	case TEP_FILTER_CMP_LE:
		return v <= t->number.value;
	default:
		return false;
	}
}

/* ---- texts -------------------------------------------------------------------------------- */

/*
 * A string ends at its NUL. Of one whose last byte is none, libtraceevent takes as many bytes as the
 * field has: all of an array, four of what lies elsewhere.
 */
static struct filter_span filter_string(const struct filter_test *t, const struct filter_record *r)
{
	size_t at = t->load.offset, size = t->load.size, left;

	if (t->load.kind == FIELD_LOC) {
		uint64_t loc = field_load_padded(&t->load, r->data, r->len);

		at = (size_t)(loc & 0xffff) + t->load.base;
		size = (size_t)(loc >> 16);
	}
	if (at >= r->len)
		return (struct filter_span){ "", 0 };
	left = r->len - at;
	if (at + size && at + size <= r->len && r->data[at + size - 1] && t->load.size < left)
		left = t->load.size;
	return (struct filter_span){ (const char *)r->data + at, strnlen((const char *)r->data + at, left) };
}

#define NUMBER_MAX 32

static struct filter_span filter_text(const struct filter *f, const struct filter_test *t,
				      const struct filter_record *r, char number[NUMBER_MAX])
{
	const char *s = NULL;
	uint64_t v;

	if (t->of == FILTER_OF_STRING)
		return filter_string(t, r);
	if (t->of == FILTER_OF_COMM) {
		s = filter_comm(f, t, r);
		return (struct filter_span){ s, strlen(s) };
	}
	v = filter_field(f, t, r);
	if (t->of == FILTER_OF_FUNCTION)
		s = tep_find_function(f->parsed->tep, v);
	if (!s) {
		snprintf(number, NUMBER_MAX, "0x%llx", (unsigned long long)v);
		s = number;
	}
	return (struct filter_span){ s, strlen(s) };
}

static bool filter_texts(const struct filter *f, const struct filter_test *t, const struct filter_record *r)
{
	char number[NUMBER_MAX];
	struct filter_span span = filter_text(f, t, r, number);

	if (t->kind == FILTER_IS_TEXT)
		return span.len == t->text.len && !memcmp(span.s, t->text.s, span.len);
	/* regexec() for texts without a NUL */
	return re_search(t->pattern, span.s, (regoff_t)span.len, 0, (regoff_t)span.len, NULL) >= 0;
}

/* ---- records ------------------------------------------------------------------------------- */

bool filter_match(const struct filter *f, const struct filter_record *r)
{
	uint32_t at = r->id < f->n_entries ? f->entry[r->id] : FILTER_REJECT;

	while (at >= FILTER_FIRST) {
		const struct filter_test *t = &f->tests[at];
		bool yes = t->kind == FILTER_IS_NUMBER ? filter_number(f, t, r) : filter_texts(f, t, r);

		at = yes ? t->yes : t->no;
	}
	return at == FILTER_ACCEPT;
}

/* ---- opening ------------------------------------------------------------------------------- */

static int filter_parse(struct filter *f, const char *text, char *why, size_t size)
{
	enum tep_errno error = tep_filter_add_filter_str(f->parsed, text);
	char said[2 * TEP_FILTER_ERROR_BUFSZ] = "";
	const char *line;

	if ((int)error >= 0)
		return 0;
	if (error == TEP_ERRNO__MEM_ALLOC_FAILED)
		return -ENOMEM;
	tep_filter_strerror(f->parsed, error, said, sizeof(said));
	line = strrchr(said, '\n'); /* it may show the place in two lines before */
	snprintf(why, size, "%s", line ? line + 1 : said);
	return -EINVAL;
}

int filter_open(struct filter **out, struct tep_handle *tep, const char *text, char *why, size_t size)
{
	struct filter *f = calloc(1, sizeof(*f));
	int ret = -ENOMEM;

	if (!f)
		return ret;
	f->parsed = tep_filter_alloc(tep);
	if (!f->parsed)
		goto fail;
	ret = filter_parse(f, text, why, size);
	if (ret)
		goto fail;
	ret = filter_compile(f);
	if (ret)
		goto fail;
	*out = f;
	return 0;
fail:
	filter_free(f);
	return ret;
}

void filter_free(struct filter *f)
{
	if (!f)
		return;
	if (f->parsed)
		tep_filter_free(f->parsed);
	free(f->tests);
	free(f->entry);
	free(f);
}
