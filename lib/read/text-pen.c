// SPDX-License-Identifier: LGPL-2.1-or-later
/* Bytes and numbers of events' texts, written straight into a buf. */
#include "text-priv.h"

/* ---- bytes ------------------------------------------------------------------------ */

bool text_grow(struct text_pen *pen, size_t n)
{
	struct buf *out = pen->out;

	if (!out->bad)
		out->len = (size_t)(pen->p - (char *)out->data);
	if (!buf_room(out, n)) {
		pen->p = pen->end = NULL;
		return false;
	}
	pen->p = (char *)out->data + out->len;
	pen->end = (char *)out->data + out->cap;
	return true;
}

void text_puts(struct text_pen *pen, const char *s)
{
	text_put(pen, s, strlen(s));
}

/* ---- numbers -------------------------------------------------------------------------- */

static const char text_pairs[] =
	"00010203040506070809101112131415161718192021222324252627282930313233343536373839"
	"40414243444546474849505152535455565758596061626364656667686970717273747576777879"
	"8081828384858687888990919293949596979899";
static const char text_lower[] = "0123456789abcdef", text_upper[] = "0123456789ABCDEF";

/* The digits, which end at `end`; their first. */
static char *text_decimal(char *end, uint64_t v)
{
	while (v >= 100) {
		end -= 2;
		memcpy(end, &text_pairs[v % 100 * 2], 2);
		v /= 100;
	}
	if (v < 10) {
		*--end = (char)('0' + v);
		return end;
	}
	end -= 2;
	memcpy(end, &text_pairs[v * 2], 2);
	return end;
}

static char *text_digits(char *end, uint64_t v, unsigned int bits, const char *digits)
{
	do
		*--end = digits[v & ((1u << bits) - 1)];
	while (v >>= bits);
	return end;
}

/* Count of decimal digits. */
static unsigned int text_decimal_len(uint64_t v)
{
	static const uint64_t powers[] = { 0,
					   10,
					   100,
					   1000,
					   10000,
					   100000,
					   1000000,
					   10000000,
					   100000000,
					   1000000000,
					   10000000000,
					   100000000000,
					   1000000000000,
					   10000000000000,
					   100000000000000,
					   1000000000000000,
					   10000000000000000,
					   100000000000000000,
					   1000000000000000000,
					   10000000000000000000u };
	unsigned int log = (64 - (unsigned int)__builtin_clzll(v | 1)) * 1233 >> 12;

	return log + (v >= powers[log]);
}

void text_put_decimal(struct text_pen *pen, uint64_t v)
{
	unsigned int n = v ? text_decimal_len(v) : 1;

	if (!text_room(pen, n))
		return;
	text_decimal(pen->p + n, v);
	pen->p += n;
}

void text_put_hex_wide(struct text_pen *pen, uint64_t v, int width)
{
	int n = (67 - __builtin_clzll(v | 1)) / 4;

	n = n < width ? width : n;
	if (!text_room(pen, TEXT_DIGITS_MAX))
		return;
	for (int i = n; i-- > 0; v >>= 4)
		pen->p[i] = text_lower[v & 15];
	pen->p += n;
}

void text_put_hex(struct text_pen *pen, uint64_t v)
{
	text_put_hex_wide(pen, v, 1);
}

void text_put_byte(struct text_pen *pen, uint8_t v, bool upper)
{
	const char *digits = upper ? text_upper : text_lower;

	if (!text_room(pen, 2))
		return;
	*pen->p++ = digits[v >> 4];
	*pen->p++ = digits[v & 15];
}

void text_put_signed(struct text_pen *pen, int64_t v)
{
	if (v < 0)
		text_put(pen, "-", 1);
	text_put_decimal(pen, v < 0 ? -(uint64_t)v : (uint64_t)v);
}

static void text_fill(struct text_pen *pen, char c, size_t n)
{
	if (!text_room(pen, n))
		return;
	memset(pen->p, c, n);
	pen->p += n;
}

/* A sign or 0x, zeros and digits, with what fills the width. */
static void text_put_padded(struct text_pen *pen, const struct text_spec *spec, const char *sign,
			    size_t zeros, const char *digits, size_t n, size_t width)
{
	size_t len = strlen(sign) + zeros + n, pad = len < width ? width - len : 0;
	bool fill = spec->zeros && !spec->left && spec->precision < 0 && !spec->precision_is_arg;

	if (!spec->left && !fill)
		text_fill(pen, ' ', pad);
	text_puts(pen, sign);
	text_fill(pen, '0', zeros + (fill ? pad : 0));
	text_put(pen, digits, n);
	if (spec->left)
		text_fill(pen, ' ', pad);
}

void text_put_integer(struct text_pen *pen, const struct text_spec *spec, uint64_t v,
		      const struct text_record *r)
{
	size_t count = spec->count ? text_eval(spec->count, r) : 0;
	size_t width = spec->width_is_arg ? count : (size_t)spec->width, n;
	size_t precision = spec->precision_is_arg ? count : spec->precision < 0 ? 1 : (size_t)spec->precision;
	char digits[TEXT_DIGITS_MAX], *end = digits + sizeof(digits), *s = end;
	bool is_signed = spec->conversion == 'd' || spec->conversion == 'i';
	bool hex = spec->conversion == 'x' || spec->conversion == 'X', minus;

	minus = is_signed && text_extend(v, spec->bits) < 0;
	v = minus ? -(uint64_t)text_extend(v, spec->bits) : text_cut(v, spec->bits);
	if (v && hex)
		s = text_digits(end, v, 4, spec->conversion == 'x' ? text_lower : text_upper);
	else if (v && spec->conversion == 'o')
		s = text_digits(end, v, 3, text_lower);
	else if (v)
		s = text_decimal(end, v);
	n = (size_t)(end - s);
	if (spec->alternate && spec->conversion == 'o' && precision <= n)
		precision = n + 1;
	text_put_padded(pen, spec,
			minus							 ? "-"
			: spec->alternate && hex && v && spec->conversion == 'x' ? "0x"
			: spec->alternate && hex && v				 ? "0X"
										 : "",
			precision > n ? precision - n : 0, s, n, width);
}
