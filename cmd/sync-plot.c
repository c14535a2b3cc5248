// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sync-math.h"
#include "sync-priv.h"

#define WIDTH  900
#define HEIGHT 300
#define MARGIN 60
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
	return MARGIN +
	       (WIDTH - 2.0 * MARGIN) * (double)(int64_t)(t - p->t0) / (double)(p->t1 - p->t0 + 1);
}

static double at_y(const struct plot *p, int64_t offset)
{
	double us = (double)(offset - p->base) / 1e3;

	return p->top + MARGIN + (HEIGHT - 2.0 * MARGIN) * (p->high - us) / (p->high - p->low);
}

static void widen(struct plot *p, int64_t offset)
{
	double us = (double)(offset - p->base) / 1e3;

	p->low = num_min(p->low, us);
	p->high = num_max(p->high, us);
}

static bool is_cut(const struct sync_result *r, size_t knot)
{
	for (size_t i = 0; i < r->n_cuts; i++)
		if (r->cuts[i] == knot)
			return true;
	return false;
}

static void draw_bands(const struct plot *p, const struct sync_result *r)
{
	for (size_t i = 0; i < r->n_bands; i++) {
		const struct sync_band *b = &r->bands[i];

		buf_printf(
			p->out,
			"<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"band\"/>\n",
			at_x(p, b->time), at_y(p, b->low), at_x(p, b->time), at_y(p, b->high));
	}
}

static void draw_line(const struct plot *p, const struct sync_result *r)
{
	for (size_t i = 0; i < r->n_knots; i++) {
		const struct sync_knot *k = &r->knots[i];

		if (!i || is_cut(r, i))
			buf_printf(p->out, "%s<polyline class=\"line\" points=\"",
				   i ? "\"/>\n" : "");
		buf_printf(p->out, "%.1f,%.1f ", at_x(p, k->time), at_y(p, k->offset));
	}
	if (r->n_knots)
		buf_addstr(p->out, "\"/>\n");
}

/* The samples that the file itself came with. */
static void draw_own(const struct plot *p, const struct guest_file *g)
{
	unsigned int n = 0;

	for (uint32_t c = 0; g->has_shift && c < g->shift.n_cpus; c++)
		for (uint32_t i = 0; i < g->shift.cpus[c].n && n < DOTS; i++, n++) {
			const struct offset_knot *k = &g->shift.cpus[c].v[i];

			buf_printf(p->out,
				   "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" class=\"own\"/>\n",
				   at_x(p, k->time), at_y(p, k->offset));
		}
}

static void draw_text(const struct plot *p, const struct guest_file *g)
{
	buf_printf(p->out, "<text x=\"%d\" y=\"%.0f\">", MARGIN, p->top + 30);
	for (const char *c = g->name; *c; c++) {
		bool plain = strchr("<>&", *c) == NULL && (unsigned char)*c >= ' ';

		buf_add(p->out, plain ? c : "?", 1);
	}
	buf_printf(p->out, ": %s, %s</text>\n", sync_class_name(g->result.class), g->result.method);
	buf_printf(p->out, "<text x=\"4\" y=\"%.0f\">%+.1f us</text>\n", p->top + MARGIN, p->high);
	buf_printf(p->out, "<text x=\"4\" y=\"%.0f\">%+.1f us</text>\n", p->top + HEIGHT - MARGIN,
		   p->low);
	buf_printf(p->out, "<text x=\"%d\" y=\"%.0f\">%.3f s</text>\n", WIDTH - MARGIN - 40,
		   p->top + HEIGHT - 30, (double)(p->t1 - p->t0) / 1e9);
	buf_printf(p->out,
		   "<rect x=\"%d\" y=\"%.0f\" width=\"%d\" height=\"%d\" class=\"frame\"/>\n",
		   MARGIN, p->top + MARGIN, WIDTH - 2 * MARGIN, HEIGHT - 2 * MARGIN);
}

static void draw_guest(struct plot *p, const struct guest_file *g)
{
	const struct sync_result *r = &g->result;

	p->t0 = g->events.first;
	p->t1 = g->events.last;
	p->base = sync_offset(r, guest_middle(g));
	p->low = -1;
	p->high = 1;
	for (size_t i = 0; i < r->n_bands; i++) {
		widen(p, r->bands[i].low);
		widen(p, r->bands[i].high);
	}
	for (uint32_t c = 0; g->has_shift && c < g->shift.n_cpus; c++)
		for (uint32_t i = 0; i < g->shift.cpus[c].n; i++) {
			widen(p, g->shift.cpus[c].v[i].offset);
			if (g->shift.cpus[c].v[i].time < p->t0)
				p->t0 = g->shift.cpus[c].v[i].time;
			if (g->shift.cpus[c].v[i].time > p->t1)
				p->t1 = g->shift.cpus[c].v[i].time;
		}
	draw_bands(p, r);
	draw_line(p, r);
	draw_own(p, g);
	draw_text(p, g);
}

int plot_svg(const struct sync_job *job, const char *path)
{
	struct buf out = { 0 };
	struct plot p = { .out = &out };
	int ret;

	buf_printf(&out,
		   "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%zu\" "
		   "font-family=\"sans-serif\" font-size=\"12\">\n"
		   "<style>.band{stroke:#9bc4e2;stroke-width:4}.line{fill:none;stroke:#14507a;"
		   "stroke-width:1.5}.own{fill:#c0392b}.frame{fill:none;stroke:#888}</style>\n",
		   WIDTH, job->n_guests * HEIGHT);
	for (size_t i = 0; i < job->n_guests; i++) {
		p.top = (double)(i * HEIGHT);
		draw_guest(&p, &job->guests[i]);
	}
	buf_addstr(&out, "</svg>\n");
	ret = buf_status(&out);
	if (!ret)
		ret = write_file_at(AT_FDCWD, path, out.data, out.len);
	if (ret)
		log_err(job->log, "cannot write '%s': %s", path, strerror(-ret));
	buf_release(&out);
	return ret;
}
