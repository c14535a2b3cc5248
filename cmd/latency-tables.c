// SPDX-License-Identifier: GPL-2.0-only
/* Prints the result of hyptrace latency as tables. */
#include "cmd.h"

const char *latency_row_name(const struct latency_answer *l, const struct latency_row *row,
			     char out[LATENCY_ROW_NAME])
{
	const struct latency_term *first = &l->q->plan.terms[0];
	enum latency_by by = first->row.by == BY_NOTHING ? first->next.by : first->row.by;
	struct buf text = { 0 };
	bool several = false; /* machines are in the table */

	for (size_t i = 1; i < l->found.n_rows; i++)
		several |= l->found.rows[i].key.scope != l->found.rows[0].key.scope;
	if (row->others)
		buf_addstr(&text, "(others)");
	else
		latency_key_text(&row->key, by, l->found.vcpus, l->in, several, &text);
	snprintf(out, LATENCY_ROW_NAME, "%s", buf_str(&text) ? buf_str(&text) : "");
	buf_release(&text);
	return out;
}

/* Rows by their total time, those without durations last; points: of a whole chain. */
static int tables_compare(const void *a, const void *b, void *points)
{
	const struct latency_row *x = *(const struct latency_row *const *)a;
	const struct latency_row *y = *(const struct latency_row *const *)b;
	size_t whole = *(const size_t *)points - 1;

	return ORDER(!x->stages[whole].n, !y->stages[whole].n)
		       ?: ORDER(y->stages[whole].sum, x->stages[whole].sum)
		       ?: ORDER(x, y);
}

/* In text without those of the mask: 80 columns have no room for all. Returns how many. */
static size_t tables_duration_columns(const struct answer *a, unsigned int narrow, struct answer_column *to)
{
	size_t n = 0;

	for (size_t i = 0; i < DURATIONS; i++)
		if (a->form != ANSWER_TEXT || !(narrow & 1u << i))
			to[n++] = duration_columns[i];
	return n;
}

/* A row of the same columns; stage NULL: behind the key there is no column of stages. */
static void tables_durations(struct answer *a, unsigned int narrow, const char *key, const char *stage,
			     const struct histogram *h)
{
	struct answer_cell cells[2 + DURATIONS] = { CELL_WORD(key), CELL_WORD(stage) };
	struct answer_cell *to = cells + (stage ? 2 : 1);

	for (size_t i = 0; i < DURATIONS; i++)
		if (a->form != ANSWER_TEXT || !(narrow & 1u << i))
			*to++ = i < DURATION_MIN || h->n ? CELL_N(duration_value(h, i)) : CELL_NONE;
	answer_row(a, cells);
}

/* Counts of events that are in no pair, by reason. */
static void tables_unpaired(const struct latency_answer *l, struct answer *a,
			    const struct latency_row *const *v, size_t n)
{
	const struct answer_column columns[] = {
		{ "key", l->q->key ? l->q->key : "machine", ANSWER_WORD },
		{ "from_events", "from", ANSWER_COUNT },
		{ "to_events", "to", ANSWER_COUNT },
		{ "pairs", "pairs", ANSWER_COUNT },
		{ "undecided", "undecided", ANSWER_COUNT },
		{ "lost", "lost", ANSWER_COUNT },
		{ "from_only", "from only", ANSWER_COUNT },
		{ "to_only", "to only", ANSWER_COUNT },
		COLUMN_BOUND,
	};
	char key[LATENCY_ROW_NAME];

	answer_table(a, "events", "Events, and how many of them are pairs", columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < n; i++) {
		const struct latency_row *r = v[i];
		answer_row(a,
			   (struct answer_cell[]){
				   CELL_WORD(latency_row_name(l, r, key)), CELL_N(latency_begun(r, 2)),
				   CELL_N(r->stages[1].n + r->undecided + r->lost + r->strays + r->doubtful),
				   CELL_N(r->stages[1].n), CELL_N(r->undecided), CELL_N(r->lost),
				   CELL_N(r->stopped[1] + r->refused), CELL_N(r->strays + r->doubtful),
				   CELL_BOUND(r->bound) });
	}
	answer_table_end(a);
}

#define STAGES_NARROW (1u << DURATION_TOTAL | 1u << DURATION_P99_9)

static void tables_chains(const struct latency_answer *l, struct answer *a,
			  const struct latency_row *const *v, size_t n)
{
	const struct answer_column columns[] = {
		{ "key", l->q->found->row, ANSWER_WORD },
		{ "began", "began", ANSWER_COUNT },
		{ "complete", "complete", ANSWER_COUNT },
		{ "undecided", "undecided", ANSWER_COUNT },
		{ "lost", "lost", ANSWER_COUNT },
		{ "stopped", "stopped", ANSWER_COUNT },
		{ "not_recorded", "not recorded", ANSWER_COUNT },
		COLUMN_BOUND,
	};
	char key[LATENCY_ROW_NAME];

	answer_table(a, "chains", "What began, and how much of it came to its end", columns,
		     ARRAY_SIZE(columns));
	for (size_t i = 0; i < n; i++) {
		const struct latency_row *r = v[i];
		uint64_t unrecorded = 0, begun = latency_begun(r, l->q->plan.n_points);
		uint64_t complete = r->stages[l->q->plan.n_points - 1].n;

		for (size_t k = 0; k < l->q->plan.n_points; k++)
			unrecorded += r->unrecorded[k];
		answer_row(a, (struct answer_cell[]){
				      CELL_WORD(latency_row_name(l, r, key)), CELL_N(begun), CELL_N(complete),
				      CELL_N(r->undecided), CELL_N(r->lost),
				      CELL_N(begun - complete - r->undecided - r->lost - unrecorded),
				      CELL_N(unrecorded), CELL_BOUND(r->bound) });
	}
	answer_table_end(a);
}

static void tables_queues(const struct latency_answer *l, struct answer *a)
{
	const struct answer_column columns[] = {
		{ "key", l->q->found->row, ANSWER_WORD },   { "buffers", "buffers", ANSWER_COUNT },
		{ "out_descriptors", "out", ANSWER_COUNT }, { "out_bytes", "out bytes", ANSWER_COUNT },
		{ "in_descriptors", "in", ANSWER_COUNT },   { "in_bytes", "in bytes", ANSWER_COUNT },
	};
	uint64_t unknown = 0;

	if (!l->found.n_queues)
		return;
	answer_table(a, "queues", "What drivers put into virtio's queues, in descriptors and bytes", columns,
		     ARRAY_SIZE(columns));
	for (size_t i = 0; i < l->found.n_queues; i++) {
		const struct queue *q = &l->found.queues[i];
		const struct input *in = &l->in->v[q->input];
		char name[LATENCY_ROW_NAME];

		if (q->others)
			snprintf(name, sizeof(name), "(others)");
		else
			snprintf(name, sizeof(name), "%.64s virtio%lld %s", in->guest ? in->machine : "host",
				 (long long)q->device, q->name);
		answer_row(a, (struct answer_cell[]){ CELL_WORD(name), CELL_N(q->buffers), CELL_N(q->out),
						      CELL_N(q->out_bytes), CELL_N(q->in),
						      CELL_N(q->in_bytes) });
		unknown += q->unknown;
	}
	answer_table_end(a);
	if (unknown)
		answer_note(
			a,
			"bytes of %llu buffers are left out: they have more descriptors than their events "
			"carry",
			(unsigned long long)unknown);
}

static const char *tables_place(const struct latency_answer *l, uint32_t input, uint32_t cpu,
				char out[LATENCY_ROW_NAME])
{
	const struct input *in = &l->in->v[input];

	snprintf(out, LATENCY_ROW_NAME, "%.100s %u", in->guest ? in->machine : "host", cpu);
	return out;
}

static void tables_worst(const struct latency_answer *l, struct answer *a)
{
	static const struct answer_column columns[] = {
		{ "n", "n", ANSWER_COUNT },
		{ "key", "key", ANSWER_WORD },
		COLUMN_TOOK,
		{ "from", "from", ANSWER_TIME },
		{ "to", "to", ANSWER_TIME },
		{ "from_cpu", "on", ANSWER_WORD },
		{ "to_cpu", "to", ANSWER_WORD },
		COLUMN_BOUND,
	};
	const struct latency_worst *w = l->found.worst;
	size_t last = l->q->plan.n_points - 1;
	char key[LATENCY_ROW_NAME], from[LATENCY_ROW_NAME], to[LATENCY_ROW_NAME];

	answer_table(a, "worst", "The longest", columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < l->found.n_worst; i++) {
		const struct chain_event *v = w[i].v;
		uint64_t bound = latency_bound(&v[0], &v[last]);
		answer_row(a, (struct answer_cell[]){
				      CELL_N(i + 1),
				      CELL_WORD(latency_row_name(l, &l->found.rows[w[i].row], key)),
				      CELL_N(w[i].took), CELL_N(v[0].ts), CELL_N(v[last].ts),
				      CELL_WORD(tables_place(l, v[0].input, v[0].cpu, from)),
				      CELL_WORD(tables_place(l, v[last].input, v[last].cpu, to)),
				      CELL_BOUND(bound) });
	}
	answer_table_end(a);
}

/* Leaves the time out of the text form: "after" implies it, and the events need the width. */
static void tables_between(const struct latency_answer *l, struct answer *a)
{
	static const struct answer_column columns[] = {
		{ "n", "n", ANSWER_COUNT },	   { "after_ns", "after", ANSWER_DURATION },
		{ "on", "on", ANSWER_WORD },	   { "task", "task", ANSWER_WORD },
		{ "event", "event", ANSWER_WORD }, { "time", "time", ANSWER_TIME },
	};
	const struct latency_worst *w = l->found.worst;

	answer_table(a, "between", "What happened on these CPUs meanwhile", columns,
		     ARRAY_SIZE(columns) - (a->form == ANSWER_TEXT));
	for (size_t i = 0; i < l->found.n_worst; i++) {
		const struct between *b = &l->between[i];
		char text[64], cpu[LATENCY_ROW_NAME];

		snprintf(text, sizeof(text), "... %llu more ...", (unsigned long long)(b->records - b->n));
		for (size_t k = 0; k < b->n; k++) {
			if (k == BETWEEN_LINES / 2 && b->records > b->n)
				answer_row(a,
					   (struct answer_cell[]){ CELL_N(i + 1), CELL_NONE, CELL_NONE,
								   CELL_NONE, CELL_WORD(text), CELL_NONE });
			answer_row(a, (struct answer_cell[]){
					      CELL_N(i + 1), CELL_N(b->v[k].ts - w[i].v[0].ts),
					      CELL_WORD(tables_place(l, b->v[k].input, b->v[k].cpu, cpu)),
					      CELL_WORD(b->v[k].task), CELL_WORD(b->v[k].what),
					      CELL_N(b->v[k].ts) });
		}
	}
	answer_table_end(a);
}

static void tables_notes(const struct latency_answer *l, struct answer *a, const struct latency_row *const *v,
			 size_t n)
{
	uint64_t undecided = 0, lost = 0, refused = 0;
	const char *what = l->q->found ? "chains" : "pairs";

	for (size_t i = 0; i < n; i++) {
		undecided += v[i]->undecided;
		lost += v[i]->lost;
		refused += v[i]->refused;
	}
	if (l->all.n)
		answer_note(a, "percentiles are within %.1f %% of their value; the rest is exact",
			    HISTOGRAM_ERROR * 100);
	if (l->q->by_default && l->q->key)
		answer_note(a, "paired by %s, which these events have in common; --key none: by machine",
			    l->q->key);
	else if (l->q->by_default)
		answer_note(a, "paired by machine, whatever the task or CPU: these events have no key in "
			       "common by default; specify one: --key KEY");
	if (lost)
		answer_note(a, "%llu %s are left out: %s in between", (unsigned long long)lost, what,
			    l->found.why_lost);
	if (undecided)
		answer_note(a, "%llu %s are undecided: their events are nearer than the clocks' bounds%s",
			    (unsigned long long)undecided, what,
			    l->q->found && l->q->found->doubt ? l->q->found->doubt : "");
	if (refused)
		answer_note(a, "%llu %s were given up: there are more than %u keys",
			    (unsigned long long)refused, what, CHAIN_KEYS_MAX);
	if (l->found.unbounded)
		answer_note(a,
			    "%s has no bounds for its clock (hyptrace sync), so that nothing is certain "
			    "between it and others",
			    l->found.unbounded);
	for (size_t i = 0; i < l->q->plan.n_terms; i++) {
		const struct latency_term *t = &l->q->plan.terms[i];
		const struct latency_count *c = &l->found.counts[i];

		/* events of other tasks than those that a preset's events wake or switch to need no note */
		if (c->keyless && t->look.by != BY_VCPU_TID && t->look.by != BY_WORKER_TID &&
		    t->look.by != BY_WORKER && t->next.by != BY_WORKER_TID && t->next.by != BY_VCPU_TID)
			answer_note(a, "%llu %s are left out: the files do not show their owner",
				    (unsigned long long)c->keyless, t->event);
		if (!l->q->found && !c->seen)
			answer_note(a, "there are no records of %s", t->event);
		else if (!l->q->found && !c->passed)
			answer_note(a, "none of %llu records passes the filter of %s",
				    (unsigned long long)c->seen, t->event);
	}
	if (l->q->found && !n)
		answer_note(a, "none began");
	if (l->q->found && l->q->plan.n_points < l->q->found->n_points)
		answer_note(a, "there is no guest's file: the steps after '%s' are not known",
			    l->q->found->points[l->q->plan.n_points - 1]);
}

int latency_answer_tables(const struct latency_answer *l, struct answer *a)
{
	size_t all = 0, n, points = l->q->plan.n_points;
	const struct latency_row **v = calloc(l->found.n_rows + 1, sizeof(*v));

	if (!v)
		return -ENOMEM;
	for (const struct latency_row *r = l->found.rows; r < l->found.rows + l->found.n_rows; r++)
		if (!l->q->found || !l->q->found->evident ||
		    r->stopped[1] + r->unrecorded[1] != latency_begun(r, points))
			v[all++] = r;
	qsort_r(v, all, sizeof(*v), tables_compare, &points);
	n = a->form == ANSWER_TEXT && all > l->rows ? l->rows : all;
	if (l->q->found) {
		struct answer_column columns[2 + DURATIONS] = { { "key", l->q->found->row, ANSWER_WORD },
								{ "until", "until", ANSWER_WORD } };
		char title[256], key[LATENCY_ROW_NAME];
		static const struct answer_column stops[] = { { "until", "stopped before", ANSWER_WORD },
							      { "count", "count", ANSWER_COUNT },
							      { "not_recorded", "not recorded",
								ANSWER_COUNT } };

		snprintf(title, sizeof(title), "%s: each stage since the one before, from '%s' on",
			 l->q->found->name, l->q->found->points[0]);
		answer_table(a, "latency", title, columns,
			     2 + tables_duration_columns(a, STAGES_NARROW, columns + 2));
		for (size_t i = 0; i < n && v[i]->stages[points - 1].n; i++) {
			latency_row_name(l, v[i], key);
			for (size_t k = 0; points > 2 && k + 1 < points; k++)
				tables_durations(a, STAGES_NARROW, key, l->q->found->points[k + 1],
						 &v[i]->stages[k]);
			tables_durations(a, STAGES_NARROW, key, points > 2 ? "total" : l->q->found->points[1],
					 &v[i]->stages[points - 1]);
		}
		answer_table_end(a);
		tables_chains(l, a, v, n);
		/* Unfinished chains by the point that is missing. */
		answer_table(a, "stopped", NULL, stops, ARRAY_SIZE(stops));
		for (size_t k = 1; k < l->q->plan.n_points; k++) {
			uint64_t stopped = 0, unrecorded = 0;

			for (size_t i = 0; i < all; i++) {
				stopped += v[i]->stopped[k];
				unrecorded += v[i]->unrecorded[k];
			}
			answer_row(a, (struct answer_cell[]){ CELL_WORD(l->q->found->points[k]),
							      CELL_N(stopped), CELL_N(unrecorded) });
		}
		answer_table_end(a);
		tables_queues(l, a);
	} else {
		struct answer_column columns[1 + DURATIONS] = { { "key", l->q->key ? l->q->key : "machine",
								  ANSWER_WORD } };
		char title[256], key[LATENCY_ROW_NAME];
		size_t rows = 0; /* those with pairs come first */

		snprintf(title, sizeof(title), "From %s to %s", l->q->from, l->q->to);
		answer_table(a, "latency", title, columns, 1 + tables_duration_columns(a, 0, columns + 1));
		for (size_t i = 0; i < n && v[i]->stages[1].n; i++, rows++)
			tables_durations(a, 0, latency_row_name(l, v[i], key), NULL, &v[i]->stages[1]);
		if (rows != 1)
			tables_durations(a, 0, "(all)", NULL, &l->all);
		answer_table_end(a);
		tables_unpaired(l, a, v, n);
	}
	if (l->q->plan.worst) {
		tables_worst(l, a);
		tables_between(l, a);
	}
	if (n < all)
		answer_note(a, "%zu rows more: --rows 0", all - n);
	tables_notes(l, a, v, all);
	free(v);
	return 0;
}
