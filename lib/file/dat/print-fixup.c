// SPDX-License-Identifier: LGPL-2.1-or-later
/* Rewrites what the host's kernel uses in print formats and libtraceevent does not know. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

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
