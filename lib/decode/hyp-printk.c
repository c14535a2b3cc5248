// SPDX-License-Identifier: LGPL-2.1-or-later
#include "decode/hyp-printk.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ID_MAX	  65535
#define WIDTH_MAX 99

struct hyp_formats {
	char **v; /* by number; holes are NULL */
	size_t n;
};

void hyp_formats_free(struct hyp_formats *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->n; i++)
		free(f->v[i]);
	free(f->v);
	free(f);
}

const char *hyp_format(const struct hyp_formats *f, uint64_t id)
{
	return f && id < f->n ? f->v[id] : NULL;
}

static int add(struct hyp_formats *f, uint64_t id, const char *text)
{
	if (id > ID_MAX)
		return -EBADMSG;
	if (id >= f->n) {
		char **v = realloc(f->v, (id + 1) * sizeof(*v));

		if (!v)
			return -ENOMEM;
		memset(v + f->n, 0, (id + 1 - f->n) * sizeof(*v));
		f->v = v;
		f->n = id + 1;
	}
	free(f->v[id]);
	f->v[id] = strdup(text);
	return f->v[id] ? 0 : -ENOMEM;
}

static int add_line(struct hyp_formats *f, const char *line, size_t len)
{
	char *text, *fmt;
	uint64_t id;
	int ret = -EBADMSG;

	if (!len || *line == '#')
		return 0;
	if (memchr(line, 0, len))
		return -EBADMSG;
	text = strndup(line, len);
	if (!text)
		return -ENOMEM;
	fmt = text + strcspn(text, " \t");
	if (*fmt) {
		*fmt++ = 0;
		if (!parse_u64(text, &id))
			ret = add(f, id, fmt);
	}
	free(text);
	return ret;
}

int hyp_formats_parse(const void *data, size_t len, struct hyp_formats **out)
{
	struct hyp_formats *f = calloc(1, sizeof(*f));
	struct cursor c = cursor_at(data, len);
	int ret = f ? 0 : -ENOMEM;
	const char *line;
	size_t n;

	*out = NULL;
	while (!ret && cursor_line(&c, &line, &n))
		ret = add_line(f, line, n);
	if (ret)
		hyp_formats_free(f);
	else
		*out = f;
	return ret;
}

/* ---- printing -------------------------------------------------------------------- */

struct spec {
	bool zero, alt, left;
	int width;
	unsigned int bits;
	char letter;
};

/* Behind the '%'; the end of the conversion, or NULL when it is none. */
static const char *parse_spec(const char *p, struct spec *sp)
{
	*sp = (struct spec){ .bits = 32 };
	for (; *p && strchr("0#-+ ", *p); p++) {
		sp->zero |= *p == '0';
		sp->alt |= *p == '#';
		sp->left |= *p == '-';
	}
	for (; isdigit((unsigned char)*p); p++)
		if (sp->width <= WIDTH_MAX / 10)
			sp->width = sp->width * 10 + (*p - '0');
	if (*p == '.') /* as the width of zeros */
		for (p++; isdigit((unsigned char)*p);)
			p++;
	for (; *p && strchr("lhzt", *p); p++)
		sp->bits = *p == 'h' ? sp->bits / 2 : 64;
	sp->letter = *p;
	return *p && strchr("diuxXopcs%", *p) ? p + 1 : NULL;
}

static void put_number(const struct spec *sp, uint64_t value, struct buf *out)
{
	unsigned int unused = 64 - (sp->bits < 8 ? 8 : sp->bits);
	uint64_t cut = value << unused >> unused;
	int width = sp->left ? -sp->width : sp->width;

	switch (sp->letter) {
	case 'd':
	case 'i':
		buf_printf(out, sp->zero ? "%0*" PRId64 : "%*" PRId64, width,
			   (int64_t)(value << unused) >> unused);
		break;
	case 'u':
		buf_printf(out, sp->zero ? "%0*" PRIu64 : "%*" PRIu64, width, cut);
		break;
	case 'o':
		buf_printf(out, "%*" PRIo64, width, cut);
		break;
	case 'c':
		buf_printf(out, "%c", isprint((int)(value & 0xff)) ? (int)(value & 0xff) : '?');
		break;
	case 'x':
	case 'X':
		if (sp->alt)
			buf_printf(out, sp->zero ? "%#0*" PRIx64 : "%#*" PRIx64, width, cut);
		else
			buf_printf(out, sp->zero ? "%0*" PRIx64 : "%*" PRIx64, width, cut);
		break;
	default: /* p, s */
		buf_printf(out, "0x%" PRIx64, value);
	}
}

void hyp_format_print(const char *fmt, const uint64_t *args, size_t n, struct buf *out)
{
	size_t used = 0;

	while (*fmt) {
		size_t plain = strcspn(fmt, "%");
		struct spec sp;
		const char *end;

		buf_add(out, fmt, plain);
		fmt += plain;
		if (!*fmt)
			break;
		end = parse_spec(fmt + 1, &sp);
		if (!end || sp.letter == '%') {
			buf_addstr(out, "%");
		} else if (used < n) {
			put_number(&sp, args[used++], out);
		} else {
			buf_addstr(out, "?");
		}
		fmt = end ? end : fmt + 1;
	}
}
