// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace stat --by TIME: exits and visits to the hypervisor by slices of time, as text or a picture. */
#include "cmd.h"
#include "stat-priv.h"
#include "base/svg.h"

#define LABEL 14 /* characters of a name */
#define CELLS 50 /* slices in a line of 80 characters */

/* A row of the map. */
struct slice_row {
	const struct tally_row *row;
	char name[EXITS_NAME_MAX];
	uint64_t total, most; /* ns: of all slices; of one */
};

static const char *const slice_what[] = { [SPAN_EXIT] = "exit", [SPAN_VISIT] = "hyp" };

static int slice_longer_first(const void *a, const void *b)
{
	const struct slice_row *x = a, *y = b;

	return ORDER(x->row->what, y->row->what) ?: ORDER(y->total, x->total) ?: strcmp(x->name, y->name);
}

/* One for each of the tally's. NULL: no memory. */
static struct slice_row *slice_rows(const struct stat_answer *s)
{
	size_t n = s->tally.n_rows;
	struct slice_row *v = calloc(n + 1, sizeof(*v));

	for (size_t i = 0; v && i < n; i++) {
		struct slice_row *r = &v[i];

		r->row = &s->tally.rows[i];
		if (r->row->what == SPAN_EXIT)
			exits_kind_name(s->exits, r->row->input, r->row->why, r->name);
		else
			snprintf(r->name, sizeof(r->name), "%s",
				 hyptime_name(s->hyp, r->row->input, r->row->why) ?: "-");
		for (size_t k = 0; k < r->row->room; k++) {
			uint64_t ns = r->row->cells[k].ns;

			r->total += ns;
			r->most = ns > r->most ? ns : r->most;
		}
	}
	if (v)
		array_sort(v, n, sizeof(*v), slice_longer_first);
	return v;
}

static uint64_t slice_ns(const struct slice_row *r, size_t slice)
{
	return slice < r->row->room ? r->row->cells[slice].ns : 0;
}

static void slice_lines(const struct stat_answer *s, const struct slice_row *v, size_t from, size_t to)
{
	static const char shades[] = " .:-=+*#%@";
	struct buf *out = s->out->out;
	const struct tally *y = &s->tally;
	char most[16], time[32];

	buf_printf(out, "%*s%s\n", LABEL + 5 + 1 + 7 + 2, "",
		   seconds_text(y->origin + from * y->width, time));
	for (size_t i = 0; i < y->n_rows && i < s->rows; i++) {
		const struct slice_row *r = &v[i];

		buf_printf(out, "%-4s %-*.*s %7s |", slice_what[r->row->what], LABEL, LABEL, ESCAPED(r->name),
			   duration_text(r->most, most));
		for (size_t k = from; k < to; k++) {
			double share = (double)slice_ns(r, k) / (double)r->most;

			buf_add(out,
				&shades[slice_ns(r, k) ? 1 + (size_t)(share * (sizeof(shades) - 2.5)) : 0],
				1);
		}
		buf_addstr(out, "|\n");
	}
}

void stat_slices(struct stat_answer *s)
{
	const struct tally *y = &s->tally;
	struct slice_row *v = y->width ? slice_rows(s) : NULL;
	char width[16];

	if (!v) {
		s->ret = y->width ? -ENOMEM : 0;
		return;
	}
	if (!stat_is_text(s)) {
		struct stat_table t;

		stat_begin(&t, s, true);
		stat_column(&t, "at", NULL, ANSWER_TIME, true);
		stat_column(&t, "what", NULL, ANSWER_WORD, true);
		stat_column(&t, "reason", NULL, ANSWER_WORD, true);
		stat_column(&t, duration_columns[DURATION_COUNT].key, NULL, ANSWER_COUNT, true);
		stat_column(&t, duration_columns[DURATION_TOTAL].key, NULL, ANSWER_DURATION, true);
		stat_open(&t, "slices", NULL, y->n_rows, NULL);
		for (size_t k = 0; k < y->n_slices; k++) {
			for (size_t i = 0; i < y->n_rows; i++) {
				const struct slice_row *r = &v[i];

				if (k >= r->row->room || (!r->row->cells[k].n && !r->row->cells[k].ns))
					continue;
				stat_machine(&t, r->row->input);
				stat_cell(&t, CELL_N(y->origin + k * y->width));
				stat_cell(&t, CELL_WORD(slice_what[r->row->what]));
				stat_cell(&t, CELL_WORD(r->name));
				stat_cell(&t, CELL_N(r->row->cells[k].n));
				stat_cell(&t, CELL_N(r->row->cells[k].ns));
				stat_row(&t);
			}
		}
		stat_close(&t);
	} else if (y->n_rows) {
		buf_printf(s->out->out,
			   "%sBy slices of %s: time in each, @ as long as the longest of its line\n",
			   s->out->any ? "\n" : "", duration_text(y->width, width));
		s->out->any = true;
		for (size_t from = 0; from < y->n_slices; from += CELLS)
			slice_lines(s, v, from, from + CELLS < y->n_slices ? from + CELLS : y->n_slices);
		if (y->n_rows > s->rows)
			answer_note(s->out, "... and %zu more rows: --rows 0 shows them all",
				    y->n_rows - s->rows);
	} else {
		answer_note(s->out, "slices: the files have neither exits nor visits to the hypervisor");
	}
	if (y->beyond)
		answer_note(s->out,
			    "slices: %" PRIu64
			    " stretches are left out: beyond %d slices or %d kinds; --by a longer "
			    "time shows more",
			    y->beyond, TALLY_SLICES_MAX, TALLY_ROWS_MAX);
	free(v);
}

#define SVG_SLICES 4096
#define SVG_LEFT   230
#define SVG_TOP	   76 /* of the rows */
#define SVG_LINE   18

static void slice_svg_label(double ns, char room[SVG_LABEL])
{
	duration_text((uint64_t)ns, room);
}

int stat_slices_svg(struct stat_answer *s, const char *path, const struct log *log)
{
	const struct tally *y = &s->tally;
	struct buf out = { 0 };
	struct slice_row *v;
	char *title;
	int ret;

	if (s->tally.n_slices > SVG_SLICES)
		return log_fail(
			log, -EINVAL,
			"--svg: %zu slices are more than the %d that a picture has: --by a longer time",
			s->tally.n_slices, SVG_SLICES);
	v = slice_rows(s);
	if (!v)
		return -ENOMEM;
	title = picture_title(s->in, "when does time go to exits and the hypervisor?");
	if (title) {
		size_t cell = y->n_slices < 100 ? 12 : y->n_slices < 1200 ? 1200 / y->n_slices : 1;
		char name[64], about[64], by[16], time[32];
		struct svg_plot p = { .out = &out,
				      .left = SVG_LEFT,
				      .top = SVG_TOP,
				      .width = (double)(cell * y->n_slices),
				      .height = (double)(y->n_rows * SVG_LINE),
				      .x = { name, 0, (double)(y->n_slices * y->width),
					     .label = slice_svg_label },
				      .y = { "kind and reason", 0, 1, .step = -1 } };
		double width = fmax(SVG_LEFT + p.width + 40, 760), x = 20;

		snprintf(name, sizeof(name), "time since %s s", seconds_text(y->origin, time));
		snprintf(about, sizeof(about), "time in each slice of %s", duration_text(y->width, by));
		svg_begin(&out, width, SVG_TOP + p.height + SVG_AXIS_HEIGHT, "", "");
		svg_title(&out, 20, 0, (size_t)(width / 7.5), title, about);
		svg_legend(&out, &x, 64, SVG_BOX, "fill=\"#b30000\" fill-opacity=\"0.1\"", "hardly any");
		svg_legend(&out, &x, 64, SVG_BOX, "fill=\"#b30000\" fill-opacity=\"0.55\"", "half");
		svg_legend(&out, &x, 64, SVG_BOX, "fill=\"#b30000\"",
			   "as much as the longest slice of the row");
		svg_axes(&p);
		buf_addstr(&out, "<g fill=\"#b30000\">\n");
		for (size_t i = 0; i < y->n_rows; i++) {
			const struct slice_row *r = &v[i];
			double top = p.top + (double)(i * SVG_LINE);
			char ns[16];

			buf_printf(&out, "<text class=\"tick\" x=\"%.0f\" y=\"%.0f\" text-anchor=\"end\">%s ",
				   p.left - 6, top + 13, slice_what[r->row->what]);
			svg_short(&out, ESCAPED(r->name), 26);
			buf_addstr(&out, "</text>\n");
			for (size_t k = 0; k < y->n_slices; k++) {
				if (!slice_ns(r, k))
					continue;
				seconds_text(y->origin + k * y->width, time);
				buf_printf(&out,
					   "<rect x=\"%.0f\" y=\"%.0f\" width=\"%.0f\" height=\"%d\" "
					   "fill-opacity=\"%.3f\"><title>%s: %s</title></rect>\n",
					   p.left + (double)(k * cell), top + 1, (double)cell, SVG_LINE - 2,
					   0.1 + 0.9 * (double)slice_ns(r, k) / (double)r->most, time,
					   duration_text(slice_ns(r, k), ns));
			}
		}
		buf_addstr(&out, "</g>\n");
		svg_end(&out);
	}
	ret = title ? output_write(path, &out, s->in, log) : -ENOMEM;
	free(title);
	buf_release(&out);
	free(v);
	return ret;
}
