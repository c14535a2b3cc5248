// SPDX-License-Identifier: LGPL-2.1-or-later
/* Checks a guest's pages in its spool, and empties or cuts those that contradict themselves. */
#include "record/sanitize.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dat/page.h"
#include "spool/range.h"

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

static int sanitize_pages(struct rewriter *m, int fd, const struct spool_range *r)
{
	const size_t size = m->layout.size;

	for (uint64_t at = r->from; at < r->to; at += size) {
		ssize_t n = pread_all(fd, m->page, size, at);
		int ret = n < 0 ? (int)n : 0;

		if (!ret && sanitize_page(m))
			ret = pwrite_all(fd, m->page, size, at);
		if (ret)
			return ret;
	}
	return 0;
}

/* A stream that ends within a page; of a part it goes on. */
static int sanitize_end(struct rewriter *m, const struct spool *s, int fd, const struct spool_range *r)
{
	if (spool_is_part(s) || lseek(fd, 0, SEEK_END) <= (off_t)r->to)
		return 0;
	m->sum->bad++;
	return ftruncate(fd, (off_t)r->to) < 0 ? -errno : 0;
}

static int sanitize_cpu(struct rewriter *m, const struct spool *s, size_t buffer, unsigned int cpu)
{
	struct spool_range range;
	int fd = spool_pages_open(s, buffer, cpu, &range), ret;

	if (fd < 0)
		return fd;
	m->ts = 0;
	m->gap = false;
	ret = sanitize_pages(m, fd, &range) ?: sanitize_end(m, s, fd, &range);
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

int sanitize_spool(const struct spool *s, const struct log *log)
{
	for (size_t i = 0; i < spool_n_buffers(s); i++) {
		struct sanitized m;
		int ret;

		if (strcmp(spool_buffer(s, i)->kind, "guest"))
			continue;
		ret = sanitize_buffer(s, i, &m);
		if (ret) {
			log_err(log, "%s: the guest's pages cannot be gone through: %s", spool_dir(s),
				errno_text(ret));
			return ret;
		}
		if (m.bad)
			log_warn(log,
				 "%s: %" PRIu64 " of the guest's pages made no sense: their events are lost",
				 spool_dir(s), m.bad);
	}
	return 0;
}
