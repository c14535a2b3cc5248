// SPDX-License-Identifier: LGPL-2.1-or-later
/* A guest's evidence: when its events happened, CPU by CPU. And the solver's input from it and a host's. */
#include "sync/evidence.h"

#include <errno.h>
#include <stdlib.h>

#include "util/array.h"

struct guest_walk {
	const struct page_layout *layout;
	struct sync_cpu *cpu;
};

/* What was lost does not matter: no conclusion is drawn from an event that is missing. */
static int take_guest_page(void *to, unsigned int number, const void *data, size_t len)
{
	struct guest_walk *walk = to;
	struct page_reader r;
	struct page_event ev;

	walk->cpu->cpu = number;
	if (page_reader_init(&r, walk->layout, data, len))
		return 0;
	while (page_next(&r, &ev) == 1)
		if (array_push(&walk->cpu->times, &walk->cpu->n, &ev.ts, sizeof(ev.ts)))
			return -ENOMEM;
	return 0;
}

static void finish_cpu(struct sync_guest *g, struct sync_cpu *c)
{
	if (!c->n)
		return;
	array_sort(c->times, c->n, sizeof(*c->times), compare_u64);
	if (!g->last || c->times[0] < g->first)
		g->first = c->times[0];
	if (c->times[c->n - 1] > g->last)
		g->last = c->times[c->n - 1];
}

int sync_guest_read(struct sync_guest *g, const struct sync_source *s)
{
	const struct sync_buffer *b = s->buffers;

	*g = (struct sync_guest){ .steady = s->steady };
	if (!s->n_buffers || !b->n_cpus)
		return 0;
	g->cpus = calloc(b->n_cpus, sizeof(*g->cpus));
	if (!g->cpus)
		return -ENOMEM;
	g->n_cpus = b->n_cpus;
	for (unsigned int i = 0; i < b->n_cpus; i++) {
		struct guest_walk walk = { &b->layout, &g->cpus[i] };
		int ret;

		g->cpus[i].cpu = i;
		ret = s->walk(s, 0, i, take_guest_page, &walk);
		if (ret) {
			sync_guest_release(g);
			return ret;
		}
		finish_cpu(g, &g->cpus[i]);
	}
	return 0;
}

void sync_guest_release(struct sync_guest *g)
{
	for (size_t i = 0; i < g->n_cpus; i++)
		free(g->cpus[i].times);
	free(g->cpus);
	*g = (struct sync_guest){ 0 };
}

/* ---- input of the solver */

int sync_input_make(struct sync_input *in, const struct sync_evidence *e, int32_t **pids)
{
	const struct sync_host *h = e->host;
	const struct sync_guest *g = e->guest;

	*pids = calloc(g->n_cpus + 1, sizeof(**pids));
	if (!*pids)
		return -ENOMEM;
	for (size_t i = 0; i < g->n_cpus; i++)
		for (size_t k = 0; k < e->n_vcpus && !(*pids)[i]; k++)
			if (e->vcpus[k].cpu == g->cpus[i].cpu)
				(*pids)[i] = (int32_t)e->vcpus[k].pid;
	*in = (struct sync_input){ .cpus = g->cpus,
				   .n_cpus = g->n_cpus,
				   .windows = h->windows.v,
				   .n_windows = h->windows.n,
				   .begin = h->begin,
				   .end = h->end,
				   .pids = *pids,
				   .steady = h->steady && g->steady };
	return 0;
}

int sync_solve_evidence(const struct sync_evidence *e, const struct sync_prior *prior,
			struct sync_result *out, const struct log *log)
{
	struct sync_input in;
	int32_t *pids;
	int ret;

	*out = (struct sync_result){ .method = "none" };
	if (!e->guest->n_cpus)
		return 0;
	ret = sync_input_make(&in, e, &pids);
	if (ret)
		return ret;
	if (prior)
		in.prior = *prior;
	ret = sync_solve(&in, out, log);
	free(pids);
	return ret;
}
