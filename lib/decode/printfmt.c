// SPDX-License-Identifier: LGPL-2.1-or-later
/* The host's print formats in words that libtraceevent can parse. */
#include "decode/printfmt.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Behind the ')' that closes what begins at p, or NULL. */
static const char *close_paren(const char *p)
{
	int depth = 1;

	for (; *p; p++) {
		depth += (*p == '(') - (*p == ')');
		if (!depth)
			return p + 1;
	}
	return NULL;
}

/* p is at a function of the table: writes its choice, returns what follows it. NULL: it is none. */
static const char *rewrite_choice(const char *p, struct buf *out)
{
	for (size_t i = 0; i < ARRAY_SIZE(choices); i++) {
		char name[32];
		size_t n = (size_t)snprintf(name, sizeof(name), "str_%s_%s(", choices[i].yes, choices[i].no);
		const char *end;

		if (strncmp(p, name, n))
			continue;
		end = close_paren(p + n);
		if (!end)
			return NULL;
		buf_printf(out, "((%.*s) ? \"%s\" : \"%s\")", (int)(end - 1 - (p + n)), p + n, choices[i].yes,
			   choices[i].no);
		return end;
	}
	return NULL;
}

/* The operand that ends at the end of the text: a name, REC->name, or something in parentheses. */
static size_t operand(const char *text, size_t len)
{
	size_t at = len;

	if (at && text[at - 1] == ')') {
		for (int depth = 0; at; at--) {
			depth += (text[at - 1] == ')') - (text[at - 1] == '(');
			if (!depth) {
				at--;
				break;
			}
		}
	}
	while (at && (isalnum((unsigned char)text[at - 1]) || strchr("_>.-", text[at - 1])))
		at--;
	return len - at;
}

/* "?:" follows: the operand once more. False: there is none. */
static bool rewrite_elvis(struct buf *out)
{
	size_t len = out->len, n;
	char *copy;

	while (len && out->data[len - 1] == ' ')
		len--;
	n = operand((char *)out->data, len);
	copy = n ? strndup((char *)out->data + len - n, n) : NULL;
	if (!copy)
		return false;
	out->len = len;
	buf_printf(out, " ? %s :", copy);
	free(copy);
	return true;
}

/* Walks the print format; strings are left alone. */
static bool rewrite_words(const char *p, struct buf *out)
{
	bool string = false, rewritten = false;
	const char *next;

	while (*p) {
		if (*p == '"' && p[-1] != '\\')
			string = !string;
		if (!string && p[0] == '?' && p[1] == ':' && rewrite_elvis(out)) {
			rewritten = true;
			p += 2;
			continue;
		}
		next = !string && *p == 's' && !isalnum((unsigned char)p[-1]) && p[-1] != '_'
			       ? rewrite_choice(p, out)
			       : NULL;
		if (next) {
			rewritten = true;
			p = next;
			continue;
		}
		buf_add(out, p++, 1);
	}
	return rewritten;
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
static bool rewrite_chars(char *fmt)
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

bool printfmt_rewrite(const char *text, size_t len, struct buf *out)
{
	static const char head[] = "\nprint fmt: ";
	char *copy = strndup(text, len), *fmt = copy ? strstr(copy, head) : NULL;
	size_t before = out->len;
	bool rewritten = false;

	if (fmt && (strchr(fmt, '?') || strstr(fmt, "str_"))) {
		fmt += strlen(head);
		rewritten = rewrite_chars(fmt);
		buf_add(out, copy, (size_t)(fmt - copy));
		rewritten |= rewrite_words(fmt, out);
	}
	if (!rewritten)
		out->len = before;
	free(copy);
	return rewritten;
}
