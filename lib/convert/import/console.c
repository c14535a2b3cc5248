// SPDX-License-Identifier: LGPL-2.1-or-later
/* Lines of a trace among a kernel's messages: a console's log, dmesg, pstore. */
#include "convert/import/import-priv.h"
#include "base/cursor.h"

#include <ctype.h>
#include <string.h>

/* "[   80.929138]", "[    T1]": blanks and numbers, with one of the marks; a trace's "[003]" has none. */
static void skip_brackets(struct cursor *c, const char *marks)
{
	const uint8_t *p = c->p;
	bool marked = false;

	if (p == c->end || *p++ != '[')
		return;
	while (p < c->end && *p == ' ')
		p++;
	for (; p < c->end && *p && (isdigit(*p) || strchr(marks, *p)); p++)
		marked |= !isdigit(*p);
	if (marked && p < c->end && *p == ']')
		c->p = p + 1;
}

/* "<6>[   80.929138][    T1] "; false: there is none, and c stays. */
static bool skip_printk(struct cursor *c)
{
	struct cursor at = *c;
	const uint8_t *p = at.p;

	/* "<6>", where messages come with their level */
	if (p < at.end && *p++ == '<')
		while (p < at.end && isdigit(*p))
			p++;
	if (p > at.p + 1 && p < at.end && *p == '>')
		at.p = p + 1;
	skip_brackets(&at, ".");
	skip_brackets(&at, "TC@");
	if (at.p == c->p || at.p == at.end || *at.p != ' ')
		return false;
	c->p = at.p + 1;
	return true;
}

/* "[003]\t", its tab maybe made blanks, "CPU:3 [LOST " */
static bool is_trace(const struct cursor *c)
{
	const size_t len = cursor_left(c);

	if (len && *c->p == '[')
		return memmem(c->p, len, "]\t", 2) || memmem(c->p, len, "]  ", 3);
	return len > 4 && !memcmp(c->p, "CPU:", 4) && memmem(c->p, len, " [LOST ", 7);
}

const char *import_trace_line(const char *line, size_t *len)
{
	struct cursor c = cursor_at(line, *len);

	while (c.end > c.p && (c.end[-1] == '\n' || c.end[-1] == '\r'))
		c.end--;
	if (skip_printk(&c) && !is_trace(&c))
		return NULL;
	*len = cursor_left(&c);
	return (const char *)c.p;
}
