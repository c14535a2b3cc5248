// SPDX-License-Identifier: LGPL-2.1-or-later
/* Compiles filters and applies them to records; libtraceevent only names tasks and functions. */
#include "read/filter.h"
#include "read/tepfile.h"

#include "base/array.h"
#include "base/field.h"

/* Target of a test: another test, or one of these. */
enum { FILTER_REJECT, FILTER_ACCEPT, FILTER_FIRST };

/* A text in a record, or anywhere. */
struct filter_span {
	const char *s;
	size_t len;
};

/* One comparison, of a field with a constant. */
struct filter_test {
	enum { FILTER_IS_NUMBER, FILTER_IS_TEXT, FILTER_IS_PATTERN } kind;
	enum filter_of {
		FILTER_OF_WORD,	    /* the field's bytes, as a number */
		FILTER_OF_CPU,	    /* the record's */
		FILTER_OF_COMM,	    /* its task's name */
		FILTER_OF_STRING,   /* a string in the record */
		FILTER_OF_FUNCTION, /* the name of the function that the number is in */
	} of;
	uint32_t yes, no;	/* index of the next test, FILTER_REJECT or FILTER_ACCEPT */
	struct field_load load; /* of COMM: the pid's */
	union {
		struct {
			enum tep_filter_exp_type exp; /* TEP_FILTER_EXP_NONE: the field itself ... */
			uint64_t with;
			enum tep_filter_cmp_type cmp; /* ... is compared */
			uint64_t value;
		} number;
		struct filter_span text;
		regex_t *pattern;
	};
};

struct filter {
	struct tep_event_filter *parsed; /* strings and patterns are its */
	struct filter_test *tests;
	size_t n;
	uint32_t *entry; /* by the event's id: its first test, FILTER_REJECT or FILTER_ACCEPT */
	size_t n_entries;
};

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

bool filter_match(const struct filter *f, const struct filter_record *r)
{
	uint32_t at = r->id < f->n_entries ? f->entry[r->id] : FILTER_REJECT;

	while (at >= FILTER_FIRST) {
		const struct filter_test *t = &f->tests[at];
		char number[NUMBER_MAX];
		struct filter_span span;
		bool yes;

		if (t->kind == FILTER_IS_NUMBER) {
			yes = filter_number(f, t, r);
		} else {
			span = filter_text(f, t, r, number);
			yes = t->kind == FILTER_IS_TEXT
				      ? span.len == t->text.len && !memcmp(span.s, t->text.s, span.len)
				      /* regexec() for texts without a NUL */
				      : re_search(t->pattern, span.s, (regoff_t)span.len, 0,
						  (regoff_t)span.len, NULL) >= 0;
		}
		at = yes ? t->yes : t->no;
	}
	return at == FILTER_ACCEPT;
}

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

static void filter_test_number(struct filter_compiler *c, const struct tep_format_field *field,
			       struct filter_test *t)
{
	t->load = field_load_word(field);
	if (field->event)
		return;
	/* COMM and CPU, where the event has no field of that name, are libtraceevent's own */
	t->of = FILTER_OF_CPU;
	if (strcmp(field->name, "COMM"))
		return;
	t->of = FILTER_OF_COMM;
	t->load = field_load_word(tep_find_common_field((struct tep_event *)c->event, "common_pid"));
}

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

/* A field, or what an operation with it gives, against a number. */
static uint32_t filter_compile_number(struct filter_compiler *c, const struct tep_filter_arg *arg,
				      uint32_t yes, uint32_t no)
{
	struct filter_test t = { .kind = FILTER_IS_NUMBER, .yes = yes, .no = no };
	const struct tep_filter_arg *field = arg->num.left;
	bool known;

	if (arg->type == TEP_FILTER_ARG_NUM) {
		t.number.cmp = arg->num.type;
		known = filter_constant(field, arg->num.right, &t.number.value);
	} else {
		field = arg->exp.left;
		t.number.exp = arg->exp.type;
		t.number.cmp = TEP_FILTER_CMP_NE;
		known = filter_constant(field, arg->exp.right, &t.number.with) &&
			(t.number.with ||
			 (t.number.exp != TEP_FILTER_EXP_DIV && t.number.exp != TEP_FILTER_EXP_MOD));
	}
	if (!known)
		return FILTER_REJECT;
	filter_test_number(c, field->field.field, &t);
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
	const struct tep_format_field *field = arg->str.field;

	if (text)
		t.text = (struct filter_span){ arg->str.val, strlen(arg->str.val) };
	else
		t.pattern = (regex_t *)&arg->str.reg;
	filter_test_number(c, field, &t);
	if (field->event && field->flags & TEP_FIELD_IS_STRING) {
		t.of = FILTER_OF_STRING;
		t.load = field_load(field);
	} else if (field->event && field->flags & (TEP_FIELD_IS_POINTER | TEP_FIELD_IS_LONG)) {
		t.of = FILTER_OF_FUNCTION;
		c->status = c->status ?: tepfile_functions(c->f->parsed->tep);
	}
	return filter_add_test(c, &t);
}

/* Compiles from the last test to the first, since each needs its targets. Returns the first. */
static uint32_t filter_compile_arg(struct filter_compiler *c, const struct tep_filter_arg *arg, uint32_t yes,
				   uint32_t no)
{
	switch (arg->type) {
	case TEP_FILTER_ARG_BOOLEAN:
		return arg->boolean.value ? yes : no;
	case TEP_FILTER_ARG_NUM:
	case TEP_FILTER_ARG_EXP:
		return filter_compile_number(c, arg, yes, no);
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

int filter_open(struct filter **out, struct tep_handle *tep, const char *text, char *why, size_t size)
{
	/* these two only take the places of what they are called */
	static const struct filter_test ends[FILTER_FIRST] = { 0 };
	struct filter *f = calloc(1, sizeof(*f));
	struct filter_compiler c = { .f = f };
	int ret = -ENOMEM, error;

	if (!f)
		return ret;
	f->parsed = tep_filter_alloc(tep);
	if (!f->parsed)
		goto fail;
	error = (int)tep_filter_add_filter_str(f->parsed, text);
	if (error < 0 && error != (int)TEP_ERRNO__MEM_ALLOC_FAILED) {
		char said[2 * TEP_FILTER_ERROR_BUFSZ] = "", *line;

		tep_filter_strerror(f->parsed, (enum tep_errno)error, said, sizeof(said));
		line = strrchr(said, '\n'); /* it may show the place in two lines before */
		snprintf(why, size, "%s", line ? line + 1 : said);
		ret = -EINVAL;
	}
	if (error < 0)
		goto fail;
	for (size_t i = 0; i < FILTER_FIRST; i++)
		filter_add_test(&c, &ends[i]);
	for (int i = 0; i < f->parsed->filters; i++) {
		size_t id = (unsigned int)f->parsed->event_filters[i].event_id;

		if (id < IDS && id >= f->n_entries)
			f->n_entries = id + 1;
	}
	f->entry = calloc(f->n_entries + 1, sizeof(*f->entry));
	for (int i = 0; f->entry && i < f->parsed->filters; i++) {
		const struct tep_filter_type *of = &f->parsed->event_filters[i];

		c.event = of->event;
		if ((size_t)of->event_id < f->n_entries)
			f->entry[of->event_id] =
				filter_compile_arg(&c, of->filter, FILTER_ACCEPT, FILTER_REJECT);
	}
	ret = f->entry ? c.status : -ENOMEM;
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

/* ---- the syntax, checked before libtraceevent gets a filter: it crashes on some wrong ones ---- */

/* libtraceevent's text for errors has 1024 bytes, and it puts the expression there twice */
#define EXPRESSION_MAX 400
#define DEPTH_MAX      64
#define ALNUM	       "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
#define ASCII	       ALNUM " \t\n!\"#$%&'()*+-./:;<=>?@[\\]^_`{|}~"

/*
 *	expression = term { ( "&&" | "||" ) term }
 *	term       = [ "!" ] ( "(" expression ")" | field operator value )
 *
 * where a value is a number or a string. The manual has fields there, too, which
 * libtraceevent does not know, and trips over; as it does over "!!".
 */
struct syntax {
	const char *p;
	int depth;
	char *why;
	size_t size;
};

static int syntax_expression(struct syntax *s);

static int syntax_error(struct syntax *s, const char *what)
{
	if (*s->p)
		snprintf(s->why, s->size, "%s at '%.20s'", what, s->p);
	else
		snprintf(s->why, s->size, "%s at its end", what);
	return -EINVAL;
}

static void syntax_space(struct syntax *s)
{
	s->p += strspn(s->p, " \t\n");
}

static bool syntax_take(struct syntax *s, const char *token)
{
	size_t len = strlen(token);

	syntax_space(s);
	if (strncmp(s->p, token, len))
		return false;
	s->p += len;
	return true;
}

static bool syntax_take_any(struct syntax *s, const char *const *tokens)
{
	for (; *tokens; tokens++)
		if (syntax_take(s, *tokens))
			return true;
	return false;
}

/* Of a string there is no escape. */
static int syntax_value(struct syntax *s)
{
	size_t len;
	char *end;

	syntax_space(s);
	len = strspn(s->p, ALNUM "_");
	if (*s->p == '-')
		return syntax_error(s, "no negative numbers here (a field of 4 bytes holds -1 as "
				       "0xffffffffffffffff)");
	if (*s->p == '"' || *s->p == '\'') {
		end = strchr(s->p + 1, *s->p);
		if (!end)
			return syntax_error(s, "a string is not closed");
		s->p = end + 1;
		return 0;
	}
	if (!len)
		return syntax_error(s, "a value is missing");
	strtoull(s->p, &end, 0);
	if (end != s->p + len)
		return syntax_error(s, "neither a number nor a string in quotes");
	s->p = end;
	return 0;
}

static int syntax_comparison(struct syntax *s)
{
	/* longer ones first */
	static const char *const operators[] = { "==", "!=", "=~", "!~", ">=", "<=", "<<", ">>", ">", "<",
						 "&",  "|",  "^",  "+",	 "-",  "*",  "/",  "%",	 NULL };
	size_t len;

	syntax_space(s);
	len = strspn(s->p, ALNUM "_");
	if (!len)
		return syntax_error(s, "a field is missing");
	if (*s->p >= '0' && *s->p <= '9')
		return syntax_error(s, "a field comes first");
	s->p += len;
	syntax_space(s);
	/* these join comparisons */
	if (!strncmp(s->p, "&&", 2) || !strncmp(s->p, "||", 2) || !syntax_take_any(s, operators))
		return syntax_error(s, "a comparison is missing");
	return syntax_value(s);
}

static int syntax_term(struct syntax *s)
{
	int ret;

	if (++s->depth > DEPTH_MAX)
		return syntax_error(s, "too many parentheses");
	for (unsigned int n = 0; syntax_take(s, "!"); n++)
		if (n)
			return syntax_error(s, "two '!' are none");
	if (!syntax_take(s, "(")) {
		ret = syntax_comparison(s);
		s->depth--;
		return ret;
	}
	ret = syntax_expression(s);
	if (ret)
		return ret;
	s->depth--;
	return syntax_take(s, ")") ? 0 : syntax_error(s, "a ')' is missing");
}

static int syntax_expression(struct syntax *s)
{
	static const char *const joins[] = { "&&", "||", NULL };

	do {
		int ret = syntax_term(s);

		if (ret)
			return ret;
	} while (syntax_take_any(s, joins));
	return 0;
}

int filter_syntax(const char *filter, char *why, size_t size)
{
	const char *colon = strchr(filter, ':');
	struct syntax s = { .p = colon ? colon + 1 : "", .why = why, .size = size };
	int ret;

	if (!colon)
		return 0;
	if (strlen(s.p) > EXPRESSION_MAX) {
		snprintf(why, size, "longer than %d characters: give several", EXPRESSION_MAX);
		return -EINVAL;
	}
	s.p += strspn(s.p, ASCII);
	if (*s.p)
		return syntax_error(&s, "only ASCII without a comma is understood");
	s.p = colon + 1;
	ret = syntax_expression(&s);
	syntax_space(&s);
	return ret || !*s.p ? ret : syntax_error(&s, "nothing is expected");
}
