// SPDX-License-Identifier: LGPL-2.1-or-later
/* Checks a guest's pages in its spool, and empties or cuts bad ones; marks a recording's missing end. */
#include "record/drain/repair.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "file/dat/page.h"
#include "record/spool/spool.h"
#include "base/files.h"
#include "base/strings.h"

/* One CPU's pages. */
struct rewriter {
	struct page_layout layout;
	uint8_t *page;
	struct sanitized *sum;
	uint64_t ts; /* of the last good event: pages are found by their times */
	bool gap;    /* records before the next page are lost */
};

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
		memset(m->page, 0, m->layout.size);
		memcpy(m->page, &m->ts, sizeof(m->ts));
		return true;
	}
	if (whole && (!gap || r.missed))
		return false;
	page_set_commit(&m->layout, m->page, used | (gap || r.missed ? PAGE_MISSED_EVENTS : 0));
	return true;
}

static int sanitize_cpu(struct rewriter *m, const struct spool *s, size_t buffer, unsigned int cpu)
{
	const size_t size = m->layout.size;
	struct spool_range range;
	int fd = spool_pages_open(s, buffer, cpu, &range), ret = 0;

	if (fd < 0)
		return fd;
	m->ts = 0;
	m->gap = false;
	for (uint64_t at = range.from; at < range.to && !ret; at += size) {
		ssize_t n = pread_all(fd, m->page, size, at);

		ret = n < 0 ? (int)n : 0;
		if (!ret && sanitize_page(m))
			ret = pwrite_all(fd, m->page, size, at);
	}
	/* a stream may end within a page; a part of one continues in the next */
	if (!ret && !spool_is_part(s) && lseek(fd, 0, SEEK_END) > (off_t)range.to) {
		m->sum->bad++;
		ret = ftruncate(fd, (off_t)range.to) < 0 ? -errno : 0;
	}
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

/* ---- an end that was cut off ---------------------------------------------------------------- */

/* Time of the last event of a page; without events, of the page. */
static uint64_t page_last_ts(const struct page_layout *l, const void *page)
{
	struct page_reader r;
	struct page_event ev;
	uint64_t ts;

	memcpy(&ts, page, sizeof(ts));
	if (!page_reader_init(&r, l, page, l->size))
		while (page_next(&r, &ev) == 1)
			ts = ev.ts;
	return ts;
}

static int cut_cpu(const struct spool *s, size_t buffer, unsigned int cpu, const struct page_layout *l,
		   uint8_t *page)
{
	struct spool_range range;
	int fd = spool_pages_open(s, buffer, cpu, &range), ret = 0;

	if (fd < 0)
		return fd;
	if (range.to > range.from) {
		ssize_t n = pread_all(fd, page, l->size, range.to - l->size);
		uint64_t ts = n < 0 ? 0 : page_last_ts(l, page);

		memset(page, 0, l->size);
		memcpy(page, &ts, sizeof(ts));
		page_set_commit(l, page, PAGE_MISSED_EVENTS);
		ret = n < 0 ? (int)n : pwrite_all(fd, page, l->size, range.to);
	}
	close(fd);
	return ret;
}

int spool_mark_cut(const struct spool *s)
{
	struct page_layout l = page_layout_default;
	int ret = spool_page_layout(s, &l);

	for (size_t i = 0; i < spool_n_buffers(s) && !ret; i++) {
		const struct spool_buffer *b = spool_buffer(s, i);
		uint8_t *page = malloc(b->page_size);

		l.size = b->page_size;
		ret = page ? 0 : -ENOMEM;
		for (unsigned int cpu = 0; cpu < b->n_cpus && !ret; cpu++)
			ret = cut_cpu(s, i, cpu, &l, page);
		free(page);
	}
	return ret;
}
