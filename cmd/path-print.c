// SPDX-License-Identifier: GPL-2.0-only
/* How hyptrace path tells a chain of causes: its hops, the events that prove them, and its end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "decode/esr.h"
#include "path-print.h"
#include "util/array.h"

#define LABEL 64

/* ---- texts ------------------------------------------------------------------------------------ */

static int path_text_order(const void *a, const void *b)
{
	return compare_u64(&((const struct path_text *)a)->nr, &((const struct path_text *)b)->nr);
}

static bool path_text_wanted(const struct path_row *row)
{
	return row->kind != STEP_NONE && row->kind != STEP_LOST;
}

struct path_text *path_texts_of(const struct path *p, const struct path_moment *m, size_t *n)
{
	struct path_text *v = calloc(p->n + 2, sizeof(*v));
	size_t k = 0, kept = 0;

	if (!v)
		return NULL;
	v[k++].nr = m->nr;
	for (size_t i = 0; i < p->n; i++)
		if (path_text_wanted(&p->v[i].event))
			v[k++].nr = p->v[i].event.nr;
	if (path_text_wanted(&p->event))
		v[k++].nr = p->event.nr;
	qsort(v, k, sizeof(*v), path_text_order);
	for (size_t i = 0; i < k; i++)
		if (!i || v[i].nr != v[kept - 1].nr)
			v[kept++].nr = v[i].nr;
	*n = kept;
	return v;
}

static bool path_text_before(const void *entry, const void *nr)
{
	return ((const struct path_text *)entry)->nr < *(const uint64_t *)nr;
}

static const struct path_text *path_text_of(const struct path_answer *a, uint64_t nr)
{
	size_t i = array_lower_bound(a->texts, a->n_texts, sizeof(*a->texts), path_text_before, &nr);

	return i < a->n_texts && a->texts[i].nr == nr ? &a->texts[i] : NULL;
}

/* ---- words ------------------------------------------------------------------------------------- */

/* What the file's table does not have, a sched event of the chain may say. */
static const char *path_learned_comm(const struct path_answer *a, size_t input, int32_t pid)
{
	for (size_t i = 0; i < a->path->n; i++) {
		const struct path_hop *h = &a->path->v[i];
		const struct path_text *t = path_text_of(a, h->event.nr);

		for (int k = 0; t && h->event.input == input && k < 2; k++)
			if (t->pids[k] == pid && *t->comms[k])
				return t->comms[k];
	}
	return "<...>";
}

static const char *path_task_label(const struct path_answer *a, size_t input, int32_t pid, char out[LABEL])
{
	const char *comm = tep_data_comm_from_pid(a->in->v[input].tep, pid);

	if (!comm || !strcmp(comm, "<...>"))
		comm = path_learned_comm(a, input, pid);
	if (pid)
		snprintf(out, LABEL, "%s-%d", comm, pid);
	else
		snprintf(out, LABEL, "<idle>");
	return out;
}

static const char *path_exit_label(const struct path_answer *a, const struct path_hop *h)
{
	bool hyp = h->event.kind == STEP_HYP_ENTER;
	const char *word = steps_reason(a->steps, h->input, hyp ? STEP_HYP_ENTER : STEP_KVM_EXIT,
					hyp ? h->event.a : h->number);
	bool arm = !hyp && h->event.b != STEP_UNKNOWN && h->number == KVM_EXIT_ARM_TRAP;
	const char *class = arm ? esr_ec_name((unsigned int)h->event.b & 0x3f) : NULL;

	return class ? class : word;
}

/* Who had the CPU, who woke it, what it is about; NULL: nothing. */
static const char *path_hop_by(const struct path_answer *a, const struct path_hop *h, char out[LABEL])
{
	char ns[16];

	switch (h->state) {
	case PATH_HANDLES:
		return path_exit_label(a, h);
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

/* ---- tables -------------------------------------------------------------------------------------- */

static struct answer_cell path_bound_cell(uint64_t bound)
{
	return bound && bound != UINT64_MAX ? CELL_N(bound) : CELL_NONE;
}

static void path_print_hops(const struct path_answer *a, struct answer *out, const char *title)
{
	static const struct answer_column columns[] = {
		{ "hop", "hop", ANSWER_COUNT },
		{ "duration_ns", "took", ANSWER_DURATION },
		{ "bound_ns", "bound", ANSWER_DURATION },
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
	};
	bool words = out->form == ANSWER_TEXT;
	size_t n = ARRAY_SIZE(columns) - (words ? 4 : 0);

	answer_table(out, "path", title, columns, n);
	for (size_t i = 0; i < a->path->n; i++) {
		const struct path_hop *h = &a->path->v[i];
		bool told = h->exits != STEP_UNKNOWN;
		char task[LABEL], by[LABEL];
		const struct answer_cell cells[] = {
			CELL_N(i + 1),
			CELL_N(h->to - h->from),
			path_bound_cell(h->bound),
			CELL_WORD(a->in->v[h->input].machine),
			CELL_N(h->cpu),
			CELL_WORD(path_task_label(a, h->input, h->pid, task)),
			CELL_WORD(path_state_name(h->state)),
			CELL_WORD(words || h->state != PATH_RUNS ? path_hop_by(a, h, by) : NULL),
			CELL_N(h->from),
			CELL_N(h->to),
			told ? CELL_N(h->exits) : CELL_NONE,
			told ? CELL_N(h->outside) : CELL_NONE
		};

		answer_row(out, cells);
	}
	answer_table_end(out);
}

static void path_print_event(const struct path_answer *a, struct answer *out, size_t hop,
			     const struct path_row *row)
{
	const struct path_text *t = path_text_of(a, row->nr);
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
		CELL_WORD(row->kind == STEP_LOST ? lost
			  : t && t->text	 ? t->text
						 : ""),
	};

	if (row->kind == STEP_NONE)
		return;
	if (row->kind == STEP_LOST && row->a != STEP_UNKNOWN)
		snprintf(lost, sizeof(lost), "%llu", (unsigned long long)row->a);
	answer_row(out, cells);
}

static void path_print_events(const struct path_answer *a, struct answer *out)
{
	static const struct answer_column columns[] = {
		{ "hop", "hop", ANSWER_COUNT },	   { "machine", "machine", ANSWER_WORD },
		{ "cpu", "cpu", ANSWER_COUNT },	   { "time", "time", ANSWER_TIME },
		{ "event", "event", ANSWER_WORD }, { "text", "text", ANSWER_WORD },
	};
	const struct path *p = a->path;

	answer_table(out, "events", "each hop began with", columns, ARRAY_SIZE(columns));
	for (size_t i = 0; i < p->n; i++)
		path_print_event(a, out, i + 1, &p->v[i].event);
	if (!p->n || p->event.nr != p->v[p->n - 1].event.nr)
		path_print_event(a, out, p->n + 1, &p->event);
	answer_table_end(out);
}

static void path_print_end(const struct path_answer *a, struct answer *out)
{
	static const struct answer_column columns[] = {
		{ "end", "end", ANSWER_WORD },
		{ "why", "why", ANSWER_WORD },
		{ "hops", "hops", ANSWER_COUNT },
		{ "duration_ns", "took", ANSWER_DURATION },
	};
	const struct path *p = a->path;
	uint64_t span = p->n ? p->v[0].to - p->v[p->n - 1].from : 0;
	const struct answer_cell cells[] = { CELL_WORD(path_end_name(p->end)), CELL_WORD(p->why),
					     CELL_N(p->n), CELL_N(span) };
	char text[16];

	if (out->form == ANSWER_TEXT) {
		buf_addstr(out->out, "\n");
		answer_note(out, "%s after %s: %s", path_end_name(p->end), duration_text(span, text), p->why);
		return;
	}
	answer_table(out, "end", NULL, columns, ARRAY_SIZE(columns));
	answer_row(out, cells);
	answer_table_end(out);
}

void path_print(const struct path_answer *a, enum answer_form form, struct buf *out)
{
	const struct path_moment *m = a->moment;
	struct answer answer;
	char title[256], task[LABEL];

	snprintf(title, sizeof(title), "%s of %s on CPU %u at %llu.%09llu: why then",
		 path_task_label(a, m->input, m->pid, task), a->in->v[m->input].machine, m->cpu,
		 (unsigned long long)(m->ts / 1000000000), (unsigned long long)(m->ts % 1000000000));
	answer_begin(&answer, form, out);
	path_print_hops(a, &answer, title);
	path_print_events(a, &answer);
	path_print_end(a, &answer);
	if (a->path->blind)
		answer_note(&answer,
			    "whether vCPUs ran is not told: that needs the host's sched events, and a "
			    "bound of the guest's clock");
	answer_end(&answer);
}
