// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads command lines by a table of options, and makes the usage text from it. */
#include "util/opts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USAGE_COLUMN 22 /* width of the options in the usage text */

/* ---- messages --------------------------------------------------------------- */

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

const char *opt_name(const struct opt *o, char text[32])
{
	if (o->key)
		snprintf(text, 32, "-%c", o->key);
	else
		snprintf(text, 32, "--%s", o->name);
	return text;
}

/* ---- what options set -------------------------------------------------------- */

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
	char **field = opt_field(ctx, o), *copy;

	if (!*arg)
		return opts_wrong(err, o, arg, "empty");
	copy = strdup(arg);
	if (!copy)
		return -ENOMEM;
	free(*field);
	*field = copy;
	return 0;
}

int opts_set_number(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	char why[80] = "not a number";
	uint64_t n;

	if (parse_u64(arg, &n))
		return opts_wrong(err, o, arg, why);
	if (n < o->min || n > o->max) {
		snprintf(why, sizeof(why), "must be at %s %llu", n < o->min ? "least" : "most",
			 (unsigned long long)(n < o->min ? o->min : o->max));
		return opts_wrong(err, o, arg, why);
	}
	memcpy(opt_field(ctx, o), &n, sizeof(n));
	return 0;
}

int opts_set_seconds(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	char *end, why[80];
	double ms = strtod(arg, &end) * 1000;
	int64_t n;

	if (end == arg || *end || !(ms >= (double)o->min && ms <= (double)o->max)) {
		snprintf(why, sizeof(why), "not a number of seconds from %g to %g", (double)o->min / 1e3,
			 (double)o->max / 1e3);
		return opts_wrong(err, o, arg, why);
	}
	n = (int64_t)ms;
	memcpy(opt_field(ctx, o), &n, sizeof(n));
	return 0;
}

int opts_add_text(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	return strlist_add(opt_field(ctx, o), o->text ? o->text : arg);
}

int opts_help(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	return OPTS_STOP;
}

/* ---- parsing ------------------------------------------------------------------ */

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
	if (!w->t->command)
		return opts_error(w->err, "option '%.*s' is not known here", len, name);
	return opts_error(w->err, "option '%.*s' is unknown or not unique: see %s -h", len, name,
			  w->t->command);
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

/* ---- usage ----------------------------------------------------------------------- */

static void usage_option(struct buf *out, const struct opt *o)
{
	char left[64];
	int n = 0;

	if (o->key)
		n = snprintf(left, sizeof(left), "-%c%s", o->key, o->name ? ", " : "");
	if (o->name)
		n += snprintf(left + n, sizeof(left) - (size_t)n, "--%s", o->name);
	if (o->arg)
		snprintf(left + n, sizeof(left) - (size_t)n, "%s%s", !strncmp(o->arg, "[=", 2) ? "" : " ",
			 o->arg);
	buf_printf(out, "  %-*s ", USAGE_COLUMN, left);
	for (const char *s = o->help; *s; s++)
		if (*s == '\n')
			buf_printf(out, "\n%*s", USAGE_COLUMN + 3, "");
		else
			buf_add(out, s, 1);
	buf_addstr(out, "\n");
}

void opts_usage(const struct opts_table *t, struct buf *out)
{
	buf_addstr(out, t->usage);
	for (const struct opt *o = t->rows; o < t->rows + t->n; o++) {
		if (o->instead)
			continue;
		if (o->key || o->name)
			usage_option(out, o);
		else
			buf_printf(out, "\n%s:\n", o->help);
	}
	if (t->foot)
		buf_addstr(out, t->foot);
}
