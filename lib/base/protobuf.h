/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_PROTOBUF_H
#define HYPTRACE_PROTOBUF_H

#include "base/cursor.h"
#include "base/buf.h"

/*
 * Protobuf messages: https://protobuf.dev/programming-guides/encoding. They are written field by field after
 * the content of a buf, without a copy of them in memory; out of memory the buf is bad.
 */

/* Encoding of a field's value, in the low bits of its tag. */
enum { PB_VARINT = 0, PB_FIXED64 = 1, PB_LEN = 2, PB_FIXED32 = 5 };

#define PB_VARINT_MAX 10 /* bytes */

static inline uint8_t *pb_varint(uint8_t *at, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		*at++ = (uint8_t)v | 0x80;
	*at++ = (uint8_t)v;
	return at;
}

/* A number without a tag; zigzag: one of either sign, of which small ones are short. */
static inline void pb_put_varint(struct buf *b, uint64_t v)
{
	uint8_t *at = buf_room(b, PB_VARINT_MAX);

	if (at)
		b->len = (size_t)(pb_varint(at, v) - b->data);
}

static inline void pb_put_zigzag(struct buf *b, int64_t v)
{
	pb_put_varint(b, (uint64_t)v << 1 ^ -(uint64_t)(v < 0));
}

/* The head of n bytes; a number; at most 2 * PB_VARINT_MAX bytes each. */
static inline uint8_t *pb_head(uint8_t *at, unsigned int field, size_t n)
{
	return pb_varint(pb_varint(at, (uint64_t)field << 3 | PB_LEN), n);
}

static inline uint8_t *pb_field(uint8_t *at, unsigned int field, uint64_t v)
{
	return pb_varint(pb_varint(at, (uint64_t)field << 3 | PB_VARINT), v);
}

/* A tag, and the number behind it. */
static inline void pb_tagged(struct buf *b, uint64_t tag, uint64_t v)
{
	uint8_t *at = buf_room(b, 2 * PB_VARINT_MAX);

	if (at)
		b->len = (size_t)(pb_varint(pb_varint(at, tag), v) - b->data);
}

/* An integer of any type but sint and fixed, or a bool; negative ones extended to 64 bits. */
static inline void pb_number(struct buf *b, unsigned int field, uint64_t v)
{
	pb_tagged(b, field << 3 | PB_VARINT, v);
}

/* The head of n bytes. */
static inline void pb_length(struct buf *b, unsigned int field, size_t n)
{
	pb_tagged(b, field << 3 | PB_LEN, n);
}

static inline void pb_bytes(struct buf *b, unsigned int field, const void *data, size_t n)
{
	pb_length(b, field, n);
	buf_add(b, data, n);
}

/* A text of at most n bytes, up to its first NUL: each byte that is no UTF-8 becomes U+FFFD. */
void pb_text(struct buf *b, unsigned int field, const char *text, size_t n);

/* A message as a field: what is written between the two calls. pb_open's result is for pb_close. */
static inline size_t pb_open(struct buf *b, unsigned int field)
{
	pb_length(b, field, 0);
	return b->len;
}

void pb_close_long(struct buf *b, size_t begin);
static inline void pb_close(struct buf *b, size_t begin)
{
	if (!b->bad && b->len - begin < 0x80)
		b->data[begin - 1] = (uint8_t)(b->len - begin);
	else
		pb_close_long(b, begin);
}

/* ---- reading: field by field, in place. Groups, which Perfetto has none of, are bad. ----- */

struct wire_field {
	uint32_t number;
	bool is_bytes;
	uint64_t v;	     /* varint, fixed64, fixed32 */
	const uint8_t *data; /* is_bytes: text, message, packed numbers; the message's own */
	size_t len;
};

/* 1: *f filled in. 0: end of the message. -EBADMSG: no field; nothing comes after. */
int wire_next(struct cursor *c, struct wire_field *f);
/* A varint; 0 and c->bad: there is none, or it has more than 64 bits. */
uint64_t wire_varint(struct cursor *c);

/* Cursor of the fields of a message in f. */
static inline struct cursor wire_message(const struct wire_field *f)
{
	return cursor_at(f->data, f->len);
}

#endif
