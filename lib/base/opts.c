// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads command lines by a table of options, and makes the usage text from it. */
#include "base/opts.h"

#include <stdarg.h>

#define USAGE_COLUMN 22 /* width of the options in the usage text */
#define USAGE_WORDS  54 /* ... and of the words after them */

int opts_error(struct opts_error *err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	return -EINVAL;
}

int opts_wrong(struct opts_error *err, const struct opt *o, const char *arg, const char *why)
{
	char name[32];

	return opts_error(err, "%s %s: %s", opt_name(o, name), arg && *arg ? arg : "''", why);
}

int opts_wrong_word(struct opts_error *err, const struct opt *o, const char *arg)
{
	char why[256];

	snprintf(why, sizeof(why), "not one of %s", o->words);
	return opts_wrong(err, o, arg, why);
}

const char *opt_name(const struct opt *o, char text[32])
{
	if (o->key)
		snprintf(text, 32, "-%c", o->key);
	else
		snprintf(text, 32, "--%s", o->name);
	return text;
}

static void *opt_field(void *ctx, const struct opt *o)
{
	return (char *)ctx + o->off;
}

int opts_set_flag(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	*(bool *)opt_field(ctx, o) = true;
	return 0;
}

int opts_set_text(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	*(const char **)opt_field(ctx, o) = arg;
	return 0;
}

int opts_set_copy(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	return *arg ? str_take(opt_field(ctx, o), strdup(arg)) : opts_wrong(err, o, arg, "empty");
}

/* n into the field, if it lies within the row's limits; they are shown as amounts where the row has units. */
static int set_bounded(void *ctx, const struct opt *o, const char *arg, uint64_t n, struct opts_error *err)
{
	static const struct unit none[] = { { "", 1 }, { NULL } };
	uint64_t limit = n < o->min ? o->min : o->max;
	char why[80], text[32];

	if (n < o->min || n > o->max) {
		amount_text(o->units ? limit * o->unit : limit, o->units ?: none, text);
		snprintf(why, sizeof(why), "must be at %s %s", n < o->min ? "least" : "most", text);
		return opts_wrong(err, o, arg, why);
	}
	memcpy(opt_field(ctx, o), &n, sizeof(n));
	return 0;
}

int opts_set_number(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	uint64_t n;

	return parse_u64(arg, &n) ? opts_wrong(err, o, arg, "not a number")
				  : set_bounded(ctx, o, arg, n, err);
}

int opts_set_amount(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	uint64_t n = UINT64_MAX;

	if (parse_amount(arg, o->units, o->plain, &n) == -EINVAL)
		return opts_wrong(err, o, arg,
				  o->units == size_units ? "not a size such as 64K, 8M, 2G"
							 : "not a duration such as 250us, 10ms, 2s");
	return set_bounded(ctx, o, arg, n / o->unit + (n % o->unit > 0), err);
}

int opts_add_text(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	return strlist_add(opt_field(ctx, o), o->text ? o->text : arg);
}

int opts_help(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	return OPTS_STOP;
}

struct opts_words {
	const struct opts_table *t;
	void *ctx;
	struct opts_error *err;
	int argc, next; /* next: the first word that is not yet taken */
	char **argv;
};

static int opts_dispatch(struct opts_words *w, const struct opt *o, const char *arg)
{
	char name[32];

	if (w->t->dispatch)
		return w->t->dispatch(w->ctx, o, arg, w->err);
	if (o->instead)
		return opts_error(w->err, "%s is not served: %s", opt_name(o, name), o->instead);
	return o->set(w->ctx, o, arg, w->err);
}

/* name: as it was written. inside: what stands behind it in its own word, or NULL. */
static int opts_with_arg(struct opts_words *w, const struct opt *o, const char *name, int len,
			 const char *inside)
{
	const char *next = w->next < w->argc ? w->argv[w->next] : NULL;

	if (inside)
		return opts_dispatch(w, o, inside);
	if (*o->arg == '[' && (o->arg[1] == '=' || !next || next[0] == '-'))
		return opts_dispatch(w, o, NULL);
	if (!next)
		return opts_error(w->err, "option '%.*s' needs an argument", len, name);
	w->next++;
	return opts_dispatch(w, o, next);
}

static int opts_unknown(struct opts_words *w, const char *name, int len)
{
	struct nearest near = { .typed = name + 2, .len = len > 2 ? (size_t)len - 2 : 0 };
	const char *program = w->t->command;
	char meant[80] = "";

	if (!program)
		return opts_error(w->err, "option '%.*s' is not known here", len, name);
	for (const struct opt *o = w->t->rows; o < w->t->rows + w->t->n; o++)
		if (o->name && !o->instead)
			nearest_offer(&near, o->name);
	if (near.word)
		snprintf(meant, sizeof(meant), ": did you mean '--%s'?", near.word);
	return opts_error(w->err, "unknown or ambiguous option '%.*s'%s (see %s%s -h)", len, name, meant,
			  strncmp(program, "hyptrace", 8) ? "hyptrace " : "", program);
}

/* By its whole name, or by a beginning that no other has. */
static const struct opt *opts_find(const struct opts_table *t, const char *name, size_t len)
{
	const struct opt *found = NULL;
	size_t n = 0;

	for (const struct opt *o = t->rows; o < t->rows + t->n; o++) {
		if (!o->name || strncmp(o->name, name, len))
			continue;
		if (!o->name[len])
			return o;
		found = o;
		n++;
	}
	return n == 1 && len && !t->whole_names ? found : NULL;
}

static int opts_long(struct opts_words *w, const char *word)
{
	const char *end = strchrnul(word, '=');
	int len = (int)(end - word);
	const struct opt *o = opts_find(w->t, word + 2, (size_t)len - 2);

	if (!o)
		return opts_unknown(w, word, len);
	if (o->arg)
		return opts_with_arg(w, o, word, len, *end ? end + 1 : NULL);
	if (*end)
		return opts_error(w->err, "option '%.*s' takes no argument", len, word);
	return opts_dispatch(w, o, NULL);
}

/* "-qe kvm" */
static int opts_letters(struct opts_words *w, const char *word)
{
	for (const char *c = word + 1; *c; c++) {
		const char name[] = { '-', *c, 0 };
		const struct opt *o = w->t->rows, *end = o + w->t->n;
		int ret;

		while (o < end && o->key != *c)
			o++;
		if (o == end)
			return opts_unknown(w, name, 2);
		if (o->arg)
			return opts_with_arg(w, o, name, 2, c[1] ? c + 1 : NULL);
		ret = opts_dispatch(w, o, NULL);
		if (ret)
			return ret;
	}
	return 0;
}

int opts_parse(const struct opts_table *t, int *argc, char **argv, void *ctx, struct opts_error *err)
{
	struct opts_words w = { .t = t, .ctx = ctx, .err = err, .argc = *argc, .argv = argv, .next = 1 };
	int kept = 1;

	err->text[0] = 0;
	while (w.next < w.argc) {
		char *word = argv[w.next++];
		int ret;

		if (word[0] != '-' || !word[1]) {
			argv[kept++] = word;
			if (t->in_order)
				break;
			continue;
		}
		if (!strcmp(word, "--"))
			break;
		ret = word[1] == '-' ? opts_long(&w, word) : opts_letters(&w, word);
		if (ret == -ENOMEM)
			opts_error(err, "out of memory");
		if (ret)
			return ret;
	}
	while (w.next < w.argc)
		argv[kept++] = argv[w.next++];
	argv[kept] = NULL;
	*argc = kept;
	return 0;
}

void opts_usage(const struct opts_table *t, struct buf *out)
{
	buf_addstr(out, t->usage);
	for (const struct opt *o = t->rows; o < t->rows + t->n; o++) {
		if (o->instead)
			continue;
		if (o->key || o->name) {
			size_t column = 0, len;
			char left[64];
			int n = 0;

			if (o->key)
				n = snprintf(left, sizeof(left), "-%c%s", o->key, o->name ? ", " : "");
			if (o->name)
				n += snprintf(left + n, sizeof(left) - (size_t)n, "--%s", o->name);
			if (o->arg)
				snprintf(left + n, sizeof(left) - (size_t)n, "%s%s",
					 !strncmp(o->arg, "[=", 2) ? "" : " ", o->arg);
			buf_printf(out, "  %-*s ", USAGE_COLUMN, left);
			for (const char *s = o->help; *s; s++)
				if (*s == '\n')
					buf_printf(out, "\n%*s", USAGE_COLUMN + 3, "");
				else
					buf_add(out, s, 1);
			for (const char *s = o->words ?: ""; *s; s += len + (s[len] == ' ')) {
				len = strcspn(s, " ");
				if (s == o->words || column + len > USAGE_WORDS) {
					buf_printf(out, "%s\n%*s", s == o->words ? ":" : "", USAGE_COLUMN + 3,
						   "");
					column = 0;
				}
				buf_printf(out, "%s%.*s", column ? " " : "", (int)len, s);
				column += len + 1;
			}
			if (o->plain)
				buf_printf(out, "; a plain number: %s",
					   amount_text(o->plain, o->units, left) + 1);
			buf_addstr(out, "\n");
		} else
			buf_printf(out, "\n%s:\n", o->help);
	}
	if (t->foot)
		buf_addstr(out, t->foot);
}
