// SPDX-License-Identifier: LGPL-2.1-or-later
/* Counts records by buffer and event: each thread has its own numbers, which are added up at the end. */
#include "ask/states/counts.h"

size_t counts_lay_out(const struct inputs *in, const struct timeline *t, size_t more, size_t *at)
{
	const struct merge_stream *before = NULL;
	size_t n = 0, width = 0;

	/* streams of a buffer stand next to each other */
	for (size_t i = 0; i < merge_streams(t->merge); i++) {
		const struct merge_stream *s = merge_stream_at(t->merge, i);

		if (!before || before->input != s->input || before->buffer != s->buffer) {
			n += width;
			width = in->v[s->input].n_known + more;
		}
		at[i] = n;
		before = s;
	}
	return n + width;
}

int counts_open(struct counts *c, const struct inputs *in, const struct timeline *t)
{
	*c = (struct counts){ .in = in, .n_cpus = merge_streams(t->merge) };
	c->cpus = calloc(c->n_cpus + 1, sizeof(*c->cpus));
	c->at = calloc(c->n_cpus + 1, sizeof(*c->at));
	c->workers = calloc(pipeline_workers(), sizeof(*c->workers));
	if (!c->cpus || !c->at || !c->workers)
		goto fail;
	c->n_cells = counts_lay_out(in, t, 1, c->at); /* one more: ids without a format */
	for (size_t i = 0; i < c->n_cpus; i++) {
		const struct merge_stream *s = merge_stream_at(t->merge, i);

		c->cpus[i] = (struct counts_cpu){
			.input = s->input, .buffer = s->buffer, .cpu = s->cpu, .first = UINT64_MAX
		};
	}
	while (c->n_workers < pipeline_workers()) {
		struct counts_worker *w = &c->workers[c->n_workers++];

		w->events = calloc(c->n_cells + 1, sizeof(*w->events));
		w->cpus = malloc((c->n_cpus + 1) * sizeof(*w->cpus));
		if (!w->events || !w->cpus)
			goto fail;
		memcpy(w->cpus, c->cpus, c->n_cpus * sizeof(*w->cpus));
	}
	return 0;
fail:
	counts_release(c);
	return -ENOMEM;
}

void counts_release(struct counts *c)
{
	for (size_t i = 0; i < c->n_workers; i++) {
		free(c->workers[i].events);
		free(c->workers[i].cpus);
	}
	free(c->workers);
	free(c->cpus);
	free(c->at);
	*c = (struct counts){ 0 };
}

static int counts_work(void *ctx, struct pass_run *run)
{
	const struct counts *c = ctx;
	const struct counts_worker *w = &c->workers[run->worker];

	for (size_t i = 0; i < run->records->n; i++) {
		const struct merge_record *m = &run->records->v[i];
		struct counts_cpu *cpu = &w->cpus[m->stream];
		size_t n_known = c->in->v[cpu->input].n_known;
		unsigned int id = timeline_id(m);

		cpu->lost += m->missed > 0 ? (uint64_t)m->missed : 0;
		cpu->gaps += m->missed < 0;
		if (!m->data)
			continue;
		w->events[c->at[m->stream] + (m->len < 2 || id > n_known ? n_known : id)]++;
		cpu->events++;
		cpu->first = m->ts < cpu->first ? m->ts : cpu->first;
		cpu->last = m->ts > cpu->last ? m->ts : cpu->last;
	}
	return 0;
}

struct pass_part counts_part(struct counts *c)
{
	return (struct pass_part){ .ctx = c, .work = counts_work };
}

void counts_add_cpu(struct counts_cpu *to, const struct counts_cpu *from)
{
	to->events += from->events;
	to->lost += from->lost;
	to->gaps += from->gaps;
	to->first = from->first < to->first ? from->first : to->first;
	to->last = from->last > to->last ? from->last : to->last;
}

void counts_finish(struct counts *c)
{
	struct counts_worker *all = &c->workers[0];

	for (size_t w = 1; w < c->n_workers; w++) {
		const struct counts_worker *from = &c->workers[w];

		for (size_t i = 0; i < c->n_cells; i++)
			if (from->events[i])
				all->events[i] += from->events[i];
		for (size_t i = 0; i < c->n_cpus; i++)
			counts_add_cpu(&all->cpus[i], &from->cpus[i]);
	}
	memcpy(c->cpus, all->cpus, c->n_cpus * sizeof(*c->cpus));
}

uint64_t counts_of(const struct counts *c, size_t cpu, size_t id)
{
	return c->workers[0].events[c->at[cpu] + id];
}
