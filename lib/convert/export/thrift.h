/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_THRIFT_H
#define HYPTRACE_THRIFT_H

#include "base/protobuf.h"

/*
 * Thrift's compact protocol, as much of it as Parquet's metadata needs, written field by field into a buf;
 * its specification is part of https://github.com/apache/thrift. Numbers are protobuf's. Out of memory the
 * buf is bad.
 */
enum thrift_type { THRIFT_I32 = 5, THRIFT_I64 = 6, THRIFT_BYTES = 8, THRIFT_LIST = 9, THRIFT_STRUCT = 12 };

#define THRIFT_DEEP 8 /* structs in structs */

struct thrift {
	struct buf *out;
	unsigned int deep;
	uint8_t last[THRIFT_DEEP]; /* of each struct, the field that was written last */
};

/* The head of a field. Fields of a struct come in the order of their numbers, all below 16. */
static inline void thrift_field(struct thrift *t, uint8_t field, enum thrift_type type)
{
	uint8_t byte = (uint8_t)((field - t->last[t->deep]) << 4 | type);

	t->last[t->deep] = field;
	buf_add(t->out, &byte, 1);
}

static inline void thrift_i32(struct thrift *t, uint8_t field, int32_t v)
{
	thrift_field(t, field, THRIFT_I32);
	pb_put_zigzag(t->out, v);
}

static inline void thrift_i64(struct thrift *t, uint8_t field, int64_t v)
{
	thrift_field(t, field, THRIFT_I64);
	pb_put_zigzag(t->out, v);
}

/* An item of a list of texts, too. */
static inline void thrift_text(struct buf *b, const void *data, size_t n)
{
	pb_put_varint(b, n);
	buf_add(b, data, n);
}

static inline void thrift_bytes(struct thrift *t, uint8_t field, const void *data, size_t n)
{
	thrift_field(t, field, THRIFT_BYTES);
	thrift_text(t->out, data, n);
}

/* n items come behind it: structs between thrift_begin() and thrift_end(), others without a header. */
static inline void thrift_list(struct thrift *t, uint8_t field, enum thrift_type type, size_t n)
{
	uint8_t byte = (uint8_t)((n < 15 ? n : 15) << 4 | type);

	thrift_field(t, field, THRIFT_LIST);
	buf_add(t->out, &byte, 1);
	if (n >= 15)
		pb_put_varint(t->out, n);
}

/* The item of a list, or the struct behind thrift_field(). */
static inline void thrift_begin(struct thrift *t)
{
	t->last[++t->deep] = 0;
}

static inline void thrift_end(struct thrift *t)
{
	t->deep--;
	buf_add(t->out, "", 1);
}

#endif
