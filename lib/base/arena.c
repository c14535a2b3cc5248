// SPDX-License-Identifier: LGPL-2.1-or-later
/* Memory for many small things, in chunks. */
#include "base/arena.h"

#include <stdarg.h>

#include "base/escape.h"

#define CHUNK 16384

struct arena_chunk {
	struct arena_chunk *next;
	size_t size, used;
	_Alignas(max_align_t) uint8_t data[];
};

void *arena_alloc(struct arena *a, size_t n)
{
	const size_t align = _Alignof(max_align_t);
	struct arena_chunk *c = a->chunks;
	void *p;

	n = (n + align - 1) / align * align;
	if (!c || n > c->size - c->used) {
		size_t size = n > CHUNK ? n : CHUNK;

		c = malloc(sizeof(*c) + size);
		if (!c) {
			a->bad = true;
			return NULL;
		}
		*c = (struct arena_chunk){ .next = a->chunks, .size = size };
		a->chunks = c;
	}
	p = c->data + c->used;
	memset(p, 0, n);
	c->used += n;
	a->used += n;
	return p;
}

char *arena_text(struct arena *a, const void *text, size_t n)
{
	static const char wrong[] = "\xef\xbf\xbd";
	const uint8_t *p = text;
	size_t len = strnlen(text, n), to = 0;
	size_t room = len;
	char *out;

	for (size_t i = 0, k; i < len; i += k ? k : 1) {
		k = utf8_len(p + i, len - i);
		room += k ? 0 : sizeof(wrong) - 2;
	}
	out = arena_alloc(a, room + 1);
	if (!out)
		return (char *)"";
	for (size_t i = 0, k; i < len; i += k ? k : 1) {
		k = utf8_len(p + i, len - i);
		memcpy(out + to, k ? (const char *)p + i : wrong, k ? k : sizeof(wrong) - 1);
		to += k ? k : sizeof(wrong) - 1;
	}
	return out;
}

char *arena_printf(struct arena *a, const char *fmt, ...)
{
	char *s = NULL, *out;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vasprintf(&s, fmt, ap);
	va_end(ap);
	if (n < 0) {
		a->bad = true;
		return (char *)"";
	}
	out = arena_text(a, s, (size_t)n);
	free(s);
	return out;
}

static void arena_chunks_free(struct arena_chunk *c)
{
	while (c) {
		struct arena_chunk *next = c->next;

		free(c);
		c = next;
	}
}

void arena_reset(struct arena *a)
{
	if (a->chunks) { /* one stays, for the next round */
		arena_chunks_free(a->chunks->next);
		a->chunks->next = NULL;
		a->chunks->used = 0;
	}
	a->used = 0;
	a->bad = false;
}

void arena_release(struct arena *a)
{
	arena_chunks_free(a->chunks);
	*a = (struct arena){ 0 };
}
