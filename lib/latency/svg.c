// SPDX-License-Identifier: LGPL-2.1-or-later
/* A distribution of durations as a picture. */
#include "latency/svg.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "util/answer.h"
#include "util/visible.h"

#define WIDTH	900
#define HEIGHT	360
#define LEFT	70
#define RIGHT	30
#define TOP	60
#define BOTTOM	50
#define BARS	120 /* of the same width on the axis */
#define DECADES 20

/* From 10^low to 10^high ns. */
struct spread_axis {
	double low, high;
	uint64_t bars[BARS], most;
};

/* ---- where ----------------------------------------------------------------------------- */

/* 0 ns, which has no logarithm, is drawn as 1. */
static double spread_log(uint64_t ns)
{
	return ns ? log10((double)ns) : 0;
}

static double spread_x(const struct spread_axis *a, double log)
{
	return LEFT + (WIDTH - LEFT - RIGHT) * (log - a->low) / (a->high - a->low);
}

static double spread_y(const struct spread_axis *a, uint64_t n)
{
	return TOP + (HEIGHT - TOP - BOTTOM) * (1 - (double)n / (double)a->most);
}

/* Halves of decades, one at least. */
static void spread_axis_init(struct spread_axis *a, const struct histogram *h)
{
	uint64_t from, to, n;

	a->low = floor(2 * spread_log(h->min)) / 2;
	a->high = ceil(2 * spread_log(h->max)) / 2;
	a->high = a->high < a->low + 1 ? a->low + 1 : a->high;
	for (size_t at = 0; histogram_next(h, &at, &from, &to, &n);) {
		double middle = spread_log(from + (to - from) / 2);
		double bar = (middle - a->low) / (a->high - a->low) * BARS;
		size_t i = bar < 0 ? 0 : bar >= BARS ? BARS - 1 : (size_t)bar;

		a->bars[i] += n;
		a->most = a->bars[i] > a->most ? a->bars[i] : a->most;
	}
}

/* ---- what --------------------------------------------------------------------------------- */

static void spread_text(struct buf *out, const char *text)
{
	char clean[VISIBLE_LINE];

	for (const char *p = visible_line(clean, sizeof(clean), text); *p; p++) {
		if (strchr("<>&\"'", *p))
			buf_printf(out, "&#%d;", *p);
		else
			buf_add(out, p, 1);
	}
}

static const char *spread_time(double log, char room[16])
{
	return duration_text((uint64_t)llround(pow(10, log)), room);
}

static void spread_bars(const struct spread_axis *a, struct buf *out)
{
	double step = (a->high - a->low) / BARS;
	char from[16], to[16];

	for (size_t i = 0; i < BARS; i++) {
		double log = a->low + step * (double)i, x = spread_x(a, log), y = spread_y(a, a->bars[i]);

		if (a->bars[i])
			buf_printf(out,
				   "<rect class=\"bar\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\">"
				   "<title>%s to %s: %" PRIu64 "</title></rect>\n",
				   x, y, spread_x(a, log + step) - x, HEIGHT - BOTTOM - y,
				   spread_time(log, from), spread_time(log + step, to), a->bars[i]);
	}
}

static void spread_grid(const struct spread_axis *a, struct buf *out)
{
	char room[16];

	for (int d = (int)ceil(a->low); d <= (int)floor(a->high) && d < DECADES; d++) {
		double x = spread_x(a, d);

		buf_printf(out,
			   "<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>"
			   "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n",
			   x, x, TOP, HEIGHT - BOTTOM, x, HEIGHT - BOTTOM + 18, spread_time(d, room));
	}
	buf_printf(out,
		   "<line class=\"axis\" x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\"/>"
		   "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">%" PRIu64 "</text>"
		   "<text x=\"%d\" y=\"%d\" text-anchor=\"end\">0</text>\n",
		   LEFT, WIDTH - RIGHT, HEIGHT - BOTTOM, HEIGHT - BOTTOM, LEFT - 8, TOP + 4, a->most,
		   LEFT - 8, HEIGHT - BOTTOM + 4);
}

static void spread_percentiles(const struct spread_axis *a, const struct histogram *h, struct buf *out)
{
	static const struct {
		double share;
		const char *name;
	} marks[] = { { 0.5, "p50" }, { 0.99, "p99" }, { 0.999, "p99.9" } };
	char room[16];

	for (size_t i = 0; i < ARRAY_SIZE(marks); i++) {
		uint64_t at = histogram_at(h, marks[i].share);
		double x = spread_x(a, spread_log(at));
		int y = TOP - 4 - 12 * (int)(ARRAY_SIZE(marks) - 1 - i);

		buf_printf(out,
			   "<line class=\"mark\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%d\" y2=\"%d\"/>"
			   "<text x=\"%.1f\" y=\"%d\">%s %s</text>\n",
			   x, x, y, HEIGHT - BOTTOM, x + 3, y, marks[i].name, duration_text(at, room));
	}
}

void latency_svg(const struct histogram *h, const char *title, struct buf *out)
{
	struct spread_axis a = { .most = 1 };
	char min[16], mean[16], max[16];

	spread_axis_init(&a, h);
	buf_printf(
		out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
		"viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"11\">\n"
		"<style>.bar{fill:#4878a8}.grid{stroke:#ddd}.axis{stroke:#333}"
		".mark{stroke:#c03030;stroke-dasharray:3 2}</style>\n"
		"<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n<text x=\"%d\" y=\"18\" font-size=\"13\">",
		WIDTH, HEIGHT, WIDTH, HEIGHT, WIDTH, HEIGHT, LEFT);
	spread_text(out, title);
	buf_printf(out,
		   "</text>\n<text x=\"%d\" y=\"%d\">%" PRIu64 " durations, min %s, avg %s, max %s</text>\n",
		   LEFT, HEIGHT - 10, h->n, duration_text(h->min, min),
		   duration_text((uint64_t)histogram_mean(h), mean), duration_text(h->max, max));
	spread_grid(&a, out);
	spread_bars(&a, out);
	spread_percentiles(&a, h, out);
	buf_addstr(out, "</svg>\n");
}
