// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace stat: counts events and adds up where time went, in one reading. */
#include "cmd.h"
#include "stat-priv.h"
#include "base/svg.h"

/* Sources of a table. */
enum {
	NEED_EXITS = 1,
	NEED_HYP = 2,
	NEED_MARKERS = 4,
	NEED_LONGEST = 8,
	NEED_VCPUS = 16,
	NEED_TASKS = 32,
	NEED_SAMPLES = 64,
	NEED_NAME = 128 /* its own: it has too many rows */
};

/* In this order. */
static const struct stat_word {
	const char *word; /* of --show; the table's key, too */
	unsigned int needs;
	stat_print *print;
} stat_words[] = {
	{ "buffers", 0, stat_buffers },
	{ "lost", 0, stat_lost },
	{ "events", 0, stat_events },
	{ "exits", NEED_EXITS, stat_exits },
	{ "guest", NEED_EXITS, stat_exits },
	{ "mmio", NEED_EXITS, stat_exits },
	{ "ioport", NEED_EXITS, stat_exits },
	{ "sysreg", NEED_EXITS, stat_exits },
	{ "hypercall", NEED_EXITS, stat_exits },
	{ "faults", NEED_EXITS | NEED_NAME, stat_exits },
	{ "hyp", NEED_HYP, stat_hyp },
	{ "firmware", NEED_HYP, stat_firmware },
	{ "vcpus", NEED_VCPUS, stat_vcpus },
	{ "tasks", NEED_TASKS, stat_tasks },
	{ "steal", NEED_VCPUS | NEED_TASKS, stat_steal },
	{ "cpu", NEED_SAMPLES, stat_cpu },
	{ "spans", NEED_MARKERS, stat_spans },
	{ "longest", NEED_EXITS | NEED_HYP | NEED_LONGEST, stat_longest },
};

struct stat_opts {
	struct files_opts f;
	bool show[ARRAY_SIZE(stat_words)], shown; /* shown: some were named */
	uint64_t per, top, rows;
	uint64_t by; /* ns */
	const char *svg, *desc;
};

#define STAT_TOP 5 /* of the longest exits and visits, without --top */

#define STAT(field) .off = offsetof(struct stat_opts, field)

static int stat_set_show(void *ctx, const struct opt *opt, const char *arg, struct opts_error *err)
{
	struct stat_opts *o = ctx;

	for (const char *p = arg;; p++) {
		size_t len = strcspn(p, ","), i = 0;

		while (i < ARRAY_SIZE(stat_words) &&
		       (strncmp(stat_words[i].word, p, len) || stat_words[i].word[len]))
			i++;
		if (i == ARRAY_SIZE(stat_words))
			return opts_wrong_word(err, opt, arg);
		o->show[i] = o->shown = true;
		p += len;
		if (!*p)
			return 0;
	}
}

static int stat_set_per(void *ctx, const struct opt *opt, const char *arg, struct opts_error *err)
{
	struct stat_opts *o = ctx;

	if (!strcmp(arg, "guest"))
		o->per = STAT_GUEST;
	else if (!strcmp(arg, "vcpu"))
		o->per = STAT_VCPU;
	else
		return opts_wrong(err, opt, arg, "neither guest nor vcpu");
	return 0;
}

static const struct opt stat_rows[] = {
	OPT('s', "show", "TABLE,...", "these tables, not all that say something", stat_set_show,
	    .words = "buffers lost events exits guest mmio ioport sysreg hypercall "
		     "faults hyp firmware vcpus tasks steal cpu spans longest"),
	OPT('p', "per", "guest|vcpu", "exits of each guest, or of each vCPU", stat_set_per),
	OPT('t', "top", "N", "how many of the longest exits and visits to show (5)", opts_set_number,
	    STAT(top), .max = TALLY_LONGEST_MAX),
	OPT_DURATION('b', "by", "time by slices of 10ms, 250us, ...", 0, 1, STAT(by), .min = 1,
		     .max = 1000000 * UNIT_S),
	OPT(0, "svg", "FILE", "the slices as a picture, too", opts_set_text, STAT(svg)),
	OPT('r', "rows", "N", "at most so many rows of a table (20); 0: all", opts_set_number, STAT(rows),
	    .max = UINT32_MAX),
	OPT_SPANS_DESC(STAT(desc)),
	OPT_ANSWER(FILES),
};

const struct opts_table stat_table = {
	.command = "stat",
	.usage = "usage: hyptrace stat [OPTION...] [FILE...]\n"
		 "\n"
		 "Counts the events of recordings, trace.dat or the FILEs, and adds up what exits, the\n"
		 "hypervisor, the firmware and programs' spans took. Files of guests join their host's.\n"
		 "\n",
	OPT_ROWS(stat_rows),
};

/* ---- --by TIME: exits and visits to the hypervisor by slices of time, as text or a picture ---- */

#define LABEL 14 /* characters of a name */
#define CELLS 50 /* slices in a line of 80 characters */

/* A row of the map. */
struct slice_row {
	const struct tally_row *row;
	char name[EXITS_NAME_MAX];
	uint64_t total, most; /* ns: of all slices; of one */
};

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

		buf_printf(out, "%-4s %-*.*s %7s |", stat_whats[r->row->what], LABEL, LABEL, ESCAPED(r->name),
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

static void stat_slices(struct stat_answer *s)
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
				stat_row(&t, r->row->input,
					 (struct answer_cell[]){
						 CELL_N(y->origin + k * y->width),
						 CELL_WORD(stat_whats[r->row->what]), CELL_WORD(r->name),
						 CELL_N(r->row->cells[k].n), CELL_N(r->row->cells[k].ns) });
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
	} else if (!y->beyond) {
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

/* The slices as a picture. 0 or -errno, logged. */
static int stat_slices_svg(struct stat_answer *s, const char *path, const struct log *log)
{
	const struct tally *y = &s->tally;
	struct buf out = { 0 };
	struct slice_row *v;
	char *title;
	int ret;

	if (y->beyond && !y->n_rows)
		return log_fail(log, -EINVAL, "--svg: all lies beyond %d slices: --by a longer time",
				TALLY_SLICES_MAX);
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
				   p.left - 6, top + 13, stat_whats[r->row->what]);
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

/* ---- the command ---- */

struct stat_run {
	const struct stat_opts *o;
	const struct log *log;
	struct hyptrace *files;
	struct mark_desc *desc;
	struct reading own; /* unless it joins another one */
	struct stat_answer s;
	unsigned int needs;
};

static bool stat_wanted(const struct stat_opts *o, size_t word)
{
	return o->shown ? o->show[word] : !(stat_words[word].needs & NEED_NAME);
}

static unsigned int stat_needs(const struct stat_opts *o)
{
	unsigned int needs = o->by ? NEED_EXITS | NEED_HYP : 0;

	for (size_t i = 0; i < ARRAY_SIZE(stat_words); i++)
		needs |= stat_wanted(o, i) ? stat_words[i].needs : 0;
	return needs;
}

/* Opens the parts, those that others need first. stat_release closes them. */
static int stat_open_parts(struct stat_run *r, struct reading *of)
{
	bool longest = r->needs & NEED_LONGEST;
	struct stat_answer *s = &r->s;
	struct tally *stays = longest || r->o->by ? &s->tally : NULL;
	unsigned int want =
		(r->needs & NEED_VCPUS ? STATES_VCPUS : 0) | (r->needs & NEED_TASKS ? STATES_GUEST_TASKS : 0);
	int ret;

	s->in = of->in;
	s->steps = s->samples.steps = of->steps;
	ret = counts_open(&s->counts, s->in, of->timeline, 1, 0, 0);
	ret = ret ?: tally_open(&s->tally, longest ? r->o->top : 0, r->o->by);
	if (!ret && (r->needs & NEED_EXITS))
		ret = reading_exits(of, stays);
	if (!ret && (r->needs & NEED_HYP))
		ret = hyptime_open(&s->hyp, s->in, of->timeline, of->steps, stays);
	if (!ret && (r->needs & NEED_MARKERS))
		ret = reading_markers(of);
	if (!ret && want)
		ret = reading_states(of, want, state_totals_span, &s->totals);
	if (ret)
		return ret;
	s->exits = of->exits;
	s->markers = of->markers;
	s->totals.st = s->states = of->states;
	reading_add(of, counts_part(&s->counts));
	if (s->hyp)
		reading_add(of, hyptime_part(s->hyp));
	if (r->needs & NEED_SAMPLES)
		reading_add(of, samples_part(&s->samples));
	return 0;
}

/* 0 or -errno. */
static int stat_tables(struct stat_run *r, struct answer *answer)
{
	const struct stat_opts *o = r->o;
	struct stat_answer *s = &r->s;

	counts_finish(&s->counts);
	if (s->hyp)
		hyptime_finish(s->hyp);
	s->out = answer;
	s->rows = o->rows ? o->rows : SIZE_MAX;
	s->per = (enum stat_per)o->per;
	s->asked = o->shown;
	for (size_t i = 0; i < ARRAY_SIZE(stat_words) && !s->ret; i++)
		if (stat_wanted(o, i))
			stat_words[i].print(s, stat_words[i].word);
	if (!s->ret && o->by)
		stat_slices(s);
	return s->ret;
}

/* Opens the files and reads them for its own. */
static int stat_read(struct stat_run *r)
{
	int ret = desc_read(r->o->desc, &r->desc, r->log);

	r->needs = stat_needs(r->o);
	ret = ret ?: command_open(&r->files, &r->o->f.files, COMMAND_NO_TEXTS, &r->o->f.times, r->log);
	ret = ret ?: reading_open(&r->own, handle_inputs(r->files), r->desc, r->log);
	return ret ?: stat_open_parts(r, &r->own) ?: reading_run(&r->own);
}

static void stat_release(struct stat_run *r)
{
	state_totals_release(&r->s.totals);
	samples_release(&r->s.samples);
	hyptime_close(r->s.hyp);
	counts_release(&r->s.counts);
	tally_release(&r->s.tally);
	reading_close(&r->own);
	hyptrace_close(r->files);
	mark_desc_free(r->desc);
}

/* Of a file: trace-cmd's stat is about what is being traced now. */
bool stat_takes(int argc, char **argv)
{
	struct stat_opts o = { 0 };
	struct opts_error err;
	bool takes = !opts_parse(&stat_table, &argc, argv, &o, &err) && (argc > 1 || o.f.files.n);

	strlist_release(&o.f.files);
	return takes;
}

int stat_look(const struct stat_look *look, struct answer *out, const struct log *log)
{
	struct stat_opts o = { .rows = look->rows, .per = look->per, .f.times.no_guests = true };
	struct opts_error err;
	struct stat_run r = { .o = &o, .log = log, .s.by_count = look->by_count };
	int ret = stat_set_show(&o, &stat_rows[0], look->tables, &err) ?: strlist_add(&o.f.files, look->path);

	ret = ret ?: stat_read(&r) ?: stat_tables(&r, out);
	stat_release(&r);
	strlist_release(&o.f.files);
	return ret;
}

/* All of it as an answer. 0 or -errno. */
static int stat_print_all(struct stat_run *r, enum answer_form form, struct buf *out)
{
	struct answer answer;

	answer_begin(&answer, form, out);
	answer.ticks = inputs_in_ticks(r->s.in);
	stat_tables(r, &answer);
	answer_end(&answer);
	return r->s.ret;
}

int stat_join(struct stat_run **out, struct reading *of)
{
	static const struct stat_opts o = { .top = STAT_TOP };
	struct stat_run *r = *out = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	*r = (struct stat_run){ .o = &o, .needs = stat_needs(&o) };
	return stat_open_parts(r, of);
}

int stat_json(struct stat_run *r, struct buf *out)
{
	return stat_print_all(r, ANSWER_JSON, out) ?: buf_status(out);
}

void stat_leave(struct stat_run *r)
{
	if (r)
		stat_release(r);
	free(r);
}

static bool stat_check(void *opts)
{
	const struct stat_opts *o = opts;

	return options_good("hyptrace", o->svg && !o->by ? "--svg needs --by TIME" : NULL);
}

static int stat_files(void *opts, const struct log *log)
{
	const struct stat_opts *o = opts;
	struct stat_run r = { .o = o, .log = log };
	struct buf out = { 0 };
	int ret = stat_read(&r) ?: stat_print_all(&r, o->f.form, &out) ?: print_answer(&out, log);

	buf_release(&out);
	if (!ret && o->svg)
		ret = stat_slices_svg(&r.s, o->svg, log);
	ret = ret ?: log_damage(log, reading_damaged(&r.own));
	stat_release(&r);
	return ret;
}

int cmd_stat(int argc, char **argv)
{
	struct stat_opts o = { .top = STAT_TOP, .rows = 20 };

	return command_read(&stat_table, argc, argv, &o, stat_check, stat_files);
}
