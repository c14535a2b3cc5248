// SPDX-License-Identifier: LGPL-2.1-or-later
/* The host's print formats in words that libtraceevent can parse. */
#include "decode/printfmt.h"

#include <ctype.h>
#include <errno.h>
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

/* Each is walked once for every place that it is rewritten at: what is longer is no kernel's. */
#define PRINTFMT_MAX 65536
#define OPERAND_MAX  1024

/* Behind the ')' that closes what begins at p, or NULL. */
static const char *close_paren(const char *p)
{
	int depth = 1;

	for (size_t n = 0; n < OPERAND_MAX && *p; p++, n++) {
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

/* "?:" follows: the operand once more, 1. 0: there is none; -E2BIG: nested ones double it each time. */
static int rewrite_elvis(struct buf *out)
{
	char copy[OPERAND_MAX + 1];
	size_t len = out->len, room, n;

	while (len && out->data[len - 1] == ' ')
		len--;
	room = len < OPERAND_MAX ? len : OPERAND_MAX;
	n = operand((char *)out->data + len - room, room);
	if (!n || n == OPERAND_MAX)
		return n ? -E2BIG : 0;
	memcpy(copy, out->data + len - n, n);
	out->len = len;
	buf_printf(out, " ? %.*s :", (int)n, copy);
	return 1;
}

/* Walks the print format, whose strings are left alone: 1, or 0 when nothing changed. -E2BIG. */
static int rewrite_words(const char *p, struct buf *out)
{
	bool string = false;
	int rewritten = 0;

	while (*p) {
		bool code = !string && *p != '"';
		int elvis = code && p[0] == '?' && p[1] == ':' ? rewrite_elvis(out) : 0;
		const char *next = code && *p == 's' && !isalnum((unsigned char)p[-1]) && p[-1] != '_'
					   ? rewrite_choice(p, out)
					   : NULL;

		if (elvis < 0)
			return elvis;
		if (*p == '"' && p[-1] != '\\')
			string = !string;
		if (elvis)
			next = p + 2;
		if (next)
			rewritten = 1;
		else
			buf_add(out, p, 1);
		p = next ? next : p + 1;
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

int printfmt_rewrite(const char *text, size_t len, struct buf *out)
{
	static const char head[] = "\nprint fmt: ";
	char *copy = strndup(text, len), *fmt = copy ? strstr(copy, head) : NULL;
	size_t before = out->len;
	int ret = copy ? 0 : -ENOMEM, chars;

	if (fmt && strlen(fmt += strlen(head)) > PRINTFMT_MAX) {
		ret = -E2BIG;
	} else if (fmt && (strchr(fmt, '?') || strstr(fmt, "str_"))) {
		chars = rewrite_chars(fmt);
		buf_add(out, copy, (size_t)(fmt - copy));
		ret = rewrite_words(fmt, out) ?: chars;
		ret = buf_status(out) ?: ret;
	}
	if (ret <= 0 && !out->bad)
		out->len = before;
	free(copy);
	return ret;
}
