// SPDX-License-Identifier: LGPL-2.1-or-later
/* JSON, written into a buffer: commas, indentation and escapes. */
#include "base/json.h"

#include <math.h>

#include "base/escape.h"

static void json_newline(struct json *j)
{
	if (j->compact)
		return;
	buf_addstr(j->out, "\n");
	for (unsigned int i = 0; i < j->depth; i++)
		buf_addstr(j->out, "  ");
}

/* Writes the comma and the line break before a value or a key. */
static void json_before(struct json *j)
{
	uint64_t bit = 1ull << j->depth;

	if (j->keyed) {
		j->keyed = false;
		return;
	}
	if (j->used & bit)
		buf_addstr(j->out, ",");
	j->used |= bit;
	if (j->depth)
		json_newline(j);
}

static void json_begin(struct json *j, const char *bracket)
{
	json_before(j);
	buf_addstr(j->out, bracket);
	if (j->depth < JSON_DEPTH)
		j->depth++;
	j->used &= ~(1ull << j->depth);
}

static void json_end(struct json *j, const char *bracket)
{
	bool used = j->used & (1ull << j->depth);

	if (j->depth)
		j->depth--;
	if (used)
		json_newline(j);
	buf_addstr(j->out, bracket);
	if (!j->depth && !j->compact)
		buf_addstr(j->out, "\n");
}

void json_object(struct json *j)
{
	json_begin(j, "{");
}

void json_object_end(struct json *j)
{
	json_end(j, "}");
}

void json_array(struct json *j)
{
	json_begin(j, "[");
}

void json_array_end(struct json *j)
{
	json_end(j, "]");
}

/* A byte that stands for itself. */
static bool json_plain_byte(uint8_t c)
{
	return (c >= 0x20) & (c < 0x7f) & (c != '"') & (c != '\\');
}

void json_quoted(struct buf *out, const char *s, size_t len)
{
	const uint8_t *p = (const uint8_t *)s;

	buf_addstr(out, "\"");
	while (len) {
		size_t plain = plain_span(p, len, json_plain_byte), n;

		buf_add(out, p, plain);
		p += plain;
		len -= plain;
		if (!len)
			break;
		n = utf8_len(p, len);
		if (!n)
			buf_addstr(out, "\xef\xbf\xbd");
		else if (n == 1) {
			uint8_t c = *p;
			static const char named[] = "\"\\\b\f\n\r\t", letter[] = "\"\\bfnrt";
			const char *at = c ? strchr(named, c) : NULL;

			if (at)
				buf_printf(out, "\\%c", letter[at - named]);
			else if (c < 0x20 || c == 0x7f)
				buf_printf(out, "\\u%04x", c);
			else
				buf_add(out, &c, 1);
		} else if (escape_control(p, len)) { /* beyond ASCII they have two or three bytes */
			unsigned int low = (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu);

			buf_printf(out, "\\u%04x", n == 2 ? low : (low & 0x3ff) << 6 | (p[2] & 0x3fu));
		} else {
			buf_add(out, p, n);
		}
		n = n ? n : 1;
		p += n;
		len -= n;
	}
	buf_addstr(out, "\"");
}

void json_key(struct json *j, const char *key)
{
	json_before(j);
	json_quoted(j->out, key, strlen(key));
	buf_addstr(j->out, j->compact ? ":" : ": ");
	j->keyed = true;
}

void json_strn(struct json *j, const char *s, size_t len)
{
	json_before(j);
	json_quoted(j->out, s, len);
}

void json_str(struct json *j, const char *s)
{
	if (s)
		json_strn(j, s, strlen(s));
	else
		json_null(j);
}

void json_u64(struct json *j, uint64_t v)
{
	json_before(j);
	buf_add_u64(j->out, v);
}

void json_i64(struct json *j, int64_t v)
{
	json_before(j);
	buf_add_i64(j->out, v);
}

void json_double(struct json *j, double v)
{
	json_before(j);
	if (isfinite(v))
		buf_printf(j->out, "%.15g", v);
	else
		buf_addstr(j->out, "null");
}

void json_bool(struct json *j, bool v)
{
	json_before(j);
	buf_addstr(j->out, v ? "true" : "false");
}

void json_null(struct json *j)
{
	json_before(j);
	buf_addstr(j->out, "null");
}

void json_key_str(struct json *j, const char *key, const char *s)
{
	json_key(j, key);
	json_str(j, s);
}

void json_key_array(struct json *j, const char *key)
{
	json_key(j, key);
	json_array(j);
}

void json_key_u64(struct json *j, const char *key, uint64_t v)
{
	json_key(j, key);
	json_u64(j, v);
}

void json_row(struct json *j, const uint64_t *v, size_t n)
{
	json_array(j);
	for (size_t i = 0; i < n; i++)
		json_u64(j, v[i]);
	json_array_end(j);
}
