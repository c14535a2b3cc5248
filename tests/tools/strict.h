/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef STRICT_H
#define STRICT_H

/* Bytes and Thrift's compact protocol for a reader that dies of whatever is not as it has to be. */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *file_name;

#define DIE(...)                                                                                             \
	do {                                                                                                 \
		fprintf(stderr, "parquetread: %s: ", file_name);                                             \
		fprintf(stderr, __VA_ARGS__);                                                                \
		fprintf(stderr, "\n");                                                                       \
		exit(1);                                                                                     \
	} while (0)
#define WANT(cond)                                                                                           \
	do {                                                                                                 \
		if (!(cond))                                                                                 \
			DIE("line %d: not so: %s", __LINE__, #cond);                                         \
	} while (0)

/* ---- bytes -------------------------------------------------------------------------- */

struct bytes {
	const uint8_t *p, *end;
};

static const uint8_t *take(struct bytes *b, uint64_t n)
{
	const uint8_t *p = b->p;

	WANT(n <= (uint64_t)(b->end - b->p));
	b->p += n;
	return p;
}

static uint64_t little(struct bytes *b, unsigned int n)
{
	const uint8_t *p = take(b, n);
	uint64_t v = 0;

	for (unsigned int i = 0; i < n; i++)
		v |= (uint64_t)p[i] << 8 * i;
	return v;
}

static uint64_t varint(struct bytes *b)
{
	uint64_t v = 0;

	for (unsigned int shift = 0;; shift += 7) {
		uint8_t c = *take(b, 1);

		WANT(shift < 63 || c < 2);
		v |= (uint64_t)(c & 0x7f) << shift;
		if (c < 0x80)
			return v;
	}
}

static int64_t zigzag(struct bytes *b)
{
	uint64_t v = varint(b);

	return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

/* ---- thrift's compact protocol --------------------------------------------------------- */

enum { T_I32 = 5, T_I64 = 6, T_BYTES = 8, T_LIST = 9, T_STRUCT = 12 };

#define NONE (-1)

/* Of a struct: its value if it is a number, else where it lies (a text's bytes alone). */
struct field {
	unsigned int type; /* 0: it is not there */
	int64_t n;
	struct bytes at;
};

#define FIELDS 16 /* by number */

static struct bytes text_of(struct bytes *b)
{
	uint64_t n = varint(b);
	const uint8_t *p = take(b, n);

	return (struct bytes){ p, p + n };
}

static size_t list_of(struct bytes *b, unsigned int type)
{
	uint8_t c = *take(b, 1);
	uint64_t n = c >> 4;

	WANT((c & 15) == type);
	if (n == 15)
		n = varint(b);
	WANT(n <= (uint64_t)(b->end - b->p));
	return n;
}

static void pass_struct(struct bytes *b);

static void pass(struct bytes *b, unsigned int type)
{
	unsigned int item;

	switch (type) {
	case T_I32:
	case T_I64:
		zigzag(b);
		break;
	case T_BYTES:
		text_of(b);
		break;
	case T_STRUCT:
		pass_struct(b);
		break;
	default:
		WANT(type == T_LIST && b->p < b->end);
		item = *b->p & 15;
		for (size_t n = list_of(b, item); n; n--)
			pass(b, item);
	}
}

/* The next field's number, after `last`; 0: the struct ends. */
static unsigned int next_field(struct bytes *b, unsigned int last, unsigned int *type)
{
	uint8_t c = *take(b, 1);

	*type = c & 15;
	WANT(!c || (c >> 4 && last + (c >> 4) < FIELDS));
	return c ? last + (c >> 4) : 0;
}

static void pass_struct(struct bytes *b)
{
	unsigned int type, id = 0;

	while ((id = next_field(b, id, &type)))
		pass(b, type);
}

/* Types: by number, i or l an integer, b a text, [ a list, { a struct; - or none: no such field may be there.
 */
static void read_struct(struct bytes *b, struct field f[FIELDS], const char *types)
{
	static const char letters[] = "-----il-b[--{---";
	unsigned int type, id = 0;

	for (unsigned int i = 0; i < FIELDS; i++)
		f[i] = (struct field){ .n = NONE };
	while ((id = next_field(b, id, &type))) {
		WANT(id < strlen(types) && types[id] == letters[type] && types[id] != '-');
		f[id].type = type;
		f[id].at.p = b->p;
		if (type == T_I32 || type == T_I64)
			f[id].n = zigzag(b);
		else if (type == T_BYTES)
			f[id].at = text_of(b);
		else
			pass(b, type);
		if (type != T_BYTES)
			f[id].at.end = b->p;
	}
}

static char *name_of(struct bytes s)
{
	size_t n = (size_t)(s.end - s.p);

	WANT(n && !memchr(s.p, 0, n));
	return strndup((const char *)s.p, n);
}

#endif
