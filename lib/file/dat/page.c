// SPDX-License-Identifier: LGPL-2.1-or-later
/* Pages of the kernel's ring buffer: where things are in one, its events read, and pages written. */
#include "file/dat/page.h"

#include "base/cursor.h"
#include "base/files.h"

#define TYPE_MASK	((1u << PAGE_TYPE_BITS) - 1) /* 0: length in array[0] */
#define TYPE_PADDING	29
#define TYPE_EXTEND	30
#define TYPE_STAMP	31
#define TS_SHIFT	27
#define TS_MASK		((1u << TS_SHIFT) - 1)
#define EXTEND_MAX	((1ull << 59) - 1)
#define SMALL_MAX	(PAGE_TYPE_LEN_MAX * 4)
#define COMMIT_MASK	(PAGE_MISSED_STORED - 1)
#define HEADER_SIZE	16
#define MISSED_SIZE	8	   /* the count of lost events after the data */
#define HEADER_PAGE_MAX (1u << 20) /* of its text */
#define PAGE_SIZE_LIMIT (1u << 20) /* the kernel counts the bytes of a page in 20 bits */

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "event headers are read as such");

const struct page_layout page_layout_default = {
	.commit_offset = 8,
	.commit_size = 8,
	.data_offset = HEADER_SIZE,
	.size = 4096,
};

/* "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;"; other lines are ignored. */
static int layout_line(struct page_layout *l, const char *line)
{
	const char *at = strstr(line, "offset:");
	unsigned int offset, size;

	if (!at || !isdigit((unsigned char)at[7]) || sscanf(at, "offset:%9u; size:%9u", &offset, &size) != 2)
		return 0;
	if (offset > PAGE_SIZE_LIMIT || size > PAGE_SIZE_LIMIT)
		return 0;
	if (strstr(line, " timestamp;") && (offset || size != 8))
		return -EBADMSG;
	if (strstr(line, " commit;")) {
		l->commit_offset = offset;
		l->commit_size = size;
	} else if (strstr(line, " data;")) {
		l->data_offset = offset;
		l->size = offset + size;
	}
	return 0;
}

int page_layout_parse(const char *text, size_t len, struct page_layout *out)
{
	char *copy = strndup(len ? text : "", len), *save = NULL;
	struct page_layout l = { 0 };
	int ret = copy ? 0 : -ENOMEM;

	for (char *line = copy ? strtok_r(copy, "\n", &save) : NULL; line && !ret;
	     line = strtok_r(NULL, "\n", &save))
		ret = layout_line(&l, line);
	free(copy);
	if (ret)
		return ret;
	if ((l.commit_size != 4 && l.commit_size != 8) || l.commit_offset < 8 || l.size <= l.data_offset ||
	    l.data_offset < l.commit_offset + l.commit_size || l.size > PAGE_SIZE_LIMIT)
		return -EBADMSG;
	*out = l;
	return 0;
}

int page_layout_read(int dirfd, const char *path, struct page_layout *out)
{
	struct buf text = { 0 };
	int ret = read_file_at(dirfd, path, HEADER_PAGE_MAX, &text);

	ret = ret ?: page_layout_parse((char *)text.data, text.len, out);
	buf_release(&text);
	return ret;
}

int page_reader_init(struct page_reader *r, const struct page_layout *layout, const void *page, size_t len)
{
	const uint8_t *p = page;
	uint32_t commit, used;
	struct cursor rest;

	if (len < layout->data_offset)
		return -EBADMSG;
	/*
	 * The kernel adds its flags to the commit word as signed ints, so the upper half
	 * of a 64-bit word may be all ones: only the lower half counts.
	 */
	memcpy(&commit, p + layout->commit_offset, sizeof(commit));
	used = commit & COMMIT_MASK;
	if (used > len - layout->data_offset)
		return -EBADMSG;
	*r = (struct page_reader){ .p = p + layout->data_offset };
	r->end = r->p + used;
	memcpy(&r->ts, p, sizeof(r->ts));
	r->missed = commit & PAGE_MISSED_EVENTS;
	rest = cursor_at(r->end, len - layout->data_offset - used);
	if (r->missed && (commit & PAGE_MISSED_STORED))
		r->missed_count = layout->commit_size == 8 ? cursor_u64(&rest) : cursor_u32(&rest);
	return 0;
}

uint64_t page_count(const struct page_layout *layout, const void *page, uint64_t *last)
{
	struct page_reader r;
	struct page_event ev;
	uint64_t n = 0;

	*last = 0;
	if (page_reader_init(&r, layout, page, layout->size))
		return 0;
	for (; page_next(&r, &ev) == 1; n++)
		*last = ev.ts;
	return n;
}

void page_set_commit(const struct page_layout *l, void *page, uint32_t commit)
{
	uint64_t word = commit;

	memcpy((uint8_t *)page + l->commit_offset, &word, l->commit_size);
}

void page_mark_missed(const struct page_layout *l, void *page)
{
	uint32_t commit;

	memcpy(&commit, (uint8_t *)page + l->commit_offset, sizeof(commit));
	page_set_commit(l, page, (commit & ~PAGE_MISSED_STORED) | PAGE_MISSED_EVENTS);
}

/* An absolute stamp has 59 bits; the upper five are those of the time before (rb_fix_abs_ts). */
static uint64_t absolute(uint64_t stamp, uint64_t before)
{
	uint64_t msb = before & ~EXTEND_MAX;

	if (!msb)
		return stamp;
	stamp |= msb;
	return stamp < before ? stamp + EXTEND_MAX + 1 : stamp;
}

static int corrupt(struct page_reader *r)
{
	r->p = r->end;
	return -EBADMSG;
}

int page_next(struct page_reader *r, struct page_event *ev)
{
	while (!page_next_short(r, ev)) {
		struct cursor c = cursor_at(r->p, (size_t)(r->end - r->p));
		bool over = !cursor_left(&c);
		uint32_t head = cursor_u32(&c), delta = head >> PAGE_TYPE_BITS, word = cursor_u32(&c);
		unsigned int type = head & TYPE_MASK;
		uint64_t stamp = ((uint64_t)word << TS_SHIFT) + delta;

		if (over || (type == TYPE_PADDING && !delta)) { /* the rest is empty */
			r->p = r->end;
			return 0;
		} else if (type == TYPE_EXTEND) {
			r->ts += stamp;
		} else if (type == TYPE_STAMP) {
			r->ts = absolute(stamp, r->ts);
		} else if (type == TYPE_PADDING) { /* discarded; array[0] counts itself */
			r->ts += delta;
			if (word < 4 || !cursor_take(&c, word - 4))
				return corrupt(r);
		} else { /* a short one that is not whole, or a long one */
			ev->len = (size_t)word - 4;
			ev->data = type || word < 4 ? NULL : cursor_take(&c, ev->len);
			if (!ev->data)
				return corrupt(r);
			ev->ts = r->ts += delta;
			r->p = c.p;
			return 1;
		}
		if (c.bad)
			return corrupt(r);
		r->p = c.p;
	}
	return 1;
}

size_t page_max_record(size_t size)
{
	const size_t room = HEADER_SIZE + 8 + MISSED_SIZE;

	return size < room ? 0 : (size - room) & ~(size_t)3;
}

int page_emit_fd(void *fd, const void *page, size_t size)
{
	return write_all(*(const int *)fd, page, size);
}

int page_writer_init(struct page_writer *w, size_t size,
		     int (*emit)(void *ctx, const void *page, size_t size), void *ctx)
{
	*w = (struct page_writer){ .size = size, .emit = emit, .ctx = ctx };
	if (!page_max_record(size) || size > PAGE_SIZE_LIMIT)
		return -EINVAL;
	w->page = calloc(1, size);
	return w->page ? 0 : -ENOMEM;
}

void page_writer_release(struct page_writer *w)
{
	free(w->page);
	w->page = NULL;
	w->used = 0;
}

static void page_begin(struct page_writer *w, uint64_t ts)
{
	memset(w->page, 0, w->size);
	memcpy(w->page, &ts, sizeof(ts));
	w->used = HEADER_SIZE;
	w->last_ts = ts;
	w->page_missed = w->missed;
	w->page_missed_count = w->missed_count;
	w->missed = false;
	w->missed_count = 0;
}

/* Completes the page's header: commit, flags, count of lost events. */
static void page_seal(struct page_writer *w)
{
	uint64_t commit = w->used - HEADER_SIZE;

	if (w->page_missed)
		commit |= PAGE_MISSED_EVENTS;
	if (w->page_missed && w->page_missed_count) {
		commit |= PAGE_MISSED_STORED;
		memcpy(w->page + w->used, &w->page_missed_count, MISSED_SIZE);
	}
	memcpy(w->page + 8, &commit, sizeof(commit));
}

const void *page_writer_peek(struct page_writer *w)
{
	if (!w->used)
		return NULL;
	page_seal(w);
	return w->page;
}

static int page_end(struct page_writer *w)
{
	if (!w->used)
		return 0;
	page_seal(w);
	w->used = 0;
	return w->emit(w->ctx, w->page, w->size);
}

static void put_u32(struct page_writer *w, uint32_t v)
{
	memcpy(w->page + w->used, &v, sizeof(v));
	w->used += sizeof(v);
}

static void put_event_head(struct page_writer *w, unsigned int type, uint64_t delta)
{
	put_u32(w, (uint32_t)(delta & TS_MASK) << PAGE_TYPE_BITS | type);
}

int page_write(struct page_writer *w, uint64_t ts, const void *data, size_t len)
{
	size_t need = ((len + 3) & ~(size_t)3) + 8, limit;
	int ret;
	uint64_t delta;
	size_t padded;

	if (len > page_max_record(w->size))
		return -EMSGSIZE;
	if (w->used && ts - w->last_ts > TS_MASK)
		need += 8;
	limit = w->size - (w->page_missed_count ? MISSED_SIZE : 0);
	if (w->used && (ts < w->last_ts || ts - w->last_ts > EXTEND_MAX || w->used + need > limit)) {
		ret = page_end(w);
		if (ret)
			return ret;
	}
	if (!w->used)
		page_begin(w, ts);
	delta = ts - w->last_ts;
	padded = len ? (len + 3) & ~(size_t)3 : 4;
	if (delta > TS_MASK) {
		put_event_head(w, TYPE_EXTEND, delta);
		put_u32(w, (uint32_t)(delta >> TS_SHIFT));
		delta = 0;
	}
	put_event_head(w, padded > SMALL_MAX ? 0 : (unsigned int)(padded / 4), delta);
	if (padded > SMALL_MAX)
		put_u32(w, (uint32_t)padded + 4);
	/* a peek may have left the count of lost events where the padding goes */
	memset(w->page + w->used, 0, padded);
	if (len)
		memcpy(w->page + w->used, data, len);
	w->used += padded;
	w->last_ts = ts;
	return 0;
}

int page_write_lost(struct page_writer *w, uint64_t count)
{
	int ret = page_end(w);

	/* an unknown number stays unknown */
	if (!w->missed)
		w->missed_count = count;
	else if (!w->missed_count || !count || w->missed_count + count < count)
		w->missed_count = 0;
	else
		w->missed_count += count;
	w->missed = true;
	return ret;
}

int page_flush(struct page_writer *w, bool final)
{
	if (!w->used && final && w->missed)
		page_begin(w, w->last_ts);
	return page_end(w);
}
