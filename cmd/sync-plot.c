// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace sync --plot: the range of the offsets over time, as SVG. */
#include <math.h>

#include "sync-priv.h"
#include "base/svg.h"

#define WIDTH  900
#define HEIGHT 360 /* of each guest */
#define LEFT   90
#define TOP    78
#define DOTS   2000 /* of a file's own samples at most */

/* Times and offsets are drawn against those of the guest's middle; a double is too short for the whole. */
struct sync_plot {
	struct svg_plot svg;
	uint64_t t0;
	int64_t base;
};

static double plot_x(const struct sync_plot *p, uint64_t t)
{
	return svg_x(&p->svg, (double)(int64_t)(t - p->t0) / 1e9);
}

static double plot_y(const struct sync_plot *p, int64_t offset)
{
	return svg_y(&p->svg, (double)(offset - p->base) / 1e3);
}

static void plot_widen(struct sync_plot *p, int64_t offset)
{
	double us = (double)(offset - p->base) / 1e3;

	p->svg.y.low = fmin(p->svg.y.low, us);
	p->svg.y.high = fmax(p->svg.y.high, us);
}

/* Whether the offset jumps between these guest times. */
static bool cut_between(const struct sync_result *r, uint64_t a, uint64_t b)
{
	for (size_t i = 0; i < r->n_jumps; i++)
		if (r->jumps[i] && r->points[r->jumps[i]].time > a && r->points[r->jumps[i]].time <= b)
			return true;
	return false;
}

/* The range of the offset, the chosen one, and the samples that the file itself has. */
static void draw_offsets(const struct sync_plot *p, const struct offsets_guest *g)
{
	const struct sync_result *r = &g->result;
	const struct sync_band *b = r->bands;

	/* one filled shape from jump to jump: along the upper ends, and back along the lower ones */
	for (size_t i = 0, end; i < r->n_bands; i = end) {
		for (end = i + 1; end < r->n_bands && !cut_between(r, b[end - 1].time, b[end].time); end++)
			;
		buf_addstr(p->svg.out, "<polygon class=\"band\" points=\"");
		for (size_t k = i; k < end; k++)
			buf_printf(p->svg.out, "%.1f,%.1f ", plot_x(p, b[k].time), plot_y(p, b[k].high));
		for (size_t k = end; k-- > i;)
			buf_printf(p->svg.out, "%.1f,%.1f ", plot_x(p, b[k].time), plot_y(p, b[k].low));
		buf_addstr(p->svg.out, "\"/>\n");
	}
	for (size_t i = 0; i < r->n_points; i++) {
		const struct sync_offset_point *k = &r->points[i];

		if (!i || sync_is_jump(r, i))
			buf_printf(p->svg.out, "%s<polyline class=\"line\" points=\"", i ? "\"/>\n" : "");
		buf_printf(p->svg.out, "%.1f,%.1f ", plot_x(p, k->time), plot_y(p, k->offset));
	}
	if (r->n_points)
		buf_addstr(p->svg.out, "\"/>\n");
	for (uint32_t c = 0, dots = 0; g->has_shift && c < g->shift.n_cpus; c++)
		for (uint32_t i = 0; i < g->shift.cpus[c].n && dots < DOTS; i++, dots++) {
			const struct offset_point *k = &g->shift.cpus[c].v[i];

			buf_printf(p->svg.out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" class=\"own\"/>\n",
				   plot_x(p, k->time), plot_y(p, k->offset));
		}
}

static void draw_guest(struct svg_plot svg, const struct sync_job *job, const struct offsets_guest *g)
{
	const struct sync_result *r = &g->result;
	struct sync_plot p = { svg, g->events.first, sync_offset(r, guest_middle(g)) };
	uint64_t last = g->events.last;
	char name[96], about[256], question[128], *title;
	double x = LEFT;

	for (size_t i = 0; i < r->n_bands; i++) {
		plot_widen(&p, r->bands[i].low);
		plot_widen(&p, r->bands[i].high);
	}
	for (uint32_t c = 0; g->has_shift && c < g->shift.n_cpus; c++)
		for (uint32_t i = 0; i < g->shift.cpus[c].n; i++) {
			const struct offset_point *k = &g->shift.cpus[c].v[i];

			plot_widen(&p, k->offset);
			p.t0 = k->time < p.t0 ? k->time : p.t0;
			last = k->time > last ? k->time : last;
		}
	p.svg.y.low -= 0.05 * (p.svg.y.high - p.svg.y.low);
	p.svg.y.high += 0.05 * (p.svg.y.high - p.svg.y.low);
	p.svg.x.high = (double)(last - p.t0 + 1) / 1e9;
	p.svg.x.name = in_ticks(g) ? "guest's time from its first event (10^9 ticks)"
				   : "guest's time from its first event (s)";
	p.svg.y.name = name;
	snprintf(name, sizeof(name), "host - guest, against the middle (%s)",
		 in_ticks(g) ? "1000 ticks" : "us");
	snprintf(about, sizeof(about), "%s: %s, %s; %lld %s in the middle, at %.3f s", g->name,
		 sync_class_name(r->class), r->method, (long long)p.base, in_ticks(g) ? "ticks" : "ns",
		 (double)(guest_middle(g) - p.t0) / 1e9);
	snprintf(question, sizeof(question), "by how much is the host's clock ahead of %s's?", g->name);
	title = picture_title(handle_inputs(job->files), question);
	svg_title(svg.out, LEFT, svg.top - TOP, 110, title ?: "", about);
	free(title);
	svg_legend(svg.out, &x, svg.top - 12, SVG_BOX, "class=\"band\"", "possible offsets");
	svg_legend(svg.out, &x, svg.top - 12, SVG_LINE, "class=\"line\"", "chosen offset");
	if (g->has_shift)
		svg_legend(svg.out, &x, svg.top - 12, SVG_DOT, "class=\"own\"", "samples in the file");
	svg_axes(&p.svg);
	draw_offsets(&p, g);
}

int plot_svg(const struct sync_job *job, const char *path)
{
	struct buf out = { 0 };
	struct svg_plot frame = { .out = &out,
				  .left = LEFT,
				  .width = WIDTH - LEFT - 40,
				  .height = HEIGHT - TOP - SVG_AXIS_HEIGHT - 10,
				  .y = { .low = -1, .high = 1 } };
	int ret;

	svg_begin(&out, WIDTH, (double)(job->found.n_guests * HEIGHT), "",
		  ".band { fill: #9bc4e2; stroke: #9bc4e2; }\n"
		  ".line { fill: none; stroke: #14507a; stroke-width: 1.5; }\n"
		  ".own { fill: #c0392b; }\n");
	for (size_t i = 0; i < job->found.n_guests; i++) {
		frame.top = TOP + (double)(i * HEIGHT);
		draw_guest(frame, job, &job->found.guests[i]);
	}
	svg_end(&out);
	ret = output_write(path, &out, handle_inputs(job->files), job->log);
	buf_release(&out);
	return ret;
}
