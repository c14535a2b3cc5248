// SPDX-License-Identifier: LGPL-2.1-or-later
/* Counts records by buffer and event: each thread has its own numbers, which are added up at the end. */
#include "ask/states/reading.h"

int counts_open(struct counts *c, const struct inputs *in, const struct timeline *t, size_t slices,
		uint64_t from, uint64_t width)
{
	size_t n = 0, ids = 0;

	*c = (struct counts){
		.n_cpus = merge_streams(t->merge), .slices = slices, .from = from, .width = width
	};
	c->cpus = calloc(c->n_cpus + 1, sizeof(*c->cpus));
	c->at = calloc(c->n_cpus + 1, sizeof(*c->at));
	c->workers = calloc(pipeline_workers(), sizeof(*c->workers));
	if (!c->cpus || !c->at || !c->workers)
		goto fail;
	for (size_t i = 0; i < c->n_cpus; i++) {
		const struct merge_stream *s = merge_stream_at(t->merge, i);
		const struct counts_cpu *before = i ? &c->cpus[i - 1] : NULL;

		/* streams of a buffer stand next to each other */
		if (!before || before->input != s->input || before->buffer != s->buffer) {
			n += ids;
			ids = in->v[s->input].n_known + 1; /* one more: ids without a format */
		}
		c->at[i] = (struct counts_events){ n, ids - 1 };
		c->cpus[i] = (struct counts_cpu){
			.input = s->input, .buffer = s->buffer, .cpu = s->cpu, .first = UINT64_MAX
		};
	}
	while (c->n_workers < pipeline_workers()) {
		struct counts_worker *w = &c->workers[c->n_workers++];

		w->events = calloc(n + ids + 1, slices * sizeof(*w->events));
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

	for (const struct merge_record *m = run->records->v, *end = m + run->records->n; m < end; m++) {
		struct counts_cpu *cpu = &w->cpus[m->stream];
		const struct counts_events *of = &c->at[m->stream];
		size_t id = m->len < 2 ? of->ids : timeline_id(m);

		if (m->missed) {
			cpu->lost += m->missed > 0 ? (uint64_t)m->missed : 0;
			cpu->gaps += m->missed < 0;
		}
		if (!m->data)
			continue;
		id = of->from + (id < of->ids ? id : of->ids);
		w->events[c->slices > 1 ? id * c->slices + counts_slice(c, m->ts) : id]++;
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

	for (size_t w = 1; w < c->n_workers; w++)
		for (size_t i = 0; i < c->n_cpus; i++)
			counts_add_cpu(&all->cpus[i], &c->workers[w].cpus[i]);
	memcpy(c->cpus, all->cpus, c->n_cpus * sizeof(*c->cpus));
}

uint64_t counts_of(const struct counts *c, size_t cpu, size_t id, size_t slice)
{
	uint64_t n = 0;

	for (size_t w = 0; w < c->n_workers; w++)
		n += c->workers[w].events[(c->at[cpu].from + id) * c->slices + slice];
	return n;
}
