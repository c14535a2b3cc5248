// SPDX-License-Identifier: LGPL-2.1-or-later
/* The hypervisor's printk: formats by number, and a record's arguments put into one. */
#include "base/decode/id-table.h"
#include "base/decode/conversion.h"
#include "base/strings.h"

#define ID_MAX	  65535
#define WIDTH_MAX 99

static int format_line(void *formats, char *line)
{
	char *fmt = line + strcspn(line, " \t");
	uint64_t id;

	if (!*fmt)
		return -EBADMSG;
	*fmt++ = 0;
	return parse_u64(line, &id) || id > ID_MAX ? -EBADMSG : id_table_set(formats, id, fmt);
}

int hyp_formats_parse(const void *data, size_t len, struct id_table *out, unsigned int *line)
{
	int ret;

	*out = (struct id_table){ 0 };
	ret = text_lines(data, len, false, format_line, out, line);
	if (ret)
		id_table_release(out);
	return ret;
}

static void put_conversion(const struct conversion *c, uint64_t value, struct buf *out)
{
	unsigned int bits = 32, unused;
	int width = c->width;
	uint64_t cut;

	for (size_t i = 0; i < c->n_length; i++)
		bits = c->length[i] == 'h' ? bits / 2 : 64;
	unused = 64 - (bits < 8 ? 8 : bits);
	cut = value << unused >> unused;
	while (width > WIDTH_MAX)
		width /= 10;
	width = c->left ? -width : width;
	switch (c->letter) {
	case 'd':
	case 'i':
		buf_printf(out, c->zero ? "%0*" PRId64 : "%*" PRId64, width,
			   (int64_t)(value << unused) >> unused);
		break;
	case 'u':
		buf_printf(out, c->zero ? "%0*" PRIu64 : "%*" PRIu64, width, cut);
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
			   c->alternate ? c->zero ? "%#0*" PRIx64 : "%#*" PRIx64
			   : c->zero	? "%0*" PRIx64
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
		struct conversion c;
		const char *end;

		buf_add(out, fmt, plain);
		fmt += plain;
		if (!*fmt)
			break;
		end = conversion_scan(fmt + 1, fmt + strlen(fmt), &c);
		/* conversions that the hypervisor does not print */
		if (end && (c.width_is_arg || c.precision_is_arg || !conversion_length_of(&c, "lhzt") ||
			    !strchr("diuxXopcs%", c.letter)))
			end = NULL;
		if (!end || c.letter == '%') {
			buf_addstr(out, "%");
		} else if (used < n) {
			put_conversion(&c, args[used++], out);
		} else {
			buf_addstr(out, "?");
		}
		fmt = end ? end : fmt + 1;
	}
}
