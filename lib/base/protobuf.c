// SPDX-License-Identifier: LGPL-2.1-or-later
/* Protobuf messages: texts, lengths of more than a byte, and reading. */
#include "base/protobuf.h"

#include "base/escape.h"

#define NUMBER_MAX ((1u << 29) - 1)

void pb_text(struct buf *b, unsigned int field, const char *text, size_t n)
{
	size_t len = 0, begin;

	while (len < n && (uint8_t)text[len] - 1u < 0x7f)
		len++;
	if (len == n || !text[len]) {
		pb_bytes(b, field, text, len);
		return;
	}
	begin = pb_open(b, field);
	n = strnlen(text, n);
	for (size_t i = 0, k; i < n; i += k ? k : 1) {
		k = utf8_len((const uint8_t *)text + i, n - i);
		buf_add(b, k ? text + i : "\xef\xbf\xbd", k ? k : 3);
	}
	pb_close(b, begin);
}

/* The length has one byte so far. */
void pb_close_long(struct buf *b, size_t begin)
{
	uint8_t length[PB_VARINT_MAX];
	size_t n, len = b->len - begin;

	if (b->bad)
		return;
	n = (size_t)(pb_varint(length, len) - length);
	if (!buf_room(b, n))
		return;
	memmove(b->data + begin - 1 + n, b->data + begin, len);
	memcpy(b->data + begin - 1, length, n);
	b->len += n - 1;
}

uint64_t wire_varint(struct cursor *c)
{
	uint64_t v = 0;

	for (unsigned int shift = 0; shift < 64; shift += 7) {
		uint8_t byte = cursor_u8(c);

		if (c->bad || (shift == 63 && byte > 1))
			break;
		v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return v;
	}
	c->bad = true;
	return 0;
}

int wire_next(struct cursor *c, struct wire_field *f)
{
	uint64_t tag;

	*f = (struct wire_field){ 0 };
	if (c->bad)
		return -EBADMSG;
	if (!cursor_left(c))
		return 0;
	tag = wire_varint(c);
	f->number = tag >> 3 <= NUMBER_MAX ? (uint32_t)(tag >> 3) : 0;
	if (c->bad || !f->number)
		c->bad = true;
	else {
		switch (tag & 7) {
		case PB_VARINT:
			f->v = wire_varint(c);
			break;
		case PB_FIXED64:
			f->v = cursor_u64(c);
			break;
		case PB_FIXED32:
			f->v = cursor_u32(c);
			break;
		case PB_LEN:
			f->is_bytes = true;
			f->v = wire_varint(c);
			f->len = c->bad ? 0 : (size_t)f->v;
			f->data = f->v <= cursor_left(c) ? cursor_take(c, f->len) : NULL;
			c->bad |= !f->data;
			break;
		default:
			c->bad = true;
		}
	}
	return c->bad ? -EBADMSG : 1;
}
