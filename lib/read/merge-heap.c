// SPDX-License-Identifier: LGPL-2.1-or-later
/* Merges the pages of all CPUs into one order by time: a heap of the CPUs' next records. */
#include "read/merge.h"

#include <pthread.h>

#include "file/dat/options.h"
#include "base/strings.h"
#include "base/workers.h"

/*
 * Bytes of pages that a run goes through, about, those of records that are not wanted included: a thread of a
 * pipeline holds some runs, with what is made of them, in its core's second cache.
 */
#define RUN_BYTES   (160u << 10)
#define STREAM_MASK 0x1fffffff /* merge_record has 29 bits for it */

/* One CPU of one buffer, with its next record. */
struct stream {
	struct merge_stream at;
	unsigned int order; /* of records with equal times */
	const struct filetime *time;
	uint64_t from, to; /* of the input; to 0: all */
	struct page_layout layout;
	const struct pauses *pauses; /* NULL: none */
	bool simple;		     /* all times are wanted, without pauses, and times only add */
	const uint32_t *events;	     /* by id, not 0: it is wanted; NULL: all are */
	size_t n_events;
	OWN_LINE struct reader_pages *pages;
	struct page_reader page; /* behind that record */
	struct page_event next;
	bool damaged;	   /* a page is, and that was said */
	bool held;	   /* the run holds the page's block */
	int64_t missed;	   /* before the next record */
	uint64_t ts, raw;  /* its, corrected and not, or those of a pause before it */
	atomic_bool last;  /* no record: only what was lost at the end */
	bool over;	   /* nothing is left, for merge_take_stream */
	size_t next_pause; /* for pauses_between */
	bool paused;	   /* one lies before the next record, and is not reported by itself */
	enum { PAUSE_NONE, PAUSE_FROM, PAUSE_TO } pause; /* comes before it */
};

struct merge {
	const struct merge_input *inputs;
	struct pauses *pauses; /* of each input */
	size_t n_inputs;
	const struct log *log;
	struct stream *streams;
	size_t n_streams;
	struct stream **heap; /* the earliest record at [0] */
	size_t n;
	pthread_mutex_t lock;	 /* for damage */
	uint64_t damaged, known; /* known: before it was opened */
	uint64_t from;		 /* merge_from */
	bool tell_pauses;
};

/* Adds to the loss before a record; with an unknown number in it the sum is unknown. */
static void stream_add_missed(struct stream *s, int64_t n)
{
	if (s->missed < 0 || n < 0 || s->missed > INT64_MAX - n)
		s->missed = -1;
	else
		s->missed += n;
}

static void stream_damage(struct merge *m, struct stream *s, int error)
{
	const struct reader_info *info = reader_info(m->inputs[s->at.input].reader);
	const char *buffer = info->buffers[s->at.buffer].name;

	stream_add_missed(s, -1);
	pthread_mutex_lock(&m->lock);
	m->damaged++;
	if (!s->damaged)
		log_warn(m->log, "%s: CPU %u%s%s has a %s page (%s): records are missing",
			 m->inputs[s->at.input].name, s->at.cpu, *buffer ? " of buffer " : "", buffer,
			 error == -EBADMSG ? "damaged" : "unreadable", errno_text(error));
	s->damaged = true;
	pthread_mutex_unlock(&m->lock);
}

/* True if all records of a page are before those that are wanted. */
static bool stream_page_early(const struct merge *m, const struct stream *s)
{
	uint64_t from = m->from > s->from ? m->from : s->from;
	const uint8_t *next = from ? reader_pages_ahead(s->pages) : NULL;
	struct page_reader page;

	return next && !page_reader_init(&page, &s->layout, next, s->layout.size) &&
	       filetime_apply(s->time, s->at.cpu, page.ts) < from;
}

/* 1: it is s->page; 0: there is none. */
static int stream_next_page(struct merge *m, struct stream *s)
{
	const uint8_t *data;
	int ret = reader_pages_next(s->pages, &data);

	s->held = false;
	while (ret == 1 && stream_page_early(m, s))
		ret = reader_pages_next(s->pages, &data);
	if (ret == 0 || ret == -ENOMEM)
		return ret;
	if (ret < 0) { /* nothing behind it can be found */
		stream_damage(m, s, ret);
		return 0;
	}
	ret = page_reader_init(&s->page, &s->layout, data, s->layout.size);
	if (ret) {
		stream_damage(m, s, ret);
		return 1;
	}
	/* a loss before a record that is not wanted is not wanted either */
	if (s->to && filetime_apply(s->time, s->at.cpu, s->page.ts) >= s->to) {
		s->page = (struct page_reader){ 0 };
		return 0;
	}
	if (s->page.missed)
		stream_add_missed(s, s->page.missed_count && s->page.missed_count <= INT64_MAX
					     ? (int64_t)s->page.missed_count
					     : -1);
	return 1;
}

static void stream_stamp(struct stream *s)
{
	s->raw = s->next.ts;
	s->ts = filetime_apply(s->time, s->at.cpu, s->raw);
}

static inline bool stream_wants(const struct stream *s, const struct page_event *ev)
{
	unsigned int id = page_event_id(ev->data, ev->len);

	return id < s->n_events && s->events[id];
}

/* To the page's next short record whose event is wanted, or the last of them; false: there is none. */
static inline bool stream_forward(const struct stream *s, struct page_reader *page, struct page_event *ev)
{
	if (!page_next_short(page, ev))
		return false;
	while (s->events && !stream_wants(s, ev) && page_next_short(page, ev))
		;
	return true;
}

/* To the next record, wanted or not, of this page or another. */
static int stream_more(struct merge *m, struct stream *s)
{
	int ret = !s->last;

	while (ret == 1) {
		int found = page_next(&s->page, &s->next);

		if (found == 1) {
			stream_stamp(s);
			return 1;
		}
		if (found < 0)
			stream_damage(m, s, found);
		else
			ret = stream_next_page(m, s);
	}
	if (!ret) {
		s->last = true;
		return s->missed != 0;
	}
	return ret;
}

/* Its next end, which is not outside of the records before and behind it. */
static void stream_pause_stamp(struct stream *s, uint64_t before)
{
	const struct pause *p = &s->pauses->v[s->next_pause];

	s->raw = s->pause == PAUSE_FROM ? p->from : p->to;
	s->raw = s->raw < before ? before : s->raw > s->next.ts ? s->next.ts : s->raw;
	s->ts = filetime_apply(s->time, s->at.cpu, s->raw);
}

/* Finds a pause between the record at `before` and the next. A loss there takes precedence. */
static void stream_pause(const struct merge *m, struct stream *s, uint64_t before)
{
	bool between = !s->last && pauses_between(s->pauses, before, s->next.ts, &s->next_pause);

	s->paused = between && !m->tell_pauses;
	if (!between || !m->tell_pauses || s->missed)
		return;
	s->pause = PAUSE_FROM;
	stream_pause_stamp(s, before);
}

/* The next record comes when all pauses before it have. */
static int stream_pause_next(const struct merge *m, struct stream *s)
{
	bool over = s->pause == PAUSE_TO;
	uint64_t before = s->raw;

	s->pause = over ? PAUSE_NONE : PAUSE_TO;
	if (!over)
		stream_pause_stamp(s, before);
	else if (s->pauses->v[s->next_pause].to < s->next.ts && ++s->next_pause)
		stream_pause(m, s, before);
	if (!s->pause)
		stream_stamp(s);
	return 1;
}

/* To the CPU's next record, wanted or not: 1; 0: none left. */
static int stream_step(struct merge *m, struct stream *s)
{
	uint64_t before = s->raw;
	int ret = 1;

	if (s->pause)
		return stream_pause_next(m, s);
	s->missed = 0;
	if (stream_forward(s, &s->page, &s->next))
		stream_stamp(s);
	else
		ret = stream_more(m, s);
	if (s->pauses)
		stream_pause(m, s, before);
	return ret;
}

/* To the stream's next record: 1; 0: none left. */
static int stream_next(struct merge *m, struct stream *s)
{
	int ret;

	do
		ret = stream_step(m, s);
	while (ret == 1 && s->to && (s->ts < s->from || s->ts >= s->to));
	return ret;
}

static void stream_record(const struct stream *s, struct merge_record *rec)
{
	const struct page_event *ev = &s->next;
	bool no_record = s->last || s->pause;

	*rec = (struct merge_record){ .ts = s->ts,
				      .raw = s->raw,
				      .data = no_record ? NULL : ev->data,
				      .len = no_record ? 0 : (uint32_t)ev->len,
				      .stream = s->order & STREAM_MASK,
				      .gap = s->pause == PAUSE_FROM,
				      .paused = s->paused || s->pause == PAUSE_TO,
				      .missed = s->pause ? 0 : s->missed };
}

static bool stream_before(const struct stream *a, const struct stream *b)
{
	return a->ts != b->ts ? a->ts < b->ts : a->order < b->order;
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

/* Stream that follows heap[0] in the order; NULL: none. */
static const struct stream *heap_second(const struct merge *m)
{
	if (m->n > 2 && stream_before(m->heap[2], m->heap[1]))
		return m->heap[2];
	return m->n > 1 ? m->heap[1] : NULL;
}

int merge_ahead(const struct merge *m, size_t input, size_t buffer, struct merge_record *rec)
{
	const struct stream *first = NULL;

	for (size_t i = 0; i < m->n; i++) {
		const struct stream *s = m->heap[i];

		if (s->at.input == input && s->at.buffer == buffer && (!first || stream_before(s, first)))
			first = s;
	}
	if (first)
		stream_record(first, rec);
	return !!first;
}

static int run_begin(struct merge_run *run)
{
	for (size_t i = 0; i < run->n_blocks; i++)
		reader_block_drop(run->blocks[i]);
	run->n = run->n_blocks = 0;
	run->most = run->most ?: MERGE_RUN_MAX;
	run->v = run->v ?: malloc(run->most * sizeof(*run->v));
	return run->v ? 0 : -ENOMEM;
}

void merge_run_release(struct merge_run *run)
{
	for (size_t i = 0; i < run->n_blocks; i++)
		reader_block_drop(run->blocks[i]);
	free(run->blocks);
	free(run->v);
	*run = (struct merge_run){ 0 };
}

static int run_hold(struct merge_run *run, struct stream *s)
{
	struct reader_block *block = reader_block_hold(s->pages);
	int ret = array_push_kept(&run->blocks, &run->blocks_room, &run->n_blocks, &block, sizeof(block));

	if (ret)
		reader_block_drop(block);
	s->held = !ret;
	return ret;
}

/*
 * Most records: those that stand beside no loss, pause or page, as long as it is the turn of s. False: the
 * next is none of these.
 */
static bool run_fill_simple(struct merge_run *run, struct stream *s, const struct stream *second,
			    size_t *bytes)
{
	const uint64_t until = second ? second->ts + (s->order < second->order) : UINT64_MAX;
	const uint64_t add = (uint64_t)s->time->add;
	const uint8_t *begin = s->next.data;
	struct merge_record *rec = run->v + run->n, *last = run->v + run->most, *first = rec;
	struct page_reader page = s->page;
	struct page_event ev = s->next, next = ev;
	uint32_t stream = s->order & STREAM_MASK;

	while (stream_forward(s, &page, &next)) {
		*rec++ = (struct merge_record){ .ts = ev.ts + add,
						.raw = ev.ts,
						.data = ev.data,
						.len = (uint32_t)ev.len,
						.bits = stream };
		ev = next;
		if (rec == last || ev.ts + add >= until)
			break;
	}
	s->page.p = page.p;
	s->page.ts = page.ts;
	s->next = ev;
	s->raw = ev.ts;
	s->ts = ev.ts + add;
	*bytes += (size_t)(ev.data - begin);
	run->n = (size_t)(rec - run->v);
	return rec > first;
}

/* From s, as long as it is its turn (NULL: nobody else waits): what stream_next said. */
static int run_fill(struct merge *m, struct merge_run *run, struct stream *s, const struct stream *second,
		    size_t *bytes)
{
	int ret;

	do {
		struct merge_record *rec = &run->v[run->n];

		ret = s->held || s->last ? 0 : run_hold(run, s);
		if (ret)
			return ret;
		if (s->simple && !s->missed && run_fill_simple(run, s, second, bytes)) {
			ret = 1;
			continue;
		}
		run->n++;
		stream_record(s, rec);
		*bytes += rec->len;
		ret = stream_next(m, s);
		if (!ret)
			rec->end = true;
		else if (s->missed || s->paused)
			rec->gap = ret == 1;
	} while (ret == 1 && run->n < run->most && *bytes < RUN_BYTES &&
		 (!second || stream_before(s, second)));
	return ret;
}

int merge_take(struct merge *m, struct merge_run *run)
{
	size_t bytes = 0;
	int ret = run_begin(run);

	for (size_t i = 0; i < m->n_streams; i++)
		m->streams[i].held = false;
	while (ret >= 0 && m->n && run->n < run->most && bytes < RUN_BYTES) {
		ret = run_fill(m, run, m->heap[0], heap_second(m), &bytes);
		if (ret >= 0)
			heap_settle(m, ret);
	}
	return ret < 0 ? ret : run->n > 0;
}

void merge_unpack_beside(struct merge *m)
{
	for (size_t i = 0; i < m->n_streams; i++)
		if (m->streams[i].pages)
			reader_pages_beside(m->streams[i].pages);
}

size_t merge_streams(const struct merge *m)
{
	return m->n_streams;
}

int merge_take_stream(struct merge *m, size_t stream, struct merge_run *run)
{
	struct stream *s = &m->streams[stream];
	size_t bytes = 0;
	int ret = run_begin(run);

	if (ret || s->over)
		return ret;
	s->held = false;
	ret = run_fill(m, run, s, NULL, &bytes);
	s->over = !ret;
	return ret < 0 ? ret : 1;
}

int merge_seek(struct merge *m, size_t stream, uint64_t at)
{
	struct stream *s = &m->streams[stream];
	int ret = s->pages ? reader_pages_seek(s->pages, at) : 0;

	s->page = (struct page_reader){ 0 };
	s->next_pause = 0;
	s->last = false;
	s->pause = PAUSE_NONE;
	if (ret == 1)
		ret = stream_next(m, s);
	s->paused = false;
	s->over = ret != 1;
	return ret;
}

bool merge_run_place(const struct merge_run *run, const struct merge_record *rec, size_t *block, uint64_t *at)
{
	for (size_t i = 0; rec->data && i < run->n_blocks; i++, ++*block) {
		if (*block >= run->n_blocks)
			*block = 0;
		if (reader_block_has(run->blocks[*block], rec->data, at))
			return true;
	}
	return false;
}

void merge_tell_pauses(struct merge *m)
{
	m->tell_pauses = true;
}

void merge_from(struct merge *m, uint64_t ts)
{
	m->from = ts;
}

void merge_events(struct merge *m, size_t input, const uint32_t *wanted, size_t n)
{
	for (size_t i = 0; i < m->n_streams; i++) {
		struct stream *s = &m->streams[i];

		if (s->at.input != input || s->pauses) /* a pause is between two neighbours */
			continue;
		s->events = wanted;
		s->n_events = n;
	}
}

const struct merge_stream *merge_stream(const struct merge *m, const struct merge_record *rec)
{
	return &m->streams[rec->stream].at;
}

const struct merge_stream *merge_stream_at(const struct merge *m, size_t stream)
{
	return &m->streams[stream].at;
}

double merge_fraction(const struct merge *m)
{
	uint64_t done = 0, total = 0;

	for (size_t i = 0; i < m->n_streams; i++) {
		const struct stream *s = &m->streams[i];
		const struct reader_info *info = reader_info(m->inputs[s->at.input].reader);
		const struct reader_cpu *cpu = &info->buffers[s->at.buffer].cpus[s->at.index];

		total += cpu->size;
		done += s->pages && !s->last ? reader_pages_done(s->pages) : cpu->size;
	}
	return done < total ? (double)done / (double)total : 1;
}

uint64_t merge_damaged(const struct merge *m)
{
	return m->damaged > m->known ? m->damaged : m->known;
}

void merge_damage_known(struct merge *m, uint64_t places)
{
	m->known = places;
}

static int merge_add_stream(struct merge *m, size_t input, size_t buffer, size_t index)
{
	const struct reader *r = m->inputs[input].reader;
	const struct reader_buffer *b = &reader_info(r)->buffers[buffer];
	struct stream *s = &m->streams[m->n_streams];
	int ret;

	*s = (struct stream){ .at = { input, buffer, index, b->cpus[index].cpu } };
	s->time = &m->inputs[input].time;
	s->from = m->inputs[input].from;
	s->to = m->inputs[input].to;
	s->order = (unsigned int)m->n_streams;
	s->layout = reader_info(r)->layout;
	s->layout.size = b->page_size;
	/* pauses are by one clock; a version 6 file has but one */
	if (m->pauses[input].n && (!*b->clock || !strcmp(b->clock, reader_option(r, DAT_PAUSES)->data.data)))
		s->pauses = &m->pauses[input];
	s->simple = !s->pauses && !s->to && filetime_adds(s->time);
	ret = reader_pages_open(&s->pages, r, buffer, index);
	m->n_streams++;
	if (ret == -ENOMEM)
		return ret;
	if (ret)
		stream_damage(m, s, ret);
	ret = ret ? 0 : stream_next(m, s);
	s->paused = false;
	s->over = ret != 1;
	s->at.gap = s->missed != 0;
	if (!s->over)
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

int merge_open(struct merge **out, const struct merge_input *inputs, size_t n, merge_want *want, void *ctx,
	       const struct log *log)
{
	struct merge *m = calloc(1, sizeof(*m));
	size_t room = 1;
	int ret = -ENOMEM;

	if (!m)
		return ret;
	for (size_t i = 0; i < n; i++) {
		const struct reader_info *info = reader_info(inputs[i].reader);

		for (size_t b = 0; b < info->n_buffers; b++)
			room += info->buffers[b].n_cpus;
	}
	pthread_mutex_init(&m->lock, NULL);
	m->inputs = inputs;
	m->log = log;
	m->streams = cache_lines_new(room, sizeof(*m->streams));
	m->heap = cache_lines_new(room, sizeof(struct stream *));
	m->pauses = calloc(n + 1, sizeof(*m->pauses));
	if (!m->streams || !m->heap || !m->pauses)
		goto fail;
	for (m->n_inputs = 0; m->n_inputs < n; m->n_inputs++) {
		const struct merge_input *in = &inputs[m->n_inputs];
		const struct reader_option *o = reader_option(in->reader, DAT_PAUSES);

		ret = o ? pauses_decode(o->data.data, o->data.len, &m->pauses[m->n_inputs]) : 0;
		if (ret == -EBADMSG)
			log_warn(log, "%s: what it says about pauses between regions makes no sense",
				 in->name);
		if (ret == -ENOMEM)
			goto fail;
	}
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
	for (size_t i = 0; i < m->n_inputs; i++)
		pauses_release(&m->pauses[i]);
	free(m->pauses);
	free(m->streams);
	free(m->heap);
	pthread_mutex_destroy(&m->lock);
	free(m);
}
