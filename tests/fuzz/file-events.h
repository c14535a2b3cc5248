/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HYPTRACE_FUZZ_FILE_EVENTS_H
#define HYPTRACE_FUZZ_FILE_EVENTS_H

#include "file/dat/reader.h"
#include "recipe.h"

/* For what makes files: how many events they have, read by our reader, which must like them. */

static void fuzz_must(bool ok)
{
	if (!ok)
		abort();
}

static uint64_t stream_events(struct reader *r, const struct reader_buffer *b, size_t buffer, size_t cpu)
{
	struct page_layout layout = page_layout_default;
	struct reader_pages *pages;
	const uint8_t *page;
	uint64_t n = 0;

	layout.size = b->page_size;
	fuzz_must(!reader_pages_open(&pages, r, buffer, cpu));
	while (reader_pages_next(pages, &page) == 1) {
		struct page_reader p;
		struct page_event ev;

		fuzz_must(!page_reader_init(&p, &layout, page, b->page_size));
		while (page_next(&p, &ev) == 1)
			n++;
	}
	reader_pages_close(pages);
	return n;
}

static uint64_t file_events(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	const struct reader_info *info;
	struct reader *r;
	uint64_t n = 0;

	fuzz_must(fd >= 0 && !reader_open(&r, fd, NULL));
	info = reader_info(r);
	for (size_t b = 0; b < info->n_buffers; b++)
		for (size_t c = 0; c < info->buffers[b].n_cpus; c++)
			n += stream_events(r, &info->buffers[b], b, c);
	reader_close(r);
	close(fd);
	return n;
}

#endif
