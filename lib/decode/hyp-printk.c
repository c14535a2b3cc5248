// SPDX-License-Identifier: LGPL-2.1-or-later
/* The hypervisor's printk: formats by number, and a record's arguments put into one. */
#include "decode/hyp-printk.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#define ID_MAX	  65535
#define WIDTH_MAX 99

static int format_line(void *formats, char *line)
{
	char *fmt = line + strcspn(line, " \t");
	uint64_t id;

	if (!*fmt)
		return -EBADMSG;
	*fmt++ = 0;
	return parse_u64(line, &id) || id > ID_MAX ? -EBADMSG : numbered_set(formats, id, fmt);
}

int hyp_formats_parse(const void *data, size_t len, struct numbered *out)
{
	int ret;

	*out = (struct numbered){ 0 };
	ret = text_lines(data, len, false, format_line, out, NULL);
	if (ret)
		numbered_release(out);
	return ret;
}

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

static void put_conversion(const struct spec *sp, uint64_t value, struct buf *out)
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
		buf_printf(out,
			   sp->alt    ? sp->zero ? "%#0*" PRIx64 : "%#*" PRIx64
			   : sp->zero ? "%0*" PRIx64
				      : "%*" PRIx64,
			   width, cut);
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
			put_conversion(&sp, args[used++], out);
		} else {
			buf_addstr(out, "?");
		}
		fmt = end ? end : fmt + 1;
	}
}
