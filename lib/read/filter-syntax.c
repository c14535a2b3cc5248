// SPDX-License-Identifier: LGPL-2.1-or-later
/* Checks a filter's syntax before libtraceevent gets it, which crashes on some wrong ones. */
#include "read/filter.h"

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
