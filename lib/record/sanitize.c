// SPDX-License-Identifier: LGPL-2.1-or-later
/* Checks a guest's pages in its spool, and empties or cuts those that contradict themselves. */
#include "record/sanitize.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dat/page.h"

/* One CPU's pages. */
struct rewriter {
	struct page_layout layout;
	uint8_t *page;
	struct sanitized *sum;
	uint64_t ts; /* of the last good event: pages are found by their times */
	bool gap;    /* what came before the next page is gone */
};

static void empty_page(struct rewriter *m)
{
	memset(m->page, 0, m->layout.size);
	memcpy(m->page, &m->ts, sizeof(m->ts));
}

/* Counts the events; the bytes up to the end of the last one that makes sense. */
static uint32_t count_page_events(struct rewriter *m, struct page_reader *r, bool *whole)
{
	const uint8_t *start = r->p, *good = r->p;
	struct page_event ev;
	int ret;

	while ((ret = page_next(r, &ev)) == 1) {
		m->sum->events++;
		m->ts = ev.ts;
		good = r->p;
	}
	*whole = !ret;
	return (uint32_t)(good - start);
}

/* Whether the page was changed. */
static bool sanitize_page(struct rewriter *m)
{
	bool gap = m->gap, whole = false;
	struct page_reader r;
	uint32_t used = 0;

	if (!page_reader_init(&r, &m->layout, m->page, m->layout.size)) {
		if (r.missed) {
			m->sum->lost += r.missed_count ? r.missed_count : 1;
			m->sum->unknown += !r.missed_count;
		}
		used = count_page_events(m, &r, &whole);
	}
	m->gap = !whole;
	m->sum->bad += !whole;
	if (!used && !whole) {
		empty_page(m);
		return true;
	}
	if (whole && (!gap || r.missed))
		return false;
	page_set_commit(&m->layout, m->page, used | (gap || r.missed ? PAGE_MISSED_EVENTS : 0));
	return true;
}

static int sanitize_pages(struct rewriter *m, int fd)
{
	const size_t size = m->layout.size;
	ssize_t n;
	off_t at;

	for (at = 0; (n = pread(fd, m->page, size, at)) == (ssize_t)size; at += (off_t)size)
		if (sanitize_page(m) && pwrite(fd, m->page, size, at) != (ssize_t)size)
			return errno ? -errno : -EIO;
	if (n <= 0)
		return n ? -errno : 0;
	m->sum->bad++;
	return ftruncate(fd, at) < 0 ? -errno : 0;
}

static int sanitize_cpu(struct rewriter *m, const struct spool *s, size_t buffer, unsigned int cpu)
{
	int fd = spool_pages_fd(s, buffer, cpu), ret;

	if (fd < 0)
		return fd;
	m->ts = 0;
	m->gap = false;
	ret = sanitize_pages(m, fd);
	close(fd);
	return ret;
}

int sanitize_buffer(const struct spool *s, size_t buffer, struct sanitized *out)
{
	const struct spool_buffer *b = spool_buffer(s, buffer);
	struct rewriter m = { .layout = page_layout_default, .sum = out };
	int ret;

	*out = (struct sanitized){ 0 };
	if (!b)
		return -EINVAL;
	ret = spool_page_layout(s, &m.layout);
	if (ret)
		return ret;
	m.layout.size = b->page_size;
	m.page = malloc(b->page_size);
	if (!m.page)
		return -ENOMEM;
	for (unsigned int cpu = 0; cpu < b->n_cpus && !ret; cpu++)
		ret = sanitize_cpu(&m, s, buffer, cpu);
	free(m.page);
	return ret;
}
