// SPDX-License-Identifier: LGPL-2.1-or-later
/* The values of a record's fields, never read beyond the record. */
#include "base/field.h"

static bool is_word_size(int size)
{
	return size == 1 || size == 2 || size == 4 || size == 8;
}

struct field_load field_load_word(const struct tep_format_field *f)
{
	struct field_load l = { FIELD_NONE };

	if (!f || f->offset < 0 || !is_word_size(f->size))
		return l;
	l.kind = FIELD_NUMBER;
	l.offset = (uint32_t)f->offset;
	l.size = (uint32_t)f->size;
	l.sign = f->flags & TEP_FIELD_IS_SIGNED ? (uint8_t)(64 - 8 * l.size) : 0;
	return l;
}

struct field_load field_load(const struct tep_format_field *f)
{
	struct field_load l = { FIELD_NONE };

	if (!f || f->offset < 0 || f->size < 0)
		return l;
	if (!(f->flags & (TEP_FIELD_IS_DYNAMIC | TEP_FIELD_IS_ARRAY)) && is_word_size(f->size))
		return field_load_word(f);
	if (f->flags & TEP_FIELD_IS_DYNAMIC)
		l.kind = FIELD_LOC;
	else if (f->flags & (TEP_FIELD_IS_ARRAY | TEP_FIELD_IS_STRING))
		l.kind = FIELD_BYTES;
	l.offset = (uint32_t)f->offset;
	l.size = (uint32_t)f->size;
	l.base = f->flags & TEP_FIELD_IS_RELATIVE ? l.offset + 4 : 0;
	return l;
}

uint64_t field_load_cut(const struct field_load *l, const void *record, size_t len)
{
	uint8_t bytes[8] = { 0 };

	if (l->offset < len && len - l->offset < sizeof(bytes))
		memcpy(bytes, (const uint8_t *)record + l->offset, len - l->offset);
	return field_word(l, bytes);
}

int field_load_bytes(const struct field_load *l, const void *record, size_t len, const uint8_t **data,
		     size_t *n)
{
	uint64_t offset = l->offset, size = l->size, loc;

	*data = (const uint8_t *)"";
	*n = 0;
	if (l->kind == FIELD_LOC) {
		if (size != 4 || !field_load_number(l, record, len, &loc))
			return -EBADMSG;
		offset = (loc & 0xffff) + l->base;
		size = loc >> 16;
	} else if (l->kind != FIELD_BYTES) {
		return 0;
	} else if (!size && len > offset) { /* to the end: "char buf[]" */
		size = len - offset;
	}
	if (!record || offset > len || size > len - offset)
		return -EBADMSG;
	*data = (const uint8_t *)record + offset;
	*n = (size_t)size;
	return 1;
}

bool field_is_number(const struct tep_format_field *f)
{
	return field_load(f).kind == FIELD_NUMBER;
}

bool field_number(const struct tep_format_field *f, const void *record, size_t len, uint64_t *out)
{
	struct field_load l = field_load_word(f);

	return field_load_number(&l, record, len, out);
}

int field_bytes(const struct tep_format_field *f, const void *record, size_t len, const uint8_t **data,
		size_t *n)
{
	struct field_load l = field_load(f);

	return field_load_bytes(&l, record, len, data, n);
}

size_t field_item_size(const struct tep_format_field *f)
{
	return f->elementsize <= 8 && is_word_size((int)f->elementsize) ? f->elementsize : 1;
}

struct field_load field_load_item(const struct tep_format_field *f)
{
	uint32_t size = (uint32_t)field_item_size(f);

	return (struct field_load){ .kind = FIELD_NUMBER,
				    .size = size,
				    .sign = f->flags & TEP_FIELD_IS_SIGNED ? (uint8_t)(64 - 8 * size) : 0 };
}
