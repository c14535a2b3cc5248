// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace stat: time in the hypervisor, in the firmware and in programs' spans; the longest of all. */
#include <errno.h>
#include <stdlib.h>

#include "stat-priv.h"

/* A row of any of these tables. */
struct time_row {
	size_t input;
	const char *kind; /* NULL: all are of one kind */
	const char *name; /* NULL: unknown */
	const struct histogram *time;
};

static int time_longer_first(const void *a, const void *b)
{
	const struct time_row *x = a, *y = b;

	return x->time->sum != y->time->sum ? (x->time->sum < y->time->sum ? 1 : -1)
					    : strcmp(x->name ?: "", y->name ?: "");
}

static bool time_machines(const struct time_row *v, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (v[i].input != v[0].input)
			return true;
	return false;
}

static void time_columns(struct stat_table *t, const char *key, const char *title, bool kinds)
{
	if (kinds)
		stat_column(t, "kind", "kind", ANSWER_WORD, true);
	stat_column(t, key, title, ANSWER_WORD, true);
	stat_column(t, "count", "count", ANSWER_COUNT, true);
	stat_column(t, "total_ns", "total", ANSWER_DURATION, true);
	stat_column(t, "share", "share", ANSWER_SHARE, true);
	/* 80 columns have no room for both */
	stat_column(t, "min_ns", "min", ANSWER_DURATION, kinds);
	stat_column(t, "avg_ns", "avg", ANSWER_DURATION, true);
	stat_column(t, "p50_ns", "p50", ANSWER_DURATION, true);
	stat_column(t, "p99_ns", "p99", ANSWER_DURATION, true);
	stat_column(t, "p99_9_ns", "p99.9", ANSWER_DURATION, !kinds);
	stat_column(t, "max_ns", "max", ANSWER_DURATION, true);
}

static void time_cells(struct stat_table *t, const struct time_row *r, uint64_t total)
{
	const struct histogram *h = r->time;

	stat_machine(t, r->input);
	if (r->kind)
		stat_cell(t, CELL_WORD(r->kind));
	stat_cell(t, CELL_WORD(r->name));
	stat_cell(t, CELL_N(h->n));
	stat_cell(t, CELL_N(h->sum));
	stat_cell(t, CELL_SHARE(total ? (double)h->sum / (double)total : 0));
	stat_cell(t, CELL_N(h->min));
	stat_cell(t, CELL_N((uint64_t)(histogram_mean(h) + 0.5)));
	stat_cell(t, CELL_N(histogram_at(h, 0.5)));
	stat_cell(t, CELL_N(histogram_at(h, 0.99)));
	stat_cell(t, CELL_N(histogram_at(h, 0.999)));
	stat_cell(t, CELL_N(h->max));
	stat_row(t);
}

/* False: it is not there. */
static bool time_table(struct stat_table *t, const char *key, const char *title, const char *why,
		       struct time_row *v, size_t n)
{
	uint64_t total = 0;

	if (!stat_open(t, key, title, n, why))
		return false;
	for (size_t i = 0; i < n; i++)
		total += v[i].time->sum;
	qsort(v, n, sizeof(*v), time_longer_first);
	for (size_t i = 0; i < n; i++)
		time_cells(t, &v[i], total);
	stat_close(t);
	return true;
}

/* ---- the hypervisor and the firmware ------------------------------------------------------ */

/* hyptime_name's text is good for one call only: numbers without a name have none here. */
static struct time_row *hyp_rows(struct stat_answer *s, const struct hyptime_row *rows, size_t n,
				 struct strlist *names)
{
	struct time_row *v = calloc(n + 1, sizeof(*v));

	for (size_t i = 0; v && i < n; i++) {
		const char *name = hyptime_name(s->hyp, rows[i].input, rows[i].kind);

		v[i] = (struct time_row){ rows[i].input, NULL, NULL, &rows[i].time };
		if (name && strlist_add(names, name))
			s->ret = -ENOMEM;
		else if (name)
			v[i].name = names->v[names->n - 1];
	}
	if (!v)
		s->ret = -ENOMEM;
	return v;
}

static bool hyp_table(struct stat_answer *s, const struct hyptime_row *rows, size_t n, const char *key,
		      const char *title, const char *column, const char *why)
{
	struct strlist names = { 0 };
	struct time_row *v = hyp_rows(s, rows, n, &names);
	struct stat_table t;
	bool there = false;

	if (!s->ret) {
		stat_begin(&t, s, time_machines(v, n));
		time_columns(&t, column, column, false);
		there = time_table(&t, key, title, why, v, n);
	}
	strlist_release(&names);
	free(v);
	return there;
}

/* How much of the time of all CPUs that is, from the first event of each of their buffers to the last. */
static void hyp_total(struct stat_answer *s, const struct hyptime_row *rows, size_t n)
{
	uint64_t total = 0, count = 0, wall = 0;
	size_t n_cpus;
	const struct counts_cpu *cpus = counts_cpus(s->counts, &n_cpus);
	char text[2][16];

	for (size_t i = 0; i < n; i++) {
		total += rows[i].time.sum;
		count += rows[i].time.n;
	}
	for (size_t i = 0; i < n_cpus; i++)
		if (hyptime_seen(s->hyp, i))
			wall += cpus[i].last - cpus[i].first;
	answer_note(s->out,
		    "hyp: %llu stays, %s in all: %.2f%% of the %s of CPUs' time that its buffers have",
		    (unsigned long long)count, duration_text(total, text[0]),
		    wall ? 100.0 * (double)total / (double)wall : 0, duration_text(wall, text[1]));
}

void stat_hyp(struct stat_answer *s)
{
	struct hyptime_cut cut = hyptime_cut(s->hyp);
	size_t n;
	const struct hyptime_row *rows = hyptime_rows(s->hyp, &n);

	if (!hyp_table(s, rows, n, "hyp", "Hypervisor: from hyp_enter to hyp_exit, by reason", "reason",
		       "the files have no hyp_enter with a hyp_exit"))
		return;
	if (n)
		hyp_total(s, rows, n);
	if (cut.enters || cut.exits)
		answer_note(s->out,
			    "hyp: %llu hyp_enter and %llu hyp_exit without the other are left out: events "
			    "were lost, "
			    "or the recording begins or ends there",
			    (unsigned long long)cut.enters, (unsigned long long)cut.exits);
}

void stat_firmware(struct stat_answer *s)
{
	size_t n;
	const struct hyptime_row *rows = hyptime_firmware(s->hyp, &n);

	hyp_table(s, rows, n, "firmware",
		  "Firmware (EL3): from hyp_exit for smc until the hypervisor is entered again", "back_for",
		  "the files have no hyp_exit for smc with a hyp_enter behind it");
}

/* ---- spans ------------------------------------------------------------------------------------ */

void stat_spans(struct stat_answer *s)
{
	static const char *const kinds[] = {
		[MARKERS_CROSVM] = "crosvm", [MARKERS_HYPERTRACE] = "hypertrace"
	};
	struct markers_cut cut = markers_cut(s->markers);
	size_t n;
	const struct markers_row *rows = markers_rows(s->markers, &n);
	struct time_row *v = calloc(n + 1, sizeof(*v));
	struct stat_table t;
	size_t k = 0;

	if (!v) {
		s->ret = -ENOMEM;
		return;
	}
	for (size_t i = 0; i < n; i++)
		if (rows[i].time.n)
			v[k++] = (struct time_row){ rows[i].input, kinds[rows[i].kind], rows[i].name,
						    &rows[i].time };
	stat_begin(&t, s, time_machines(v, k));
	time_columns(&t, "name", "name", true);
	if (time_table(&t, "spans", "Spans in trace_marker", "the files have none", v, k) &&
	    (cut.begins || cut.ends || cut.others))
		answer_note(s->out,
			    "spans: %llu begins and %llu ends without the other, and %llu lines of too many "
			    "threads or names, are left out",
			    (unsigned long long)cut.begins, (unsigned long long)cut.ends,
			    (unsigned long long)cut.others);
	free(v);
}

/* ---- the longest -------------------------------------------------------------------------------- */

static void longest_row(struct stat_table *t, const struct stay *y)
{
	static const char *const what[] = { [STAY_EXIT] = "exit", [STAY_HYP] = "hyp" };
	struct stat_answer *s = t->of;
	char name[EXITS_NAME_MAX], vcpu[80];

	stat_machine(t, y->input);
	stat_cell(t, CELL_WORD(what[y->what]));
	stat_cell(t, CELL_WORD(y->what == STAY_EXIT ? exits_stay_name(s->exits, y, name)
						    : hyptime_name(s->hyp, y->input, y->kind)));
	stat_cell(t, CELL_N(y->to - y->from));
	stat_cell(t, CELL_N(y->from));
	stat_cell(t, CELL_N(y->cpu));
	stat_cell(t, CELL_WORD(stat_vcpu_name(&s->in->v[y->input], y->pid, vcpu, sizeof(vcpu))));
	stat_cell(t, y->pid > 0 ? CELL_N((uint64_t)y->pid) : CELL_NONE);
	stat_row(t);
}

static bool longest_machines(const struct stays *y)
{
	for (size_t k = 0; k < STAY_KINDS; k++)
		for (size_t i = 0; i < y->n_longest[k]; i++)
			if (y->longest[k][i].input != y->longest[y->n_longest[0] ? 0 : k][0].input)
				return true;
	return false;
}

void stat_longest(struct stat_answer *s)
{
	size_t rows = s->rows, n = 0;
	struct stat_table t;

	for (size_t i = 0; i < STAY_KINDS; i++)
		n += s->stays.n_longest[i];
	stat_begin(&t, s, longest_machines(&s->stays));
	stat_column(&t, "what", "what", ANSWER_WORD, true);
	stat_column(&t, "reason", "reason", ANSWER_WORD, true);
	stat_column(&t, "took_ns", "took", ANSWER_DURATION, true);
	stat_column(&t, "at", "at", ANSWER_TIME, true);
	stat_column(&t, "cpu", "CPU", ANSWER_COUNT, true);
	stat_column(&t, "vcpu", "vCPU", ANSWER_WORD, true);
	stat_column(&t, "pid", "thread", ANSWER_SIGNED, false);
	if (!stat_open(&t, "longest", "The longest exits and stays in the hypervisor", n,
		       "the files have neither exits nor stays in the hypervisor"))
		return;
	s->rows = SIZE_MAX; /* --top says how many */
	for (size_t k = 0; k < STAY_KINDS; k++)
		for (size_t i = 0; i < s->stays.n_longest[k]; i++)
			longest_row(&t, &s->stays.longest[k][i]);
	s->rows = rows;
	stat_close(&t);
}
