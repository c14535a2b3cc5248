// SPDX-License-Identifier: LGPL-2.1-or-later
/* The last while of a recording that goes on: the pages in which it begins are written anew. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "record/live-priv.h"

/* ---- a page without its first records ------------------------------------------------------- */

static int live_trim_emit(void *ctx, const void *page, size_t size)
{
	struct live_trim *t = ctx;

	if (!t->made++)
		memcpy(t->to, page, size);
	return 0;
}

/* Of a page that is damaged, or does not fit into one again, all stays. */
static int live_trim_records(struct live_trim *t, struct page_reader *r, struct page_writer *w, size_t *n)
{
	struct page_event ev;
	int more, ret = 0;

	while ((more = page_next(r, &ev)) == 1 && !ret)
		if (ev.ts >= t->of->from) {
			ret = page_write(w, ev.ts, ev.data, ev.len);
			++*n;
		}
	return ret ?: more < 0 ? more : page_flush(w, false);
}

int live_trim_page(void *trim, unsigned int cpu, void *page, size_t size)
{
	struct live_trim *t = trim;
	struct page_writer w;
	struct page_reader r;
	size_t n = 0;
	int ret;

	if (page_reader_init(&r, t->layout, page, size) || r.ts >= t->of->from)
		return 0;
	t->to = malloc(size);
	t->made = 0;
	ret = t->to ? page_writer_init(&w, size, live_trim_emit, t) : -ENOMEM;
	if (!ret) {
		ret = live_trim_records(t, &r, &w, &n);
		if (!ret && !n)
			page_set_commit(t->layout, page, 0);
		else if (!ret && t->made == 1)
			memcpy(page, t->to, size);
		page_writer_release(&w);
	}
	free(t->to);
	return ret == -ENOMEM ? ret : 0;
}

/* ---- the newest record ------------------------------------------------------------------------ */

static uint64_t live_last(const struct live *l, size_t buffer)
{
	const struct page_layout *layout = &l->layouts[buffer];
	struct page_reader r;
	struct page_event ev;
	uint64_t ts = 0;

	if (page_reader_init(&r, layout, l->page, layout->size))
		return 0;
	while (page_next(&r, &ev) == 1)
		ts = ev.ts;
	return ts;
}

static int live_newest(struct live *l, uint64_t *newest)
{
	int ret = 0;

	*newest = 0;
	for (size_t i = 0; i < l->file->n_buffers; i++)
		for (unsigned int cpu = 0; cpu < l->file->buffers[i].n_cpus && !ret; cpu++) {
			const struct dat_cpu *c = &l->file->buffers[i].cpus[cpu];
			uint64_t ts;

			if (!c->size)
				continue;
			ret = live_page(l, i, c, c->offset + c->size - l->layouts[i].size);
			ts = ret ? 0 : live_last(l, i);
			*newest = ts > *newest ? ts : *newest;
		}
	return ret;
}

int live_cut(struct live *l, uint64_t ns, uint64_t *newest)
{
	int ret = live_drop_older(l, ns);

	ret = ret < 0 ? ret : live_newest(l, newest);
	l->from = *newest > ns ? *newest - ns : 0;
	return ret;
}
