/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_VISIBLE_H
#define HYPTRACE_VISIBLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Length of the UTF-8 sequence at p (1-4), or 0: not one. Over-long forms,
 * surrogates and what lies above U+10FFFF are none (Unicode, table 3-7).
 */
size_t utf8_len(const uint8_t *p, size_t left);

/*
 * Text of others on its way to a terminal or a log: what a terminal would obey
 * is shown as \x1b, byte by byte. That is C0 but newline and tab, DEL, C1 (alone
 * and as UTF-8), what turns the direction of writing, and Unicode's separators of lines.
 * All else stays as it is.
 */

/* How many bytes at p, which has at least one, a terminal would obey (1-3); 0: none. */
size_t visible_control(const uint8_t *p, size_t left);

#define VISIBLE_ESC 16

/*
 * The next piece of a text of at least one byte: *show and *n are what to show, a
 * run of the text itself, or a control written out in `room`. Returns how many
 * bytes of the text that is.
 */
size_t visible_piece(const uint8_t *p, size_t left, const char **show, size_t *n, char room[VISIBLE_ESC]);

#define VISIBLE_LINE 4096

/* A name, or a message, as one line: newlines are shown, too. Cut to size; returns out. */
char *visible_line(char *out, size_t size, const char *text);
/* The same, good until the end of the block. */
#define VISIBLE(text) visible_line((char[VISIBLE_LINE]){ 0 }, VISIBLE_LINE, text)

/*
 * May a name from outside be part of a file's name, or a directory's? 1 to 200 bytes
 * without '/' and without what is shown, not even a newline or tab; the first is
 * neither '.' nor '-'.
 */
bool name_fits_file(const char *name);

#endif
