// SPDX-License-Identifier: LGPL-2.1-or-later
/* Checks a guest's pages in its spool, and empties or cuts bad ones; marks a recording's missing end. */
#include "record/drain/spool-to-dat.h"

/* One CPU's pages. */
struct rewriter {
	struct page_layout layout;
	struct sanitized *sum;
	uint64_t ts; /* of the last good event: pages are found by their times */
	bool gap;    /* records before the next page are lost */
};

/* 1: the page was changed. */
static int sanitize_page(void *rewriter, void *page, size_t size)
{
	struct rewriter *m = rewriter;
	bool gap = m->gap, whole = false;
	struct page_reader r;
	uint32_t used = 0; /* bytes up to the end of the last event that makes sense */

	if (!page_reader_init(&r, &m->layout, page, size)) {
		const uint8_t *start = r.p;
		struct page_event ev;
		int ret;

		if (r.missed) {
			m->sum->lost += r.missed_count ? r.missed_count : 1;
			m->sum->unknown += !r.missed_count;
		}
		while ((ret = page_next(&r, &ev)) == 1) {
			m->sum->events++;
			m->ts = ev.ts;
			used = (uint32_t)(r.p - start);
		}
		whole = !ret;
	}
	m->gap = !whole;
	m->sum->bad += !whole;
	if (!used && !whole) {
		memset(page, 0, size);
		memcpy(page, &m->ts, sizeof(m->ts));
		return 1;
	}
	if (whole && (!gap || r.missed))
		return 0;
	page_set_commit(&m->layout, page, used | (gap || r.missed ? PAGE_MISSED_EVENTS : 0));
	return 1;
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
	for (unsigned int cpu = 0; cpu < b->n_cpus && !ret; cpu++) {
		m.ts = 0;
		m.gap = false;
		ret = spool_pages_walk(s, buffer, cpu, 0, sanitize_page, &m);
		if (!ret &&
		    !spool_is_part(s)) { /* a stream may end within a page; a part's continues in the next */
			struct spool_range range;
			int fd = spool_pages_open(s, buffer, cpu, &range);

			if (fd >= 0 && lseek(fd, 0, SEEK_END) > (off_t)range.to) {
				out->bad++;
				ret = ftruncate(fd, (off_t)range.to) < 0 ? -errno : 0;
			}
			fd_close(&fd);
		}
	}
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
		if (ret)
			return log_fail_errno(log, ret, "%s: the guest's pages cannot be gone through",
					      spool_dir(s));
		if (m.bad)
			log_warn(log,
				 "%s: %" PRIu64 " of the guest's pages made no sense: their events are lost",
				 spool_dir(s), m.bad);
	}
	return 0;
}

int spool_mark_cut(const struct spool *s, size_t buffer, unsigned int cpu)
{
	const uint32_t size = spool_buffer(s, buffer)->page_size;
	struct page_layout l = page_layout_default;
	struct spool_range range = { 0 };
	int fd = spool_pages_open(s, buffer, cpu, &range);
	int ret = fd < 0 ? fd : spool_page_layout(s, &l);
	uint8_t *page = range.to > range.from ? malloc(size) : NULL;
	uint64_t ts = 0, last; /* of the last event; without events, of the page */
	ssize_t n;

	l.size = size;
	if (!ret && page) {
		n = pread_all(fd, page, size, range.to - size);
		if (n > 0)
			memcpy(&ts, page, sizeof(ts));
		if (n > 0 && page_count(&l, page, &last))
			ts = last;
		memset(page, 0, size);
		memcpy(page, &ts, sizeof(ts));
		page_set_commit(&l, page, PAGE_MISSED_EVENTS);
		ret = n < 0 ? (int)n : pwrite_all(fd, page, size, range.to);
	} else if (!ret && range.to > range.from) {
		ret = -ENOMEM;
	}
	free(page);
	fd_close(&fd);
	return ret;
}

int spool_mark_all_cut(const struct spool *s)
{
	int ret = 0;

	for (size_t i = 0; i < spool_n_buffers(s); i++)
		for (unsigned int cpu = 0; cpu < spool_buffer(s, i)->n_cpus && !ret; cpu++)
			ret = spool_mark_cut(s, i, cpu);
	return ret;
}
