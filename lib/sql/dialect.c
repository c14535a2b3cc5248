// SPDX-License-Identifier: LGPL-2.1-or-later
/* What queries that were written for Perfetto have beside SQLite's language. */
#include <ctype.h>
#include <string.h>

#include "sql/sql-priv.h"

/* Behind blanks and comments. */
static const char *sql_dialect_blanks(const char *p)
{
	for (;;) {
		while (isspace((unsigned char)*p))
			p++;
		if (p[0] == '-' && p[1] == '-') {
			p += strcspn(p, "\n");
		} else if (p[0] == '/' && p[1] == '*') {
			const char *end = strstr(p + 2, "*/");

			p = end ? end + 2 : p + strlen(p);
		} else {
			return p;
		}
	}
}

/* Behind the word, if it is the next one; NULL: it is not. */
static const char *sql_dialect_word(const char *p, const char *word)
{
	size_t n = strlen(word);

	p = sql_dialect_blanks(p);
	return strncasecmp(p, word, n) || isalnum((unsigned char)p[n]) || p[n] == '_' ? NULL : p + n;
}

/* INCLUDE PERFETTO MODULE name.of.it; */
static const char *sql_dialect_include(const char *p)
{
	static const char *const words[] = { "INCLUDE", "PERFETTO", "MODULE" };

	for (size_t i = 0; p && i < ARRAY_SIZE(words); i++)
		p = sql_dialect_word(p, words[i]);
	if (!p)
		return NULL;
	p = sql_dialect_blanks(p);
	while (isalnum((unsigned char)*p) || *p == '_' || *p == '.' || *p == '*')
		p++;
	p = sql_dialect_blanks(p);
	return *p == ';' ? p + 1 : *p ? NULL : p;
}

/* SELECT IMPORT("name.of.it"); */
static const char *sql_dialect_import(const char *p)
{
	p = sql_dialect_word(p, "SELECT");
	p = p ? sql_dialect_word(p, "IMPORT") : NULL;
	p = p ? sql_dialect_blanks(p) : NULL;
	if (!p || *p != '(')
		return NULL;
	p = sql_dialect_blanks(p + 1);
	if (*p != '"' && *p != '\'')
		return NULL;
	p = strchr(p + 1, *p);
	p = p ? sql_dialect_blanks(p + 1) : NULL;
	if (!p || *p != ')')
		return NULL;
	p = sql_dialect_blanks(p + 1);
	return *p == ';' ? p + 1 : *p ? NULL : p;
}

const char *sql_dialect_skip(const char *text)
{
	for (;;) {
		const char *p = sql_dialect_blanks(text), *next = sql_dialect_include(p);

		if (!next)
			next = sql_dialect_import(p);
		if (!next)
			return p;
		text = next;
	}
}
