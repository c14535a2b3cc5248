// SPDX-License-Identifier: LGPL-2.1-or-later
/* Shows control sequences as text, so that a terminal does not obey them. */
#include "base/escape.h"

size_t utf8_len(const uint8_t *p, size_t left)
{
	static const struct {
		uint8_t first, last; /* of the first byte */
		uint8_t low, high;   /* of the second */
		uint8_t len;
	} rows[] = {
		{ 0xc2, 0xdf, 0x80, 0xbf, 2 }, { 0xe0, 0xe0, 0xa0, 0xbf, 3 }, { 0xe1, 0xec, 0x80, 0xbf, 3 },
		{ 0xed, 0xed, 0x80, 0x9f, 3 }, { 0xee, 0xef, 0x80, 0xbf, 3 }, { 0xf0, 0xf0, 0x90, 0xbf, 4 },
		{ 0xf1, 0xf3, 0x80, 0xbf, 4 }, { 0xf4, 0xf4, 0x80, 0x8f, 4 },
	};
	const size_t n_rows = sizeof(rows) / sizeof(rows[0]);
	size_t i = 0;

	if (p[0] < 0x80)
		return 1;
	while (i < n_rows && (p[0] < rows[i].first || p[0] > rows[i].last))
		i++;
	if (i == n_rows || left < rows[i].len || p[1] < rows[i].low || p[1] > rows[i].high)
		return 0;
	for (size_t k = 2; k < rows[i].len; k++)
		if ((p[k] & 0xc0) != 0x80)
			return 0;
	return rows[i].len;
}

#define NAME_LENGTH_MAX 200

static bool is_plain_byte(uint8_t c)
{
	return ((c >= 0x20) & (c < 0x7f)) | (c == '\n') | (c == '\t');
}

size_t escape_control(const uint8_t *p, size_t left)
{
	size_t n = utf8_len(p, left);

	if (n == 2) /* U+061C */
		return (p[0] == 0xc2 && p[1] < 0xa0) || (p[0] == 0xd8 && p[1] == 0x9c) ? 2 : 0;
	if (n == 3) /* U+200E, U+200F, U+2028 to U+202E, U+2066 to U+2069 */
		return p[0] == 0xe2 && ((p[1] == 0x80 &&
					 ((p[2] | 1) == 0x8f || (p[2] >= 0xa8 && p[2] <= 0xae))) ||
					(p[1] == 0x81 && p[2] >= 0xa6 && p[2] <= 0xa9))
			       ? 3
			       : 0;
	return n <= 1 && (p[0] < 0x20 || (p[0] >= 0x7f && p[0] < 0xa0)) && p[0] != '\n' && p[0] != '\t';
}

size_t escape_run(const uint8_t *p, size_t left, const char **show, size_t *n, char room[ESCAPE_MAX])
{
	static const char hex[] = "0123456789abcdef";
	size_t len = 0, control = 0;

	while (len < left) {
		len += plain_span(p + len, left - len, is_plain_byte);
		control = len < left ? escape_control(p + len, left - len) : 0;
		if (len == left || control)
			break;
		len += utf8_len(p + len, left - len) ?: 1;
	}
	*show = (const char *)p;
	*n = len;
	if (len)
		return len;
	for (*n = 0, *show = room; len < control; len++) {
		room[(*n)++] = '\\';
		room[(*n)++] = 'x';
		room[(*n)++] = hex[p[len] >> 4];
		room[(*n)++] = hex[p[len] & 15];
	}
	return control;
}

char *escape_line(char *out, size_t size, const char *text)
{
	size_t used = 0;

	while (*text) {
		size_t line = strcspn(text, "\n"), n = 4;
		const char *show = "\\x0a";
		char room[ESCAPE_MAX];

		text += line ? escape_run((const uint8_t *)text, line, &show, &n, room) : 1;
		if (n >= size - used && show == room)
			break;
		n = n < size - used ? n : size - used - 1;
		memcpy(out + used, show, n);
		used += n;
	}
	out[used] = 0;
	return out;
}

bool name_fits_file(const char *name)
{
	size_t len = strlen(name);
	char shown[NAME_LENGTH_MAX + 2];

	if (!len || len > NAME_LENGTH_MAX || *name == '.' || *name == '-' || strpbrk(name, "/\t"))
		return false;
	return !strcmp(escape_line(shown, sizeof(shown), name), name);
}
