// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace stat: what the files have of each buffer, CPU and event. */
#include <errno.h>
#include <stdlib.h>

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

static struct answer_cell count_time_cell(uint64_t ns, bool known)
{
	return known ? CELL_N(ns) : CELL_NONE;
}

/* ---- buffers ---------------------------------------------------------------------------- */

/* The CPUs of the buffer that begins at v[i], put together; returns how many. */
static size_t count_buffer_sum(const struct counts_cpu *v, size_t i, size_t n, struct counts_cpu *sum)
{
	size_t k = i + 1;

	for (*sum = v[i]; k < n && v[k].input == v[i].input && v[k].buffer == v[i].buffer; k++) {
		sum->events += v[k].events;
		sum->lost += v[k].lost;
		sum->gaps += v[k].gaps;
		sum->first = v[k].first < sum->first ? v[k].first : sum->first;
		sum->last = v[k].last > sum->last ? v[k].last : sum->last;
	}
	return k - i;
}

static void count_buffer_row(struct stat_table *t, const struct counts_cpu *b, size_t n_cpus)
{
	stat_machine(t, b->input);
	stat_cell(t, count_buffer_cell(t->of, b->input, b->buffer));
	stat_cell(t, CELL_WORD(count_buffer(t->of, b->input, b->buffer)->clock));
	stat_cell(t, CELL_N(n_cpus));
	stat_cell(t, CELL_N(b->events));
	stat_cell(t, CELL_N(b->lost));
	stat_cell(t, CELL_N(b->gaps));
	stat_cell(t, count_time_cell(b->first, b->events));
	stat_cell(t, count_time_cell(b->last, b->events));
	stat_row(t);
}

void stat_buffers(struct stat_answer *s)
{
	struct counts_cpu sum;
	struct stat_table t;
	size_t n, some;
	const struct counts_cpu *v = counts_cpus(s->counts, &n);

	stat_begin(&t, s, s->in->n > 1);
	stat_column(&t, "buffer", "buffer", ANSWER_WORD, true);
	stat_column(&t, "clock", "clock", ANSWER_WORD, false);
	stat_column(&t, "cpus", "CPUs", ANSWER_COUNT, true);
	stat_column(&t, "events", "events", ANSWER_COUNT, true);
	stat_column(&t, "lost", "lost", ANSWER_COUNT, true);
	stat_column(&t, "losses_of_unknown_number", NULL, ANSWER_COUNT, false);
	stat_column(&t, "first", "from", ANSWER_TIME, true);
	stat_column(&t, "last", "to", ANSWER_TIME, true);
	if (!stat_open(&t, "buffers", "Buffers (-: the top one)", n, "the files have none"))
		return;
	for (size_t i = 0; i < n; i += some) {
		some = count_buffer_sum(v, i, n, &sum);
		count_buffer_row(&t, &sum, some);
	}
	stat_close(&t);
}

/* ---- lost events ------------------------------------------------------------------------------ */

void stat_lost(struct stat_answer *s)
{
	size_t n, n_lost = 0, unknown = 0;
	const struct counts_cpu *v = counts_cpus(s->counts, &n);
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
	if (!stat_open(&t, "lost", "Lost events", n_lost, "no events were lost"))
		return;
	for (size_t i = 0; i < n; i++) {
		if (!v[i].lost && !v[i].gaps)
			continue;
		stat_machine(&t, v[i].input);
		stat_cell(&t, count_buffer_cell(s, v[i].input, v[i].buffer));
		stat_cell(&t, CELL_N(v[i].cpu));
		stat_cell(&t, CELL_N(v[i].lost));
		stat_cell(&t, CELL_N(v[i].gaps));
		stat_row(&t);
	}
	stat_close(&t);
}

/* ---- events ------------------------------------------------------------------------------------- */

struct event_count {
	size_t input, buffer;
	const struct tep_event *event; /* NULL: no format has its id */
	uint64_t n;
};

static int count_more_first(const void *a, const void *b)
{
	const struct event_count *x = a, *y = b;

	if (x->n != y->n)
		return x->n > y->n ? -1 : 1;
	if (x->input != y->input || x->buffer != y->buffer)
		return x->input != y->input ? (x->input > y->input) - (x->input < y->input)
					    : (x->buffer > y->buffer) - (x->buffer < y->buffer);
	return x->event && y->event ? strcmp(x->event->name, y->event->name)
				    : (x->event == NULL) - (y->event == NULL);
}

/* Those of the buffer that the CPU is of, behind the n that are there. Ids that no format has are one. */
static size_t count_events_of(const struct stat_answer *s, const struct counts_cpu *cpu, size_t index,
			      struct event_count *v, size_t n)
{
	const struct input *in = &s->in->v[cpu->input];
	uint64_t unknown = counts_of(s->counts, index, in->n_known);

	for (unsigned int id = 0; id < in->n_known; id++) {
		const struct known_event *e = input_event(in, id);
		uint64_t count = counts_of(s->counts, index, id);

		if (count && e)
			v[n++] = (struct event_count){ cpu->input, cpu->buffer, e->event, count };
		else
			unknown += count;
	}
	if (unknown)
		v[n++] = (struct event_count){ cpu->input, cpu->buffer, NULL, unknown };
	return n;
}

static bool count_new_buffer(const struct counts_cpu *v, size_t i)
{
	return !i || v[i].input != v[i - 1].input || v[i].buffer != v[i - 1].buffer;
}

/* By how many there are. NULL: no memory. */
static struct event_count *count_events(const struct stat_answer *s, size_t *n, uint64_t *total)
{
	size_t room = 1, n_cpus;
	const struct counts_cpu *cpus = counts_cpus(s->counts, &n_cpus);
	struct event_count *v;

	*n = *total = 0;
	for (size_t i = 0; i < n_cpus; i++)
		room += count_new_buffer(cpus, i) ? s->in->v[cpus[i].input].n_known + 1 : 0;
	v = calloc(room, sizeof(*v));
	if (!v)
		return NULL;
	for (size_t i = 0; i < n_cpus; i++)
		if (count_new_buffer(cpus, i))
			*n = count_events_of(s, &cpus[i], i, v, *n);
	for (size_t i = 0; i < *n; i++)
		*total += v[i].n;
	qsort(v, *n, sizeof(*v), count_more_first);
	return v;
}

void stat_events(struct stat_answer *s)
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
	if (stat_open(&t, "events", "Events", n, "the files have none")) {
		for (size_t i = 0; i < n; i++) {
			stat_machine(&t, v[i].input);
			stat_cell(&t, count_buffer_cell(s, v[i].input, v[i].buffer));
			stat_cell(&t, CELL_WORD(v[i].event ? v[i].event->system : NULL));
			stat_cell(&t, CELL_WORD(v[i].event ? v[i].event->name : NULL));
			stat_cell(&t, CELL_N(v[i].n));
			stat_cell(&t, CELL_SHARE((double)v[i].n / (double)total));
			stat_row(&t);
		}
		stat_close(&t);
	}
	free(v);
}
