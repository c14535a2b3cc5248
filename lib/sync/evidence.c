// SPDX-License-Identifier: LGPL-2.1-or-later
/* Evidence of offsets: a guest's event times, and files as sources of pages and formats. */
#include "sync/evidence.h"

#include "file/dat/reader.h"
#include "base/array.h"

/*
 * Events of a guest that are kept as evidence, of all its CPUs: 128 MiB. A guest sends what it likes, and of
 * more the bound hardly gains.
 */
#define GUEST_EVENTS_MAX (16u << 20)

struct guest_walk {
	const struct page_layout *layout;
	struct sync_cpu *cpu;
	size_t max;	    /* times of the CPU, even */
	uint64_t seen, nth; /* events; one in nth of them is kept */
};

/* Ignores losses: no conclusion is drawn from an event that is missing. */
static int take_guest_page(void *to, unsigned int number, const void *data, size_t len)
{
	struct guest_walk *walk = to;
	struct sync_cpu *c = walk->cpu;
	struct page_reader r;
	struct page_event ev;

	c->cpu = number;
	if (page_reader_init(&r, walk->layout, data, len))
		return 0;
	while (page_next(&r, &ev) == 1) {
		if (walk->seen++ % walk->nth)
			continue;
		if (c->n == walk->max) { /* thins them evenly: any part of the events is evidence */
			for (size_t i = 0; i < c->n / 2; i++)
				c->times[i] = c->times[2 * i];
			c->n /= 2;
			walk->nth *= 2;
		}
		if (array_push(&c->times, &c->n, &ev.ts, sizeof(ev.ts)))
			return -ENOMEM;
	}
	return 0;
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
		struct sync_cpu *c = &g->cpus[i];
		struct guest_walk walk = {
			.layout = &b->layout, .cpu = c, .max = GUEST_EVENTS_MAX / b->n_cpus & ~1u, .nth = 1
		};
		int ret;

		c->cpu = i;
		ret = s->walk(s, 0, i, take_guest_page, &walk);
		if (ret) {
			sync_guest_release(g);
			return ret;
		}
		if (!c->n)
			continue;
		array_sort(c->times, c->n, sizeof(*c->times), compare_u64);
		if (!g->last || c->times[0] < g->first)
			g->first = c->times[0];
		if (c->times[c->n - 1] > g->last)
			g->last = c->times[c->n - 1];
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
			struct sync_result *out)
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
	ret = sync_solve(&in, out);
	free(pids);
	return ret;
}

static int walk_reader(const struct sync_source *s, size_t buffer, unsigned int cpu, sync_page_fn page,
		       void *to)
{
	const struct reader_buffer *b = &reader_info(s->from)->buffers[buffer];
	struct sync_progress *p = s->progress;
	struct reader_pages *pages;
	const uint8_t *data;
	int ret = reader_pages_open(&pages, s->from, buffer, cpu);

	if (ret)
		return ret;
	while ((ret = reader_pages_next(pages, &data)) == 1) {
		ret = page(to, b->cpus[cpu].cpu, data, b->page_size);
		if (ret)
			break;
		if (p)
			p->report(p->ctx, p->done + reader_pages_done(pages), p->total);
	}
	if (p)
		p->done += b->cpus[cpu].size;
	reader_pages_close(pages);
	return ret;
}

/* True if the option's text has the word. */
static bool option_has(const struct reader *r, uint16_t id, const char *word)
{
	const struct reader_option *o = reader_option(r, id);

	return o && memmem(o->data.data, o->data.len, word, strlen(word));
}

int sync_source_reader(struct sync_source *s, const struct reader *r)
{
	static const char *const clocks[] = { "[local]", "[global]", "[perf]", "[mono_raw]" };
	const struct reader_option *pauses = reader_option(r, DAT_PAUSES);
	const struct reader_info *info = reader_info(r);

	*s = (struct sync_source){ .walk = walk_reader, .from = r };
	s->formats = calloc(info->n_formats + 1, sizeof(*s->formats));
	s->buffers = calloc(info->n_buffers + 1, sizeof(*s->buffers));
	if (!s->formats || !s->buffers ||
	    (pauses && pauses_decode(pauses->data.data, pauses->data.len, &s->pauses) == -ENOMEM)) {
		sync_source_release(s);
		return -ENOMEM;
	}
	for (size_t i = 0; i < info->n_formats; i++)
		s->formats[i] = info->formats[i].text;
	s->n_formats = info->n_formats;
	for (size_t i = 0; i < info->n_buffers; i++) {
		s->buffers[i] = (struct sync_buffer){ info->layout, (unsigned int)info->buffers[i].n_cpus };
		s->buffers[i].layout.size = info->buffers[i].page_size;
	}
	s->n_buffers = info->n_buffers;
	/*
	 * On arm64 these come straight from the counter, whose rate the architecture defines. The
	 * TSC itself is the host's, moved, or else scaled by far more than a clock drifts.
	 */
	for (size_t i = 0; i < ARRAY_SIZE(clocks); i++)
		s->steady = s->steady || option_has(r, DAT_TRACECLOCK, clocks[i]);
	s->steady = s->steady && option_has(r, DAT_UNAME, "aarch64");
	s->steady = s->steady || option_has(r, DAT_TRACECLOCK, "[x86-tsc]");
	return 0;
}

void sync_source_release(struct sync_source *s)
{
	free(s->buffers);
	free(s->formats);
	pauses_release(&s->pauses);
	*s = (struct sync_source){ 0 };
}
