/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_BUF_H
#define HYPTRACE_BUF_H

#include "base/std.h"

/* Zero-initialised = empty. A failed allocation sets bad and drops the data. */
struct buf {
	uint8_t *data;
	size_t len, cap;
	bool bad;
};

/* Frees the data; *b is empty again. */
void buf_release(struct buf *b);
/* Room for len more bytes and one behind b->len, which the caller moves on; NULL: no memory, b is bad. */
void *buf_grow(struct buf *b, size_t len);
static inline void *buf_room(struct buf *b, size_t len)
{
	return len < b->cap - b->len ? b->data + b->len : buf_grow(b, len);
}
#define DECIMAL_MAX 20 /* digits of any number */

/*
 * Writes v in decimal at `at`, `width` characters or more with `fill` in front; room for
 * DECIMAL_MAX more is there. Returns the end.
 */
char *put_decimal(char *at, uint64_t v, size_t width, char fill);
/* Append bytes, a string, printf's text, a number in decimal: of `width` digits or more. */
static inline void buf_add(struct buf *b, const void *data, size_t len)
{
	void *at = len ? buf_room(b, len) : NULL;

	if (!at)
		return;
	memcpy(at, data, len);
	b->len += len;
}
void buf_addstr(struct buf *b, const char *s);
void buf_printf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void buf_add_digits(struct buf *b, uint64_t v, size_t width);
#define buf_add_u64(b, v) buf_add_digits(b, v, 1)
void buf_add_i64(struct buf *b, int64_t v);
/* The UTF-8 of a code point up to U+10FFFF. */
void buf_add_utf8(struct buf *b, uint32_t u);
/* NUL-ends the data (the NUL is not counted in len); "" when empty, NULL when bad. */
const char *buf_str(struct buf *b);
/* -ENOMEM when an earlier call failed, else 0. */
int buf_status(const struct buf *b);

#endif
