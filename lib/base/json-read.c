// SPDX-License-Identifier: LGPL-2.1-or-later
/* JSON, read: a text is checked once; values are slices of it. */
#include "base/json.h"
#include "base/cursor.h"
#include "base/strings.h"

static void json_expect(struct cursor *c, char ch)
{
	if (!cursor_accept(c, ch))
		c->bad = true;
}

static unsigned int json_hex4(struct cursor *c)
{
	unsigned int v = 0;

	for (int i = 0; i < 4; i++) {
		int d = hex_value(cursor_u8(c));

		if (d < 0)
			c->bad = true;
		v = v << 4 | ((unsigned int)d & 0xf);
	}
	return v;
}

/* \uXXXX, two of them for what lies above the first plane; a lone half becomes U+FFFD. */
static uint32_t escaped_char(struct cursor *c)
{
	uint32_t u = json_hex4(c), low;
	struct cursor ahead = *c;

	if (u < 0xd800 || u > 0xdfff)
		return u;
	if (u > 0xdbff || !cursor_accept(&ahead, '\\') || !cursor_accept(&ahead, 'u'))
		return 0xfffd;
	low = json_hex4(&ahead);
	if (ahead.bad || low < 0xdc00 || low > 0xdfff)
		return 0xfffd;
	*c = ahead;
	return 0x10000 + ((u - 0xd800) << 10) + (low - 0xdc00);
}

/* A string from its quote on; decoded into out, unless that is NULL. */
static void json_string(struct cursor *c, struct buf *out)
{
	json_expect(c, '"');
	while (!c->bad && !cursor_accept(c, '"')) {
		uint8_t ch = cursor_u8(c);

		if (ch == '\\') {
			static const char letter[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
			uint8_t code = cursor_u8(c);
			const char *at = code ? strchr(letter, code) : NULL;

			if (code == 'u') {
				uint32_t u = escaped_char(c);

				if (out)
					buf_add_utf8(out, u);
			} else if (at) {
				if (out)
					buf_add(out, &meant[at - letter], 1);
			} else {
				c->bad = true;
			}
		} else if (ch < 0x20)
			c->bad = true;
		else if (out)
			buf_add(out, &ch, 1);
	}
}

static void json_digits(struct cursor *c)
{
	if (cursor_peek(c) < '0' || cursor_peek(c) > '9')
		c->bad = true;
	while (cursor_peek(c) >= '0' && cursor_peek(c) <= '9')
		c->p++;
}

static void json_skip(struct cursor *c, unsigned int depth)
{
	int ch;

	cursor_blanks(c);
	ch = cursor_peek(c);
	if (depth > JSON_DEPTH)
		c->bad = true;
	else if (ch == '{' || ch == '[') {
		char close = ch == '{' ? '}' : ']';

		c->p++;
		cursor_blanks(c);
		if (!cursor_accept(c, close)) {
			do {
				cursor_blanks(c);
				if (close == '}') {
					json_string(c, NULL);
					cursor_blanks(c);
					json_expect(c, ':');
				}
				json_skip(c, depth + 1);
				cursor_blanks(c);
			} while (!c->bad && cursor_accept(c, ','));
			json_expect(c, close);
		}
	} else if (ch == '"')
		json_string(c, NULL);
	else if (ch == 't' || ch == 'f' || ch == 'n')
		for (const char *w = ch == 't' ? "true" : ch == 'f' ? "false" : "null"; *w; w++)
			json_expect(c, *w);
	else { /* a number */
		cursor_accept(c, '-');
		if (!cursor_accept(c, '0'))
			json_digits(c);
		if (cursor_accept(c, '.'))
			json_digits(c);
		if (cursor_accept(c, 'e') || cursor_accept(c, 'E')) {
			if (!cursor_accept(c, '+'))
				cursor_accept(c, '-');
			json_digits(c);
		}
	}
}

/* Skips one value and returns where it stands. */
static struct json_value json_take(struct cursor *c)
{
	struct json_value v = { 0 };

	cursor_blanks(c);
	v.p = (const char *)c->p;
	json_skip(c, 0);
	v.len = (size_t)((const char *)c->p - v.p);
	return v;
}

int json_parse(const char *text, size_t len, struct json_value *out)
{
	struct cursor c = cursor_at(text, len);

	*out = json_take(&c);
	cursor_blanks(&c);
	return c.bad || cursor_left(&c) ? -EBADMSG : 0;
}

bool json_member(struct json_value v, const char *key, struct json_value *out)
{
	struct cursor c = cursor_at(v.p, v.len);

	if (!v.len || !cursor_accept(&c, '{'))
		return false;
	do {
		bool found;
		struct buf k = { 0 };

		cursor_blanks(&c);
		if (cursor_peek(&c) != '"')
			return false;
		json_string(&c, &k);
		found = !k.bad && k.len == strlen(key) && !memcmp(k.data ? (char *)k.data : "", key, k.len);
		buf_release(&k);
		cursor_blanks(&c);
		json_expect(&c, ':');
		*out = json_take(&c);
		if (found && !c.bad)
			return true;
		cursor_blanks(&c);
	} while (!c.bad && cursor_accept(&c, ','));
	return false;
}

bool json_item(struct json_value v, size_t *at, struct json_value *out)
{
	struct cursor c = cursor_at(v.p, v.len);

	if (!v.len || *v.p != '[' || *at >= v.len)
		return false;
	c.p += *at ? *at : 1;
	cursor_blanks(&c);
	if (cursor_peek(&c) == ']')
		return false;
	*out = json_take(&c);
	cursor_blanks(&c);
	if (!cursor_accept(&c, ',') && cursor_peek(&c) != ']')
		c.bad = true;
	*at = (size_t)((const char *)c.p - v.p);
	return !c.bad;
}

bool json_get_u64(struct json_value v, uint64_t *out)
{
	char text[24];
	size_t quote = v.len && *v.p == '"';

	if (v.len < 1 + 2 * quote || v.len - 2 * quote >= sizeof(text))
		return false;
	memcpy(text, v.p + quote, v.len - 2 * quote);
	text[v.len - 2 * quote] = 0;
	return !strchr(text, 'x') && !parse_u64(text, out);
}

char *json_get_str(struct json_value v)
{
	struct cursor c = cursor_at(v.p, v.len);
	struct buf s = { 0 };
	char *copy = NULL;

	if (!v.len || *v.p != '"')
		return NULL;
	json_string(&c, &s);
	if (!c.bad && buf_str(&s) && !memchr(s.data, 0, s.len))
		copy = strdup((char *)s.data);
	buf_release(&s);
	return copy;
}
