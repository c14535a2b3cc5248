// SPDX-License-Identifier: LGPL-2.1-or-later
/* The values of a record's fields, never read beyond the record. */
#include "util/field.h"

#include <errno.h>

static bool is_word_size(int size)
{
	return size == 1 || size == 2 || size == 4 || size == 8;
}

bool field_is_number(const struct tep_format_field *f)
{
	return f && f->offset >= 0 && !(f->flags & (TEP_FIELD_IS_DYNAMIC | TEP_FIELD_IS_ARRAY)) &&
	       is_word_size(f->size);
}

/* The bytes [offset, offset + n) of the record, or NULL. */
static const uint8_t *within(const void *record, size_t len, uint64_t offset, uint64_t n)
{
	if (!record || offset > len || n > len - offset)
		return NULL;
	return (const uint8_t *)record + offset;
}

bool field_number(const struct tep_format_field *f, const void *record, size_t len, uint64_t *out)
{
	const uint8_t *p = within(record, len, (uint64_t)f->offset, (uint64_t)f->size);
	unsigned int shift = 64 - 8 * (unsigned int)f->size;

	*out = 0;
	if (!p)
		return false;
	*out = tep_read_number(f->event->tep, p, f->size);
	if (f->flags & TEP_FIELD_IS_SIGNED)
		*out = (uint64_t)((int64_t)(*out << shift) >> shift);
	return true;
}

/* __data_loc and __rel_loc: length in the upper half, place in the lower. */
static bool dynamic_place(const struct tep_format_field *f, const void *record, size_t len, uint64_t *offset,
			  uint64_t *n)
{
	const uint8_t *p = f->size == 4 ? within(record, len, (uint64_t)f->offset, 4) : NULL;
	uint32_t loc;

	if (!p)
		return false;
	loc = (uint32_t)tep_read_number(f->event->tep, p, 4);
	*offset = loc & 0xffff;
	*n = loc >> 16;
	if (f->flags & TEP_FIELD_IS_RELATIVE)
		*offset += (uint64_t)f->offset + 4;
	return true;
}

int field_bytes(const struct tep_format_field *f, const void *record, size_t len, const uint8_t **data,
		size_t *n)
{
	uint64_t offset, size;
	const uint8_t *p;

	*data = (const uint8_t *)"";
	*n = 0;
	if (!f || f->offset < 0 || f->size < 0)
		return 0;
	offset = (uint64_t)f->offset;
	size = (uint64_t)f->size;
	if (f->flags & TEP_FIELD_IS_DYNAMIC) {
		if (!dynamic_place(f, record, len, &offset, &size))
			return -EBADMSG;
	} else if (!(f->flags & (TEP_FIELD_IS_ARRAY | TEP_FIELD_IS_STRING))) {
		return 0;
	} else if (!size && len > offset) { /* to the end: "char buf[]" */
		size = len - offset;
	}
	p = within(record, len, offset, size);
	if (!p)
		return -EBADMSG;
	*data = p;
	*n = (size_t)size;
	return 1;
}

size_t field_item_size(const struct tep_format_field *f)
{
	return f->elementsize <= 8 && is_word_size((int)f->elementsize) ? f->elementsize : 1;
}
