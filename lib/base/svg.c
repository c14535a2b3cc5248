// SPDX-License-Identifier: LGPL-2.1-or-later
/* Pictures as SVG: documents, text that XML accepts, axes, legends. */
#include "base/array.h"
#include "base/svg.h"

#include <math.h>

#include "base/escape.h"

#define TICKS_MAX 100
#define LETTER	  6.5 /* px of a letter, about */

void svg_text(struct buf *out, const char *text, size_t n)
{
	const uint8_t *p = (const uint8_t *)text;
	size_t left = strnlen(text, n);

	for (size_t len; left; p += len, left -= len) {
		len = utf8_len(p, left);
		if (!len || *p < ' ' || escape_control(p, left) ||
		    (len == 3 && !memcmp(p, "\xef\xbf", 2) && p[2] >= 0xbe)) {
			len = len ?: 1;
			buf_addstr(out, "\xef\xbf\xbd");
		} else if (strchr("<>&\"", *p)) {
			buf_addstr(out, *p == '<'   ? "&lt;"
					: *p == '>' ? "&gt;"
					: *p == '&' ? "&amp;"
						    : "&quot;");
		} else {
			buf_add(out, p, len);
		}
	}
}

void svg_short(struct buf *out, const char *text, size_t letters)
{
	size_t n = 0, keep = 0, i = 0;

	for (; text[i]; i++) {
		n += ((uint8_t)text[i] & 0xc0) != 0x80;
		if (n < letters)
			keep = i + 1;
	}
	svg_text(out, text, n > letters ? keep : i);
	buf_addstr(out, n > letters ? "\u2026" : "");
}

void svg_begin(struct buf *out, double width, double height, const char *attributes, const char *style)
{
	buf_printf(out,
		   "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		   "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" ",
		   width, height);
	if (*attributes)
		buf_printf(out, "%s>\n", attributes);
	else
		buf_printf(out, "width=\"%.0f\" height=\"%.0f\">\n", width, height);
	buf_printf(out,
		   "<style>\n"
		   "text { font: 12px sans-serif; fill: #111; }\n"
		   ".title { font-size: 16px; font-weight: bold; }\n"
		   ".quiet, .tick { fill: #555; }\n"
		   ".tick { font-size: 11px; }\n"
		   ".grid { stroke: #ddd; }\n"
		   ".frame { fill: none; stroke: #888; }\n"
		   "%s</style>\n"
		   "<rect width=\"%.0f\" height=\"%.0f\" fill=\"#fff\"/>\n",
		   style, width, height);
}

void svg_end(struct buf *out)
{
	buf_addstr(out, "</svg>\n");
}

static void svg_title_line(struct buf *out, double left, double y, size_t letters, const char *class,
			   const char *text)
{
	buf_printf(out, "<text class=\"%s\" x=\"%.0f\" y=\"%.0f\">", class, left, y);
	if (strlen(text) > letters) {
		buf_addstr(out, "<title>");
		svg_text(out, text, SIZE_MAX);
		buf_addstr(out, "</title>");
	}
	svg_short(out, text, letters);
	buf_addstr(out, "</text>\n");
}

void svg_title(struct buf *out, double left, double top, size_t letters, const char *title, const char *about)
{
	svg_title_line(out, left, top + 24, letters * 3 / 4, "title", title);
	svg_title_line(out, left, top + 43, letters, "quiet", about);
}

double svg_x(const struct svg_plot *p, double value)
{
	return p->left + p->width * (value - p->x.low) / (p->x.high - p->x.low);
}

double svg_y(const struct svg_plot *p, double value)
{
	return p->top + p->height * (p->y.high - value) / (p->y.high - p->y.low);
}

double svg_step(double range)
{
	double step = range > 0 ? pow(10, floor(log10(range / 4))) : 1;

	return range / step < 10 ? step : range / step < 20 ? 2 * step : 5 * step;
}

void svg_axes(const struct svg_plot *p)
{
	const struct svg_axis *axes[] = { &p->x, &p->y };
	double middle = p->top + p->height / 2;

	for (size_t i = 0; i < ARRAY_SIZE(axes); i++) {
		const struct svg_axis *a = axes[i];
		double step = a->step ? a->step : svg_step(a->high - a->low), first = ceil(a->low / step);

		for (unsigned int k = 0; step > 0 && k < TICKS_MAX; k++)
			if ((first + k) * step <= a->high * (1 + 1e-12)) {
				double value = (first + k) * step;
				bool is_x = a == &p->x;
				double x = is_x ? svg_x(p, value) : p->left,
				       y = is_x ? p->top + p->height : svg_y(p, value);
				char room[SVG_LABEL];

				if (a->label)
					a->label(value, room);
				else
					snprintf(room, sizeof(room), "%.6g",
						 fabs(value) < a->high * 1e-9 ? 0 : value);
				buf_printf(p->out,
					   "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" "
					   "y2=\"%.1f\"/>"
					   "<text class=\"tick\" x=\"%.1f\" y=\"%.1f\" "
					   "text-anchor=\"%s\">%s</text>\n",
					   x, is_x ? x : p->left + p->width, is_x ? p->top : y, y,
					   is_x ? x : x - 6, is_x ? y + 16 : y + 4, is_x ? "middle" : "end",
					   room);
			}
	}
	buf_printf(p->out,
		   "<rect class=\"frame\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n"
		   "<text class=\"axis\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"middle\">",
		   p->left, p->top, p->width, p->height, p->left + p->width / 2, p->top + p->height + 34);
	svg_text(p->out, p->x.name, SIZE_MAX);
	buf_printf(p->out,
		   "</text>\n<text class=\"axis\" x=\"14\" y=\"%.1f\" text-anchor=\"middle\" "
		   "transform=\"rotate(-90 14 %.1f)\">",
		   middle, middle);
	svg_text(p->out, p->y.name, SIZE_MAX);
	buf_addstr(p->out, "</text>\n");
}

void svg_legend(struct buf *out, double *x, double y, enum svg_sign sign, const char *how, const char *name)
{
	switch (sign) {
	case SVG_BOX:
		buf_printf(out, "<rect %s x=\"%.0f\" y=\"%.0f\" width=\"11\" height=\"11\"/>", how, *x,
			   y - 10);
		break;
	case SVG_LINE:
		buf_printf(out, "<line %s x1=\"%.0f\" x2=\"%.0f\" y1=\"%.0f\" y2=\"%.0f\"/>", how, *x,
			   *x + 12, y - 4, y - 4);
		break;
	case SVG_DOT:
		buf_printf(out, "<circle %s cx=\"%.0f\" cy=\"%.0f\" r=\"4\"/>", how, *x + 5, y - 4);
		break;
	}
	buf_printf(out, "<text x=\"%.0f\" y=\"%.0f\">", *x + 17, y);
	svg_short(out, name, 40);
	buf_addstr(out, "</text>\n");
	*x += 17 + LETTER * (double)(strlen(name) < 40 ? strlen(name) : 40) + 24;
}
