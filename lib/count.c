// SPDX-License-Identifier: LGPL-2.1-or-later
#include "count.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "page.h"

static int spool_layout(const struct spool *s, uint32_t page_size, struct page_layout *layout)
{
	struct buf text = { 0 };
	int ret = spool_get_text(s, "header_page", &text);

	if (!ret)
		ret = page_layout_parse((char *)text.data, text.len, layout);
	layout->size = page_size;
	buf_release(&text);
	return ret;
}

static void count_page(const struct page_layout *layout, const void *page, uint64_t *events, uint64_t *lost)
{
	struct page_reader r;
	struct page_event ev;

	if (page_reader_init(&r, layout, page, layout->size))
		return;
	if (r.missed)
		*lost += r.missed_count ? r.missed_count : 1;
	while (page_next(&r, &ev) == 1)
		++*events;
}

static int count_cpu(const struct spool *s, size_t buffer, unsigned int cpu,
		     const struct page_layout *layout, void *page, uint64_t *events, uint64_t *lost)
{
	int fd = spool_pages_fd(s, buffer, cpu);
	off_t at = 0;

	if (fd < 0)
		return fd;
	while (pread(fd, page, layout->size, at) == (ssize_t)layout->size) {
		count_page(layout, page, events, lost);
		at += layout->size;
	}
	close(fd);
	return 0;
}

int count_buffer(const struct spool *s, size_t buffer, uint64_t *events, uint64_t *lost)
{
	const struct spool_buffer *b = spool_buffer(s, buffer);
	struct page_layout layout = page_layout_default;
	void *page;
	int ret;

	*events = *lost = 0;
	if (!b)
		return -EINVAL;
	ret = spool_layout(s, b->page_size, &layout);
	page = ret ? NULL : malloc(b->page_size);
	if (!page)
		return ret ? ret : -ENOMEM;
	for (unsigned int cpu = 0; cpu < b->n_cpus && !ret; cpu++)
		ret = count_cpu(s, buffer, cpu, &layout, page, events, lost);
	free(page);
	return ret;
}
