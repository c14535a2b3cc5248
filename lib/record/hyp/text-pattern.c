// SPDX-License-Identifier: LGPL-2.1-or-later
/* Takes the print format of an event of the hypervisor apart. */
#include "record/hyp/text-pattern.h"
#include "base/decode/conversion.h"

#define REASON_FN "__hyp_enter_exit_reason_str("
#define WIDTH_MAX 64

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
	while (*p == ' ' || *p == '\t' || *p == '\n')
		p++;
	return p;
}

/* "REC->field" at *p: its index, or -1. */
static int rec_field(const struct event_format *f, const char **p)
{
	const char *name = *p + 5;
	size_t n = 0;

	if (strncmp(*p, "REC->", 5))
		return -1;
	while (isalnum((unsigned char)name[n]) || name[n] == '_')
		n++;
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

/* Whether the field is such that kernel and libtraceevent print it alike. */
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
		return !isalnum((unsigned char)c) && c != '_';
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
		if (!ends_clearly(&x.out->v[i], &x.out->v[i + 1]))
			x.out->invertible = false;
	}
	if (reasons > 1)
		x.out->invertible = false;
	*out = x.out;
	return 0;
}

bool hyptext_pattern_has(const struct hyptext_pattern *p, size_t field)
{
	for (size_t i = 0; p->v[i].conv != CONV_NONE; i++)
		if (p->v[i].field == field)
			return true;
	return false;
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
