// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dat/reader.h"
#include "sync/problem.h"
#include "util/array.h"

/* ---- a trace.dat as a source ------------------------------------------------------ */

struct walker {
	const struct reader *r;
	size_t buffer;
};

static int walk_reader(void *ctx, unsigned int cpu,
		       int (*page)(void *to, unsigned int number, const void *data, size_t len), void *to)
{
	const struct walker *w = ctx;
	const struct reader_buffer *b = &reader_info(w->r)->buffers[w->buffer];
	struct reader_pages *pages;
	const uint8_t *data;
	int ret = reader_pages_open(&pages, w->r, w->buffer, cpu);

	if (ret)
		return ret;
	while ((ret = reader_pages_next(pages, &data)) == 1) {
		ret = page(to, b->cpus[cpu].cpu, data, b->page_size);
		if (ret)
			break;
	}
	reader_pages_close(pages);
	return ret;
}

/* The text of an option; "" when there is none. Not NUL-ended. */
static bool option_has(const struct reader *r, uint16_t id, const char *word)
{
	const struct reader_option *o = reader_option(r, id);

	return o && memmem(o->data.data, o->data.len, word, strlen(word));
}

/*
 * On arm64 these come straight from the counter, whose rate is told by the architecture. The
 * TSC itself is the host's, moved, or else scaled by far more than a clock drifts.
 */
static bool is_steady(const struct reader *r)
{
	static const char *const clocks[] = { "[local]", "[global]", "[perf]", "[mono_raw]" };
	bool steady = false;

	if (option_has(r, DAT_TRACECLOCK, "[x86-tsc]"))
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(clocks); i++)
		steady = steady || option_has(r, DAT_TRACECLOCK, clocks[i]);
	return steady && option_has(r, DAT_UNAME, "aarch64");
}

int sync_source_reader(struct sync_source *s, const struct reader *r)
{
	const struct reader_info *info = reader_info(r);
	struct dat_text *formats = calloc(info->n_formats + 1, sizeof(*formats));
	struct walker *walkers = calloc(info->n_buffers + 1, sizeof(*walkers));

	*s = (struct sync_source){ .formats = formats, .n_formats = info->n_formats };
	s->buffers = calloc(info->n_buffers + 1, sizeof(*s->buffers));
	if (!formats || !walkers || !s->buffers) {
		free(formats);
		free(walkers);
		free(s->buffers);
		*s = (struct sync_source){ 0 };
		return -ENOMEM;
	}
	for (size_t i = 0; i < info->n_formats; i++)
		formats[i] = info->formats[i].text;
	for (size_t i = 0; i < info->n_buffers; i++) {
		walkers[i] = (struct walker){ r, i };
		s->buffers[i] = (struct sync_buffer){ .layout = info->layout,
						      .n_cpus = (unsigned int)info->buffers[i].n_cpus,
						      .walk = walk_reader,
						      .ctx = &walkers[i] };
		s->buffers[i].layout.size = info->buffers[i].page_size;
	}
	s->n_buffers = info->n_buffers;
	s->own = walkers;
	s->steady = is_steady(r);
	s->cmdlines = info->cmdlines.data;
	s->cmdlines_len = info->cmdlines.len;
	return 0;
}

void sync_source_release(struct sync_source *s)
{
	if (s->own) {
		free(s->buffers);
		free((void *)s->formats);
	}
	free(s->own);
	*s = (struct sync_source){ 0 };
}

/* ---- the guest ------------------------------------------------------------------------------ */

struct events {
	struct sync_guest *g;
	const struct page_layout *layout;
	struct sync_cpu *c;
};

static int take_guest(struct sync_cpu *c, uint64_t time)
{
	uint64_t *v = array_grow(c->times, c->n, sizeof(*v));

	if (!v)
		return -ENOMEM;
	c->times = v;
	v[c->n++] = time;
	return 0;
}

static int guest_page(void *to, unsigned int number, const void *data, size_t len)
{
	struct events *e = to;
	struct page_reader r;
	struct page_event ev;
	int ret = 0;

	e->c->cpu = number;
	if (page_reader_init(&r, e->layout, data, len))
		return 0;
	while (!ret && page_next(&r, &ev) == 1)
		ret = take_guest(e->c, ev.ts);
	return ret;
}

static int by_time(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void finish_cpu(struct sync_guest *g, struct sync_cpu *c)
{
	bool sorted = true;

	for (size_t i = 1; i < c->n && sorted; i++)
		sorted = c->times[i - 1] <= c->times[i];
	if (!sorted)
		qsort(c->times, c->n, sizeof(*c->times), by_time);
	if (!c->n)
		return;
	if (!g->last || c->times[0] < g->first)
		g->first = c->times[0];
	if (c->times[c->n - 1] > g->last)
		g->last = c->times[c->n - 1];
}

int sync_guest_read(struct sync_guest *g, const struct sync_source *s, const struct log *log)
{
	const struct sync_buffer *b = s->n_buffers ? &s->buffers[0] : NULL;
	int ret = 0;

	*g = (struct sync_guest){ 0 };
	if (!b || !b->n_cpus)
		return 0;
	g->cpus = calloc(b->n_cpus, sizeof(*g->cpus));
	if (!g->cpus)
		return -ENOMEM;
	g->n_cpus = b->n_cpus;
	for (unsigned int i = 0; i < b->n_cpus && !ret; i++) {
		struct events e = { .g = g, .layout = &b->layout, .c = &g->cpus[i] };

		e.c->cpu = i;
		ret = b->walk(b->ctx, i, guest_page, &e);
		finish_cpu(g, e.c);
	}
	if (ret)
		sync_guest_release(g);
	return ret;
}

void sync_guest_release(struct sync_guest *g)
{
	for (size_t i = 0; i < g->n_cpus; i++)
		free(g->cpus[i].times);
	free(g->cpus);
	*g = (struct sync_guest){ 0 };
}
