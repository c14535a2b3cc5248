// SPDX-License-Identifier: LGPL-2.1-or-later
/* A page of any content: what is read of it, written again, reads the same. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "file/dat/page.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct check {
	struct page_reader r; /* of the page as given */
};

static void must(bool ok)
{
	if (!ok)
		abort();
}

/* Each record of a page that we wrote is the next one of the page given. */
static int compare(void *ctx, const void *page, size_t size)
{
	struct page_layout l = page_layout_default;
	struct check *c = ctx;
	struct page_reader r;
	struct page_event a, b;

	l.size = (unsigned int)size;
	must(!page_reader_init(&r, &l, page, size));
	while (page_next(&r, &b) == 1) {
		do
			must(page_next(&c->r, &a) == 1);
		while (a.len > page_max_record(size));
		must(a.ts == b.ts && b.len >= a.len && !memcmp(a.data, b.data, a.len));
	}
	return 0;
}

static void write_again(struct page_reader r)
{
	struct check c = { .r = r };
	struct page_writer w;
	struct page_event ev;

	must(!page_writer_init(&w, 512, compare, &c));
	if (r.missed)
		must(!page_write_lost(&w, r.missed_count));
	while (page_next(&r, &ev) == 1) {
		int ret = page_write(&w, ev.ts, ev.data, ev.len);

		must(!ret || ev.len > page_max_record(512));
		must(page_writer_peek(&w) || ret);
	}
	must(!page_flush(&w, true));
	page_writer_release(&w);
}

/* A short one is the one that page_next() finds; each lies in the page, behind the one before. */
static void read_short(struct page_reader r)
{
	const uint8_t *from = r.p, *end = r.end;
	struct page_event ev, fast;
	int ret;

	do {
		struct page_reader other = r;
		bool found = page_next_short(&other, &fast);

		ret = page_next(&r, &ev);
		must(!found || (ret == 1 && ev.ts == fast.ts && ev.data == fast.data && ev.len == fast.len &&
				other.p == r.p && other.ts == r.ts));
		must(ret != 1 ||
		     (ev.data > from && ev.len <= (size_t)(end - ev.data) && r.p == ev.data + ev.len));
		from = r.p;
	} while (ret == 1);
	must(!page_next(&r, &ev)); /* nothing comes behind a corrupt one */
}

static void check_page(const struct page_layout *layout, const uint8_t *data, size_t size)
{
	struct page_reader r;

	if (page_reader_init(&r, layout, data, size))
		return;
	write_again(r);
	read_short(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct page_layout small = {
		.commit_offset = 8, .commit_size = 4, .data_offset = 12, .size = 4096
	};
	struct page_layout layout;

	if (!page_layout_parse((const char *)data, size, &layout))
		check_page(&layout, data, size);
	check_page(&page_layout_default, data, size);
	check_page(&small, data, size);
	return 0;
}
