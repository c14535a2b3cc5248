// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace diff: two recordings, a second of the one against a second of the other. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "analysis/noise.h"
#include "analysis/series.h"
#include "api/handle.h"
#include "cmd.h"
#include "util/answer.h"
#include "util/array.h"

#define ROWS 20

struct diff_opts {
	enum answer_form form;
	bool all, quiet;
	uint64_t rows;
	const char *per; /* an event; NULL: a second */
	const char *a, *b;
};

/* ---- command line -------------------------------------------------------------------- */

#define DIFF(field) .off = offsetof(struct diff_opts, field)

static const struct opt diff_rows[] = {
	OPT('a', "all", NULL, "what is the same, too", opts_set_flag, DIFF(all)),
	OPT('p', "per", "EVENT", "figures of each such event, [SYSTEM:]EVENT[@MACHINE], not of a second",
	    opts_set_text, DIFF(per)),
	OPT('r', "rows", "N", "at most so many rows of a table (20); 0: all", opts_set_number, DIFF(rows),
	    .max = UINT32_MAX),
	OPT('j', "json", NULL, "for programs: all rows, with the interval of each difference", set_json,
	    DIFF(form)),
	OPT(0, "csv", NULL, "the same; each line begins with its table", set_csv, DIFF(form)),
	OPT('q', "quiet", NULL, "errors only", opts_set_flag, DIFF(quiet)),
	OPT('h', "help", NULL, "this text", opts_help),
};

const struct opts_table diff_table = {
	.command = "diff",
	.usage = "usage: hyptrace diff [OPTION...] A[,GUEST...] B[,GUEST...]\n"
		 "\n"
		 "Compares recording B with recording A, each a trace.dat with the files of its guests\n"
		 "behind commas: events, exits and stays in the hypervisor a second, the time they, the\n"
		 "states of vCPUs and the host's tasks took, and what of that differs by more than the\n"
		 "noise.\n"
		 "\n",
	.rows = diff_rows,
	.n = ARRAY_SIZE(diff_rows),
};

/* False: there is nothing to do but exit with *status. */
static bool diff_parse(struct diff_opts *o, int argc, char **argv, int *status)
{
	struct opts_error err;
	int ret = opts_parse(&diff_table, &argc, argv, o, &err);

	if (ret) {
		*status = command_stopped(&diff_table, ret, &err);
		return false;
	}
	*status = EXIT_USAGE;
	if (argc != 3) {
		fprintf(stderr, "hyptrace: say two recordings: hyptrace diff A B\n");
		return false;
	}
	o->a = argv[1];
	o->b = argv[2];
	return true;
}

/* ---- the recordings --------------------------------------------------------------------- */

/* A file and those of its guests. per: see diff_opts. -errno: told. */
static int diff_read(struct series *s, const char *names, const char *per, struct log *log)
{
	struct hyptrace_open_opts open_opts = { sizeof(open_opts), .log = handle_log_to, .log_ctx = log };
	struct hyptrace *files = NULL;
	struct strlist list = { 0 };
	char *copy = strdup(names), *rest = copy;
	int ret = copy ? 0 : -ENOMEM;

	while (rest && !ret)
		ret = strlist_add(&list, strsep(&rest, ","));
	ret = ret ?: hyptrace_open(&files, (const char *const *)list.v, list.n, &open_opts) ?:
		     handle_load(files) ?: series_read(s, handle_inputs(files), log);
	if (ret == -ENODATA)
		log_err(log, "%s: there is nothing to compare: no two records of different time", names);
	if (!ret && per) {
		ret = series_per(s, per);
		if (ret == -ENOENT)
			log_err(log, "%s: there is no record of %s", names, per);
	}
	hyptrace_close(files);
	strlist_release(&list);
	free(copy);
	return ret;
}

/* ---- what differs ------------------------------------------------------------------------ */

struct diff_row {
	const struct series_row *a, *b; /* either may be NULL: it has none */
	struct noise_answer n;
};

struct diff {
	struct series a, b;
	const struct diff_opts *o;
	struct answer *out;
	struct diff_row *v;
	size_t n;
};

static const struct series_row *diff_row_of(const struct diff_row *r)
{
	return r->a ? r->a : r->b;
}

static int by_group_and_name(const void *a, const void *b)
{
	const struct series_row *x = a, *y = b;
	int ret = x->group < y->group ? -1 : x->group > y->group;

	return ret ?: strcmp(x->machine, y->machine) ?: strcmp(x->name, y->name);
}

static int diff_add(struct diff *d, const struct series_row *a, const struct series_row *b)
{
	static const double never[SERIES_SLICES];
	struct diff_row row = {
		a, b, noise_compare(a ? a->v : never, SERIES_SLICES, b ? b->v : never, SERIES_SLICES)
	};

	return array_push(&d->v, &d->n, &row, sizeof(row));
}

/* Rows of one name side by side. */
static int diff_join(struct diff *d)
{
	size_t i = 0, k = 0;
	int ret = 0;

	array_sort(d->a.v, d->a.n, sizeof(*d->a.v), by_group_and_name);
	array_sort(d->b.v, d->b.n, sizeof(*d->b.v), by_group_and_name);
	while ((i < d->a.n || k < d->b.n) && !ret) {
		const struct series_row *a = i < d->a.n ? &d->a.v[i] : NULL,
					*b = k < d->b.n ? &d->b.v[k] : NULL;
		int order = !a ? 1 : !b ? -1 : by_group_and_name(a, b);

		ret = diff_add(d, order <= 0 ? a : NULL, order >= 0 ? b : NULL);
		i += order <= 0;
		k += order >= 0;
	}
	return ret;
}

/* What differs first, and of that what differs most. */
static int by_difference(const void *a, const void *b)
{
	const struct diff_row *x = a, *y = b;
	bool same_x = x->n.verdict == NOISE_SAME, same_y = y->n.verdict == NOISE_SAME;
	double far_x = fabs(x->n.b - x->n.a), far_y = fabs(y->n.b - y->n.a);

	if (same_x != same_y)
		return same_x ? 1 : -1;
	return far_x != far_y ? (far_x < far_y ? 1 : -1) : by_group_and_name(diff_row_of(x), diff_row_of(y));
}

/* ---- printing ---------------------------------------------------------------------------- */

static const struct diff_group {
	const char *key, *title, *what;
	bool share, durations;
} diff_groups[] = {
	[SERIES_EVENTS] = { "events", "Events", "event", false, false },
	[SERIES_EXITS] = { "exits", "Exits", "reason", false, false },
	[SERIES_EXIT_TIME] = { "exit_time", "Time of handling exits", "reason", true, true },
	[SERIES_HYP] = { "hyp", "Stays in the hypervisor", "reason", false, false },
	[SERIES_HYP_TIME] = { "hyp_time", "Time in the hypervisor", "reason", true, true },
	[SERIES_STATES] = { "states", "Time of vCPUs and stolen time", "state", true, false },
	[SERIES_TASKS] = { "tasks", "Time of the host's tasks", "task", true, false },
};

/* "+12.3%", "x 5.67", "new", "gone" */
static const char *diff_change(const struct noise_answer *n, char *out, size_t size)
{
	double change = n->a > 0 ? n->b / n->a : 0;

	if (n->a <= 0)
		return n->b > 0 ? "new" : "";
	if (n->b <= 0)
		return "gone";
	if (change >= 10)
		snprintf(out, size, "x %.3g", change);
	else
		snprintf(out, size, "%+.1f%%", (change - 1) * 100);
	return out;
}

/* "  12.3%", "0.0123%", "   1234", "   1.23"; of each event "12.30us" */
static const char *diff_figure(const struct diff *d, const struct diff_group *g, double v, char *out,
			       size_t size)
{
	char text[16];

	if (g->share && d->o->per)
		snprintf(out, size, "%7s", duration_text((uint64_t)llround(v * 1e9), text));
	else if (g->share)
		snprintf(out, size, "%6.3g%%", v * 100);
	else
		snprintf(out, size, v >= 1000 ? "%7.0f" : "%7.3g", v);
	return out;
}

static struct answer_cell diff_duration(const struct series_row *r, double share)
{
	return r && r->time.n ? CELL_N(histogram_at(&r->time, share)) : CELL_NONE;
}

static void diff_text_row(struct diff *d, const struct diff_group *g, const struct diff_row *r)
{
	const struct series_row *of = diff_row_of(r);
	char a[32], b[32], change[32];
	const struct answer_cell cells[] = { CELL_WORD(of->machine),
					     CELL_WORD(of->name),
					     CELL_WORD(diff_figure(d, g, r->n.a, a, sizeof(a))),
					     CELL_WORD(diff_figure(d, g, r->n.b, b, sizeof(b))),
					     CELL_WORD(diff_change(&r->n, change, sizeof(change))),
					     CELL_WORD(noise_word(r->n.verdict)),
					     diff_duration(r->a, 0.5),
					     diff_duration(r->b, 0.5) };

	answer_row(d->out, cells);
}

static void diff_program_row(struct diff *d, const struct diff_row *r)
{
	const struct series_row *of = diff_row_of(r);
	const struct answer_cell cells[] = { CELL_WORD(of->machine),
					     CELL_WORD(of->name),
					     CELL_SHARE(r->n.a),
					     CELL_SHARE(r->n.b),
					     CELL_SHARE(r->n.low),
					     CELL_SHARE(r->n.high),
					     CELL_WORD(noise_word(r->n.verdict)),
					     diff_duration(r->a, 0.5),
					     diff_duration(r->b, 0.5),
					     diff_duration(r->a, 0.99),
					     diff_duration(r->b, 0.99) };

	answer_row(d->out, cells);
}

static void diff_begin(struct diff *d, const struct diff_group *g)
{
	const struct answer_column text[] = {
		{ "machine", "machine", ANSWER_WORD },	  { "name", g->what, ANSWER_WORD },
		{ "a", "      A", ANSWER_WORD },	  { "b", "      B", ANSWER_WORD },
		{ "change", "change", ANSWER_WORD },	  { "verdict", "B has", ANSWER_WORD },
		{ "a_p50_ns", "A p50", ANSWER_DURATION }, { "b_p50_ns", "B p50", ANSWER_DURATION },
	};
	const struct answer_column programs[] = {
		{ "machine", NULL, ANSWER_WORD },
		{ "name", NULL, ANSWER_WORD },
		{ "a", NULL, ANSWER_REAL },
		{ "b", NULL, ANSWER_REAL },
		{ "low", NULL, ANSWER_REAL },
		{ "high", NULL, ANSWER_REAL },
		{ "verdict", NULL, ANSWER_WORD },
		{ "a_p50_ns", NULL, ANSWER_DURATION },
		{ "b_p50_ns", NULL, ANSWER_DURATION },
		{ "a_p99_ns", NULL, ANSWER_DURATION },
		{ "b_p99_ns", NULL, ANSWER_DURATION },
	};

	char title[256];

	if (d->o->per)
		snprintf(title, sizeof(title), "%s for each %s", g->title, d->o->per);
	else
		snprintf(title, sizeof(title), "%s%s", g->title, g->share ? ", of one CPU's" : " a second");
	if (d->out->form == ANSWER_TEXT)
		answer_table(d->out, g->key, title, text, ARRAY_SIZE(text) - (g->durations ? 0 : 2));
	else
		answer_table(d->out, g->key, title, programs, ARRAY_SIZE(programs) - (g->durations ? 0 : 4));
}

static bool diff_shown(const struct diff *d, const struct diff_row *r)
{
	return d->o->all || d->out->form != ANSWER_TEXT || r->n.verdict != NOISE_SAME;
}

/* Rows of one group. */
static void diff_print_group(struct diff *d, const struct diff_row *v, size_t n)
{
	const struct diff_group *g = &diff_groups[diff_row_of(v)->group];
	bool text = d->out->form == ANSWER_TEXT;
	size_t shown = 0, same = 0, left = 0;

	for (size_t i = 0; i < n; i++) {
		if (!diff_shown(d, &v[i])) {
			same++;
			continue;
		}
		if (text && d->o->rows && shown == d->o->rows) {
			left++;
			continue;
		}
		if (!shown++)
			diff_begin(d, g);
		if (text)
			diff_text_row(d, g, &v[i]);
		else
			diff_program_row(d, &v[i]);
	}
	if (shown)
		answer_table_end(d->out);
	if (left)
		answer_note(d->out, "%s: %zu more rows (--rows 0 shows all)", g->key, left);
	if (same)
		answer_note(d->out, "%s: %zu the same within the noise (--all shows them)", g->key, same);
}

static void diff_print_about(struct diff *d)
{
	static const struct answer_column columns[] = { { "recording", "", ANSWER_WORD },
							{ "files", "files", ANSWER_WORD },
							{ "duration_ns", "took", ANSWER_DURATION },
							{ "lost", "lost", ANSWER_COUNT } };

	answer_table(d->out, "recordings", NULL, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < 2; i++) {
		const struct series *s = i ? &d->b : &d->a;
		const struct answer_cell cells[] = { CELL_WORD(i ? "B" : "A"),
						     CELL_WORD(i ? d->o->b : d->o->a),
						     CELL_N(s->to - s->from), CELL_N(s->lost) };

		answer_row(d->out, cells);
	}
	answer_table_end(d->out);
}

static void diff_print(struct diff *d)
{
	diff_print_about(d);
	for (size_t i = 0, n; i < d->n; i += n) {
		for (n = 1; i + n < d->n; n++)
			if (diff_row_of(&d->v[i + n])->group != diff_row_of(&d->v[i])->group)
				break;
		array_sort(&d->v[i], n, sizeof(*d->v), by_difference);
		diff_print_group(d, &d->v[i], n);
	}
	if (d->a.lost || d->b.lost)
		answer_note(d->out, "events were lost: what they would have counted is in neither figure");
}

static int diff_write(struct diff *d, const struct log *log)
{
	struct buf out = { 0 };
	struct answer a;
	int ret;

	answer_begin(&a, d->o->form, &out);
	d->out = &a;
	diff_print(d);
	answer_end(&a);
	ret = print_answer(&out, log);
	buf_release(&out);
	return ret;
}

/* ---- all of it ------------------------------------------------------------------------------ */

int cmd_diff(int argc, char **argv)
{
	struct diff_opts o = { .rows = ROWS };
	struct console console = { 0 };
	struct log log = console_as_log(&console);
	struct diff d = { .o = &o };
	int status, ret;

	memory_or_end();
	if (!diff_parse(&o, argc, argv, &status))
		return status;
	console.quiet = o.quiet;
	ret = diff_read(&d.a, o.a, o.per, &log) ?: diff_read(&d.b, o.b, o.per, &log) ?: diff_join(&d) ?: diff_write(&d, &log);
	status = console_status(&console, ret);
	if (!ret && d.a.damaged + d.b.damaged) {
		tell_damage(&log, d.a.damaged + d.b.damaged);
		status = EXIT_FAILED;
	}
	free(d.v);
	series_release(&d.a);
	series_release(&d.b);
	return status;
}
