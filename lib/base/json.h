/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_JSON_H
#define HYPTRACE_JSON_H

#include "base/buf.h"

/*
 * JSON (RFC 8259) out of and into what we need.
 *
 * Writing: values are put one after the other, commas and indentation come by
 * themselves. Inside an object, json_key before each value. Text that is not
 * UTF-8 (thread names, file names) gets U+FFFD for each byte that is wrong.
 */
#define JSON_DEPTH  62
#define JSON_SCHEMA 1

struct json {
	struct buf *out; /* the caller's; buf_status returns -ENOMEM if memory ran out */
	unsigned int depth;
	uint64_t used; /* bit per depth: something stands there already */
	bool keyed;    /* a key was written and waits for its value */
	bool compact;  /* one line, no blanks */
};

/*
 * Each appends one thing to out: the begin or end of an object or array, an object's next key, a value.
 * Strings are escaped, and so is in them what a terminal would obey; bytes that are no UTF-8 become U+FFFD.
 */
void json_object(struct json *j);
void json_object_end(struct json *j);
void json_array(struct json *j);
void json_array_end(struct json *j);
void json_key(struct json *j, const char *key);
void json_str(struct json *j, const char *s); /* NULL: null */
void json_strn(struct json *j, const char *s, size_t len);
void json_u64(struct json *j, uint64_t v);
/* An array of n numbers; of these. */
void json_row(struct json *j, const uint64_t *v, size_t n);
#define JSON_ROW(j, ...)                                                                                     \
	json_row(j, (const uint64_t[]){ __VA_ARGS__ }, sizeof((const uint64_t[]){ __VA_ARGS__ }) / 8)
void json_i64(struct json *j, int64_t v);
void json_double(struct json *j, double v); /* NaN and infinities: null */
void json_bool(struct json *j, bool v);
void json_null(struct json *j);

/* A string alone, for who writes the rest himself. */
void json_quoted(struct buf *out, const char *s, size_t len);

/* Key and value at once. */
void json_key_str(struct json *j, const char *key, const char *s);
void json_key_u64(struct json *j, const char *key, uint64_t v);
void json_key_array(struct json *j, const char *key);

/*
 * Reading: a value is a slice of a text which json_parse has found to be valid
 * throughout; it lives as long as the text.
 */
struct json_value {
	const char *p;
	size_t len;
};

/* Checks the text: one value, blanks around it. -EBADMSG: not JSON, or deeper than JSON_DEPTH. */
int json_parse(const char *text, size_t len, struct json_value *out);
/* The value of an object's member (the first of that name). False: none, or no object. */
bool json_member(struct json_value v, const char *key, struct json_value *out);
/* Items of an array in turn; *at is 0 at first. False: at the end, or no array. */
bool json_item(struct json_value v, size_t *at, struct json_value *out);
/* A number without sign, fraction or exponent (or a string that holds one: QEMU writes both). */
bool json_get_u64(struct json_value v, uint64_t *out);
/* A string decoded, malloc'ed; NULL: no string, one with a NUL inside, or no memory. */
char *json_get_str(struct json_value v);

#endif
