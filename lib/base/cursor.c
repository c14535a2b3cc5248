// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads foreign bytes within their bounds. */
#include "base/cursor.h"

struct cursor cursor_at(const void *data, size_t len)
{
	const uint8_t *p = data ? data : (const void *)""; /* C has no NULL + 0 */

	return (struct cursor){ .p = p, .end = p + len };
}

size_t cursor_left(const struct cursor *c)
{
	return (size_t)(c->end - c->p);
}

const void *cursor_take(struct cursor *c, size_t len)
{
	const uint8_t *p = c->p;

	if (c->bad || len > cursor_left(c)) {
		c->bad = true;
		return NULL;
	}
	c->p += len;
	return p;
}

#define CURSOR_INT(name, type)                                                                               \
	type name(struct cursor *c)                                                                          \
	{                                                                                                    \
		const void *p = cursor_take(c, sizeof(type));                                                \
		type v = 0;                                                                                  \
                                                                                                             \
		if (p)                                                                                       \
			memcpy(&v, p, sizeof(v));                                                            \
		return v;                                                                                    \
	}

CURSOR_INT(cursor_u8, uint8_t)
CURSOR_INT(cursor_u16, uint16_t)
CURSOR_INT(cursor_u32, uint32_t)
CURSOR_INT(cursor_u64, uint64_t)

const char *cursor_str(struct cursor *c)
{
	const char *s = (const char *)c->p;
	const uint8_t *nul = c->bad ? NULL : memchr(c->p, 0, cursor_left(c));

	if (!nul) {
		c->bad = true;
		return NULL;
	}
	c->p = nul + 1;
	return s;
}

bool cursor_line(struct cursor *c, const char **line, size_t *len)
{
	const uint8_t *nl;

	if (c->bad || c->p == c->end)
		return false;
	nl = memchr(c->p, '\n', cursor_left(c));
	*line = (const char *)c->p;
	*len = (size_t)((nl ? nl : c->end) - c->p);
	c->p = nl ? nl + 1 : c->end;
	return true;
}

int cursor_peek(const struct cursor *c)
{
	return c->bad || c->p == c->end ? -1 : *c->p;
}

bool cursor_accept(struct cursor *c, char ch)
{
	if (cursor_peek(c) != ch)
		return false;
	c->p++;
	return true;
}

bool cursor_word(struct cursor *c, const char *text)
{
	const uint8_t *p = c->p;

	for (; *text; text++, p++)
		if (c->bad || p == c->end || *p != (uint8_t)*text)
			return false;
	c->p = p;
	return true;
}

size_t cursor_decimal(struct cursor *c, uint64_t *v)
{
	const uint8_t *p = c->p, *start = p, *end = c->bad ? p : c->end;
	uint64_t n = 0;

	for (; p < end && *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(n, (uint64_t)10, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(*p - '0'), &n))
			return 0;
	*v = n;
	c->p = p;
	return (size_t)(p - start);
}

void cursor_blanks(struct cursor *c)
{
	while (cursor_accept(c, ' ') || cursor_accept(c, '\t') || cursor_accept(c, '\n') ||
	       cursor_accept(c, '\r'))
		;
}
