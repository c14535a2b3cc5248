// SPDX-License-Identifier: LGPL-2.1-or-later
/* Print formats of the hypervisor's events, taken apart; and by them the text of an event into its fields. */
#include "record/hyp/text-pattern.h"
#include "base/decode/conversion.h"

#define REASON_FN "__hyp_enter_exit_reason_str("
#define WIDTH_MAX 64

const char *const hyp_reasons[] = { "smc",	  "hvc",       "sys",	     "psci",   "host_abort",
				    "guest_exit", "eret_host", "eret_guest", "unknown" };
const size_t hyp_reasons_n = ARRAY_SIZE(hyp_reasons);

/* A print format being read. */
struct fmt_parser {
	const struct event_format *f;
	const char *p;	  /* inside the quotes */
	const char *end;  /* the closing quote */
	const char *args; /* after the quote */
	struct hyptext_pattern *out;
	struct buf literal;
};

void hyptext_pattern_free(struct hyptext_pattern *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->n; i++)
		free(p->v[i].literal);
	free(p->v);
	free(p);
}

static const char *skip_blanks(const char *p)
{
	return p + strspn(p, " \t\n");
}

/* "REC->field" at *p: its index, or -1. */
static int rec_field(const struct event_format *f, const char **p)
{
	const char *name = *p + 5;
	size_t n;

	if (strncmp(*p, "REC->", 5))
		return -1;
	n = word_len(name, SIZE_MAX, "");
	for (size_t i = 0; n && i < f->n_fields; i++) {
		const char *have = f->fields[i].name;

		if (!strncmp(have, name, n) && (!have[n] || have[n] == '[')) {
			*p = name + n;
			return (int)i;
		}
	}
	return -1;
}

/* The next argument; sets the item's field, and its conversion when it is a reason. */
static bool pattern_arg(struct fmt_parser *x, struct pattern_item *it)
{ /* casts to a pointer or unsigned long, which %p and %ps want */
	static const char *const casts[] = { "(void *)", "(unsigned long)" };
	bool pointer = it->conv == CONV_POINTER || it->conv == CONV_SYMBOL;
	bool reason = false;
	const char *p;
	int field;

	if (*x->args != ',')
		return false;
	p = skip_blanks(x->args + 1);
	for (size_t i = 0; i < ARRAY_SIZE(casts) && pointer; i++)
		if (!strncmp(p, casts[i], strlen(casts[i]))) {
			p = skip_blanks(p + strlen(casts[i]));
			break;
		}
	if (it->conv == CONV_STRING && !strncmp(p, REASON_FN, strlen(REASON_FN))) {
		p = skip_blanks(p + strlen(REASON_FN));
		reason = true;
	}
	field = rec_field(x->f, &p);
	if (field < 0)
		return false;
	p = skip_blanks(p);
	if (reason) {
		if (*p != ')')
			return false;
		p = skip_blanks(p + 1);
		it->conv = CONV_REASON;
	}
	it->field = (size_t)field;
	x->args = p;
	return true;
}

/* At the byte after '%'. "%#x" becomes "0x%x". False: no conversion that text can be read back from. */
static bool read_conv(struct fmt_parser *x, struct pattern_item *it)
{
	static const char letters[] = "diuxXcsp";
	static const enum conv convs[] = { CONV_SIGNED, CONV_SIGNED, CONV_UNSIGNED, CONV_HEX,
					   CONV_HEX,	CONV_CHAR,   CONV_STRING,   CONV_POINTER };
	struct conversion c;
	const char *end = conversion_scan(x->p, x->end, &c), *letter;

	if (!end || c.plus || c.precision >= 0 || c.width_is_arg || c.width > WIDTH_MAX ||
	    !conversion_length_of(&c, "l"))
		return false;
	x->p = end;
	it->zero = c.zero;
	it->left = c.left;
	it->width = (unsigned int)c.width;
	it->wide = c.n_length;
	it->letter = c.letter;
	letter = it->letter ? strchr(letters, it->letter) : NULL;
	it->conv = letter ? convs[letter - letters] : CONV_NONE;
	if (it->conv == CONV_POINTER && x->p < x->end && strchr("sS", *x->p) && *x->p) {
		it->conv = CONV_SYMBOL;
		it->letter = *x->p++;
	} else if (it->conv == CONV_POINTER && x->p < x->end && isalnum((unsigned char)*x->p)) {
		return false; /* %pUb and friends */
	}
	if (c.alternate && (it->conv != CONV_HEX || it->letter != 'x' || it->width))
		return false;
	if (c.alternate)
		buf_addstr(&x->literal, "0x");
	return it->conv != CONV_NONE;
}

/* True if the field is such that kernel and libtraceevent print it alike. */
static bool field_fits(const struct pattern_item *it, const struct event_field *f)
{
	bool array = strchr(f->name, '[') || strchr(f->type, '[');
	bool plain = !it->width && !it->zero && !it->left && !it->wide;

	switch (it->conv) {
	case CONV_UNSIGNED:
	case CONV_HEX:
		if (f->is_signed && f->size < 4)
			return false;
		/* fallthrough */
	case CONV_SIGNED:
		if (array || (it->zero && it->left))
			return false;
		return it->wide ? f->size == 8 : f->size == 1 || f->size == 2 || f->size == 4;
	case CONV_CHAR:
	case CONV_REASON:
		return plain && !array && f->size == 1;
	case CONV_STRING:
		return plain && strchr(f->name, '[') && f->size && !strcmp(f->type, "char");
	case CONV_POINTER:
	case CONV_SYMBOL:
		return plain && !array && f->size == 8;
	default:
		return false;
	}
}

/* Up to and with the next conversion, or the end. 1: an item more; 0: all read; -EBADMSG: not understood. */
static int next_item(struct fmt_parser *x)
{
	struct pattern_item it = { 0 };

	while (x->p < x->end && it.conv == CONV_NONE) {
		char c = *x->p++;

		if (c == '\\' || c < ' ' || c > '~') /* libtraceevent knows ASCII only */
			return -EBADMSG;
		if (c != '%') {
			buf_add(&x->literal, &c, 1);
		} else if (x->p < x->end && *x->p == '%') {
			buf_add(&x->literal, x->p++, 1);
		} else if (!read_conv(x, &it) || !pattern_arg(x, &it) ||
			   !field_fits(&it, &x->f->fields[it.field])) {
			return -EBADMSG;
		}
	}
	it.literal_len = x->literal.len;
	it.literal = strdup(buf_str(&x->literal) ? buf_str(&x->literal) : "");
	if (!it.literal || buf_status(&x->literal) || array_push(&x->out->v, &x->out->n, &it, sizeof(it))) {
		free(it.literal);
		return -ENOMEM;
	}
	buf_release(&x->literal);
	return it.conv != CONV_NONE;
}

/* The text after a conversion must not look like more of it. */
static bool ends_clearly(const struct pattern_item *it, const struct pattern_item *next)
{
	char c = next->literal[0];

	if (it->conv == CONV_SYMBOL)
		return false;
	if (!c)
		return next->conv == CONV_NONE;
	if (it->conv == CONV_CHAR || it->conv == CONV_STRING)
		return true;
	if (it->conv == CONV_REASON)
		return !is_word_char(c);
	return !isxdigit((unsigned char)c) && !(it->left && c == ' ');
}

int hyptext_pattern_new(const struct event_format *f, struct hyptext_pattern **out)
{
	struct fmt_parser x = { .f = f, .p = f->print_fmt + 1 };
	int ret;
	size_t reasons = 0;

	*out = NULL;
	x.end = f->print_fmt[0] == '"' ? strchr(x.p, '"') : NULL;
	if (!x.end)
		return 0;
	x.args = skip_blanks(x.end + 1);
	x.out = calloc(1, sizeof(*x.out));
	if (!x.out)
		return -ENOMEM;
	do
		ret = next_item(&x);
	while (ret == 1);
	buf_release(&x.literal);
	if (!ret && *x.args == ',' && x.out->n == 1) /* the kernel's macros: "text", */
		x.args = skip_blanks(x.args + 1);
	if (!ret && *x.args)
		ret = -EBADMSG;
	if (ret) {
		hyptext_pattern_free(x.out);
		return ret == -ENOMEM ? ret : 0;
	}
	x.out->invertible = true;
	for (size_t i = 0; x.out->v[i].conv != CONV_NONE; i++) {
		reasons += x.out->v[i].conv == CONV_REASON;
		x.out->invertible &= reasons < 2 && ends_clearly(&x.out->v[i], &x.out->v[i + 1]);
	}
	*out = x.out;
	return 0;
}

unsigned int hyp_kernel_header(const struct event_format *f)
{
	unsigned int end = 0;

	for (size_t i = 0; i < f->n_common; i++)
		if (f->common[i].offset + f->common[i].size > end)
			end = f->common[i].offset + f->common[i].size;
	return end;
}

size_t hyp_written_offset(const struct event_format *f, const struct event_field *field)
{
	return (size_t)field->offset - hyp_kernel_header(f) + HYP_HEADER_SIZE;
}

/* The text not yet read. */
struct rest {
	const char *p, *end;
};

/*
 * Value that the kernel prints for a field with the bits of v: C promotes types shorter than int,
 * then the conversion looks at 32 or 64 bits.
 */
static uint64_t printed(const struct pattern_item *it, const struct event_field *f, uint64_t v)
{
	unsigned int shift = 64 - f->size * 8;

	v = f->is_signed ? (uint64_t)((int64_t)(v << shift) >> shift) : v << shift >> shift;
	if (it->wide)
		return v;
	return it->conv == CONV_SIGNED ? (uint64_t)(int64_t)(int32_t)v : (uint32_t)v;
}

/* Digits as printf writes them: none needless unless filled up to the width. */
static bool match_digits(const struct pattern_item *it, struct rest *t, uint64_t *v, size_t *n)
{
	const unsigned int base = it->conv == CONV_HEX ? 16 : 10;
	const char *start = t->p;
	int d;

	for (*v = 0; t->p < t->end && (d = hex_value(*t->p)) >= 0; t->p++) {
		if (d >= 10 && (base == 10 || (*t->p >= 'a') != (it->letter == 'x')))
			break;
		if (__builtin_mul_overflow(*v, (uint64_t)base, v) ||
		    __builtin_add_overflow(*v, (uint64_t)d, v))
			return false;
	}
	*n = (size_t)(t->p - start);
	return *n && (*n == 1 || *start != '0' || it->zero);
}

static bool match_number(const struct pattern_item *it, const struct event_field *f, struct rest *t,
			 uint8_t *at)
{
	const char *start = t->p;
	bool negative = false, filled;
	size_t digits, total;
	uint64_t v;

	while (it->width && !it->left && !it->zero && t->p < t->end && *t->p == ' ')
		t->p++;
	filled = t->p > start;
	if (it->conv == CONV_SIGNED && t->p < t->end && *t->p == '-') {
		negative = true;
		t->p++;
	}
	if (!match_digits(it, t, &v, &digits) || (negative && !v))
		return false;
	if (it->zero && digits > 1 && t->p[-(ptrdiff_t)digits] == '0')
		filled = true;
	while (it->left && t->p < t->end && *t->p == ' ' && (size_t)(t->p - start) < it->width) {
		t->p++;
		filled = true;
	}
	total = (size_t)(t->p - start);
	if (total < it->width || (filled && total != it->width) ||
	    (it->conv == CONV_SIGNED && v > (uint64_t)INT64_MAX + negative))
		return false;
	if (negative)
		v = -v;
	if (printed(it, f, v) != v)
		return false;
	memcpy(at, &v, f->size); /* little-endian, as file/dat/page.h */
	return true;
}

/* Up to the next literal, or all. */
static bool match_string(const struct pattern_item *next, const struct event_field *f, struct rest *t,
			 uint8_t *at)
{
	size_t left = (size_t)(t->end - t->p), n = left;

	if (next->literal_len) {
		const char *p = memmem(t->p, left, next->literal, next->literal_len);

		if (!p)
			return false;
		n = (size_t)(p - t->p);
	}
	if (n > f->size || memchr(t->p, 0, n))
		return false;
	memcpy(at, t->p, n);
	t->p += n;
	return true;
}

static bool match_item(const struct pattern_item *it, const struct event_field *f, struct rest *t,
		       uint8_t *at, struct pattern_reason *reason)
{
	static const struct pattern_item hex = { .conv = CONV_HEX, .letter = 'x', .zero = true };
	size_t digits;
	uint64_t v;

	switch (it->conv) {
	case CONV_SIGNED:
	case CONV_UNSIGNED:
	case CONV_HEX:
		return match_number(it, f, t, at);
	case CONV_POINTER: /* %p prints a hash: 16 digits */
		if (!match_digits(&hex, t, &v, &digits) || digits != 16)
			return false;
		memcpy(at, &v, sizeof(v));
		return true;
	case CONV_STRING:
		return match_string(it + 1, f, t, at);
	case CONV_CHAR:
		if (t->p == t->end || !*t->p)
			return false;
		*at = (uint8_t)*t->p++;
		return true;
	case CONV_REASON:
		reason->field = it->field;
		reason->text = t->p;
		reason->len = word_len(t->p, (size_t)(t->end - t->p), "");
		t->p += reason->len;
		return reason->len && reason->len < 64;
	default:
		return false;
	}
}

bool hyptext_pattern_match(const struct hyptext_pattern *p, const struct event_format *f, const char *text,
			   size_t len, uint8_t *rec, struct pattern_reason *reason)
{
	struct rest t = { text, text + len };

	*reason = (struct pattern_reason){ 0 };
	for (const struct pattern_item *it = p->v;; it++) {
		const struct event_field *field;

		if ((size_t)(t.end - t.p) < it->literal_len || memcmp(t.p, it->literal, it->literal_len))
			return false;
		t.p += it->literal_len;
		if (it->conv == CONV_NONE)
			return t.p == t.end;
		field = &f->fields[it->field];
		if (!match_item(it, field, &t, rec + hyp_written_offset(f, field), reason))
			return false;
	}
}
