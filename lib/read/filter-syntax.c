// SPDX-License-Identifier: LGPL-2.1-or-later
#include "read/filter-syntax.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPRESSION_MAX                                                                                       \
	400 /* libtraceevent's text for errors has 1024 bytes, and takes it twice                            \
	     */
#define DEPTH_MAX 64
#define ALNUM	  "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
#define ASCII	  ALNUM " \t\n!\"#$%&'()*+-./:;<=>?@[\\]^_`{|}~"

/*
 *	expression = term { ( "&&" | "||" ) term }
 *	term       = [ "!" ] ( "(" expression ")" | field operator value )
 *
 * where a value is a number or a string. The manual has fields there, too, which
 * libtraceevent does not know, and trips over; as it does over "!!".
 */
struct parse {
	const char *p;
	int depth;
	char *why;
	size_t size;
};

static int expression(struct parse *s);

static int fail(struct parse *s, const char *what)
{
	if (*s->p)
		snprintf(s->why, s->size, "%s at '%.20s'", what, s->p);
	else
		snprintf(s->why, s->size, "%s at its end", what);
	return -EINVAL;
}

static void skip_space(struct parse *s)
{
	s->p += strspn(s->p, " \t\n");
}

static bool take(struct parse *s, const char *token)
{
	size_t len = strlen(token);

	skip_space(s);
	if (strncmp(s->p, token, len))
		return false;
	s->p += len;
	return true;
}

static bool take_any(struct parse *s, const char *const *tokens)
{
	for (; *tokens; tokens++)
		if (take(s, *tokens))
			return true;
	return false;
}

static int field(struct parse *s)
{
	size_t len;

	skip_space(s);
	len = strspn(s->p, ALNUM "_");
	if (!len)
		return fail(s, "a field is missing");
	if (*s->p >= '0' && *s->p <= '9')
		return fail(s, "a field comes first");
	s->p += len;
	return 0;
}

static int number(struct parse *s)
{
	size_t len = strspn(s->p, ALNUM "_");
	char *end;

	if (!len)
		return fail(s, "a value is missing");
	strtoull(s->p, &end, 0);
	if (end != s->p + len)
		return fail(s, "neither a number nor a string in quotes");
	s->p = end;
	return 0;
}

/* Of a string there is no escape. */
static int value(struct parse *s)
{
	const char *end;

	skip_space(s);
	if (*s->p == '-')
		return fail(s, "no negative numbers here (a field of 4 bytes holds -1 as "
			       "0xffffffffffffffff)");
	if (*s->p != '"' && *s->p != '\'')
		return number(s);
	end = strchr(s->p + 1, *s->p);
	if (!end)
		return fail(s, "a string is not closed");
	s->p = end + 1;
	return 0;
}

static int comparison(struct parse *s)
{
	/* longer ones first */
	static const char *const operators[] = { "==", "!=", "=~", "!~", ">=", "<=", "<<", ">>", ">", "<",
						 "&",  "|",  "^",  "+",	 "-",  "*",  "/",  "%",	 NULL };
	int ret = field(s);

	if (ret)
		return ret;
	skip_space(s);
	/* these join comparisons */
	if (!strncmp(s->p, "&&", 2) || !strncmp(s->p, "||", 2) || !take_any(s, operators))
		return fail(s, "a comparison is missing");
	return value(s);
}

static int term(struct parse *s)
{
	int ret;

	if (++s->depth > DEPTH_MAX)
		return fail(s, "too many parentheses");
	if (take(s, "!") && take(s, "!"))
		return fail(s, "two '!' are none");
	if (take(s, "(")) {
		ret = expression(s);
		if (!ret && !take(s, ")"))
			ret = fail(s, "a ')' is missing");
	} else {
		ret = comparison(s);
	}
	s->depth--;
	return ret;
}

static int expression(struct parse *s)
{
	static const char *const joins[] = { "&&", "||", NULL };
	int ret;

	do
		ret = term(s);
	while (!ret && take_any(s, joins));
	return ret;
}

int filter_syntax(const char *filter, char *why, size_t size)
{
	const char *colon = strchr(filter, ':');
	struct parse s = { .p = colon ? colon + 1 : "", .why = why, .size = size };
	int ret;

	if (!colon)
		return 0;
	if (strlen(s.p) > EXPRESSION_MAX) {
		snprintf(why, size, "longer than %d characters: give several", EXPRESSION_MAX);
		return -EINVAL;
	}
	s.p += strspn(s.p, ASCII);
	if (*s.p)
		return fail(&s, "only ASCII without a comma is understood");
	s.p = colon + 1;
	ret = expression(&s);
	skip_space(&s);
	return ret || !*s.p ? ret : fail(&s, "nothing is expected");
}
