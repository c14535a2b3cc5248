// SPDX-License-Identifier: LGPL-2.1-or-later
/* A distribution of durations as a picture. */
#include "ask/latency/latency.h"

#include "base/svg.h"

#define WIDTH  900
#define HEIGHT 420
#define LEFT   66
#define TOP    108 /* of the plot */
#define BARS   120 /* of the same width on the axis */

/* 0 ns, which has no logarithm, is drawn as 1. */
static double spread_log(uint64_t ns)
{
	return ns ? log10((double)ns) : 0;
}

static void spread_label(double log, char room[SVG_LABEL])
{
	duration_text((uint64_t)llround(pow(10, log)), room);
}

static void spread_bars(const struct svg_plot *p, const uint64_t bars[BARS])
{
	double step = (p->x.high - p->x.low) / BARS;
	char from[SVG_LABEL], to[SVG_LABEL];

	for (size_t i = 0; i < BARS; i++) {
		double log = p->x.low + step * (double)i, x = svg_x(p, log), y = svg_y(p, (double)bars[i]);

		if (!bars[i])
			continue;
		spread_label(log, from);
		spread_label(log + step, to);
		buf_printf(p->out,
			   "<rect class=\"bar\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\">"
			   "<title>%s to %s: %" PRIu64 "</title></rect>\n",
			   x, y, svg_x(p, log + step) - x, p->top + p->height - y, from, to, bars[i]);
	}
}

static void spread_percentiles(const struct svg_plot *p, const struct histogram *h)
{
	static const struct {
		double share;
		const char *name;
	} marks[] = { { 0.5, "p50" }, { 0.99, "p99" }, { 0.999, "p99.9" } };
	char room[16];

	for (size_t i = 0; i < ARRAY_SIZE(marks); i++) {
		uint64_t at = histogram_at(h, marks[i].share);
		double x = svg_x(p, spread_log(at)), y = TOP - 4 - 12.0 * (int)(ARRAY_SIZE(marks) - 1 - i);
		bool right = x > p->left + 0.9 * p->width;

		buf_printf(p->out,
			   "<line class=\"mark\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.0f\" y2=\"%.0f\"/>"
			   "<text class=\"tick\" x=\"%.1f\" y=\"%.0f\" text-anchor=\"%s\">%s %s</text>\n",
			   x, x, y, p->top + p->height, right ? x - 3 : x + 3, y, right ? "end" : "start",
			   marks[i].name, duration_text(at, room));
	}
}

void latency_svg(const struct histogram *h, const char *title, struct buf *out)
{
	struct svg_plot p = { .out = out,
			      .left = LEFT,
			      .top = TOP,
			      .width = WIDTH - LEFT - 30,
			      .height = HEIGHT - TOP - SVG_AXIS_HEIGHT,
			      .x = { "duration (logarithmic; units at the ticks)", .step = 1,
				     .label = spread_label },
			      .y = { "durations per bar (count)" } };
	char about[128], min[16], mean[16], max[16];
	uint64_t bars[BARS] = { 0 }, most = 1, from, to, n;
	double x = LEFT;

	/* halves of decades, one at least */
	p.x.low = floor(2 * spread_log(h->min)) / 2;
	p.x.high = fmax(ceil(2 * spread_log(h->max)) / 2, p.x.low + 1);
	for (size_t at = 0; histogram_next(h, &at, &from, &to, &n);) {
		double bar = (spread_log(from + (to - from) / 2) - p.x.low) / (p.x.high - p.x.low) * BARS;

		bars[bar < 0 ? 0 : bar >= BARS ? BARS - 1 : (size_t)bar] += n;
	}
	for (size_t i = 0; i < BARS; i++)
		most = bars[i] > most ? bars[i] : most;
	p.y.high = (double)most;
	p.y.step = fmax(svg_step(p.y.high), 1);
	snprintf(about, sizeof(about), "%" PRIu64 " durations: min %s, avg %s, max %s", h->n,
		 duration_text(h->min, min), duration_text((uint64_t)histogram_mean(h), mean),
		 duration_text(h->max, max));
	svg_begin(out, WIDTH, HEIGHT, "",
		  ".bar { fill: #4878a8; }\n.mark { stroke: #c03030; stroke-dasharray: 3 2; }\n");
	svg_title(out, LEFT, 0, 120, title, about);
	svg_legend(out, &x, 64, SVG_BOX, "class=\"bar\"", "durations");
	svg_legend(out, &x, 64, SVG_LINE, "class=\"mark\"", "percentiles");
	svg_axes(&p);
	spread_bars(&p, bars);
	spread_percentiles(&p, h);
	svg_end(out);
}
