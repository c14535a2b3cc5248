/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_PFTRACE_WIRE_H
#define HYPTRACE_PFTRACE_WIRE_H

#include "util/base.h"

/*
 * Protobuf messages read field by field, where they lie:
 * https://protobuf.dev/programming-guides/encoding. Groups, which Perfetto has none of, are bad.
 */
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

/* ... of the fields of a message that lies in f. */
static inline struct cursor wire_message(const struct wire_field *f)
{
	return cursor_at(f->data, f->len);
}

#endif
