// SPDX-License-Identifier: LGPL-2.1-or-later
/* Draws the tree of stacks. */
#include "flame/picture.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flame/script.h"
#include "util/answer.h"
#include "util/array.h"

/* px */
#define PAGE	      1200
#define LEFT	      10
#define WIDTH	      (PAGE - 2 * LEFT)
#define ROW	      17
#define TOP	      78 /* of the frames */
#define BOTTOM	      34 /* below them */
#define LETTER	      7.23
#define ABOUT_LETTERS 136 /* beside what was found */
#define LETTERS	      3	  /* a frame with room for fewer has no text */

/* What is drawn: the first is the whole, and each comes before those on top of it. */
struct svg_frame {
	const char *name; /* the tree's; NULL: the whole */
	size_t depth;
	double x, w;		     /* shares */
	uint64_t total[FLAME_SIDES]; /* what it weighs */
	uint32_t colour;	     /* 0xRRGGBB */
};

/* Whose frames: colours tell. */
enum svg_who { SVG_HOST, SVG_HYP, SVG_GUEST };

struct svg {
	const struct flame_picture *p;
	struct svg_frame *v;
	size_t n, deepest;
	uint64_t all[FLAME_SIDES], hidden;
	enum svg_who who; /* of the stack's machine */
	size_t hyp;	  /* depth at which the hypervisor's begin; 0: not in them */
	double hue;	  /* the guest's */
	struct strlist guests;
	bool has_host, has_hyp;
};

/* ---- colours ------------------------------------------------------------------------------ */

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

/* By the machine, and a little by the name: one name has one colour in every picture. */
static uint32_t flame_svg_colour(const struct svg *s, const struct flame_frame *f)
{
	uint32_t hash = flame_svg_hash(f->name);
	double hue = s->hyp ? HUE_HYP : s->who == SVG_GUEST ? s->hue : HUE_HOST;
	double turn = (double)(hash % 31) - 15, light = (double)(hash / 31 % 13) / 100;

	if (f->depth <= 2) /* machine and task */
		return flame_svg_hsl(hue, 0.45, f->depth == 1 ? 0.66 : 0.74);
	return flame_svg_hsl(hue + turn, 0.68, 0.66 + light);
}

/* Red: the second recording has more of it; blue: less. */
static uint32_t flame_svg_diff_colour(double before, double after)
{
	double most = fmax(before, after), change = most > 0 ? (after - before) / most : 0;
	double strength = sqrt(fabs(change));

	if (fabs(change) < 0.005)
		return 0xe8e8e8;
	return flame_svg_hsl(change > 0 ? 8 : 215, 0.85, 0.92 - 0.34 * strength);
}

/* ---- what is drawn ------------------------------------------------------------------------ */

static double flame_svg_share(const struct svg *s, const uint64_t *n)
{
	double a = s->all[0] ? (double)n[0] / (double)s->all[0] : 0;
	double b = s->all[1] ? (double)n[1] / (double)s->all[1] : 0;

	if (!s->p->diff)
		return a;
	return s->all[0] && s->all[1] ? (a + b) / 2 : a + b;
}

static int flame_svg_machine(struct svg *s, const char *name)
{
	bool guest = !strncmp(name, FLAME_GUEST, strlen(FLAME_GUEST));

	s->who = guest ? SVG_GUEST : SVG_HOST;
	s->has_host |= !guest;
	s->hue = flame_svg_guest_hue(name);
	return guest && !strlist_has(&s->guests, name) ? strlist_add(&s->guests, name) : 0;
}

static int flame_svg_visit(void *ctx, const struct flame_frame *f, const uint64_t *begin)
{
	struct svg *s = ctx;
	struct svg_frame to = { f->name, f->depth, flame_svg_share(s, begin), flame_svg_share(s, f->total),
				{ 0 },	 0 };

	if (f->depth <= s->hyp)
		s->hyp = 0;
	if (!s->hyp && f->depth > 2 && !strcmp(f->name, FLAME_HYP))
		s->hyp = f->depth;
	if (f->depth == 1 && flame_svg_machine(s, f->name))
		return -ENOMEM;
	if (to.w < FLAME_NARROWEST) {
		s->hidden++;
		return 0;
	}
	s->has_hyp |= s->hyp > 0;
	s->deepest = f->depth > s->deepest ? f->depth : s->deepest;
	memcpy(to.total, f->total, sizeof(to.total));
	to.colour = s->p->diff
			    ? flame_svg_diff_colour(s->all[0] ? (double)f->total[0] / (double)s->all[0] : 0,
						    s->all[1] ? (double)f->total[1] / (double)s->all[1] : 0)
			    : flame_svg_colour(s, f);
	return array_push(&s->v, &s->n, &to, sizeof(to));
}

/* ---- text ------------------------------------------------------------------------------------ */

/* U+FFFE and U+FFFF are no characters of XML; names have no controls. */
static void flame_svg_text(struct buf *out, const char *s, size_t n)
{
	for (size_t i = 0; i < n && s[i]; i++) {
		const char *as = s[i] == '&' ? "&amp;" : s[i] == '<' ? "&lt;" : s[i] == '>' ? "&gt;" : NULL;

		if (s[i] == '"')
			as = "&quot;";
		if (!strncmp(s + i, "\xef\xbf\xbe", 3) || !strncmp(s + i, "\xef\xbf\xbf", 3)) {
			as = "?";
			i += 2;
		}
		if (as)
			buf_addstr(out, as);
		else
			buf_add(out, s + i, 1);
	}
}

/* At most so many letters of it; the script counts as JavaScript does, which is near enough. */
static void flame_svg_short(struct buf *out, const char *s, size_t letters)
{
	size_t n = 0, keep = 0, i = 0;

	for (; s[i]; i++) {
		n += (s[i] & 0xc0) != 0x80;
		if (n < letters)
			keep = i + 1;
	}
	if (letters < LETTERS)
		return;
	flame_svg_text(out, s, n > letters ? keep : i);
	buf_addstr(out, n > letters ? "\u2026" : "");
}

static void flame_svg_weight(const struct svg *s, uint64_t n, struct buf *out)
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

/* "12 samples, 3.45 %" */
static void flame_svg_tell(const struct svg *s, const struct svg_frame *f, struct buf *out)
{
	double before = flame_svg_percent(f->total[0], s->all[0]),
	       after = flame_svg_percent(f->total[1], s->all[1]);

	flame_svg_weight(s, f->total[0], out);
	buf_printf(out, ", %.2f %%", before);
	if (!s->p->diff)
		return;
	buf_addstr(out, " before; ");
	flame_svg_weight(s, f->total[1], out);
	buf_printf(out, ", %.2f %% after: %+.2f", after, after - before);
}

/* ---- drawing --------------------------------------------------------------------------------- */

static double flame_svg_y(const struct svg *s, size_t depth)
{
	return (double)(TOP + (s->deepest - depth) * ROW);
}

static void flame_svg_draw(const struct svg *s, const struct svg_frame *f, struct buf *out)
{
	const char *name = f->name ? f->name : "all";
	double x = LEFT + f->x * WIDTH, w = f->w * WIDTH, y = flame_svg_y(s, f->depth);

	buf_printf(out, "<g class=\"f\" data-x=\"%.7f\" data-w=\"%.7f\" data-d=\"%zu\"><title>", f->x, f->w,
		   f->depth);
	flame_svg_text(out, name, SIZE_MAX);
	buf_addstr(out, "\n");
	flame_svg_tell(s, f, out);
	buf_printf(out,
		   "</title><rect x=\"%.2f\" y=\"%.0f\" width=\"%.2f\" height=\"%d\" fill=\"#%06x\"/>"
		   "<text x=\"%.2f\" y=\"%.0f\">",
		   x, y, fmax(w - 0.4, 0.2), ROW - 1, f->colour, x + 3, y + 12);
	flame_svg_short(out, name, w > 6 ? (size_t)((w - 6) / LETTER) : 0);
	buf_addstr(out, "</text></g>\n");
}

static void flame_svg_legend_entry(struct buf *out, uint32_t colour, const char *name, double *x)
{
	buf_printf(out,
		   "<rect x=\"%.0f\" y=\"54\" width=\"11\" height=\"11\" fill=\"#%06x\"/>"
		   "<text x=\"%.0f\" y=\"64\">",
		   *x, colour, *x + 16);
	flame_svg_short(out, name, 24);
	buf_addstr(out, "</text>\n");
	*x += 16 + (double)(strlen(name) < 24 ? strlen(name) : 24) * LETTER + 18;
}

static void flame_svg_legend(const struct svg *s, struct buf *out)
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

static const char svg_style[] =
	"<style>\n"
	"text { font: 12px 'DejaVu Sans Mono', Menlo, Consolas, monospace; fill: #111; }\n"
	"#title { font-size: 17px; font-weight: bold; }\n"
	".quiet { fill: #555; }\n"
	"g.f { cursor: pointer; }\n"
	"g.f text { pointer-events: none; }\n"
	"g.f:hover rect { stroke: #000; stroke-width: 0.8; }\n"
	"g.bears { opacity: 0.55; }\n"
	"g.hit rect { fill: #ff2fd6; }\n"
	"#reset { cursor: pointer; }\n"
	"#reset rect { fill: #fff; stroke: #888; }\n"
	"#input { width: 210px; height: 18px; font: 12px monospace; padding: 0 4px; border: 1px solid #888;\n"
	"\tbox-sizing: border-box; }\n"
	"</style>\n";

static void flame_svg_head(const struct svg *s, struct buf *out)
{
	double height = flame_svg_y(s, 0) + ROW + BOTTOM;

	buf_printf(out,
		   "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		   "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"100%%\" viewBox=\"0 0 %d %.0f\" "
		   "preserveAspectRatio=\"xMinYMin\" "
		   "data-left=\"%d\" data-width=\"%d\" data-letter=\"%.2f\">\n",
		   PAGE, height, LEFT, WIDTH, LETTER);
	buf_addstr(out, svg_style);
	buf_printf(out,
		   "<rect width=\"%d\" height=\"%.0f\" fill=\"#fcfcfa\"/>\n<text id=\"title\" x=\"%d\" "
		   "y=\"24\">",
		   PAGE, height, LEFT);
	flame_svg_short(out, s->p->title, 80);
	buf_printf(out, "</text>\n<text class=\"quiet\" x=\"%d\" y=\"43\"><title>", LEFT);
	flame_svg_text(out, s->p->about, SIZE_MAX);
	buf_addstr(out, "</title>");
	flame_svg_short(out, s->p->about, ABOUT_LETTERS);
	buf_addstr(out, "</text>\n");
	flame_svg_legend(s, out);
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
		PAGE - 330, PAGE - 320, PAGE - LEFT, PAGE - 222);
}

static void flame_svg_write(const struct svg *s, struct buf *out)
{
	flame_svg_head(s, out);
	for (size_t i = 0; i < s->n; i++)
		flame_svg_draw(s, &s->v[i], out);
	buf_printf(out,
		   "<text id=\"told\" x=\"%d\" y=\"%.0f\"/>\n<script><![CDATA[\n%s]]></script>\n</svg>\n",
		   LEFT, flame_svg_y(s, 0) + ROW + 20, flame_script);
}

int flame_svg(const struct flame_picture *p, struct buf *out, uint64_t *hidden)
{
	struct svg s = { .p = p };
	struct svg_frame all = { .w = 1, .colour = 0xd8d8d4 };
	int ret;

	for (size_t side = 0; side < FLAME_SIDES; side++)
		all.total[side] = s.all[side] = flame_tree_total(p->tree, side, p->weight);
	ret = array_push(&s.v, &s.n, &all, sizeof(all))
		      ?: flame_tree_walk(p->tree, p->weight, flame_svg_visit, &s);
	if (!ret) {
		flame_svg_write(&s, out);
		ret = buf_status(out);
	}
	*hidden = s.hidden;
	strlist_release(&s.guests);
	free(s.v);
	return ret;
}
