// SPDX-License-Identifier: LGPL-2.1-or-later
/* Recognises files that can be imported by their first bytes, and lines of a trace in a kernel's log. */
#include "convert/import/pftrace-priv.h"

/* "12@1763692800.123456:name", or "2026-11-21T02:23:57.441296Z name". */
static bool guess_qemu_line(const char *line)
{
	unsigned int n[6];
	char end;

	return (sscanf(line, "%u@%u.%u%c", &n[0], &n[1], &n[2], &end) == 4 && end == ':') ||
	       (sscanf(line, "%4u-%2u-%2uT%2u:%2u:%2u%c", &n[0], &n[1], &n[2], &n[3], &n[4], &n[5], &end) ==
			7 &&
		end == '.');
}

/* "[002] 29.508246: hyp_enter", as tracefs prints the hypervisor's records, after lines that begin with #. */
static bool guess_hyp_line(const char *line)
{
	unsigned int n[3];
	char end;

	while (*line == '#' && strchr(line, '\n'))
		line = strchr(line, '\n') + 1;
	line += strcspn(line, "[\n");
	return sscanf(line, "[%u] %u.%u%c", &n[0], &n[1], &n[2], &end) == 4 && end == ':' &&
	       strstr(line, ": hyp_");
}

/* Field 1 of a Trace, a packet, begins with a field of its own. */
static bool guess_perfetto(const uint8_t *data, size_t len)
{
	size_t i = 1;

	while (i < len && i < 5 && data[i] & 0x80)
		i++;
	return len > 2 && data[0] == 0x0a && ++i < len && data[i] >> 3 && strchr("\x01\x02\x05", data[i] & 7);
}

const char *import_guess(const void *data, size_t len)
{
	struct cursor c = cursor_at(data, len);
	char text[1025];
	size_t n = len < sizeof(text) - 1 ? len : sizeof(text) - 1;

	if (cursor_u64(&c) == SIMPLE_HEADER && cursor_u64(&c) == SIMPLE_MAGIC && !c.bad)
		return "qemu-log";
	memcpy(text, data, n);
	text[n] = '\0';
	for (size_t i = 0; i < n; i++)
		if (!isprint((unsigned char)text[i]) && !isspace((unsigned char)text[i]))
			return guess_perfetto(data, len) ? "perfetto" : NULL;
	return guess_qemu_line(text) ? "qemu-log" : guess_hyp_line(text) ? "hyp" : NULL;
}

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
