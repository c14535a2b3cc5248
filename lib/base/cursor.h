/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_CURSOR_H
#define HYPTRACE_CURSOR_H

#include "base/std.h"

/*
 * A place in a byte range. A read past the end returns zeros or NULL and sets
 * `bad`, which stays set: check it once after a run of reads.
 */
struct cursor {
	const uint8_t *p;
	const uint8_t *end;
	bool bad;
};

/* A cursor over len bytes, which stay the caller's; and how many are left. */
struct cursor cursor_at(const void *data, size_t len);
size_t cursor_left(const struct cursor *c);
/* The next len bytes (owned by the range), or NULL and bad. */
const void *cursor_take(struct cursor *c, size_t len);
/* Native-endian integers: ring-buffer pages and the files made from them. */
uint8_t cursor_u8(struct cursor *c);
uint16_t cursor_u16(struct cursor *c);
uint32_t cursor_u32(struct cursor *c);
uint64_t cursor_u64(struct cursor *c);
/* A NUL-ended string inside the range, or NULL and bad. */
const char *cursor_str(struct cursor *c);
/*
 * The next line without its '\n' (the last one may lack it). Returns false at
 * the end of the range. The line is not NUL-ended.
 */
bool cursor_line(struct cursor *c, const char **line, size_t *len);

/* The next byte, which stays; -1: at the end, or bad. */
int cursor_peek(const struct cursor *c);
/* Steps over ch if it comes next. */
bool cursor_accept(struct cursor *c, char ch);
/* Steps over the text if it comes next. */
bool cursor_word(struct cursor *c, const char *text);
/* Reads a decimal number and returns how many digits it has; 0: none, or more than 64 bits. */
size_t cursor_decimal(struct cursor *c, uint64_t *v);
/* Steps over spaces, tabs and ends of lines. */
void cursor_blanks(struct cursor *c);

#endif
