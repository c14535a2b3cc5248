// SPDX-License-Identifier: LGPL-2.1-or-later
/* Merges the pages of all CPUs into one order by time: a heap of the CPUs' next records. */
#include "read/merge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* One CPU of one buffer, with its next record. */
struct stream {
	size_t input, buffer, index; /* index: in the buffer's list of CPUs */
	unsigned int cpu;
	unsigned int order; /* of records with equal times */
	struct reader_pages *pages;
	struct page_layout layout;
	struct page_reader page;
	bool in_page, damaged;
	int64_t missed; /* before the next record */
	struct page_event ev;
	uint64_t ts; /* of ev, corrected */
	bool last;   /* no ev: only what was lost at the end */
};

struct merge {
	const struct merge_input *inputs;
	const struct log *log;
	struct stream *streams;
	size_t n_streams;
	struct stream **heap; /* the earliest record at [0] */
	size_t n;
	bool taken;  /* heap[0] was given out and has to go on */
	bool peeked; /* ... and did so already */
	uint64_t damaged;
};

/* ---- one CPU -------------------------------------------------------------------- */

/* What is lost before a record adds up; with an unknown number in it the sum is unknown. */
static void stream_add_missed(struct stream *s, int64_t n)
{
	if (s->missed < 0 || n < 0 || s->missed > INT64_MAX - n)
		s->missed = -1;
	else
		s->missed += n;
}

static void stream_damage(struct merge *m, struct stream *s, int error)
{
	const struct reader_info *info = reader_info(m->inputs[s->input].reader);
	const char *buffer = info->buffers[s->buffer].name;

	m->damaged++;
	stream_add_missed(s, -1);
	if (s->damaged)
		return;
	s->damaged = true;
	log_warn(m->log, "%s: CPU %u%s%s has a %s page (%s): records are missing", m->inputs[s->input].name,
		 s->cpu, *buffer ? " of buffer " : "", buffer, error == -EBADMSG ? "damaged" : "unreadable",
		 errno_text(error));
}

/* 1: a page is begun; 0: there is none. */
static int stream_next_page(struct merge *m, struct stream *s)
{
	const uint8_t *page;
	int ret = reader_pages_next(s->pages, &page);

	if (ret == 0 || ret == -ENOMEM)
		return ret;
	if (ret < 0) { /* nothing behind it can be found */
		stream_damage(m, s, ret);
		return 0;
	}
	ret = page_reader_init(&s->page, &s->layout, page, s->layout.size);
	if (ret) {
		stream_damage(m, s, ret);
		return 1;
	}
	if (s->page.missed)
		stream_add_missed(s, s->page.missed_count && s->page.missed_count <= INT64_MAX
					     ? (int64_t)s->page.missed_count
					     : -1);
	s->in_page = true;
	return 1;
}

static bool stream_has_record(const struct stream *s)
{
	return !s->last || s->missed;
}

/* The stream's next record into s->ev: 1; 0: none left. */
static int stream_next(struct merge *m, struct stream *s)
{
	int ret;

	s->missed = 0;
	if (s->last)
		return 0;
	for (;;) {
		ret = s->in_page ? page_next(&s->page, &s->ev) : 0;
		if (ret == 1) {
			s->ts = filetime_apply(&m->inputs[s->input].time, s->cpu, s->ev.ts);
			return 1;
		}
		if (ret < 0)
			stream_damage(m, s, ret);
		s->in_page = false;
		ret = stream_next_page(m, s);
		if (ret < 0)
			return ret;
		if (ret)
			continue;
		s->last = true;
		s->ev.data = NULL;
		s->ev.len = 0;
		return stream_has_record(s);
	}
}

static void stream_record(const struct stream *s, struct merge_record *rec)
{
	*rec = (struct merge_record){ .input = s->input,
				      .buffer = s->buffer,
				      .index = s->index,
				      .cpu = s->cpu,
				      .ts = s->ts,
				      .raw = s->ev.ts,
				      .data = s->ev.data,
				      .len = s->ev.len,
				      .missed = s->missed };
}

/* ---- the heap --------------------------------------------------------------------- */

static bool stream_before(const struct stream *a, const struct stream *b)
{
	return a->ts != b->ts ? a->ts < b->ts : a->order < b->order;
}

/* The earliest stream of one buffer; NULL: it has no more records. */
static const struct stream *heap_earliest(const struct merge *m, size_t input, size_t buffer)
{
	const struct stream *first = NULL;

	for (size_t i = 0; i < m->n; i++) {
		const struct stream *s = m->heap[i];

		if (s->input == input && s->buffer == buffer && stream_has_record(s) &&
		    (!first || stream_before(s, first)))
			first = s;
	}
	return first;
}

static void heap_sift_down(struct merge *m, size_t i)
{
	struct stream *s = m->heap[i];

	for (;;) {
		size_t child = 2 * i + 1;

		if (child + 1 < m->n && stream_before(m->heap[child + 1], m->heap[child]))
			child++;
		if (child >= m->n || !stream_before(m->heap[child], s))
			break;
		m->heap[i] = m->heap[child];
		i = child;
	}
	m->heap[i] = s;
}

/* After heap[0] went on: ret is what stream_next said. */
static void heap_settle(struct merge *m, int ret)
{
	if (!ret)
		m->heap[0] = m->heap[--m->n];
	if (m->n)
		heap_sift_down(m, 0);
}

int merge_next(struct merge *m, struct merge_record *rec)
{
	if (m->taken) {
		int ret = m->peeked ? stream_has_record(m->heap[0]) : stream_next(m, m->heap[0]);

		m->taken = m->peeked = false;
		if (ret < 0)
			return ret;
		heap_settle(m, ret);
	}
	if (!m->n)
		return 0;
	stream_record(m->heap[0], rec);
	m->taken = true;
	return 1;
}

int merge_peek(struct merge *m, const struct merge_record *rec, struct merge_record *next)
{
	const struct stream *s;
	int ret;

	if (!m->taken)
		return 0;
	if (!m->peeked) {
		ret = stream_next(m, m->heap[0]);
		if (ret < 0)
			return ret;
		m->peeked = true;
	}
	s = heap_earliest(m, rec->input, rec->buffer);
	if (s)
		stream_record(s, next);
	return !!s;
}

uint64_t merge_damaged(const struct merge *m)
{
	return m->damaged;
}

/* ---- opening ------------------------------------------------------------------------ */

static int merge_add_stream(struct merge *m, size_t input, size_t buffer, size_t index)
{
	const struct reader *r = m->inputs[input].reader;
	const struct reader_buffer *b = &reader_info(r)->buffers[buffer];
	struct stream *s = &m->streams[m->n_streams];
	int ret;

	*s = (struct stream){ .input = input, .buffer = buffer, .index = index };
	s->cpu = b->cpus[index].cpu;
	s->order = (unsigned int)m->n_streams;
	s->layout = reader_info(r)->layout;
	s->layout.size = b->page_size;
	ret = reader_pages_open(&s->pages, r, buffer, index);
	if (ret == -ENOMEM)
		return ret;
	m->n_streams++;
	if (ret)
		stream_damage(m, s, ret);
	ret = ret ? 0 : stream_next(m, s);
	if (ret == 1)
		m->heap[m->n++] = s;
	return ret < 0 ? ret : 0;
}

/* The top buffers of an input, or its instances. */
static int merge_add_buffers(struct merge *m, size_t input, bool top, merge_want *want, void *ctx)
{
	const struct reader_info *info = reader_info(m->inputs[input].reader);

	for (size_t b = 0; b < info->n_buffers; b++) {
		if (!*info->buffers[b].name != top)
			continue;
		for (size_t i = 0; i < info->buffers[b].n_cpus; i++) {
			const struct reader_cpu *cpu = &info->buffers[b].cpus[i];
			int ret = 0;

			if (cpu->size && (!want || want(ctx, input, b, cpu->cpu)))
				ret = merge_add_stream(m, input, b, i);
			if (ret)
				return ret;
		}
	}
	return 0;
}

static size_t merge_count_cpus(const struct merge_input *inputs, size_t n)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++) {
		const struct reader_info *info = reader_info(inputs[i].reader);

		for (size_t b = 0; b < info->n_buffers; b++)
			count += info->buffers[b].n_cpus;
	}
	return count;
}

int merge_open(struct merge **out, const struct merge_input *inputs, size_t n, merge_want *want, void *ctx,
	       const struct log *log)
{
	size_t room = merge_count_cpus(inputs, n) + 1;
	struct merge *m = calloc(1, sizeof(*m));
	int ret = -ENOMEM;

	if (!m)
		return ret;
	m->inputs = inputs;
	m->log = log;
	m->streams = calloc(room, sizeof(*m->streams));
	m->heap = calloc(room, sizeof(struct stream *));
	if (!m->streams || !m->heap)
		goto fail;
	for (size_t i = 0; i < 2 * n; i++) {
		ret = merge_add_buffers(m, i % n, i < n, want, ctx);
		if (ret)
			goto fail;
	}
	for (size_t i = m->n; i-- > 0;)
		heap_sift_down(m, i);
	*out = m;
	return 0;
fail:
	merge_close(m);
	return ret;
}

void merge_close(struct merge *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->n_streams; i++)
		reader_pages_close(m->streams[i].pages);
	free(m->streams);
	free(m->heap);
	free(m);
}
