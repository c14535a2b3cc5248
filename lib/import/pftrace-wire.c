// SPDX-License-Identifier: LGPL-2.1-or-later
/* Protobuf messages, field by field. */
#include "import/pftrace-wire.h"

#include <errno.h>

#define NUMBER_MAX ((1u << 29) - 1)

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

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

static void wire_value(struct cursor *c, struct wire_field *f, unsigned int type)
{
	switch (type) {
	case WIRE_VARINT:
		f->v = wire_varint(c);
		break;
	case WIRE_FIXED64:
		f->v = cursor_u64(c);
		break;
	case WIRE_FIXED32:
		f->v = cursor_u32(c);
		break;
	case WIRE_BYTES:
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
	else
		wire_value(c, f, tag & 7);
	return c->bad ? -EBADMSG : 1;
}
