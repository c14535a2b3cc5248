// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace stat: counts of each buffer, CPU and event. */
#include "stat-priv.h"

static const struct reader_buffer *count_buffer(const struct stat_answer *s, size_t input, size_t buffer)
{
	return &reader_info(s->in->v[input].reader)->buffers[buffer];
}

/* The top buffer has no name. */
static struct answer_cell count_buffer_cell(const struct stat_answer *s, size_t input, size_t buffer)
{
	const char *name = count_buffer(s, input, buffer)->name;

	return *name ? CELL_WORD(name) : CELL_NONE;
}

static bool count_new_buffer(const struct counts_cpu *v, size_t i)
{
	return !i || v[i].input != v[i - 1].input || v[i].buffer != v[i - 1].buffer;
}

/* Unknown where the file says only that some are missing. */
static struct answer_cell count_lost_cell(const struct counts_cpu *c)
{
	return c->lost || !c->gaps ? CELL_N(c->lost) : CELL_NONE;
}

void stat_buffers(struct stat_answer *s, const char *key)
{
	struct stat_table t;
	size_t n = s->counts.n_cpus, some, unknown = 0;
	const struct counts_cpu *v = s->counts.cpus;

	for (size_t i = 0; i < n; i++)
		unknown += v[i].gaps;
	stat_begin(&t, s, s->in->n > 1);
	stat_column(&t, "buffer", "buffer", ANSWER_WORD, true);
	stat_column(&t, "clock", "clock", ANSWER_WORD, false);
	stat_column(&t, "cpus", "CPUs", ANSWER_COUNT, true);
	stat_column(&t, "events", "events", ANSWER_COUNT, true);
	stat_column(&t, "lost", "lost", ANSWER_COUNT, true);
	stat_column(&t, "losses_of_unknown_number", "and some, times", ANSWER_COUNT, unknown);
	stat_column(&t, "first", "from", ANSWER_TIME, true);
	stat_column(&t, "last", "to", ANSWER_TIME, true);
	if (!stat_open(&t, key, "Buffers (-: the main buffer)", n, "the files have none"))
		return;
	for (size_t i = 0; i < n; i += some) {
		struct counts_cpu b = v[i];

		for (some = 1; i + some < n && !count_new_buffer(v, i + some); some++)
			counts_add_cpu(&b, &v[i + some]);
		stat_row(&t, b.input,
			 (struct answer_cell[]){ count_buffer_cell(s, b.input, b.buffer),
						 CELL_WORD(count_buffer(s, b.input, b.buffer)->clock),
						 CELL_N(some), CELL_N(b.events), count_lost_cell(&b),
						 CELL_N(b.gaps), b.events ? CELL_N(b.first) : CELL_NONE,
						 b.events ? CELL_N(b.last) : CELL_NONE });
	}
	stat_close(&t);
}

void stat_lost(struct stat_answer *s, const char *key)
{
	size_t n = s->counts.n_cpus, n_lost = 0, unknown = 0;
	const struct counts_cpu *v = s->counts.cpus;
	struct stat_table t;

	for (size_t i = 0; i < n; i++) {
		n_lost += v[i].lost || v[i].gaps;
		unknown += v[i].gaps;
	}
	stat_begin(&t, s, s->in->n > 1);
	stat_column(&t, "buffer", "buffer", ANSWER_WORD, true);
	stat_column(&t, "cpu", "CPU", ANSWER_COUNT, true);
	stat_column(&t, "lost", "lost", ANSWER_COUNT, true);
	stat_column(&t, "losses_of_unknown_number", "and some, times", ANSWER_COUNT, unknown);
	if (!stat_open(&t, key, "Lost events", n_lost, "no events were lost"))
		return;
	for (size_t i = 0; i < n; i++) {
		if (!v[i].lost && !v[i].gaps)
			continue;
		stat_row(&t, v[i].input,
			 (struct answer_cell[]){ count_buffer_cell(s, v[i].input, v[i].buffer),
						 CELL_N(v[i].cpu), count_lost_cell(&v[i]),
						 CELL_N(v[i].gaps) });
	}
	stat_close(&t);
}

struct event_count {
	size_t input, buffer;
	const struct tep_event *event; /* NULL: no format has its id */
	uint64_t n;
};

static int count_more_first(const void *a, const void *b)
{
	const struct event_count *x = a, *y = b;

	return ORDER(y->n, x->n) ?: ORDER(x->input, y->input) ?: ORDER(x->buffer, y->buffer)
		       ?: x->event && y->event ? strcmp(x->event->name, y->event->name)
					       : ORDER(!x->event, !y->event);
}

/* By how many there are; ids without a format are one event. NULL: no memory. */
static struct event_count *count_events(const struct stat_answer *s, size_t *n, uint64_t *total)
{
	size_t room = 1, n_cpus = s->counts.n_cpus;
	const struct counts_cpu *cpus = s->counts.cpus;
	struct event_count *v;

	*n = *total = 0;
	for (size_t i = 0; i < n_cpus; i++)
		room += count_new_buffer(cpus, i) ? s->in->v[cpus[i].input].n_known + 1 : 0;
	v = calloc(room, sizeof(*v));
	if (!v)
		return NULL;
	for (size_t i = 0; i < n_cpus; i++) {
		const struct counts_cpu *cpu = &cpus[i];
		const struct input *in = &s->in->v[cpu->input];
		uint64_t unknown = counts_of(&s->counts, i, in->n_known, 0);

		if (!count_new_buffer(cpus, i))
			continue;
		for (unsigned int id = 0; id < in->n_known; id++) {
			const struct known_event *e = input_event(in, id);
			uint64_t count = counts_of(&s->counts, i, id, 0);

			if (count && e)
				v[(*n)++] = (struct event_count){ cpu->input, cpu->buffer, e->event, count };
			else
				unknown += count;
		}
		if (unknown)
			v[(*n)++] = (struct event_count){ cpu->input, cpu->buffer, NULL, unknown };
	}
	for (size_t i = 0; i < *n; i++)
		*total += v[i].n;
	qsort(v, *n, sizeof(*v), count_more_first);
	return v;
}

void stat_events(struct stat_answer *s, const char *key)
{
	struct stat_table t;
	uint64_t total;
	size_t n;
	struct event_count *v = count_events(s, &n, &total);

	if (!v) {
		s->ret = -ENOMEM;
		return;
	}
	stat_begin(&t, s, s->in->n > 1);
	stat_column(&t, "buffer", "buffer", ANSWER_WORD, true);
	stat_column(&t, "system", "system", ANSWER_WORD, true);
	stat_column(&t, "event", "event", ANSWER_WORD, true);
	stat_column(&t, "events", "events", ANSWER_COUNT, true);
	stat_column(&t, "share", "share", ANSWER_SHARE, true);
	if (stat_open(&t, key, "Events", n, "the files have none")) {
		for (size_t i = 0; i < n; i++) {
			stat_row(&t, v[i].input,
				 (struct answer_cell[]){ count_buffer_cell(s, v[i].input, v[i].buffer),
							 CELL_WORD(v[i].event ? v[i].event->system : NULL),
							 CELL_WORD(v[i].event ? v[i].event->name : NULL),
							 CELL_N(v[i].n),
							 CELL_SHARE((double)v[i].n / (double)total) });
		}
		stat_close(&t);
	}
	free(v);
}
