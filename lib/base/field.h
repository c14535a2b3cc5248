/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_FIELD_H
#define HYPTRACE_FIELD_H

#include "base/std.h"
#include <traceevent/event-parse.h>

/*
 * The values of a record's fields, by libtraceevent's description of them.
 * Formats and records are foreign: nothing beyond the record's len bytes is read.
 */

/* Place and form of a value in a record: made once, then read from any number of records. */
struct field_load {
	enum field_kind {
		FIELD_NONE,   /* a struct, say: neither of the others */
		FIELD_NUMBER, /* of 1, 2, 4 or 8 bytes */
		FIELD_BYTES,  /* a string or an array; size 0: to the record's end */
		FIELD_LOC     /* the same at a place that the record says: length in the upper half, place
				 in the lower */
	} kind;
	uint32_t offset, size; /* bytes */
	uint32_t base;	       /* FIELD_LOC: added to the place */
	uint8_t sign;	       /* FIELD_NUMBER: by how much to shift left and back; 0: unsigned */
};

/* NULL, or one that lies nowhere: FIELD_NONE. */
struct field_load field_load(const struct tep_format_field *f);
/*
 * Its bytes as a number even if they are an array or a place, as libtraceevent's
 * filters take every field. FIELD_NONE: not of 1, 2, 4 or 8 bytes.
 */
struct field_load field_load_word(const struct tep_format_field *f);

/* Its size bytes at p, sign-extended when it is signed. */
static inline uint64_t field_word(const struct field_load *l, const uint8_t *p)
{
	uint64_t v = 0;

	switch (l->size) {
	case 1:
		v = *p;
		break;
	case 2:
		memcpy(&v, p, 2);
		break;
	case 4:
		memcpy(&v, p, 4);
		break;
	case 8:
		memcpy(&v, p, 8);
		break;
	}
	return (uint64_t)((int64_t)(v << l->sign) >> l->sign);
}

/* True if all size bytes of it lie in the record. */
static inline bool field_inside(const struct field_load *l, size_t len)
{
	return (uint64_t)l->offset + l->size <= len;
}

/* The value of a FIELD_NUMBER. False, and 0: the record ends before it. */
static inline bool field_load_number(const struct field_load *l, const void *record, size_t len,
				     uint64_t *out)
{
	bool there = field_inside(l, len);

	*out = there ? field_word(l, (const uint8_t *)record + l->offset) : 0;
	return there;
}

/* The same with zeros for what the record does not have. */
uint64_t field_load_cut(const struct field_load *l, const void *record, size_t len);
static inline uint64_t field_load_padded(const struct field_load *l, const void *record, size_t len)
{
	return field_inside(l, len) ? field_word(l, (const uint8_t *)record + l->offset)
				    : field_load_cut(l, record, len);
}

/*
 * The bytes of a FIELD_BYTES or FIELD_LOC: 1. 0: it is neither. -EBADMSG: the record ends
 * before them. Without 1, *data is "" and *n is 0.
 */
int field_load_bytes(const struct field_load *l, const void *record, size_t len, const uint8_t **data,
		     size_t *n);

/* Of one record, by the description itself: whether it is a number, its value, its bytes. */
bool field_is_number(const struct tep_format_field *f);
bool field_number(const struct tep_format_field *f, const void *record, size_t len, uint64_t *out);
int field_bytes(const struct tep_format_field *f, const void *record, size_t len, const uint8_t **data,
		size_t *n);
/* Bytes of an array's item: 1, 2, 4 or 8; 1 when the format does not say. */
size_t field_item_size(const struct tep_format_field *f);
/* Loads an item of an array. */
struct field_load field_load_item(const struct tep_format_field *f);

#endif
