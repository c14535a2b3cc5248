// SPDX-License-Identifier: LGPL-2.1-or-later
/* Rewrites what libtraceevent does not know in print formats, and takes their conversions apart. */
#include <ctype.h>

#include "file/dat/print-format.h"
#include "base/array.h"

/* include/linux/string_choices.h: str_YES_NO(condition) */
static const struct {
	const char *yes, *no;
} choices[] = {
	{ "assert", "deassert" }, { "enable", "disable" }, { "enabled", "disabled" }, { "hi", "lo" },
	{ "lo", "hi" },		  { "high", "low" },	   { "low", "high" },	      { "input", "output" },
	{ "on", "off" },	  { "off", "on" },	   { "read", "write" },	      { "write", "read" },
	{ "true", "false" },	  { "false", "true" },	   { "up", "down" },	      { "down", "up" },
	{ "yes", "no" },	  { "no", "yes" },
};

bool print_choice(const char *name, size_t n, const char **yes, const char **no)
{
	for (size_t i = 0; i < ARRAY_SIZE(choices); i++) {
		char known[32];

		snprintf(known, sizeof(known), "str_%s_%s", choices[i].yes, choices[i].no);
		if (n != strlen(known) || memcmp(name, known, n))
			continue;
		*yes = choices[i].yes;
		*no = choices[i].no;
		return true;
	}
	return false;
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
 * of two, both become strings. In place: no byte more or less.
 */
bool print_chars(char *fmt)
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
