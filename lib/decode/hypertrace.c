// SPDX-License-Identifier: LGPL-2.1-or-later
/* A line of QEMU's log, or of our guest library's, as a hypertrace event. */
#include "decode/hypertrace.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define BLANKS " \t\n\v\f\r"

/* Arguments come in order: what follows a gap is not an event that we know. */
static bool set_key(struct hypertrace_event *e, const char *key, uint64_t value)
{
	uint64_t n;

	if (!strcmp(key, "cpu")) {
		e->has_cpu = true;
		e->cpu = value;
		return true;
	}
	if (!strcmp(key, "client")) {
		e->has_client = true;
		e->client = value;
		return true;
	}
	if (e->n_args == HYPERTRACE_ARGS_MAX || strncmp(key, "arg", 3) || parse_u64(key + 3, &n) ||
	    n != e->n_args + 1)
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

/* "cpu=0x10 arg1=2 ...": cuts the text up. */
static bool event_keys(struct hypertrace_event *e, char *text)
{
	char *save = NULL;

	for (char *w = strtok_r(text, BLANKS, &save); w; w = strtok_r(NULL, BLANKS, &save)) {
		char *eq = strchr(w, '=');
		uint64_t value;

		if (!eq || parse_u64(eq + 1, &value))
			return false;
		*eq = 0;
		if (!set_key(e, w, value))
			return false;
	}
	return e->n_args > 0;
}

uint64_t hypertrace_source(uint64_t client, const char *guest, size_t len)
{
	uint32_t h = 2166136261u;

	for (size_t i = 0; i < len; i++)
		h = (h ^ (uint8_t)guest[i]) * 16777619;
	return 1ull << 63 | (uint64_t)(h & 0x7fffffff) << 32 | (uint32_t)client;
}

bool hypertrace_line_parse(const char *line, size_t len, struct hypertrace_event *out)
{
	const char *p = name_in_line(line, len), *keys = p ? p + strlen(HYPERTRACE_EVENT) : NULL;
	char *copy = keys && !memchr(line, 0, len) ? strndup(keys, (size_t)(line + len - keys)) : NULL;
	bool ok;

	*out = (struct hypertrace_event){ 0 };
	ok = copy && event_keys(out, copy);
	free(copy);
	return ok;
}
