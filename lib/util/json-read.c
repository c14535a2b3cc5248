// SPDX-License-Identifier: LGPL-2.1-or-later
#include "util/json.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int peek(const struct cursor *c)
{
	return c->bad || c->p == c->end ? -1 : *c->p;
}

static void blanks(struct cursor *c)
{
	while (peek(c) == ' ' || peek(c) == '\t' || peek(c) == '\n' || peek(c) == '\r')
		c->p++;
}

static bool accept(struct cursor *c, char ch)
{
	if (peek(c) != ch)
		return false;
	c->p++;
	return true;
}

static void expect(struct cursor *c, char ch)
{
	if (!accept(c, ch))
		c->bad = true;
}

static int hex_digit(int ch)
{
	if (ch >= '0' && ch <= '9')
		return ch - '0';
	ch |= 0x20;
	return ch >= 'a' && ch <= 'f' ? ch - 'a' + 10 : -1;
}

static unsigned int hex4(struct cursor *c)
{
	unsigned int v = 0;

	for (int i = 0; i < 4; i++) {
		int d = hex_digit(cursor_u8(c));

		if (d < 0)
			c->bad = true;
		v = v << 4 | ((unsigned int)d & 0xf);
	}
	return v;
}

static void add_utf8(struct buf *out, uint32_t u)
{
	uint8_t b[4];
	size_t n = u < 0x80 ? 1 : u < 0x800 ? 2 : u < 0x10000 ? 3 : 4;
	static const uint8_t lead[] = { 0, 0, 0xc0, 0xe0, 0xf0 };

	for (size_t i = n; i-- > 1; u >>= 6)
		b[i] = 0x80 | (u & 0x3f);
	b[0] = lead[n] | (uint8_t)u;
	buf_add(out, b, n);
}

/* \uXXXX, two of them for what lies above the first plane; a lone half becomes U+FFFD. */
static uint32_t escaped_char(struct cursor *c)
{
	uint32_t u = hex4(c), low;
	struct cursor ahead = *c;

	if (u < 0xd800 || u > 0xdfff)
		return u;
	if (u > 0xdbff || !accept(&ahead, '\\') || !accept(&ahead, 'u'))
		return 0xfffd;
	low = hex4(&ahead);
	if (ahead.bad || low < 0xdc00 || low > 0xdfff)
		return 0xfffd;
	*c = ahead;
	return 0x10000 + ((u - 0xd800) << 10) + (low - 0xdc00);
}

static void escape(struct cursor *c, struct buf *out)
{
	static const char letter[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
	uint8_t ch = cursor_u8(c);
	const char *at = ch ? strchr(letter, ch) : NULL;

	if (ch == 'u') {
		uint32_t u = escaped_char(c);

		if (out)
			add_utf8(out, u);
	} else if (at) {
		if (out)
			buf_add(out, &meant[at - letter], 1);
	} else {
		c->bad = true;
	}
}

/* A string from its quote on; decoded into out, unless that is NULL. */
static void string(struct cursor *c, struct buf *out)
{
	expect(c, '"');
	while (!c->bad && !accept(c, '"')) {
		uint8_t ch = cursor_u8(c);

		if (ch == '\\')
			escape(c, out);
		else if (ch < 0x20)
			c->bad = true;
		else if (out)
			buf_add(out, &ch, 1);
	}
}

static void digits(struct cursor *c)
{
	if (peek(c) < '0' || peek(c) > '9')
		c->bad = true;
	while (peek(c) >= '0' && peek(c) <= '9')
		c->p++;
}

static void number(struct cursor *c)
{
	accept(c, '-');
	if (!accept(c, '0'))
		digits(c);
	if (accept(c, '.'))
		digits(c);
	if (accept(c, 'e') || accept(c, 'E')) {
		if (!accept(c, '+'))
			accept(c, '-');
		digits(c);
	}
}

static void word(struct cursor *c, const char *w)
{
	while (*w)
		expect(c, *w++);
}

static void value(struct cursor *c, unsigned int depth);

static void members(struct cursor *c, unsigned int depth, char close)
{
	c->p++;
	blanks(c);
	if (accept(c, close))
		return;
	do {
		blanks(c);
		if (close == '}') {
			string(c, NULL);
			blanks(c);
			expect(c, ':');
		}
		value(c, depth + 1);
		blanks(c);
	} while (!c->bad && accept(c, ','));
	expect(c, close);
}

static void value(struct cursor *c, unsigned int depth)
{
	blanks(c);
	if (depth > JSON_DEPTH) {
		c->bad = true;
		return;
	}
	switch (peek(c)) {
	case '{':
		members(c, depth, '}');
		break;
	case '[':
		members(c, depth, ']');
		break;
	case '"':
		string(c, NULL);
		break;
	case 't':
		word(c, "true");
		break;
	case 'f':
		word(c, "false");
		break;
	case 'n':
		word(c, "null");
		break;
	default:
		number(c);
	}
}

/* Skips one value and tells where it stood. */
static struct json_value take(struct cursor *c)
{
	struct json_value v = { 0 };

	blanks(c);
	v.p = (const char *)c->p;
	value(c, 0);
	v.len = (size_t)((const char *)c->p - v.p);
	return v;
}

int json_parse(const char *text, size_t len, struct json_value *out)
{
	struct cursor c = cursor_at(text, len);

	*out = take(&c);
	blanks(&c);
	return c.bad || cursor_left(&c) ? -EBADMSG : 0;
}

static bool key_is(struct cursor *c, const char *key)
{
	struct buf k = { 0 };
	bool same;

	string(c, &k);
	same = !k.bad && k.len == strlen(key) && !memcmp(k.data ? (char *)k.data : "", key, k.len);
	buf_release(&k);
	return same;
}

bool json_member(struct json_value v, const char *key, struct json_value *out)
{
	struct cursor c = cursor_at(v.p, v.len);

	if (!v.len || !accept(&c, '{'))
		return false;
	do {
		bool found;

		blanks(&c);
		if (peek(&c) != '"')
			return false;
		found = key_is(&c, key);
		blanks(&c);
		expect(&c, ':');
		*out = take(&c);
		if (found && !c.bad)
			return true;
		blanks(&c);
	} while (!c.bad && accept(&c, ','));
	return false;
}

bool json_item(struct json_value v, size_t *at, struct json_value *out)
{
	struct cursor c = cursor_at(v.p, v.len);

	if (!v.len || *v.p != '[' || *at >= v.len)
		return false;
	c.p += *at ? *at : 1;
	blanks(&c);
	if (peek(&c) == ']')
		return false;
	*out = take(&c);
	blanks(&c);
	if (!accept(&c, ',') && peek(&c) != ']')
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
	string(&c, &s);
	if (!c.bad && buf_str(&s) && !memchr(s.data, 0, s.len))
		copy = strdup((char *)s.data);
	buf_release(&s);
	return copy;
}
