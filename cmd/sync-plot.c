// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace sync --plot: where the offsets can be over time, as SVG. */
#include <math.h>
#include <string.h>

#include "sync-priv.h"
#include "util/outfile.h"
#include "util/visible.h"

#define WIDTH  900
#define HEIGHT 300
#define MARGIN 70
#define DOTS   2000 /* of a file's own samples at most */

/* Offsets are drawn against the one in the middle, in us; jumps make the scale. */
struct plot {
	struct buf *out;
	uint64_t t0, t1;
	int64_t base;
	double low, high; /* us */
	double top;	  /* of this guest's frame */
};

static double at_x(const struct plot *p, uint64_t t)
{
	return MARGIN + (WIDTH - 2.0 * MARGIN) * (double)(int64_t)(t - p->t0) / (double)(p->t1 - p->t0 + 1);
}

static double at_y(const struct plot *p, int64_t offset)
{
	double us = (double)(offset - p->base) / 1e3;

	return p->top + MARGIN + (HEIGHT - 2.0 * MARGIN) * (p->high - us) / (p->high - p->low);
}

static void plot_widen(struct plot *p, int64_t offset)
{
	double us = (double)(offset - p->base) / 1e3;

	p->low = fmin(p->low, us);
	p->high = fmax(p->high, us);
}

/* Does a new piece begin between these guest times? */
static bool cut_between(const struct sync_result *r, uint64_t a, uint64_t b)
{
	for (size_t i = 0; i < r->n_cuts; i++)
		if (r->cuts[i] && r->knots[r->cuts[i]].time > a && r->knots[r->cuts[i]].time <= b)
			return true;
	return false;
}

/* One filled shape for each piece: along the upper ends, and back along the lower ones. */
static void draw_bands(const struct plot *p, const struct sync_result *r)
{
	const struct sync_band *b = r->bands;

	for (size_t i = 0, end; i < r->n_bands; i = end) {
		for (end = i + 1; end < r->n_bands && !cut_between(r, b[end - 1].time, b[end].time); end++)
			;
		buf_addstr(p->out, "<polygon class=\"band\" points=\"");
		for (size_t k = i; k < end; k++)
			buf_printf(p->out, "%.1f,%.1f ", at_x(p, b[k].time), at_y(p, b[k].high));
		for (size_t k = end; k-- > i;)
			buf_printf(p->out, "%.1f,%.1f ", at_x(p, b[k].time), at_y(p, b[k].low));
		buf_addstr(p->out, "\"/>\n");
	}
}

static void draw_line(const struct plot *p, const struct sync_result *r)
{
	for (size_t i = 0; i < r->n_knots; i++) {
		const struct sync_knot *k = &r->knots[i];

		if (!i || sync_is_cut(r, i))
			buf_printf(p->out, "%s<polyline class=\"line\" points=\"", i ? "\"/>\n" : "");
		buf_printf(p->out, "%.1f,%.1f ", at_x(p, k->time), at_y(p, k->offset));
	}
	if (r->n_knots)
		buf_addstr(p->out, "\"/>\n");
}

/* The samples that the file itself came with. */
static void draw_own(const struct plot *p, const struct offsets_guest *g)
{
	unsigned int n = 0;

	for (uint32_t c = 0; g->has_shift && c < g->shift.n_cpus; c++)
		for (uint32_t i = 0; i < g->shift.cpus[c].n && n < DOTS; i++, n++) {
			const struct offset_knot *k = &g->shift.cpus[c].v[i];

			buf_printf(p->out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" class=\"own\"/>\n",
				   at_x(p, k->time), at_y(p, k->offset));
		}
}

/* Grid lines at 1, 2 or 5 times a power of ten, 4 to 9 of them. */
static void draw_grid(const struct plot *p, const char *unit)
{
	static const double steps[] = { 2, 2.5, 2 };
	double step = 1;

	for (int i = 0; (p->high - p->low) / step > 9; i++)
		step *= steps[i % 3];
	for (double v = ceil(p->low / step) * step; v <= p->high; v += step) {
		double y = p->top + MARGIN + (HEIGHT - 2.0 * MARGIN) * (p->high - v) / (p->high - p->low);

		buf_printf(p->out,
			   "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>\n"
			   "<text class=\"tick\" x=\"%d\" y=\"%.1f\">%+.0f%s</text>\n",
			   MARGIN, WIDTH - MARGIN, y, y, MARGIN - 6, y + 4, v, unit);
	}
}

static void draw_legend(const struct plot *p, const struct offsets_guest *g)
{
	double y = p->top + HEIGHT - 22;

	buf_printf(p->out,
		   "<rect class=\"band\" x=\"%d\" y=\"%.0f\" width=\"24\" height=\"10\"/>"
		   "<text x=\"%d\" y=\"%.0f\">where the offset can be</text>\n"
		   "<line class=\"line\" x1=\"270\" x2=\"294\" y1=\"%.0f\" y2=\"%.0f\"/>"
		   "<text x=\"300\" y=\"%.0f\">the line chosen</text>\n",
		   MARGIN, y - 9, MARGIN + 30, y, y - 4, y - 4, y);
	if (g->has_shift)
		buf_printf(p->out,
			   "<circle class=\"own\" cx=\"432\" cy=\"%.0f\" r=\"4\"/>"
			   "<text x=\"444\" y=\"%.0f\">the file's own samples</text>\n",
			   y - 4, y);
}

/* What XML takes: UTF-8 without controls; U+FFFD for each byte that is wrong. */
static void draw_name(struct buf *out, const char *name)
{
	const uint8_t *p = (const uint8_t *)name;
	size_t left = strlen(name);

	for (size_t n; left; p += n, left -= n) {
		n = utf8_len(p, left);
		if (!n || *p < ' ' || visible_control(p, left)) {
			n = n ?: 1;
			buf_addstr(out, "\xef\xbf\xbd");
		} else if (strchr("<>&\"'", *p)) {
			buf_printf(out, "&#%u;", *p);
		} else {
			buf_add(out, p, n);
		}
	}
}

static void draw_text(const struct plot *p, const struct offsets_guest *g)
{
	buf_printf(p->out, "<text x=\"%d\" y=\"%.0f\">", MARGIN, p->top + 30);
	draw_name(p->out, g->name);
	buf_printf(p->out, ": %s, %s; host - guest against %lld %s at %.3f s</text>\n",
		   sync_class_name(g->result.class), g->result.method, (long long)p->base,
		   in_ticks(g) ? "ticks" : "ns", (double)(guest_middle(g) - p->t0) / 1e9);
	draw_grid(p, in_ticks(g) ? "k" : " us");
	draw_legend(p, g);
	buf_printf(p->out, "<text x=\"%d\" y=\"%.0f\">%.3f s</text>\n", WIDTH - MARGIN - 40,
		   p->top + HEIGHT - 30, (double)(p->t1 - p->t0) / 1e9);
	buf_printf(p->out, "<rect x=\"%d\" y=\"%.0f\" width=\"%d\" height=\"%d\" class=\"frame\"/>\n", MARGIN,
		   p->top + MARGIN, WIDTH - 2 * MARGIN, HEIGHT - 2 * MARGIN);
}

static void draw_guest(struct plot *p, const struct offsets_guest *g)
{
	const struct sync_result *r = &g->result;

	p->t0 = g->events.first;
	p->t1 = g->events.last;
	p->base = sync_offset(r, guest_middle(g));
	p->low = -1;
	p->high = 1;
	for (size_t i = 0; i < r->n_bands; i++) {
		plot_widen(p, r->bands[i].low);
		plot_widen(p, r->bands[i].high);
	}
	for (uint32_t c = 0; g->has_shift && c < g->shift.n_cpus; c++)
		for (uint32_t i = 0; i < g->shift.cpus[c].n; i++) {
			plot_widen(p, g->shift.cpus[c].v[i].offset);
			if (g->shift.cpus[c].v[i].time < p->t0)
				p->t0 = g->shift.cpus[c].v[i].time;
			if (g->shift.cpus[c].v[i].time > p->t1)
				p->t1 = g->shift.cpus[c].v[i].time;
		}
	draw_text(p, g);
	draw_bands(p, r);
	draw_line(p, r);
	draw_own(p, g);
}

static int plot_write(const struct sync_job *job, const struct buf *svg, const char *path)
{
	struct outfile out;
	int ret = outfile_open(&out, path, true, job->log);

	return ret ? ret : outfile_close(&out, write_all(out.fd, svg->data, svg->len));
}

int plot_svg(const struct sync_job *job, const char *path)
{
	struct buf out = { 0 };
	struct plot p = { .out = &out };
	int ret;

	buf_printf(&out,
		   "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%zu\" "
		   "font-family=\"sans-serif\" font-size=\"12\">\n"
		   "<style>.band{fill:#9bc4e2;stroke:#9bc4e2}.line{fill:none;stroke:#14507a;"
		   "stroke-width:1.5}.own{fill:#c0392b}.frame{fill:none;stroke:#888}"
		   ".grid{stroke:#ddd}.tick{text-anchor:end;font-size:11px}</style>\n"
		   "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n",
		   WIDTH, job->found.n_guests * HEIGHT);
	for (size_t i = 0; i < job->found.n_guests; i++) {
		p.top = (double)(i * HEIGHT);
		draw_guest(&p, &job->found.guests[i]);
	}
	buf_addstr(&out, "</svg>\n");
	ret = buf_status(&out) ?: plot_write(job, &out, path);
	buf_release(&out);
	return ret;
}
