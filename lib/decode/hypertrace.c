// SPDX-License-Identifier: LGPL-2.1-or-later
/* A line of QEMU's log, or of our guest library's, as a hypertrace event. */
#include "decode/hypertrace.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#define WORD_MAX 32

/* The next word of the line; its length is 0 at the end. */
static size_t next_word(const char **p, const char *end, const char **w)
{
	while (*p < end && isspace((unsigned char)**p))
		(*p)++;
	*w = *p;
	while (*p < end && !isspace((unsigned char)**p))
		(*p)++;
	return (size_t)(*p - *w);
}

static bool word_number(const char *s, size_t len, uint64_t *out)
{
	char text[WORD_MAX];

	if (!len || len >= sizeof(text))
		return false;
	memcpy(text, s, len);
	text[len] = 0;
	return parse_u64(text, out) == 0;
}

/* "arg3" is 3; 0: not of that form. */
static uint64_t arg_number(const char *s, size_t len)
{
	uint64_t n;

	if (len <= 3 || memcmp(s, "arg", 3) || !word_number(s + 3, len - 3, &n))
		return 0;
	return n;
}

/* Arguments come in order: what follows a gap is not an event that we know. */
static bool set_key(struct hypertrace_event *e, const char *key, size_t len, uint64_t value)
{
	if (len == 3 && !memcmp(key, "cpu", 3)) {
		e->has_cpu = true;
		e->cpu = value;
		return true;
	}
	if (len == 6 && !memcmp(key, "client", 6)) {
		e->has_client = true;
		e->client = value;
		return true;
	}
	if (e->n_args == HYPERTRACE_ARGS_MAX || arg_number(key, len) != e->n_args + 1)
		return false;
	e->arg[e->n_args++] = value;
	return true;
}

/* "TID@SEC.USEC:" in front of the name, where the name starts. */
static const char *name_in_line(const char *line, size_t len)
{
	const size_t name = strlen(HYPERTRACE_EVENT);
	const char *p = line, *colon;

	if (len && isdigit((unsigned char)*line)) {
		colon = memchr(line, ':', len);
		if (!colon || !memchr(line, '@', (size_t)(colon - line)))
			return NULL;
		p = colon + 1;
	}
	if ((size_t)(line + len - p) <= name || memcmp(p, HYPERTRACE_EVENT, name))
		return NULL;
	return isspace((unsigned char)p[name]) ? p : NULL;
}

bool hypertrace_line_parse(const char *line, size_t len, struct hypertrace_event *out)
{
	const char *p = name_in_line(line, len), *end = line + len, *w;
	size_t n;

	*out = (struct hypertrace_event){ 0 };
	if (!p)
		return false;
	p += strlen(HYPERTRACE_EVENT);
	while ((n = next_word(&p, end, &w))) {
		const char *eq = memchr(w, '=', n);
		uint64_t value;

		if (!eq || !word_number(eq + 1, (size_t)(w + n - eq - 1), &value))
			return false;
		if (!set_key(out, w, (size_t)(eq - w), value))
			return false;
	}
	return out->n_args > 0;
}
