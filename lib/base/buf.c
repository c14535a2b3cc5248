// SPDX-License-Identifier: LGPL-2.1-or-later
/* Bytes that grow. */
#include "base/buf.h"

#include <stdarg.h>

#define SHORT 80 /* bytes: most printed texts need no second try */

void buf_release(struct buf *b)
{
	free(b->data);
	*b = (struct buf){ 0 };
}

void *buf_grow(struct buf *b, size_t len)
{
	size_t cap = b->cap ? b->cap : 256;
	uint8_t *data;

	if (b->bad)
		return NULL;
	if (len < b->cap - b->len)
		return b->data + b->len;
	while (cap - b->len <= len) {
		if (cap > SIZE_MAX / 2)
			goto fail;
		cap *= 2;
	}
	data = realloc(b->data, cap);
	if (!data)
		goto fail;
	b->data = data;
	b->cap = cap;
	return b->data + b->len;
fail:
	buf_release(b);
	b->bad = true;
	return NULL;
}

void buf_addstr(struct buf *b, const char *s)
{
	buf_add(b, s, strlen(s));
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	size_t room = SHORT;
	va_list ap;
	int n;

	while (buf_room(b, room)) {
		va_start(ap, fmt);
		n = vsnprintf((char *)b->data + b->len, room + 1, fmt, ap);
		va_end(ap);
		if (n <= (int)room) {
			b->len += n > 0 ? (size_t)n : 0;
			return;
		}
		room = (size_t)n;
	}
}

char *put_decimal(char *at, uint64_t v, size_t width, char fill)
{
	size_t n = 1;
	char *end, *digit;

	for (uint64_t most = 10; v >= most && n < DECIMAL_MAX; most *= 10)
		n++;
	for (; width > n; width--)
		*at++ = fill;
	end = digit = at + n;
	/* two at a time: a division is what takes time */
	for (; v >= 100; v /= 100) {
		unsigned int two = (unsigned int)(v % 100);

		*--digit = (char)('0' + two % 10);
		*--digit = (char)('0' + two / 10);
	}
	if (v >= 10)
		*--digit = (char)('0' + v % 10);
	*--digit = (char)('0' + (v >= 10 ? v / 10 : v));
	return end;
}

void buf_add_digits(struct buf *b, uint64_t v, size_t width)
{
	char *at = buf_room(b, width + DECIMAL_MAX);

	b->len += at ? (size_t)(put_decimal(at, v, width, '0') - at) : 0;
}

void buf_add_i64(struct buf *b, int64_t v)
{
	if (v < 0)
		buf_add(b, "-", 1);
	buf_add_u64(b, v < 0 ? -(uint64_t)v : (uint64_t)v);
}

void buf_add_utf8(struct buf *b, uint32_t u)
{
	static const uint8_t lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };
	size_t n = u < 0x80 ? 1 : u < 0x800 ? 2 : u < 0x10000 ? 3 : 4;
	uint8_t bytes[4];

	for (size_t i = n; i-- > 1; u >>= 6)
		bytes[i] = 0x80 | (u & 0x3f);
	bytes[0] = lead[n] | (uint8_t)u;
	buf_add(b, bytes, n);
}

const char *buf_str(struct buf *b)
{
	if (!buf_room(b, 1))
		return NULL;
	b->data[b->len] = 0;
	return (const char *)b->data;
}

int buf_status(const struct buf *b)
{
	return b->bad ? -ENOMEM : 0;
}
