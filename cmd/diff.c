// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace diff: two recordings, a second of the one against a second of the other. */
#include "ask/states/series.h"
#include "cmd.h"

struct diff_row {
	const struct series_row *a, *b; /* either may be NULL: it has none */
	struct significance n;
};

struct diff {
	struct files_opts f;
	bool all, causes;
	uint64_t rows;
	const char *per; /* an event; NULL: a second */

	const struct buf *sides; /* the files of each, with commas between */
	struct series a, b;
	bool ticks; /* times of either */
	struct answer *out;
	struct diff_row *v;
	size_t n;
};

#define DIFF(field) .off = offsetof(struct diff, field)

static const struct opt diff_rows[] = {
	OPT('a', "all", NULL, "what is the same, too", opts_set_flag, DIFF(all)),
	OPT(0, "causes", NULL, "only what vCPUs lost time to", opts_set_flag, DIFF(causes)),
	OPT('p', "per", "EVENT", "figures of each such event, [SYSTEM:]EVENT[@MACHINE], not of a second",
	    opts_set_text, DIFF(per)),
	OPT('r', "rows", "N", "at most so many rows of a table (20); 0: all", opts_set_number, DIFF(rows),
	    .max = UINT32_MAX),
	OPT_ANSWER(FILES),
};

const struct opts_table diff_table = {
	.command = "diff",
	.usage = "usage: hyptrace diff [OPTION...] A [GUEST...] B [GUEST...]\n"
		 "\n"
		 "Compares recording B with recording A, each a trace.dat and the files of its guests\n"
		 "(or all with commas between): what vCPUs lost time to; events, exits and visits to\n"
		 "the hypervisor a second, and the time they took; the states of vCPUs and the host's\n"
		 "tasks; and which of these differ by more than the noise.\n"
		 "\n",
	OPT_ROWS(diff_rows),
};

int diff_files(const char *names, struct strlist *out)
{
	char *copy = strdup(names), *rest = copy;
	int ret = copy ? 0 : -ENOMEM;

	while (rest && !ret)
		ret = strlist_add(out, strsep(&rest, ","));
	free(copy);
	return ret;
}

/* A file and those of its guests; d->ticks: its times are ticks. -errno: logged. */
static int diff_read(struct diff *d, struct series *s, const struct buf *side, const struct log *log)
{
	const unsigned int flags = COMMAND_NO_TEXTS | COMMAND_TICKS_ONLY;
	const char *names = (const char *)side->data;
	struct hyptrace *files = NULL;
	struct strlist list = { 0 };
	int ret = diff_files(names, &list) ?: command_open(&files, &list, flags, &d->f.times, log);

	if (!ret) {
		d->ticks = inputs_in_ticks(handle_inputs(files));
		ret = series_read(s, handle_inputs(files), log);
	}
	if (ret == -ENODATA)
		log_err(log, "%s: there is nothing to compare: no two records of different time", names);
	if (!ret && d->per) {
		ret = series_per(s, d->per);
		if (ret == -ENOENT)
			log_err(log, "%s: there is no record of %s", names, d->per);
	}
	hyptrace_close(files);
	strlist_release(&list);
	return ret;
}

int diff_sides(const struct strlist *named, struct buf sides[2], const struct log *log)
{
	struct hyptrace *files = NULL;
	size_t n = named->n, hosts = 0;
	int ret = n > 2 ? command_open(&files, named, COMMAND_UNLOADED, NULL, log) : 0;

	for (size_t i = 0; i < n && !ret; i++) {
		hosts += n <= 2 || !handle_inputs(files)->v[i].guest;
		buf_printf(&sides[hosts > 1], "%s%s", sides[hosts > 1].len ? "," : "", named->v[i]);
	}
	hyptrace_close(files);
	if (ret)
		return EXIT_FAILED;
	if (hosts != 2) {
		fprintf(stderr, "hyptrace diff: two recordings are needed: hyptrace diff A [GUEST...] B "
				"[GUEST...]\n");
		return EXIT_USAGE;
	}
	return buf_str(&sides[0]) && buf_str(&sides[1]) ? EXIT_OK : EXIT_FAILED;
}

static const struct series_row *diff_row_of(const struct diff_row *r)
{
	return r->a ? r->a : r->b;
}

static int by_group_and_name(const void *a, const void *b)
{
	const struct series_row *x = a, *y = b;

	return ORDER(x->group, y->group) ?: strcmp(x->machine, y->machine) ?: strcmp(x->name, y->name);
}

/* Pairs rows of one name. */
static int diff_join(struct diff *d)
{
	static const double never[SERIES_SLICES];
	size_t i = 0, k = 0;
	int ret = 0;

	array_sort(d->a.v, d->a.n, sizeof(*d->a.v), by_group_and_name);
	array_sort(d->b.v, d->b.n, sizeof(*d->b.v), by_group_and_name);
	while ((i < d->a.n || k < d->b.n) && !ret) {
		const struct series_row *a = i < d->a.n ? &d->a.v[i] : NULL,
					*b = k < d->b.n ? &d->b.v[k] : NULL;
		int order = !a ? 1 : !b ? -1 : by_group_and_name(a, b);
		struct slice_series x = { order <= 0 ? a->v : never, SERIES_SLICES, d->a.length, d->a.per },
				    y = { order >= 0 ? b->v : never, SERIES_SLICES, d->b.length, d->b.per };
		struct diff_row row = { order <= 0 ? a : NULL, order >= 0 ? b : NULL,
					significance_of(&x, &y) };

		ret = array_push(&d->v, &d->n, &row, sizeof(row));
		i += order <= 0;
		k += order >= 0;
	}
	return ret;
}

static bool diff_differs(const struct diff_row *r)
{
	return r->n.verdict == VERDICT_LESS || r->n.verdict == VERDICT_MORE;
}

/* Sorts figures that differ to the front, the largest difference first. */
static int by_difference(const void *a, const void *b)
{
	const struct diff_row *x = a, *y = b;

	return ORDER(diff_differs(y), diff_differs(x))
		       ?: ORDER(fabs(y->n.b - y->n.a), fabs(x->n.b - x->n.a))
		       ?: by_group_and_name(diff_row_of(x), diff_row_of(y));
}

static const struct diff_group {
	const char *key, *title, *what;
	bool share, durations;
} diff_groups[] = {
	[SERIES_CAUSES] = { "causes", "Time that vCPUs lost, by cause", "cause", true, false },
	[SERIES_EVENTS] = { "events", "Events", "event", false, false },
	[SERIES_EXITS] = { "exits", "Exits", "reason", false, false },
	[SERIES_EXIT_TIME] = { "exit_time", "Time of handling exits", "reason", true, true },
	[SERIES_HYP] = { "hyp", "Stays in the hypervisor", "reason", false, false },
	[SERIES_HYP_TIME] = { "hyp_time", "Time in the hypervisor", "reason", true, true },
	[SERIES_STATES] = { "states", "Time of vCPUs and stolen time", "state", true, false },
	[SERIES_TASKS] = { "tasks", "Time of the host's tasks", "task", true, false },
};

/* "+12.3%", "x 5.67", "new", "gone" */
static const char *diff_change(const struct significance *n, char *out, size_t size)
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
	char text[32];

	if (g->share && d->per)
		snprintf(out, size, "%7s", answer_duration(d->out, (uint64_t)llround(v * 1e9), text));
	else if (g->share)
		snprintf(out, size, "%6.3g%%", v * 100);
	else
		snprintf(out, size, v >= 1000 ? "%7.0f" : "%7.3g", v);
	return out;
}

static struct answer_cell diff_duration(const struct series_row *r, enum duration d)
{
	return r && r->time.n ? CELL_N(duration_value(&r->time, d)) : CELL_NONE;
}

static void diff_row(struct diff *d, const struct diff_group *g, const struct diff_row *r)
{
	const struct series_row *of = diff_row_of(r);
	bool text = d->out->form == ANSWER_TEXT;
	struct answer_cell cells[ANSWER_COLUMNS_MAX];
	char a[32], b[32], change[32];
	size_t n = 0;

	cells[n++] = CELL_WORD(of->machine);
	cells[n++] = CELL_WORD(of->name);
	if (text) {
		cells[n++] = CELL_WORD(diff_figure(d, g, r->n.a, a, sizeof(a)));
		cells[n++] = CELL_WORD(diff_figure(d, g, r->n.b, b, sizeof(b)));
		cells[n++] = CELL_WORD(diff_change(&r->n, change, sizeof(change)));
	} else {
		cells[n++] = CELL_SHARE(r->n.a);
		cells[n++] = CELL_SHARE(r->n.b);
		cells[n++] = CELL_SHARE(r->n.low);
		cells[n++] = CELL_SHARE(r->n.high);
	}
	cells[n++] = CELL_WORD(verdict_word(r->n.verdict));
	cells[n++] = diff_duration(r->a, DURATION_P50);
	cells[n++] = diff_duration(r->b, DURATION_P50);
	cells[n++] = diff_duration(r->a, DURATION_P99);
	cells[n++] = diff_duration(r->b, DURATION_P99);
	answer_row(d->out, cells);
}

/* Rows of one group. */
static void diff_print_group(struct diff *d, const struct diff_row *v, size_t n)
{
	const struct diff_group *g = &diff_groups[diff_row_of(v)->group];
	bool text = d->out->form == ANSWER_TEXT;
	size_t shown = 0, same = 0, undecided = 0, left = 0;

	for (size_t i = 0; i < n; i++) {
		if (text && !d->all && !diff_differs(&v[i])) {
			same += v[i].n.verdict == VERDICT_SAME;
			undecided += v[i].n.verdict == VERDICT_UNKNOWN;
			continue;
		}
		if (text && d->rows && shown == d->rows) {
			left++;
			continue;
		}
		if (!shown++) {
			const struct answer_column words[] = {
				{ "machine", "machine", ANSWER_WORD },
				{ "name", g->what, ANSWER_WORD },
				{ "a", "      A", ANSWER_WORD },
				{ "b", "      B", ANSWER_WORD },
				{ "change", "change", ANSWER_WORD },
				{ "verdict", "B has", ANSWER_WORD },
				{ "a_p50_ns", "A p50", ANSWER_DURATION },
				{ "b_p50_ns", "B p50", ANSWER_DURATION },
			};
			static const struct answer_column programs[] = {
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

			if (d->per)
				snprintf(title, sizeof(title), "%s for each %s", g->title, d->per);
			else
				snprintf(title, sizeof(title), "%s%s", g->title,
					 g->share ? ", of one CPU's" : " a second");
			answer_table(d->out, g->key, title, text ? words : programs,
				     text ? ARRAY_SIZE(words) - (g->durations ? 0 : 2)
					  : ARRAY_SIZE(programs) - (g->durations ? 0 : 4));
		}
		diff_row(d, g, &v[i]);
	}
	if (shown)
		answer_table_end(d->out);
	if (left)
		answer_note(d->out, "%s: %zu more rows (--rows 0 shows all)", g->key, left);
	if (same)
		answer_note(d->out, "%s: %zu the same within the noise (--all shows them)", g->key, same);
	if (undecided)
		answer_note(d->out,
			    "%s: the recordings are too short to decide %zu, which move slowly (--all)",
			    g->key, undecided);
}

static void diff_answer(struct diff *d, struct buf *out)
{
	struct answer a;
	static const struct answer_column columns[] = { { "recording", "", ANSWER_WORD },
							{ "files", "files", ANSWER_WORD },
							COLUMN_TOOK,
							{ "lost", "lost", ANSWER_COUNT } };

	answer_begin(&a, d->f.form, out);
	a.ticks = d->ticks;
	d->out = &a;
	answer_table(d->out, "recordings", NULL, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < 2; i++) {
		const struct series *s = i ? &d->b : &d->a;
		answer_row(d->out, (struct answer_cell[]){ CELL_WORD(i ? "B" : "A"),
							   CELL_WORD((const char *)d->sides[i].data),
							   CELL_N(s->to - s->from), CELL_N(s->lost) });
	}
	answer_table_end(d->out);
	for (size_t i = 0, n; i < d->n; i += n) {
		for (n = 1; i + n < d->n; n++)
			if (diff_row_of(&d->v[i + n])->group != diff_row_of(&d->v[i])->group)
				break;
		if (d->causes && diff_row_of(&d->v[i])->group != SERIES_CAUSES)
			continue;
		array_sort(&d->v[i], n, sizeof(*d->v), by_difference);
		diff_print_group(d, &d->v[i], n);
	}
	if (d->a.lost || d->b.lost)
		answer_note(d->out, "events were lost: what they would have counted is in neither figure");
	answer_end(&a);
}

/* Reads both recordings, and pairs their figures. -errno, logged. */
static int diff_compare(struct diff *d, const struct log *log)
{
	int ret = diff_read(d, &d->a, &d->sides[0], log);
	const bool ticks = d->ticks;

	ret = ret ?: diff_read(d, &d->b, &d->sides[1], log);
	if (!ret && d->ticks != ticks)
		return log_fail(log, -EINVAL,
				"cannot compare ticks with ns: times of '%s' are ticks, of '%s' ns; "
				"--ts2secs HZ converts ticks",
				(const char *)d->sides[!ticks].data, (const char *)d->sides[ticks].data);
	return ret ?: diff_join(d);
}

static void diff_release(struct diff *d)
{
	free(d->v);
	series_release(&d->a);
	series_release(&d->b);
}

int diff_json(const struct buf sides[2], const struct times_opts *times, struct buf *out, uint64_t *damaged,
	      const struct log *log)
{
	struct diff d = { .f = { .form = ANSWER_JSON, .times = *times }, .sides = sides };
	int ret = diff_compare(&d, log);

	if (!ret)
		diff_answer(&d, out);
	merge_damage_join(damaged, d.a.damaged + d.b.damaged);
	diff_release(&d);
	return ret;
}

static int diff_run(void *opts, const struct log *log)
{
	struct diff *d = opts;
	struct buf sides[2] = { { 0 } }, out = { 0 };
	int ret = diff_sides(&d->f.files, sides, log);

	d->sides = sides;
	ret = ret ?: diff_compare(d, log);
	if (!ret) {
		diff_answer(d, &out);
		ret = print_answer(&out, log) ?: log_damage(log, d->a.damaged + d->b.damaged);
	}
	diff_release(d);
	buf_release(&sides[0]);
	buf_release(&sides[1]);
	return ret;
}

int cmd_diff(int argc, char **argv)
{
	struct diff d = { .rows = 20 };

	return command_read(&diff_table, argc, argv, &d, NULL, diff_run);
}
