/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_FIELD_H
#define HYPTRACE_FIELD_H

#include <traceevent/event-parse.h>

#include "util/base.h"

/*
 * The values of a record's fields, by libtraceevent's description of them.
 * Formats and records are foreign: nothing beyond the record's len bytes is read.
 */

/* Whether it is an integer of 1, 2, 4 or 8 bytes; NULL is none. */
bool field_is_number(const struct tep_format_field *f);
/* Its value, sign-extended when it is signed. False: the record ends before it. */
bool field_number(const struct tep_format_field *f, const void *record, size_t len, uint64_t *out);

/*
 * The bytes of a string or an array, at a fixed place or where __data_loc or
 * __rel_loc point: 1. 0: f is neither. -EBADMSG: the record ends before them.
 * Without 1, *data is "" and *n is 0.
 */
int field_bytes(const struct tep_format_field *f, const void *record, size_t len, const uint8_t **data,
		size_t *n);
/* Bytes of an array's item: 1, 2, 4 or 8; 1 when the format does not say. */
size_t field_item_size(const struct tep_format_field *f);

#endif
