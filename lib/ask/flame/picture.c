// SPDX-License-Identifier: LGPL-2.1-or-later
/* Draws the tree of stacks. */
#include "ask/flame/flame.h"

#include <math.h>

#include "base/answer.h"
#include "base/svg.h"

/* flame.js and flame.css, without their comments */
extern const char flame_script[], flame_style[];

/* px */
#define PAGE	      1200
#define LEFT	      54
#define RIGHT	      10
#define WIDTH	      (PAGE - LEFT - RIGHT)
#define ROW	      17
#define TOP	      78 /* of the frames */
#define LETTER	      7.23
#define TITLE_LETTERS 112 /* next to the search */
#define LETTERS	      3	  /* a frame with room for fewer has no text */

/* Frames in the picture: the first is the whole, and each comes before those on top of it. */
struct drawn_frame {
	const char *name; /* the tree's; NULL: the whole */
	size_t depth;
	double x, w;		     /* shares */
	uint64_t total[FLAME_SIDES]; /* its weight */
	uint32_t colour;	     /* 0xRRGGBB */
};

struct drawing {
	const struct flame_picture *p;
	struct drawn_frame *v;
	size_t n, deepest;
	uint64_t all[FLAME_SIDES], hidden;
	bool guest; /* the stack's machine is one */
	size_t hyp; /* depth at which the hypervisor's begin; 0: not in them */
	double hue; /* the guest's: machines and the hypervisor have colours of their own */
	struct strlist guests;
	bool has_host, has_hyp;
};

static uint32_t flame_svg_hash(const char *s)
{
	uint32_t h = 2166136261u;

	for (; *s; s++)
		h = (h ^ (uint8_t)*s) * 16777619u;
	return h ^ h >> 15;
}

static uint32_t flame_svg_channel(double h, double s, double l, double k)
{
	double at = fmod(k + h / 30, 12), a = s * fmin(l, 1 - l);

	return (uint32_t)lround(255 * (l - a * fmax(-1, fmin(fmin(at - 3, 9 - at), 1))));
}

/* Hue in degrees, saturation and lightness as shares. */
static uint32_t flame_svg_hsl(double h, double s, double l)
{
	return flame_svg_channel(h, s, l, 0) << 16 | flame_svg_channel(h, s, l, 8) << 8 |
	       flame_svg_channel(h, s, l, 4);
}

static double flame_svg_guest_hue(const char *name)
{
	static const double hues[] = { 150, 205, 95, 180, 228, 120 };

	return hues[flame_svg_hash(name) % ARRAY_SIZE(hues)];
}

#define HUE_HOST 28
#define HUE_HYP	 288

/* Red: the second recording has more of it; blue: less. */
static uint32_t flame_svg_diff_colour(double before, double after)
{
	double most = fmax(before, after), change = most > 0 ? (after - before) / most : 0;
	double strength = sqrt(fabs(change));

	if (fabs(change) < 0.005)
		return 0xe8e8e8;
	return flame_svg_hsl(change > 0 ? 8 : 215, 0.85, 0.92 - 0.34 * strength);
}

static double flame_svg_share(const struct drawing *s, const uint64_t *n)
{
	double a = s->all[0] ? (double)n[0] / (double)s->all[0] : 0;
	double b = s->all[1] ? (double)n[1] / (double)s->all[1] : 0;

	return !s->p->diff ? a : s->all[0] && s->all[1] ? (a + b) / 2 : a + b;
}

static int flame_svg_visit(void *ctx, const struct flame_frame *f, const uint64_t *begin)
{
	struct drawing *s = ctx;
	struct drawn_frame to = { f->name, f->depth, flame_svg_share(s, begin), flame_svg_share(s, f->total),
				  { 0 },   0 };
	uint32_t hash = flame_svg_hash(f->name);
	double hue;

	if (f->depth <= s->hyp)
		s->hyp = 0;
	if (!s->hyp && f->depth > 2 && !strcmp(f->name, FLAME_HYP))
		s->hyp = f->depth;
	if (f->depth == 1) {
		bool guest = !strncmp(f->name, FLAME_GUEST, strlen(FLAME_GUEST));

		s->guest = guest;
		s->has_host |= !guest;
		s->hue = flame_svg_guest_hue(f->name);
		if (guest && !strlist_has(&s->guests, f->name) && strlist_add(&s->guests, f->name))
			return -ENOMEM;
	}
	/* by the machine, and a little by the name: one name has one colour in every picture */
	hue = s->hyp ? HUE_HYP : s->guest ? s->hue : HUE_HOST;
	if (to.w < FLAME_NARROWEST) {
		s->hidden++;
		return 0;
	}
	s->has_hyp |= s->hyp > 0;
	s->deepest = f->depth > s->deepest ? f->depth : s->deepest;
	memcpy(to.total, f->total, sizeof(to.total));
	if (s->p->diff)
		to.colour = flame_svg_diff_colour(s->all[0] ? (double)f->total[0] / (double)s->all[0] : 0,
						  s->all[1] ? (double)f->total[1] / (double)s->all[1] : 0);
	else if (f->depth <= 2) /* machine and task */
		to.colour = flame_svg_hsl(hue, 0.45, f->depth == 1 ? 0.66 : 0.74);
	else
		to.colour = flame_svg_hsl(hue + (double)(hash % 31) - 15, 0.68,
					  0.66 + (double)(hash / 31 % 13) / 100);
	return array_push(&s->v, &s->n, &to, sizeof(to));
}

static void flame_svg_weight(const struct drawing *s, uint64_t n, struct buf *out)
{
	static const char *const words[FLAME_WEIGHTS] = { "samples", "", "calls", "entries" };
	char text[16];

	if (s->p->weight == FLAME_NS)
		buf_addstr(out, duration_text(n, text));
	else
		buf_printf(out, "%llu %s", (unsigned long long)n, words[s->p->weight]);
}

static double flame_svg_percent(uint64_t n, uint64_t all)
{
	return all ? 100 * (double)n / (double)all : 0;
}

static void flame_svg_draw(const struct drawing *s, const struct drawn_frame *f, struct buf *out)
{
	const char *name = f->name ? f->name : "all";
	double x = LEFT + f->x * WIDTH, w = f->w * WIDTH, y = (double)(TOP + (s->deepest - f->depth) * ROW);
	double before = flame_svg_percent(f->total[0], s->all[0]),
	       after = flame_svg_percent(f->total[1], s->all[1]);
	size_t letters = w > 6 ? (size_t)((w - 6) / LETTER) : 0;

	buf_printf(out, "<g class=\"f\" data-x=\"%.7f\" data-w=\"%.7f\" data-d=\"%zu\"><title>", f->x, f->w,
		   f->depth);
	svg_text(out, name, SIZE_MAX);
	buf_addstr(out, "\n");
	/* "12 samples, 3.45 %" */
	flame_svg_weight(s, f->total[0], out);
	buf_printf(out, ", %.2f %%", before);
	if (s->p->diff) {
		buf_addstr(out, " before; ");
		flame_svg_weight(s, f->total[1], out);
		buf_printf(out, ", %.2f %% after: %+.2f", after, after - before);
	}
	buf_printf(out,
		   "</title><rect x=\"%.2f\" y=\"%.0f\" width=\"%.2f\" height=\"%d\" fill=\"#%06x\"/>"
		   "<text x=\"%.2f\" y=\"%.0f\">",
		   x, y, fmax(w - 0.4, 0.2), ROW - 1, f->colour, x + 3, y + 12);
	if (letters >= LETTERS)
		svg_short(out, name, letters);
	buf_addstr(out, "</text></g>\n");
}

static void flame_svg_legend_entry(struct buf *out, uint32_t colour, const char *name, double *x)
{
	char fill[24];

	snprintf(fill, sizeof(fill), "fill=\"#%06x\"", colour);
	svg_legend(out, x, 64, SVG_BOX, fill, name);
}

static void flame_svg_legend(const struct drawing *s, struct buf *out)
{
	double x = LEFT;

	if (s->p->diff) {
		flame_svg_legend_entry(out, flame_svg_diff_colour(1, 0.3), "less than before", &x);
		flame_svg_legend_entry(out, flame_svg_diff_colour(1, 1), "as before", &x);
		flame_svg_legend_entry(out, flame_svg_diff_colour(0.3, 1), "more than before", &x);
		return;
	}
	if (s->has_host)
		flame_svg_legend_entry(out, flame_svg_hsl(HUE_HOST, 0.68, 0.7), "host", &x);
	if (s->has_hyp)
		flame_svg_legend_entry(out, flame_svg_hsl(HUE_HYP, 0.68, 0.7), "hypervisor", &x);
	for (size_t i = 0; i < s->guests.n && x < PAGE / 2.0; i++)
		flame_svg_legend_entry(out, flame_svg_hsl(flame_svg_guest_hue(s->guests.v[i]), 0.68, 0.7),
				       s->guests.v[i], &x);
}

int flame_svg(const struct flame_picture *p, struct buf *out, uint64_t *hidden)
{
	static const char *const shares[FLAME_WEIGHTS] = { "share of all samples (%)",
							   "share of the time (%)", "share of all calls (%)",
							   "share of all entries (%)" };
	struct svg_plot plot = { .out = out,
				 .left = LEFT,
				 .top = TOP,
				 .width = WIDTH,
				 .x = { p->diff ? "mean share of both recordings (%)" : shares[p->weight], 0,
					100 },
				 .y = { "stack depth (frames)" } };
	struct drawing s = { .p = p };
	struct drawn_frame all = { .w = 1, .colour = 0xd8d8d4 };
	char attributes[192];
	double bottom;
	int ret;

	for (size_t side = 0; side < FLAME_SIDES; side++)
		all.total[side] = s.all[side] = flame_tree_total(p->tree, side, p->weight);
	ret = array_push(&s.v, &s.n, &all, sizeof(all))
		      ?: flame_tree_walk(p->tree, p->weight, flame_svg_visit, &s);
	plot.y.high = (double)s.deepest + 1;
	plot.y.step = fmax(svg_step(plot.y.high), 1);
	plot.height = plot.y.high * ROW;
	bottom = TOP + plot.height + SVG_AXIS_HEIGHT;
	snprintf(attributes, sizeof(attributes),
		 "width=\"100%%\" preserveAspectRatio=\"xMinYMin\" data-left=\"%d\" data-width=\"%d\" "
		 "data-letter=\"%.2f\"",
		 LEFT, WIDTH, LETTER);
	svg_begin(out, PAGE, bottom + 24, attributes, flame_style);
	svg_title(out, LEFT, 0, TITLE_LETTERS, p->title, p->about);
	flame_svg_legend(&s, out);
	/* shown by the script, without which they do nothing */
	buf_printf(
		out,
		"<g id=\"tools\" style=\"display: none\">\n"
		"<g id=\"reset\" style=\"display: none\"><rect x=\"%d\" y=\"8\" width=\"92\" height=\"20\" "
		"rx=\"3\"/><text x=\"%d\" y=\"22\">Reset zoom</text></g>\n"
		"<text id=\"found\" x=\"%d\" y=\"43\" text-anchor=\"end\"/>\n"
		"<foreignObject x=\"%d\" y=\"8\" width=\"212\" height=\"20\"><input id=\"input\" "
		"xmlns=\"http://www.w3.org/1999/xhtml\" type=\"search\" placeholder=\"search: name or "
		"pattern\"/></foreignObject>\n</g>\n",
		PAGE - 330, PAGE - 320, PAGE - RIGHT, PAGE - 222);
	svg_axes(&plot);
	for (size_t i = 0; i < s.n; i++)
		flame_svg_draw(&s, &s.v[i], out);
	buf_printf(out, "<text id=\"hovered\" x=\"%d\" y=\"%.0f\"/>\n<script><![CDATA[\n%s]]></script>\n",
		   LEFT, bottom + 12, flame_script);
	svg_end(out);
	ret = ret ?: buf_status(out);
	*hidden = s.hidden;
	strlist_release(&s.guests);
	free(s.v);
	return ret;
}
