// SPDX-License-Identifier: GPL-2.0-only
#include "opts.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LONG_ONLY 0x100 /* getopt's value for a row without a letter: its index above this */

struct getopt_text {
	char *letters;
	struct option *names;
};

static const struct opt_row *row_at(const struct opts_table *t, size_t i)
{
	return (const struct opt_row *)((const char *)t->rows + i * t->size);
}

static int row_key(const struct opts_table *t, size_t i)
{
	const struct opt_row *o = row_at(t, i);

	return o->key ? o->key : LONG_ONLY + (int)i;
}

static const struct opt_row *find_row(const struct opts_table *t, int key)
{
	for (size_t i = 0; i < t->n; i++)
		if (row_key(t, i) == key)
			return row_at(t, i);
	return NULL;
}

static void getopt_release(struct getopt_text *g)
{
	free(g->letters);
	free(g->names);
}

static int getopt_tables(const struct opts_table *t, struct getopt_text *g)
{
	struct option *name;
	char *c;

	g->letters = calloc(3 * t->n + 3, 1);
	g->names = calloc(t->n + 1, sizeof(*g->names));
	if (!g->letters || !g->names)
		return -ENOMEM;
	c = g->letters;
	name = g->names;
	if (t->in_order)
		*c++ = '+';
	*c++ = ':'; /* a missing argument is told from an unknown option */
	for (size_t i = 0; i < t->n; i++) {
		const struct opt_row *o = row_at(t, i);
		int has_arg = !o->arg ? no_argument : *o->arg == '[' ? optional_argument : required_argument;

		if (o->key) {
			*c++ = o->key;
			if (has_arg)
				*c++ = ':';
			if (has_arg == optional_argument)
				*c++ = ':';
		}
		if (o->name)
			*name++ = (struct option){ o->name, has_arg, NULL, row_key(t, i) };
	}
	return 0;
}

int opts_verror(struct opts_error *err, const char *fmt, va_list ap)
{
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	return -EINVAL;
}

int opts_error(struct opts_error *err, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	opts_verror(err, fmt, ap);
	va_end(ap);
	return -EINVAL;
}

const char *opt_name(const struct opt_row *o, char text[32])
{
	if (o->key)
		snprintf(text, 32, "-%c", o->key);
	else
		snprintf(text, 32, "--%s", o->name);
	return text;
}

/* What getopt refused; arg: the word that a long option stands in. */
static int bad_option(const struct opts_table *t, int c, const char *arg, struct opts_error *err)
{
	char letter[3] = { '-', (char)optopt, 0 };
	bool is_long = !optopt || optopt >= LONG_ONLY;
	const char *name = is_long ? arg : letter;
	int len = (int)strcspn(name, is_long ? "=" : "");

	if (c == ':')
		return opts_error(err, "option '%.*s' needs an argument", len, name);
	if (find_row(t, optopt))
		return opts_error(err, "option '%.*s' takes no argument", len, name);
	return opts_error(err, "option '%.*s' is unknown or not unique: see %s -h", len, name, t->command);
}

static int apply_row(const struct opt_row *o, const char *arg, opts_apply *apply, void *ctx,
		     struct opts_error *err)
{
	char name[32];

	if (o->instead)
		return opts_error(err, "%s is not served: %s", opt_name(o, name), o->instead);
	return apply(ctx, o, arg);
}

int opts_parse(const struct opts_table *t, int argc, char **argv, opts_apply *apply, void *ctx,
	       struct opts_error *err)
{
	struct getopt_text g;
	int c, ret = getopt_tables(t, &g);

	if (ret)
		opts_error(err, "out of memory");
	opterr = 0;
	optind = 0; /* glibc: start anew */
	while (!ret && (c = getopt_long(argc, argv, g.letters, g.names, NULL)) != -1) {
		if (c == '?' || c == ':')
			ret = bad_option(t, c, argv[optind - 1], err);
		else
			ret = apply_row(find_row(t, c), optarg, apply, ctx, err);
	}
	getopt_release(&g);
	return ret;
}

/* ---- usage ----------------------------------------------------------------------- */

static void usage_line(struct buf *out, const struct opt_row *o)
{
	char left[64];
	int n = 0;

	if (o->key)
		n = snprintf(left, sizeof(left), "-%c%s", o->key, o->name ? ", " : "");
	if (o->name)
		n += snprintf(left + n, sizeof(left) - (size_t)n, "--%s", o->name);
	if (o->arg)
		snprintf(left + n, sizeof(left) - (size_t)n, " %s", o->arg);
	buf_printf(out, "  %-22s %s\n", left, o->help);
}

void opts_usage(const struct opts_table *t, struct buf *out)
{
	for (size_t i = 0; i < t->n; i++) {
		const struct opt_row *o = row_at(t, i);

		if (o->instead)
			continue;
		if (o->key || o->name)
			usage_line(out, o);
		else
			buf_printf(out, "\n%s:\n", o->help);
	}
}
