// SPDX-License-Identifier: GPL-2.0-only
/* What hyptrace latency found out, as tables. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "latency-answer.h"

#define KEY_MAX 128

/* ---- rows ---------------------------------------------------------------------------- */

/* Several machines are in the table. */
static bool tables_named(const struct latency_answer *l)
{
	const struct latency_row *rows;
	size_t n;

	rows = latency_rows(l->found, &n);
	for (size_t i = 1; i < n; i++)
		if (rows[i].key.scope != rows[0].key.scope)
			return true;
	return false;
}

static const char *tables_key(const struct latency_answer *l, const struct latency_row *row,
			      char out[KEY_MAX])
{
	const struct latency_term *first = &l->plan->terms[0];
	enum latency_by by = first->row.by == BY_NOTHING ? first->next.by : first->row.by;
	struct buf text = { 0 };

	if (row->others) {
		buf_addstr(&text, "(others)");
	} else {
		latency_key_text(&row->key, by, latency_who(l->found), l->in, tables_named(l), &text);
	}
	snprintf(out, KEY_MAX, "%s", buf_str(&text) ? buf_str(&text) : "");
	buf_release(&text);
	return out;
}

struct tables_order {
	const struct latency_row *row;
	const struct histogram *whole;
};

/* Those that took most together first, those without any last. */
static int tables_compare(const void *a, const void *b)
{
	const struct tables_order *x = a, *y = b;

	if (!x->whole->n != !y->whole->n)
		return x->whole->n ? -1 : 1;
	if (x->whole->sum != y->whole->sum)
		return x->whole->sum > y->whole->sum ? -1 : 1;
	return x->row < y->row ? -1 : x->row > y->row;
}

/* For free(); NULL: no memory, or no rows. */
static struct tables_order *tables_order(const struct latency_answer *l, size_t *n)
{
	const struct latency_row *rows = latency_rows(l->found, n);
	struct tables_order *v = calloc(*n + 1, sizeof(*v));

	for (size_t i = 0; i < *n && v; i++)
		v[i] = (struct tables_order){ &rows[i], &rows[i].stages[l->plan->n_points - 1] };
	if (v)
		qsort(v, *n, sizeof(*v), tables_compare);
	return v;
}

/* ---- durations --------------------------------------------------------------------------- */

#define DURATION(key, title)                                                                                 \
	{                                                                                                    \
		key, title, ANSWER_DURATION                                                                  \
	}
#define DURATIONS_N 8

/* count, total, min, avg, p50, p99, p99.9, max */
static void tables_durations(const struct histogram *h, struct answer_cell *cells)
{
	uint64_t v[] = { h->n,
			 h->sum,
			 h->min,
			 (uint64_t)(histogram_mean(h) + 0.5),
			 histogram_at(h, 0.5),
			 histogram_at(h, 0.99),
			 histogram_at(h, 0.999),
			 h->max };

	for (size_t i = 0; i < DURATIONS_N; i++)
		cells[i] = i < 2 || h->n ? CELL_N(v[i]) : CELL_NONE;
}

static void tables_pairs(const struct latency_answer *l, struct answer *a, const struct tables_order *v,
			 size_t n)
{
	const struct answer_column columns[] = {
		{ "key", l->key ? l->key : "machine", ANSWER_WORD },
		{ "count", "count", ANSWER_COUNT },
		DURATION("total_ns", "total"),
		DURATION("min_ns", "min"),
		DURATION("avg_ns", "avg"),
		DURATION("p50_ns", "p50"),
		DURATION("p99_ns", "p99"),
		DURATION("p999_ns", "p99.9"),
		DURATION("max_ns", "max"),
	};
	struct answer_cell cells[1 + DURATIONS_N];
	char title[256], key[KEY_MAX];
	size_t rows = 0; /* those with pairs come first */

	snprintf(title, sizeof(title), "From %s to %s", l->from, l->to);
	answer_table(a, "latency", title, columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < n && v[i].row->stages[1].n; i++, rows++) {
		cells[0] = CELL_WORD(tables_key(l, v[i].row, key));
		tables_durations(&v[i].row->stages[1], cells + 1);
		answer_row(a, cells);
	}
	if (rows != 1) {
		cells[0] = CELL_WORD("(all)");
		tables_durations(&l->all, cells + 1);
		answer_row(a, cells);
	}
	answer_table_end(a);
}

/* What became of the events that are no row's pairs. */
static void tables_unpaired(const struct latency_answer *l, struct answer *a, const struct tables_order *v,
			    size_t n)
{
	const struct answer_column columns[] = {
		{ "key", l->key ? l->key : "machine", ANSWER_WORD },
		{ "from", "from", ANSWER_COUNT },
		{ "to", "to", ANSWER_COUNT },
		{ "pairs", "pairs", ANSWER_COUNT },
		{ "undecided", "undecided", ANSWER_COUNT },
		{ "lost", "lost", ANSWER_COUNT },
		{ "from_only", "from only", ANSWER_COUNT },
		{ "to_only", "to only", ANSWER_COUNT },
		DURATION("bound_ns", "bound"),
	};
	char key[KEY_MAX];

	answer_table(a, "events", "Events, and how many of them are pairs", columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < n; i++) {
		const struct latency_row *r = v[i].row;
		struct answer_cell cells[] = { CELL_WORD(tables_key(l, r, key)),
					       CELL_N(r->begins),
					       CELL_N(r->ends),
					       CELL_N(r->stages[1].n),
					       CELL_N(r->undecided),
					       CELL_N(r->lost),
					       CELL_N(r->stopped[1] + r->refused),
					       CELL_N(r->strays + r->doubtful),
					       r->bound == UINT64_MAX ? CELL_NONE : CELL_N(r->bound) };

		answer_row(a, cells);
	}
	answer_table_end(a);
}

/* ---- stages --------------------------------------------------------------------------------- */

/* For people without the total and p99.9: 80 columns have no room for them. */
static size_t tables_narrow(const struct answer *a, size_t i)
{
	return a->form == ANSWER_TEXT && i > 2 ? i > 6 ? i + 2 : i + 1 : i;
}

static void tables_stage(struct answer *a, const char *key, const char *name, const struct histogram *h)
{
	struct answer_cell all[2 + DURATIONS_N] = { CELL_WORD(key), CELL_WORD(name) }, cells[ARRAY_SIZE(all)];

	tables_durations(h, all + 2);
	for (size_t i = 0, k; (k = tables_narrow(a, i)) < ARRAY_SIZE(all); i++)
		cells[i] = all[k];
	answer_row(a, cells);
}

static void tables_stages_begin(const struct latency_answer *l, struct answer *a, char *title, size_t size)
{
	const struct answer_column all[] = {
		{ "of", l->preset->row, ANSWER_WORD },
		{ "until", "until", ANSWER_WORD },
		{ "count", "count", ANSWER_COUNT },
		DURATION("total_ns", "total"),
		DURATION("min_ns", "min"),
		DURATION("avg_ns", "avg"),
		DURATION("p50_ns", "p50"),
		DURATION("p99_ns", "p99"),
		DURATION("p999_ns", "p99.9"),
		DURATION("max_ns", "max"),
	};
	struct answer_column columns[ARRAY_SIZE(all)];
	size_t n = 0;

	for (size_t k; (k = tables_narrow(a, n)) < ARRAY_SIZE(all); n++)
		columns[n] = all[k];
	snprintf(title, size, "%s: each stage since the one before, from '%s' on", l->preset->name,
		 l->preset->points[0]);
	answer_table(a, "latency", title, columns, n);
}

static void tables_stages(const struct latency_answer *l, struct answer *a, const struct tables_order *v,
			  size_t n)
{
	size_t points = l->plan->n_points;
	char title[256], key[KEY_MAX];

	tables_stages_begin(l, a, title, sizeof(title));
	for (size_t i = 0; i < n && v[i].whole->n; i++) {
		tables_key(l, v[i].row, key);
		for (size_t k = 0; points > 2 && k + 1 < points; k++)
			tables_stage(a, key, l->preset->points[k + 1], &v[i].row->stages[k]);
		tables_stage(a, key, points > 2 ? "total" : l->preset->points[1], v[i].whole);
	}
	answer_table_end(a);
}

static uint64_t tables_stopped(const struct latency_answer *l, const struct latency_row *r, size_t from)
{
	uint64_t n = 0;

	for (size_t i = from; i < l->plan->n_points; i++)
		n += r->stopped[i];
	return n;
}

static void tables_chains(const struct latency_answer *l, struct answer *a, const struct tables_order *v,
			  size_t n)
{
	const struct answer_column columns[] = {
		{ "of", l->preset->row, ANSWER_WORD },
		{ "began", "began", ANSWER_COUNT },
		{ "complete", "complete", ANSWER_COUNT },
		{ "undecided", "undecided", ANSWER_COUNT },
		{ "lost", "lost", ANSWER_COUNT },
		{ "stopped", "stopped", ANSWER_COUNT },
		DURATION("bound_ns", "bound"),
	};
	char key[KEY_MAX];

	answer_table(a, "chains", "What began, and how much of it came to its end", columns,
		     ARRAY_SIZE(columns));
	for (size_t i = 0; i < n; i++) {
		const struct latency_row *r = v[i].row;
		struct answer_cell cells[] = { CELL_WORD(tables_key(l, r, key)),
					       CELL_N(r->begins),
					       CELL_N(r->stages[l->plan->n_points - 1].n),
					       CELL_N(r->undecided),
					       CELL_N(r->lost),
					       CELL_N(tables_stopped(l, r, 1) + r->refused),
					       r->bound == UINT64_MAX ? CELL_NONE : CELL_N(r->bound) };

		answer_row(a, cells);
	}
	answer_table_end(a);
}

/* Where they stopped: with the point that did not come. */
static void tables_where(const struct latency_answer *l, struct answer *a, const struct tables_order *v,
			 size_t n)
{
	static const struct answer_column columns[] = { { "before", "stopped before", ANSWER_WORD },
							{ "count", "count", ANSWER_COUNT } };

	answer_table(a, "stopped", NULL, columns, ARRAY_SIZE(columns));
	for (size_t k = 1; k < l->plan->n_points; k++) {
		uint64_t stopped = 0;

		for (size_t i = 0; i < n; i++)
			stopped += v[i].row->stopped[k];
		answer_row(a, (struct answer_cell[]){ CELL_WORD(l->preset->points[k]), CELL_N(stopped) });
	}
	answer_table_end(a);
}

/* ---- the worst ------------------------------------------------------------------------------------ */

static const char *tables_place(const struct latency_answer *l, uint32_t input, uint32_t cpu,
				char out[KEY_MAX])
{
	const struct input *in = &l->in->v[input];

	snprintf(out, KEY_MAX, "%.100s %u", in->guest ? in->machine : "host", cpu);
	return out;
}

static void tables_worst(const struct latency_answer *l, struct answer *a)
{
	static const struct answer_column columns[] = {
		{ "n", "n", ANSWER_COUNT },	 { "key", "key", ANSWER_WORD },
		DURATION("took_ns", "took"),	 { "from", "from", ANSWER_TIME },
		{ "to", "to", ANSWER_TIME },	 { "from_cpu", "on", ANSWER_WORD },
		{ "to_cpu", "to", ANSWER_WORD }, DURATION("bound_ns", "bound"),
	};
	const struct latency_row *rows;
	const struct latency_worst *w;
	size_t n, n_rows, last = l->plan->n_points - 1;
	char key[KEY_MAX], from[KEY_MAX], to[KEY_MAX];

	w = latency_worst(l->found, &n);
	rows = latency_rows(l->found, &n_rows);
	answer_table(a, "worst", "The longest", columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < n; i++) {
		const struct chain_event *v = w[i].v;
		uint64_t bound = latency_bound(&v[0], &v[last]);
		struct answer_cell cells[] = { CELL_N(i + 1),
					       CELL_WORD(tables_key(l, &rows[w[i].row], key)),
					       CELL_N(w[i].took),
					       CELL_N(v[0].ts),
					       CELL_N(v[last].ts),
					       CELL_WORD(tables_place(l, v[0].input, v[0].cpu, from)),
					       CELL_WORD(tables_place(l, v[last].input, v[last].cpu, to)),
					       bound == UINT64_MAX ? CELL_NONE : CELL_N(bound) };

		answer_row(a, cells);
	}
	answer_table_end(a);
}

static void tables_line(const struct latency_answer *l, struct answer *a, size_t n, uint64_t since,
			const struct between_line *line)
{
	char cpu[KEY_MAX];
	struct answer_cell cells[] = {
		CELL_N(n),
		CELL_N(line->ts - since),
		CELL_WORD(tables_place(l, line->input, line->cpu, cpu)),
		CELL_WORD(line->task),
		CELL_WORD(line->what),
		CELL_N(line->ts),
	};

	answer_row(a, cells);
}

/* For people without the time, which "after" tells: the events need the room. */
static void tables_between(const struct latency_answer *l, struct answer *a)
{
	static const struct answer_column columns[] = {
		{ "n", "n", ANSWER_COUNT },	   DURATION("after_ns", "after"),
		{ "cpu", "on", ANSWER_WORD },	   { "task", "task", ANSWER_WORD },
		{ "event", "event", ANSWER_WORD }, { "time", "time", ANSWER_TIME },
	};
	const struct latency_worst *w;
	size_t n;

	w = latency_worst(l->found, &n);
	answer_table(a, "between", "What happened on these CPUs meanwhile", columns,
		     ARRAY_SIZE(columns) - (a->form == ANSWER_TEXT));
	for (size_t i = 0; i < n; i++) {
		const struct between *b = &l->between[i];
		char text[64];

		snprintf(text, sizeof(text), "... %llu more ...", (unsigned long long)(b->records - b->n));
		for (size_t k = 0; k < b->n; k++) {
			if (k == BETWEEN_LINES / 2 && b->records > b->n)
				answer_row(a,
					   (struct answer_cell[]){ CELL_N(i + 1), CELL_NONE, CELL_NONE,
								   CELL_NONE, CELL_WORD(text), CELL_NONE });
			tables_line(l, a, i + 1, w[i].v[0].ts, &b->v[k]);
		}
	}
	answer_table_end(a);
}

/* ---- notes ---------------------------------------------------------------------------------------- */

/* Events of others are left out in silence where a preset looks at whom they wake or switch to. */
static void tables_note_term(const struct latency_answer *l, struct answer *a, size_t term)
{
	const struct latency_term *t = &l->plan->terms[term];
	const struct latency_count *c = latency_count(l->found, term);

	if (c->keyless && t->look.by != BY_VCPU_TID && t->look.by != BY_WORKER_TID &&
	    t->look.by != BY_WORKER && t->next.by != BY_WORKER_TID)
		answer_note(a, "%llu %s are left out: the files do not tell whose they are",
			    (unsigned long long)c->keyless, t->event);
	if (!l->preset && !c->seen)
		answer_note(a, "there are no records of %s", t->event);
	else if (!l->preset && !c->passed)
		answer_note(a, "none of %llu records passes the filter of %s", (unsigned long long)c->seen,
			    t->event);
}

static void tables_notes(const struct latency_answer *l, struct answer *a, const struct tables_order *v,
			 size_t n)
{
	uint64_t undecided = 0, lost = 0, refused = 0;
	const char *what = l->preset ? "chains" : "pairs";

	for (size_t i = 0; i < n; i++) {
		undecided += v[i].row->undecided;
		lost += v[i].row->lost;
		refused += v[i].row->refused;
	}
	if (l->all.n)
		answer_note(a, "percentiles are within %.1f %% of their value; the rest is exact",
			    HISTOGRAM_ERROR * 100);
	if (lost)
		answer_note(a, "%llu %s are left out: %s in between", (unsigned long long)lost, what,
			    latency_why_lost(l->found));
	if (undecided)
		answer_note(a, "%llu %s are undecided: their events are nearer than the clocks' bounds",
			    (unsigned long long)undecided, what);
	if (refused)
		answer_note(a, "%llu %s were given up: there are more than %u keys",
			    (unsigned long long)refused, what, CHAIN_KEYS_MAX);
	if (latency_unbounded(l->found))
		answer_note(a,
			    "%s has no bounds for its clock (hyptrace sync), so that nothing is certain "
			    "between it and others",
			    latency_unbounded(l->found));
	for (size_t i = 0; i < l->plan->n_terms; i++)
		tables_note_term(l, a, i);
	if (l->preset && !n)
		answer_note(a, "none began");
	if (l->preset && l->plan->n_points < l->preset->n_points)
		answer_note(a, "there is no guest's file: what follows on '%s' cannot be told",
			    l->preset->points[l->plan->n_points - 1]);
}

int latency_answer_tables(const struct latency_answer *l, struct answer *a)
{
	size_t all, n, worst;
	struct tables_order *v = tables_order(l, &all);

	if (!v)
		return -ENOMEM;
	n = a->form == ANSWER_TEXT && all > l->rows ? l->rows : all;
	latency_worst(l->found, &worst);
	if (l->preset) {
		tables_stages(l, a, v, n);
		tables_chains(l, a, v, n);
		tables_where(l, a, v, all);
	} else {
		tables_pairs(l, a, v, n);
		tables_unpaired(l, a, v, n);
	}
	if (l->plan->worst) {
		tables_worst(l, a);
		tables_between(l, a);
	}
	if (n < all)
		answer_note(a, "%zu rows more: --rows 0", all - n);
	tables_notes(l, a, v, all);
	free(v);
	return 0;
}
