// SPDX-License-Identifier: LGPL-2.1-or-later
/* Writes a chain of causes as tables, with the events that prove it as text. */
#include "ask/path/path.h"

#include "ask/states/histogram.h"
#include "read/print.h"

#define LABEL STEPS_TASK_MAX

/* ---- events as text -------------------------------------------------------------------------- */

int path_texts_add(struct path_texts *x, uint64_t nr)
{
	const struct path_text text = { .nr = nr };

	return array_push(&x->v, &x->n, &text, sizeof(text));
}

int path_texts_want(struct path_texts *x, const struct path_moment *m, const struct path *p)
{
	int ret = path_texts_add(x, m->nr);

	for (size_t i = 0; i <= p->n && !ret; i++) {
		const struct path_row *row = i < p->n ? &p->v[i].event : &p->event;

		if (row->kind != STEP_NONE && row->kind != STEP_LOST)
			ret = path_texts_add(x, row->nr);
	}
	return ret;
}

const struct path_text *path_texts_find(const struct path_texts *x, uint64_t nr)
{
	size_t i = array_lower_bound(x->v, x->n, sizeof(*x->v), u64_below, &nr);

	return i < x->n && x->v[i].nr == nr ? &x->v[i] : NULL;
}

static int path_text_fill(struct path_text *p, struct print *print, const struct timeline *t,
			  const struct merge_record *m)
{
	struct buf ready = { 0 }, text = { 0 };
	struct print_record rec = { 0 };
	int ret = m->data ? print_begin(print, t, m, &rec, &ready) : 0;

	if (!ret && m->data) {
		print_fields(print, &rec, &ready, 0, &text);
		p->name = strdup(rec.event ? rec.event->event->name : "");
		p->text = strdup(buf_str(&text) ? buf_str(&text) : "");
		ret = p->name && p->text ? 0 : -ENOMEM;
	}
	buf_release(&text);
	buf_release(&ready);
	return ret;
}

int path_texts(const struct inputs *in, struct timeline *t, struct path_texts *texts)
{
	struct merge_run run = { 0 };
	struct print *print = NULL;
	size_t n = 0, done = 0;
	int ret = print_open(&print, in, false);

	array_sort(texts->v, texts->n, sizeof(*texts->v), compare_u64); /* nr is the first member */
	for (size_t i = 0; i < texts->n; i++)
		if (!i || texts->v[i].nr != texts->v[n - 1].nr)
			texts->v[n++].nr = texts->v[i].nr;
	texts->n = n;
	merge_tell_pauses(t->merge);
	for (uint64_t nr = 0; !ret && done < n && (ret = merge_take(t->merge, &run)) == 1; nr += run.n)
		for (ret = 0; !ret && done < n && texts->v[done].nr - nr < run.n; done++)
			ret = path_text_fill(&texts->v[done], print, t, &run.v[texts->v[done].nr - nr]);
	merge_run_release(&run);
	print_close(print);
	return ret < 0 ? ret : 0;
}

void path_texts_release(struct path_texts *x)
{
	for (size_t i = 0; i < x->n; i++) {
		free(x->v[i].name);
		free(x->v[i].text);
	}
	free(x->v);
	*x = (struct path_texts){ 0 };
}

/* ---- tables ------------------------------------------------------------------------------------- */

static const char *path_task_label(const struct path_answer *a, size_t input, int32_t pid, char out[LABEL])
{
	return pid ? steps_task(a->steps, a->in, input, pid, a->moment->ts, out) : "<idle>";
}

/* Task that had the CPU, waker, or subject of the cause; NULL: nothing. */
static const char *path_cause_by(const struct path_answer *a, const struct path_cause *h, char out[LABEL])
{
	enum step_kind kind = h->event.kind == STEP_HYP_ENTER ? STEP_HYP_ENTER : STEP_KVM_EXIT;
	uint64_t number = kind == STEP_HYP_ENTER ? h->event.a : h->number;
	char ns[16];

	switch (h->state) {
	case PATH_HANDLES:
		return steps_class(kind, number, h->event.b)
			       ?: steps_reason(a->steps, h->input, kind, number);
	case PATH_PENDING:
	case PATH_SOFTIRQ_PENDING:
		snprintf(out, LABEL, "%s %llu", h->state == PATH_PENDING ? "irq" : "softirq",
			 (unsigned long long)h->number);
		return out;
	case PATH_RUNS:
		if (h->exits == STEP_UNKNOWN || !h->outside)
			return NULL;
		snprintf(out, LABEL, "out %s", duration_text(h->outside, ns));
		return out;
	default:
		return h->by == PATH_NOBODY ? NULL : path_task_label(a, h->input, h->by, out);
	}
}

static void path_print_causes(const struct path_answer *a, struct answer *out, const char *title)
{
	static const struct answer_column columns[] = {
		{ "hop", "hop", ANSWER_COUNT },
		COLUMN_TOOK,
		COLUMN_BOUND,
		{ "machine", "machine", ANSWER_WORD },
		{ "cpu", "cpu", ANSWER_COUNT },
		{ "task", "task", ANSWER_WORD },
		{ "state", "state", ANSWER_WORD },
		{ "by", "by", ANSWER_WORD },
		/* for programs: text has the events' times */
		{ "from", "from", ANSWER_TIME },
		{ "to", "to", ANSWER_TIME },
		{ "exits", "exits", ANSWER_COUNT },
		{ "outside_ns", "outside", ANSWER_DURATION },
		{ "pid", "pid", ANSWER_SIGNED },
	};
	bool words = out->form == ANSWER_TEXT;

	answer_table(out, "path", title, columns, ARRAY_SIZE(columns) - (words ? 5 : 0));
	for (size_t i = 0; i < a->path->n; i++) {
		const struct path_cause *h = &a->path->v[i];
		bool told = h->exits != STEP_UNKNOWN;
		char task[LABEL], by[LABEL];
		const struct answer_cell cells[] = {
			CELL_N(i + 1),
			CELL_N(h->to - h->from),
			h->bound && h->bound != UINT64_MAX ? CELL_N(h->bound) : CELL_NONE,
			CELL_WORD(a->in->v[h->input].machine),
			CELL_N(h->cpu),
			CELL_WORD(path_task_label(a, h->input, h->pid, task)),
			CELL_WORD(path_state_name(h->state)),
			CELL_WORD(words || h->state != PATH_RUNS ? path_cause_by(a, h, by) : NULL),
			CELL_N(h->from),
			CELL_N(h->to),
			told ? CELL_N(h->exits) : CELL_NONE,
			told ? CELL_N(h->outside) : CELL_NONE,
			CELL_N((uint64_t)h->pid)
		};

		answer_row(out, cells);
	}
	answer_table_end(out);
}

static void path_print_event(const struct path_answer *a, struct answer *out, size_t hop,
			     const struct path_row *row)
{
	const struct path_text *t = path_texts_find(a->texts, row->nr);
	char lost[LABEL] = "some";
	const struct answer_cell cells[] = {
		CELL_N(hop),
		CELL_WORD(a->in->v[row->input].machine),
		CELL_N(row->cpu),
		CELL_N(row->ts),
		CELL_WORD(row->kind == STEP_LOST && !row->a ? "not recorded"
			  : row->kind == STEP_LOST	    ? "lost events"
			  : t && t->name		    ? t->name
							    : ""),
		CELL_WORD(row->kind == STEP_LOST ? row->a ? lost : ""
			  : t && t->text	 ? t->text
						 : ""),
	};

	if (row->kind == STEP_NONE)
		return;
	if (row->kind == STEP_LOST && row->a != STEP_UNKNOWN)
		snprintf(lost, sizeof(lost), "%llu", (unsigned long long)row->a);
	answer_row(out, cells);
}

void path_answer_write(const struct path_answer *a, enum answer_form form, struct buf *out)
{
	static const struct answer_column columns[] = {
		{ "hop", "hop", ANSWER_COUNT },	   { "machine", "machine", ANSWER_WORD },
		{ "cpu", "cpu", ANSWER_COUNT },	   { "time", "time", ANSWER_TIME },
		{ "event", "event", ANSWER_WORD }, { "text", "text", ANSWER_WORD },
	};
	static const struct answer_column ends[] = {
		{ "end", "end", ANSWER_WORD },
		{ "why", "why", ANSWER_WORD },
		{ "hops", "hops", ANSWER_COUNT },
		COLUMN_TOOK,
	};
	const struct path_moment *m = a->moment;
	const struct path *p = a->path;
	uint64_t span = p->n ? p->v[0].to - p->v[p->n - 1].from : 0;
	const struct answer_cell end[] = { CELL_WORD(path_end_name(p->end)), CELL_WORD(p->why), CELL_N(p->n),
					   CELL_N(span) };
	char title[256], task[LABEL], at[32];
	struct answer answer;

	answer_begin(&answer, form, out);
	answer.ticks = inputs_in_ticks(a->in);
	snprintf(title, sizeof(title), "%s of %s on CPU %u at %s: why then",
		 path_task_label(a, m->input, m->pid, task), a->in->v[m->input].machine, m->cpu,
		 answer_time(&answer, m->ts, at));
	path_print_causes(a, &answer, title);
	answer_table(&answer, "events", "each hop began with", columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < p->n; i++)
		path_print_event(a, &answer, i + 1, &p->v[i].event);
	if (!p->n || p->event.nr != p->v[p->n - 1].event.nr)
		path_print_event(a, &answer, p->n + 1, &p->event);
	answer_table_end(&answer);
	if (form == ANSWER_TEXT) {
		buf_addstr(out, "\n");
		answer_note(&answer, "%s after %s: %s", path_end_name(p->end),
			    answer_duration(&answer, span, at), p->why);
	} else {
		answer_table(&answer, "end", NULL, ends, ARRAY_SIZE(ends));
		answer_row(&answer, end);
		answer_table_end(&answer);
	}
	if (p->vcpu_unknown)
		answer_note(&answer, "it is not known whether vCPUs ran: that needs the host's sched events, "
				     "and a bound of the guest's clock");
	answer_end(&answer);
}
