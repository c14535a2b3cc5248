// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace stat --by TIME: exits and stays in the hypervisor by slices of time, as characters or a picture.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd.h"
#include "stat-priv.h"
#include "util/array.h"
#include "util/outfile.h"
#include "util/visible.h"

#define LABEL 14 /* characters of a name */
#define CELLS 50 /* slices in a line of 80 characters */

/* A row of the map. */
struct slice_row {
	const struct stays_row *row;
	char name[EXITS_NAME_MAX];
	uint64_t total, most; /* ns: of all slices; of one */
};

struct slice_map {
	struct stat_answer *of;
	struct slice_row *v;
	size_t n;
};

static const char *const slice_what[] = { [STAY_EXIT] = "exit", [STAY_HYP] = "hyp" };

static void slice_row_name(struct stat_answer *s, const struct stays_row *r, char out[EXITS_NAME_MAX])
{
	const struct stay like = { .input = r->input, .kind = r->kind };
	const char *name;

	if (r->what == STAY_EXIT) {
		exits_stay_name(s->exits, &like, out);
		return;
	}
	name = hyptime_name(s->hyp, r->input, r->kind);
	snprintf(out, EXITS_NAME_MAX, "%s", name ?: "-");
}

static int slice_longer_first(const void *a, const void *b)
{
	const struct slice_row *x = a, *y = b;

	if (x->row->what != y->row->what)
		return x->row->what < y->row->what ? -1 : 1;
	return x->total != y->total ? (x->total < y->total ? 1 : -1) : strcmp(x->name, y->name);
}

static int slice_map_open(struct slice_map *m, struct stat_answer *s)
{
	*m = (struct slice_map){ .of = s, .n = s->stays.n_rows };
	m->v = calloc(m->n + 1, sizeof(*m->v));
	if (!m->v)
		return -ENOMEM;
	for (size_t i = 0; i < m->n; i++) {
		struct slice_row *r = &m->v[i];

		r->row = &s->stays.rows[i];
		slice_row_name(s, r->row, r->name);
		for (size_t k = 0; k < r->row->room; k++) {
			uint64_t ns = r->row->cells[k].ns;

			r->total += ns;
			r->most = ns > r->most ? ns : r->most;
		}
	}
	array_sort(m->v, m->n, sizeof(*m->v), slice_longer_first);
	return 0;
}

static uint64_t slice_ns(const struct slice_row *r, size_t slice)
{
	return slice < r->row->room ? r->row->cells[slice].ns : 0;
}

/* ---- for programs -------------------------------------------------------------------------- */

static void slice_table(struct slice_map *m)
{
	const struct stays *y = &m->of->stays;
	struct stat_table t;

	stat_begin(&t, m->of, true);
	stat_column(&t, "at", NULL, ANSWER_TIME, true);
	stat_column(&t, "what", NULL, ANSWER_WORD, true);
	stat_column(&t, "reason", NULL, ANSWER_WORD, true);
	stat_column(&t, "count", NULL, ANSWER_COUNT, true);
	stat_column(&t, "time_ns", NULL, ANSWER_DURATION, true);
	stat_open(&t, "slices", NULL, m->n, NULL);
	for (size_t k = 0; k < y->n_slices; k++) {
		for (size_t i = 0; i < m->n; i++) {
			const struct slice_row *r = &m->v[i];

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
}

/* ---- for people ------------------------------------------------------------------------------ */

static char slice_shade(const struct slice_row *r, size_t slice)
{
	static const char shades[] = " .:-=+*#%@";
	uint64_t ns = slice_ns(r, slice);

	return shades[ns ? 1 + (size_t)((double)ns / (double)r->most * (sizeof(shades) - 2.5)) : 0];
}

static void slice_lines(const struct slice_map *m, size_t from, size_t to)
{
	struct buf *out = m->of->out->out;
	const struct stays *y = &m->of->stays;
	uint64_t at = y->origin + from * y->width;
	char most[16];

	buf_printf(out, "%*s%" PRIu64 ".%09" PRIu64 "\n", LABEL + 5 + 1 + 7 + 2, "", at / 1000000000,
		   at % 1000000000);
	for (size_t i = 0; i < m->n && i < m->of->rows; i++) {
		const struct slice_row *r = &m->v[i];

		buf_printf(out, "%-4s %-*.*s %7s |", slice_what[r->row->what], LABEL, LABEL, VISIBLE(r->name),
			   duration_text(r->most, most));
		for (size_t k = from; k < to; k++) {
			char shade = slice_shade(r, k);

			buf_add(out, &shade, 1);
		}
		buf_addstr(out, "|\n");
	}
}

static void slice_text(const struct slice_map *m)
{
	const struct stays *y = &m->of->stays;
	char width[16];

	buf_printf(m->of->out->out, "%sBy slices of %s: time in each, @ as long as the longest of its line\n",
		   m->of->out->any ? "\n" : "", duration_text(y->width, width));
	m->of->out->any = true;
	for (size_t from = 0; from < y->n_slices; from += CELLS)
		slice_lines(m, from, from + CELLS < y->n_slices ? from + CELLS : y->n_slices);
	if (m->n > m->of->rows)
		answer_note(m->of->out, "... and %zu more rows: --rows 0 shows them all", m->n - m->of->rows);
}

void stat_slices(struct stat_answer *s)
{
	struct slice_map m;

	if (!s->stays.width)
		return;
	s->ret = slice_map_open(&m, s);
	if (s->ret)
		return;
	if (!stat_is_text(s))
		slice_table(&m);
	else if (m.n)
		slice_text(&m);
	else
		answer_note(s->out, "slices: the files have neither exits nor stays in the hypervisor");
	if (s->stays.beyond)
		answer_note(s->out,
			    "slices: %" PRIu64
			    " stretches are left out: beyond %d slices or %d kinds; --by a longer "
			    "time shows more",
			    s->stays.beyond, STAYS_SLICES_MAX, STAYS_ROWS_MAX);
	free(m.v);
}

/* ---- as a picture ------------------------------------------------------------------------------ */

#define SVG_SLICES 4096
#define SVG_LABEL  200
#define SVG_LINE   18

static void slice_svg_text(struct buf *out, const char *text)
{
	const char *s = VISIBLE(text);
	size_t n, left = strlen(s);

	for (; left; s += n, left -= n) {
		size_t len = utf8_len((const uint8_t *)s, left);

		n = len ?: 1;
		if (*s == '<')
			buf_addstr(out, "&lt;");
		else if (*s == '>')
			buf_addstr(out, "&gt;");
		else if (*s == '&')
			buf_addstr(out, "&amp;");
		else
			buf_add(out, len ? s : "?", n);
	}
}

static void slice_svg_row(const struct slice_map *m, const struct slice_row *r, size_t line, size_t cell,
			  struct buf *out)
{
	const struct stays *y = &m->of->stays;
	size_t top = (line + 1) * SVG_LINE;
	char ns[16];

	buf_printf(out, "<text x=\"%d\" y=\"%zu\" text-anchor=\"end\">%s ", SVG_LABEL - 6, top + 13,
		   slice_what[r->row->what]);
	slice_svg_text(out, r->name);
	buf_addstr(out, "</text>\n");
	for (size_t k = 0; k < y->n_slices; k++) {
		uint64_t at = y->origin + k * y->width;

		if (!slice_ns(r, k))
			continue;
		buf_printf(out,
			   "<rect x=\"%zu\" y=\"%zu\" width=\"%zu\" height=\"%d\" "
			   "fill-opacity=\"%.3f\"><title>%" PRIu64 ".%09" PRIu64 ": %s</title></rect>\n",
			   SVG_LABEL + k * cell, top, cell, SVG_LINE - 2,
			   0.1 + 0.9 * (double)slice_ns(r, k) / (double)r->most, at / 1000000000,
			   at % 1000000000, duration_text(slice_ns(r, k), ns));
	}
}

static void slice_svg_map(const struct slice_map *m, struct buf *out)
{
	const struct stays *y = &m->of->stays;
	size_t cell = y->n_slices < 100 ? 12 : y->n_slices < 1200 ? 1200 / y->n_slices : 1;
	size_t width = SVG_LABEL + cell * y->n_slices + 10, height = (m->n + 2) * SVG_LINE;
	char by[16];

	buf_printf(out,
		   "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%zu\" height=\"%zu\" viewBox=\"0 0 %zu "
		   "%zu\" "
		   "font-family=\"sans-serif\" font-size=\"12\">\n"
		   "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n"
		   "<text x=\"%d\" y=\"13\">from %" PRIu64 ".%09" PRIu64
		   ", by slices of %s; each line by its own longest</text>\n"
		   "<g fill=\"#b30000\">\n",
		   width, height, width, height, SVG_LABEL, y->origin / 1000000000, y->origin % 1000000000,
		   duration_text(y->width, by));
	for (size_t i = 0; i < m->n; i++)
		slice_svg_row(m, &m->v[i], i, cell, out);
	buf_addstr(out, "</g>\n</svg>\n");
}

int stat_slices_svg(struct stat_answer *s, const char *path, const struct log *log)
{
	struct buf out = { 0 };
	struct outfile file;
	struct slice_map m;
	int ret;

	if (s->stays.n_slices > SVG_SLICES) {
		log_err(log, "--svg: %zu slices are more than the %d that a picture has: --by a longer time",
			s->stays.n_slices, SVG_SLICES);
		return -EINVAL;
	}
	ret = slice_map_open(&m, s);
	if (ret)
		return ret;
	slice_svg_map(&m, &out);
	ret = buf_status(&out);
	if (!ret)
		ret = output_open(&file, path, s->in, log);
	if (!ret)
		ret = outfile_close(&file, write_all(file.fd, out.data, out.len));
	buf_release(&out);
	free(m.v);
	return ret;
}
