/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_ESCAPE_H
#define HYPTRACE_ESCAPE_H

#include "base/std.h"

/*
 * Length of the UTF-8 sequence at p (1-4), or 0: not one. Over-long forms,
 * surrogates and what lies above U+10FFFF are none (Unicode, table 3-7).
 */
size_t utf8_len(const uint8_t *p, size_t left);

/*
 * Text of others on its way to a terminal or a log: what a terminal would obey is shown as \x1b, byte by
 * byte. That is C0 but newline and tab, DEL, C1 (alone and as UTF-8), what turns the direction of writing,
 * and Unicode's separators of lines. All else stays as it is.
 */

/* Length of the control at p, which has at least one byte: 1 to 3; 0: none. */
size_t escape_control(const uint8_t *p, size_t left);

/*
 * Length of the bytes at the begin that `plain` finds plain: nearly all of most texts. Blocks are judged
 * without a branch, so that the compiler looks at all their bytes at once.
 */
static inline __attribute__((always_inline)) size_t plain_span(const uint8_t *p, size_t len,
							       bool (*plain)(uint8_t))
{
	uint8_t all = 1;
	size_t n = 0;

	while (len - n >= 16) {
		for (size_t i = 0; i < 16; i++)
			all &= plain(p[n + i]);
		if (!all)
			break;
		n += 16;
	}
	while (n < len && plain(p[n]))
		n++;
	return n;
}

#define ESCAPE_MAX 16

/*
 * The next piece of a text of at least one byte: *show and *n are what to show, a run of the text itself, or
 * a control written out in `room`. Returns how many bytes of the text that is.
 */
size_t escape_run(const uint8_t *p, size_t left, const char **show, size_t *n, char room[ESCAPE_MAX]);

#define ESCAPE_LINE 4096

/* A name, or a message, as one line: newlines are shown, too. Cut to size; returns out. */
char *escape_line(char *out, size_t size, const char *text);
/* The same, good until the end of the block. */
#define ESCAPED(text) escape_line((char[ESCAPE_LINE]){ 0 }, ESCAPE_LINE, text)

/*
 * May a name from outside be part of a file's name, or a directory's? 1 to 200 bytes without '/' and without
 * what is shown, not even a newline or tab; the first is neither '.' nor '-'.
 */
bool name_fits_file(const char *name);

#endif
