// SPDX-License-Identifier: LGPL-2.1-or-later
/* The check of an event's format before libtraceevent reads it, with a parser of the print formats that
 * kernels write. */
#include "file/dat/format.h"
#include "base/strings.h"

/* ---- what libtraceevent does not know, in other words; conversions ---- */

/* include/linux/string_choices.h: str_YES_NO(condition) */
static const struct choice {
	const char *yes, *no;
} choices[] = {
	{ "assert", "deassert" }, { "enable", "disable" }, { "enabled", "disabled" }, { "hi", "lo" },
	{ "lo", "hi" },		  { "high", "low" },	   { "low", "high" },	      { "input", "output" },
	{ "on", "off" },	  { "off", "on" },	   { "read", "write" },	      { "write", "read" },
	{ "true", "false" },	  { "false", "true" },	   { "up", "down" },	      { "down", "up" },
	{ "yes", "no" },	  { "no", "yes" },
};

struct word {
	const char *s;
	size_t n;
};

static bool word_is(const struct word *w, const char *name)
{
	return w->n == strlen(name) && !memcmp(w->s, name, w->n);
}

/* The words of a function str_YES_NO; NULL: it is none. */
static const struct choice *print_choice(const struct word *w)
{
	for (size_t i = 0; i < ARRAY_SIZE(choices); i++) {
		char known[32];

		snprintf(known, sizeof(known), "str_%s_%s", choices[i].yes, choices[i].no);
		if (word_is(w, known))
			return &choices[i];
	}
	return NULL;
}

/* "? 'x' : 'y'" at p: where its four quotes are. */
static bool char_choice(char *p, char *quote[4])
{
	static const char shape[] = "?'.':'.'"; /* spaces between them do not count */
	int n = 0;

	for (const char *s = shape; *s; s++, p++) {
		while (*p == ' ' && *s != '.')
			p++;
		if (*s == '.' ? !isalnum((unsigned char)*p) : *p != *s)
			return false;
		if (*s == '\'')
			quote[n++] = p;
	}
	return true;
}

static size_t occurrences(const char *text, const char *what)
{
	size_t n = 0;

	for (; (text = strstr(text, what)); text += strlen(what))
		n++;
	return n;
}

/*
 * libtraceevent does not know character constants: where every %c stands for a choice
 * of two, both become strings. In place: no byte more or less. True: it was so.
 */
static bool print_chars(char *fmt)
{
	char *quote[4], *p;
	size_t choices_n = 0;

	for (p = fmt; (p = strchr(p, '?')); p++)
		choices_n += char_choice(p, quote);
	if (!choices_n || choices_n != occurrences(fmt, "%c") || 4 * choices_n != occurrences(fmt, "'"))
		return false;
	for (p = fmt; (p = strchr(p, '?')); p++)
		if (char_choice(p, quote))
			for (int i = 0; i < 4; i++)
				*quote[i] = '"';
	for (p = fmt; (p = strstr(p, "%c")); p++)
		p[1] = 's';
	return true;
}

#define WIDTH_MAX      4096
#define CONVERSION_MAX 30 /* bytes: libtraceevent's room for one */

struct conversions {
	const char *s, *end;
	bool *widths;
	size_t n, max;
};

static int conversion_takes(struct conversions *c, bool width)
{
	if (c->n == c->max)
		return -E2BIG;
	c->widths[c->n++] = width;
	return 0;
}

/*
 * Parses the rest after '%'. Letters that are no conversion to libtraceevent take no argument: it
 * shows them as ">c<".
 */
static int conversion(struct conversions *c)
{
	const char *start = c->s;
	bool is_long = false;
	int ret = 0;

	while (c->s < c->end && !ret) {
		if (c->s - start >= CONVERSION_MAX)
			return -E2BIG;
		if (isdigit((unsigned char)*c->s)) {
			unsigned int v = 0;

			for (; c->s < c->end && isdigit((unsigned char)*c->s) && v <= WIDTH_MAX; c->s++)
				v = v * 10 + (unsigned int)(*c->s - '0');
			ret = v > WIDTH_MAX ? -E2BIG : 0;
			continue;
		}
		if (*c->s == '*')
			ret = conversion_takes(c, true);
		else if (!strchr("#hlLzZ.-", *c->s))
			break;
		is_long |= strchr("lLzZ", *c->s) != NULL;
		c->s++;
	}
	if (ret || c->s == c->end)
		return ret ? ret : -EINVAL; /* libtraceevent looks for the rest beyond the end */
	if (*c->s == 's' && is_long)
		return -EINVAL; /* a string of wide characters to printf */
	return strchr("pdiuxXos", *c->s++) ? conversion_takes(c, false) : 0;
}

int print_conversions(const char *s, size_t len, bool *widths, size_t max)
{
	struct conversions c = { .s = s, .end = s + len, .widths = widths, .max = max };

	while ((c.s = memchr(c.s, '%', (size_t)(c.end - c.s)))) {
		int ret = 0;

		c.s++;
		if (c.s < c.end && *c.s == '%')
			c.s++;
		else
			ret = conversion(&c);
		if (ret)
			return ret;
	}
	return (int)c.n;
}

/* ---- the parser ---- */

#define INDEX_MASK	"4095"	/* no array of a kernel's record has more items */
#define PRINT_LOOKS_MAX 32768	/* each of a probe's 128 arguments, among them all, is 17,024 */
#define COUNT_MASK	"65535" /* bytes: no record is longer */

struct print {
	const struct event_format *f;
	char *p;      /* next character to parse */
	char *branch; /* the last one that began after a ':' */
	char *copied; /* all before it is in out */
	struct buf *out;
	const char *why;
	int ret, depth;
	size_t looked_at;  /* fields, while one was looked for */
	bool fixup, fixed; /* into words for stock tools, instead of bounding */
	bool widths[PRINT_ARGS_MAX];
};

static bool print_cond(struct print *c);
static bool print_unary(struct print *c);
static bool print_operand(struct print *c);

static bool print_fail(struct print *c, int ret, const char *why)
{
	if (!c->ret) {
		c->ret = ret;
		c->why = why;
	}
	return false;
}

/* C that libtraceevent does not know: it would complain in each printed line. */
static bool print_unread(struct print *c)
{
	return print_fail(c, -EINVAL, NULL);
}

/* Each level is one of libtraceevent's recursion. The caller puts depth back. */
static bool print_deeper(struct print *c)
{
	return ++c->depth <= PRINT_DEPTH_MAX || print_fail(c, -E2BIG, "is nested deeper than any kernel's");
}

/* Next character that is not a blank. libtraceevent ends some lists at a newline: refused here. */
static char print_peek(struct print *c)
{
	for (; isspace((unsigned char)*c->p); c->p++)
		*c->p = ' ';
	return *c->p;
}

static bool print_accept(struct print *c, const char *what)
{
	size_t n = strlen(what);

	print_peek(c);
	if (strncmp(c->p, what, n))
		return false;
	c->p += n;
	return true;
}

static bool print_expect(struct print *c, const char *what)
{
	return print_accept(c, what) || print_unread(c);
}

static bool print_word(struct print *c, struct word *w)
{
	print_peek(c);
	*w = (struct word){ .s = c->p, .n = word_len(c->p, SIZE_MAX, "") };
	c->p += w->n;
	return w->n;
}

/* "__get_" or "__get_rel_", then `what` */
static bool word_gets(const struct word *w, const char *what)
{
	struct word rest = { w->s + 6, w->n > 6 ? w->n - 6 : 0 };

	if (rest.n < 4 || memcmp(w->s, "__get_", 6))
		return false;
	if (!memcmp(rest.s, "rel_", 4))
		rest = (struct word){ rest.s + 4, rest.n - 4 };
	return word_is(&rest, what);
}

/* Parses a quoted string. To libtraceevent a quote after a backslash never ends it, not even after two. */
static bool print_string(struct print *c, char quote)
{
	for (c->p++; *c->p != quote; c->p++) {
		if (*c->p == '\\' && (c->p[1] == quote || c->p[1] == '\\')) {
			if (c->p[1] == '\\' && c->p[2] == quote)
				return print_unread(c);
			c->p++;
		}
		if ((*c->p < ' ' || *c->p == 0x7f) && *c->p != '\n')
			return print_unread(c);
	}
	c->p++;
	return true;
}

/* "one" "and the same" */
static bool print_strings(struct print *c)
{
	bool ok = true;

	while (ok && print_peek(c) == '"')
		ok = print_string(c, '"');
	return ok;
}

static void print_flush(struct print *c)
{
	buf_add(c->out, c->copied, (size_t)(c->p - c->copied));
	c->copied = c->p;
}

/* Up to `end`: a small number, or any expression, of which only the mask's bits are used. */
static bool print_masked(struct print *c, const char *mask, const char *end)
{
	char ch = print_peek(c), *start = c->p;
	struct word w;

	if (isdigit((unsigned char)ch) && print_word(c, &w) && w.n <= 3 && strchr(end, print_peek(c)))
		return true;
	c->p = start;
	if (c->fixup)
		return print_cond(c);
	print_flush(c);
	buf_addstr(c->out, "((");
	if (!print_cond(c))
		return false;
	print_flush(c);
	buf_printf(c->out, ") & %s)", mask);
	return true;
}

/* Parses the rest of "sizeof(". For any size but a long's, libtraceevent 1.7 frees the word twice. */
static bool print_sizeof(struct print *c)
{
	struct word w;
	bool is_long;

	if (print_word(c, &w) && word_is(&w, "unsigned"))
		print_word(c, &w);
	is_long = word_is(&w, "long");
	if (word_is(&w, "int") || word_is(&w, "REC") || (print_word(c, &w) && is_long && word_is(&w, "long")))
		return print_unread(c);
	while (print_word(c, &w))
		;
	return print_expect(c, ")");
}

/* Parses a divisor: a number other than 0. An operator that binds as closely would become part of it. */
static bool print_divisor(struct print *c)
{
	struct word w;
	bool is_number;

	if (!print_word(c, &w))
		return print_fail(c, -EINVAL, "divides by what may be 0");
	is_number = isdigit((unsigned char)*w.s) && strtoull(w.s, NULL, 0);
	if (word_is(&w, "sizeof") && print_accept(c, "("))
		is_number = print_sizeof(c);
	if (!is_number || (print_peek(c) && strchr("*/%[", *c->p)))
		return print_fail(c, -EINVAL, "divides by what may be 0");
	return true;
}

/* Parses the name of a field; NULL: there is none of that name. */
static const struct event_field *print_field(struct print *c)
{
	const struct event_field *f = NULL;
	struct word w;
	char name[128];

	if (!print_word(c, &w)) {
		print_unread(c);
		return NULL;
	}
	c->looked_at += c->f->n_fields + c->f->n_common;
	if (c->looked_at > PRINT_LOOKS_MAX) {
		print_fail(c, -E2BIG, "names its fields more often than any kernel's");
		return NULL;
	}
	if (w.n < sizeof(name)) {
		memcpy(name, w.s, w.n);
		name[w.n] = '\0';
		f = event_format_field(c->f, name);
	}
	if (!f)
		print_unread(c);
	return f;
}

/* Parses the rest after REC. */
static bool print_member(struct print *c)
{
	return print_expect(c, "->") && print_field(c);
}

/* Parses the rest of "__get_...(": a field with an offset and a length, ")". */
static bool print_dynamic(struct print *c, bool is_len)
{
	const struct event_field *f = print_field(c);

	if (!f)
		return false;
	/* libtraceevent writes to NULL for the length of a relative one */
	if (strncmp(f->type, "__data_loc", 10) && (is_len || strncmp(f->type, "__rel_loc", 9)))
		return print_unread(c);
	return print_expect(c, ")") && (print_peek(c) != '[' || print_unread(c));
}

/*
 * "[n]" of the operand that began at `start`: libtraceevent multiplies by the item's size without
 * asking. It reads one, and dereferences NULL after "? a : b".
 */
static bool print_index(struct print *c, const char *start)
{
	if (!print_accept(c, "["))
		return true;
	if (start == c->branch)
		return print_unread(c);
	return print_masked(c, INDEX_MASK, "]") && print_expect(c, "]") &&
	       (print_peek(c) != '[' || print_unread(c));
}

/* "{ 1, "a" }, { 2, "b" })" */
static bool print_pairs(struct print *c)
{
	while (!print_accept(c, ")")) {
		if (!print_expect(c, "{") || !print_cond(c) || !print_expect(c, ",") || !print_unary(c) ||
		    !print_expect(c, "}"))
			return false;
		if (!print_accept(c, ","))
			return print_expect(c, ")");
	}
	return true;
}

/* An array's start: libtraceevent would take other things for an address, too. */
static bool print_array(struct print *c, bool may_be_field)
{
	struct word w;

	if (!print_word(c, &w))
		return print_unread(c);
	if (word_is(&w, "REC") && may_be_field)
		return print_member(c);
	return word_gets(&w, "dynamic_array") && print_expect(c, "(") ? print_dynamic(c, false)
								      : print_unread(c);
}

/* __print_hex(array, bytes), __print_array(array, items, bytes of one) */
static bool print_items(struct print *c, bool sized)
{
	return print_array(c, true) && print_expect(c, ",") && print_masked(c, COUNT_MASK, ",)") &&
	       (!sized || (print_expect(c, ",") && print_cond(c))) && print_expect(c, ")");
}

/* A function of a plugin of libtraceevent's; these two read where their argument points. */
static bool print_call(struct print *c, const struct word *name)
{
	int pointer = word_is(name, "__le16_to_cpup") ? 0 : word_is(name, "scsi_trace_parse_cdb") ? 1 : -1;

	if (print_accept(c, ")"))
		return true;
	for (int i = 0; i == pointer ? print_array(c, false) : print_cond(c); i++)
		if (!print_accept(c, ","))
			return print_expect(c, ")");
	return false;
}

static bool print_function(struct print *c, const struct word *w)
{
	const struct choice *choice = c->fixup ? print_choice(w) : NULL;

	if (choice) {
		/* "str_yes_no(a)" becomes `((a) ? "yes" : "no")`. */
		buf_add(c->out, c->copied, (size_t)(w->s - c->copied));
		c->copied = c->p;
		buf_addstr(c->out, "((");
		if (!print_cond(c) || !print_expect(c, ")"))
			return false;
		print_flush(c);
		buf_printf(c->out, " ? \"%s\" : \"%s\")", choice->yes, choice->no);
		return c->fixed = true;
	}
	if (word_is(w, "__print_flags"))
		return print_cond(c) && print_expect(c, ",") &&
		       (print_peek(c) == '"' ? print_strings(c) : print_unread(c)) && print_expect(c, ",") &&
		       print_pairs(c);
	if (word_is(w, "__print_symbolic"))
		return print_cond(c) && print_expect(c, ",") && print_pairs(c);
	if (word_is(w, "__print_hex") || word_is(w, "__print_hex_str"))
		return print_items(c, false);
	if (word_is(w, "__print_array"))
		return print_items(c, true);
	if (word_gets(w, "str") || word_gets(w, "bitmask") || word_gets(w, "cpumask") ||
	    word_gets(w, "dynamic_array") || word_gets(w, "sockaddr") || word_is(w, "__get_sockaddr_rel"))
		return print_dynamic(c, false);
	if (word_gets(w, "dynamic_array_len"))
		return print_dynamic(c, true);
	return word_is(w, "sizeof") ? print_sizeof(c) : print_call(c, w);
}

/* "unsigned long *)": whether it is all up to the parenthesis; c is put back where it is not. */
static bool print_type(struct print *c)
{
	char *start = c->p;
	struct word w;

	if (print_word(c, &w)) {
		while (print_word(c, &w))
			;
		print_accept(c, "*");
		if (print_accept(c, ")"))
			return true;
	}
	c->p = start;
	return false;
}

static bool print_starts_operand(struct print *c)
{
	char ch = print_peek(c);

	return is_word_char(ch) || (ch && strchr("\"'(", ch));
}

/* Parses the rest after "(": "REC)->field", a cast, an expression. */
static bool print_paren(struct print *c, const char *operand)
{
	char *start = c->p;

	if (print_accept(c, "REC") && print_accept(c, ")"))
		return print_member(c) && print_index(c, operand);
	c->p = start;
	if (print_type(c)) {
		if (!print_starts_operand(c))
			return print_index(c, operand);
		if (operand == c->branch)
			c->branch = c->p;
		return print_deeper(c) && print_operand(c);
	}
	if (!print_cond(c) || !print_expect(c, ")"))
		return false;
	return print_starts_operand(c) ? print_unread(c) : print_index(c, operand);
}

static bool print_operand(struct print *c)
{
	char ch = print_peek(c);
	const char *start = c->p;
	struct word w;

	if (ch == '"')
		return print_strings(c);
	if (ch == '\'')
		return print_string(c, ch);
	if (print_accept(c, "("))
		return print_deeper(c) && print_paren(c, start);
	if (!print_word(c, &w))
		return print_unread(c);
	if (word_is(&w, "REC"))
		return print_member(c) && print_index(c, start);
	if (print_accept(c, "("))
		return print_deeper(c) && print_function(c, &w);
	while (print_word(c, &w)) /* a constant may be of several words */
		if (word_is(&w, "REC"))
			return print_unread(c);
	return true;
}

/* Bytes of the operator at p, as libtraceevent takes them together. */
static size_t operator_len(const char *p)
{
	if (strchr("-+|&<>", *p) && p[1] == *p)
		return strchr("<>", *p) && p[2] == '=' ? 3 : 2;
	if (p[0] == '-' && p[1] == '>')
		return 2;
	return strchr("-+|&<>!=", *p) && p[1] == '=' ? 2 : 1;
}

static bool print_unary(struct print *c)
{
	for (char ch = print_peek(c); ch && strchr("!~-+", ch) && operator_len(c->p) == 1;
	     ch = print_peek(c)) {
		c->p++;
		if (!print_deeper(c))
			return false;
	}
	return print_operand(c);
}

static bool is_operator(const char *p, size_t n)
{
	static const char *const known[] = { ">>", "<<", "&", "|", "&&", "||", "-",  "+",  "*",
					     "^",  "/",	 "%", "<", ">",	 "<=", ">=", "==", "!=" };

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (strlen(known[i]) == n && !memcmp(known[i], p, n))
			return true;
	return false;
}

/* libtraceevent reads "a + b + c" as "a + (b + c)" */
static bool print_binary(struct print *c)
{
	for (bool more = print_unary(c); more;) {
		char op = print_peek(c);
		size_t n = op ? operator_len(c->p) : 0;

		if (!n || !is_operator(c->p, n))
			return true;
		c->p += n;
		more = print_deeper(c) && (n == 1 && strchr("/%", op) ? print_divisor(c) : print_unary(c));
	}
	return false;
}

/* At "?", in front of ":": what was written since `from` once more. Nested ones double it each time. */
static bool print_elvis(struct print *c, size_t from)
{
	struct buf *out = c->out;
	char *copy;

	buf_add(out, c->copied, (size_t)(c->p - c->copied));
	while (out->len > from && out->data[out->len - 1] == ' ')
		out->len--;
	if (out->len > PRINT_FORMAT_MAX)
		return print_fail(c, -E2BIG, "grows beyond any kernel's");
	copy = out->bad ? NULL : strndup((char *)out->data + from, out->len - from);
	if (!copy)
		return print_fail(c, -ENOMEM, NULL);
	buf_printf(out, " ? %s ", copy);
	free(copy);
	c->copied = strchr(c->p, ':');
	return c->fixed = true;
}

/* The "a" of "a ? b : c", up to the '?'. */
static bool print_condition(struct print *c)
{
	size_t from;
	bool elvis;
	char *at;

	print_peek(c);
	if (c->fixup)
		print_flush(c);
	from = c->out->len;
	if (!print_deeper(c) || !print_binary(c))
		return false;
	at = c->p;
	elvis = c->fixup && print_accept(c, "?") && print_peek(c) == ':';
	c->p = at;
	return !elvis || print_elvis(c, from);
}

static bool print_cond(struct print *c)
{
	int depth = c->depth;
	bool ok = print_condition(c), elvis;

	if (ok && print_accept(c, "?")) {
		elvis = c->fixup && print_peek(c) == ':';
		ok = (elvis || print_cond(c)) && print_expect(c, ":");
		print_peek(c);
		c->branch = c->p;
		ok = ok && print_cond(c);
	}
	c->depth = depth;
	return ok;
}

/* The format: adjacent string literals, which are one, and the arguments that they take. */
static bool print_head(struct print *c)
{
	struct buf all = { 0 };
	bool ok = true;
	int ret;

	while (ok && print_peek(c) == '"') {
		const char *start = c->p + 1;

		ok = print_string(c, '"');
		buf_add(&all, start, ok ? (size_t)(c->p - 1 - start) : 0);
	}
	ret = buf_status(&all) ?: print_conversions(buf_str(&all), all.len, c->widths, PRINT_ARGS_MAX);
	buf_release(&all);
	if (ok && ret < 0)
		print_fail(c, ret,
			   ret == -E2BIG ? "has too many arguments or too great a width"
					 : "has a conversion that is none");
	return ok && ret >= 0;
}

static bool print_args(struct print *c)
{
	for (size_t i = 0; print_accept(c, ","); i++) {
		if (i == PRINT_ARGS_MAX)
			return print_fail(c, -E2BIG, "has too many arguments");
		if (c->widths[i] ? !print_masked(c, COUNT_MASK, ",") : !print_cond(c))
			return false;
	}
	return !print_peek(c) || print_unread(c);
}

/*
 * An event's print format, read from end to end by the part of C that kernels use, as libtraceevent reads it
 * (its operators, casts and calls). Appended to *out, with what libtraceevent would believe of a record
 * bounded: an array's index by `& 4095`, a width and a number of items by `& 65535`.
 *
 * -E2BIG: it is longer, deeper or wider than any kernel's; -EINVAL: it divides by what
 * may be 0, or has what libtraceevent cannot read either, as some kernels' have: only
 * then *why is NULL. *out is as it was. -ENOMEM.
 */
static int print_format_read(const struct event_format *f, bool fixup, struct buf *out, const char **why)
{
	struct print c = { .f = f, .out = out, .fixup = fixup };
	size_t before = out->len;
	char *text;

	if (strlen(f->print_fmt) > PRINT_FORMAT_MAX) {
		*why = "is longer than any kernel's";
		return -E2BIG;
	}
	text = strdup(f->print_fmt);
	if (!text)
		return -ENOMEM;
	c.p = c.copied = text;
	if (print_peek(&c) != '"')
		print_unread(&c);
	else if (print_head(&c) && print_args(&c))
		print_flush(&c);
	free(text);
	*why = c.why;
	if (c.ret && !out->bad)
		out->len = before;
	return buf_status(out) ?: c.ret ?: c.fixed;
}

int print_format_fixup(struct event_format *f, struct buf *out, const char **why)
{
	bool chars = print_chars(f->print_fmt);
	int ret = print_format_read(f, true, out, why);

	return ret ?: chars;
}

/* ---- an event's whole format ---- */

#define COMMON_MAX 16  /* kernels' have five */
#define FIELDS_MAX 512 /* and up to 40 of their own */

static size_t name_len(const char *s)
{
	return word_len(s, SIZE_MAX, "");
}

/* "[16]", "[]", "[(8 + 1)]" or nothing, to the end */
static bool brackets_sound(const char *s)
{
	return !*s || (*s == '[' && !strcmp(s + 1 + word_len(s + 1, SIZE_MAX, " +-*/()"), "]"));
}

/* "const char *", "__data_loc char[]" */
static bool type_sound(const char *s)
{
	if (!name_len(s))
		return false;
	while (name_len(s) || *s == ' ' || *s == '*')
		s += name_len(s) ? name_len(s) : 1;
	return brackets_sound(s);
}

static bool field_sound(const struct event_field *f)
{
	size_t n = name_len(f->name);
	bool dynamic = !strncmp(f->type, "__data_loc", 10) || !strncmp(f->type, "__rel_loc", 9);

	return n && brackets_sound(f->name + n) && type_sound(f->type) &&
	       (!f->name[n] || !strchr(f->type, '[')) &&
	       (!dynamic || f->size == 4); /* two bytes of offset, two of length */
}

/* libtraceevent takes the first of the whole file's fields for where a record's type is. */
static bool fields_sound(const struct event_format *f)
{
	const struct event_field *type = f->common;

	if (!f->n_common || f->n_common > COMMON_MAX || f->n_fields > FIELDS_MAX ||
	    strcmp(type->name, "common_type") || type->offset || type->size != 2)
		return false;
	for (size_t i = 0; i < f->n_common; i++)
		/* it looks for a name among these first, and we last */
		if (!field_sound(&f->common[i]) || strncmp(f->common[i].name, "common_", 7))
			return false;
	for (size_t i = 0; i < f->n_fields; i++)
		if (!field_sound(&f->fields[i]) || !strncmp(f->fields[i].name, "common_", 7))
			return false;
	return true;
}

static void checked_fields(struct buf *out, const struct event_field *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		buf_printf(out, "\tfield:%s %s;\toffset:%u;\tsize:%u;\tsigned:%d;\n", v[i].type, v[i].name,
			   v[i].offset, v[i].size, v[i].is_signed);
	buf_addstr(out, "\n");
}

int format_check(const char *text, size_t len, struct checked_format *f)
{
	struct event_format e;
	int ret = event_format_parse(text, len, &e);

	*f = (struct checked_format){ 0 };
	if (ret)
		return ret;
	ret = e.name[name_len(e.name)] || e.id > UINT16_MAX || !fields_sound(&e) ? -EBADMSG : 0;
	if (ret)
		goto out;
	f->name = strdup(e.name);
	f->id = e.id;
	buf_printf(&f->text, "name: %s\nID: %u\nformat:\n", e.name, e.id);
	checked_fields(&f->text, e.common, e.n_common);
	checked_fields(&f->text, e.fields, e.n_fields);
	buf_addstr(&f->text, "print fmt: ");
	ret = print_format_read(&e, false, &f->text, &f->why);
	buf_addstr(&f->text, "\n");
	ret = f->name && ret != -ENOMEM ? buf_status(&f->text) : -ENOMEM;
out:
	event_format_release(&e);
	return ret;
}

void checked_format_release(struct checked_format *f)
{
	free(f->name);
	buf_release(&f->text);
	*f = (struct checked_format){ 0 };
}
