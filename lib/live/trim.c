// SPDX-License-Identifier: LGPL-2.1-or-later
/* The last while of a recording that goes on: the pages in which it begins are written anew. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "live/live-priv.h"

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
