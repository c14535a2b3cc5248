// SPDX-License-Identifier: LGPL-2.1-or-later
/* Pairs the begins and ends that crosvm and hypertrace write into trace_marker, or guests into rings. */
#include "analysis/markers.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "analysis/gaps.h"
#include "analysis/mark-fields.h"
#include "decode/crosvm.h"
#include "util/array.h"

#define THREADS_MAX 4096
#define NAMES_MAX   4096

/* A line of a run; its name lies in the record, or is the description's. */
struct marker {
	uint64_t ts, id;
	const char *name, *guest;
	uint32_t len, guest_len, stream;
	uint64_t who;					       /* thread, or a guest's client */
	int8_t way;					       /* 1: a begin; -1: an end; 0: see `missing` */
	enum { MISSING_ON, MISSING_TO, MISSING_LAST } missing; /* events, from here on, or up to here */
	uint8_t kind;
};

struct marker_run {
	struct marker *v;
	size_t n, room;
};

struct marker_lane {
	uint64_t since, id;
	uint64_t inside; /* ns of those within it */
	uint32_t row;	 /* 1 + its index; 0: free */
};

struct marker_thread {
	size_t input;
	uint32_t buffer; /* gaps_buffer() */
	uint64_t who;	 /* as a marker's */
	char client[48]; /* "": a thread */
	struct marker_lane lanes[MARKERS_OPEN];
};

struct markers {
	const struct hypertrace_desc *desc;
	struct field_load *texts;   /* ftrace:print's, by input */
	struct marks_fields *marks; /* guest_hypertrace's, by input */
	struct markers_row *rows;
	size_t n_rows;
	struct marker_thread *threads;
	size_t n_threads;
	/* open addressing, half full at most: 1 + index */
	uint16_t by_name[2 * NAMES_MAX], by_thread[2 * THREADS_MAX];
	struct gaps gaps;
	struct markers_cut cut;
	markers_listener *ended;
	void *ctx;
};

/* ---- lines ---------------------------------------------------------------------------------------- */

static bool marker_crosvm(const struct crosvm_line *line, struct marker *to)
{
	to->kind = MARKERS_CROSVM;
	to->id = line->id;
	to->name = line->name.p ?: "";
	to->len = (uint32_t)line->name.len;
	to->way = line->enter ? 1 : -1;
	return true;
}

static bool marker_hypertrace(const struct hypertrace_desc *desc, const struct hypertrace_event *e,
			      struct marker *to)
{
	int way = 0;

	to->kind = MARKERS_HYPERTRACE;
	to->name = hypertrace_name(desc, e);
	to->len = to->name ? (uint32_t)hypertrace_span_name(to->name, &way) : 0;
	to->way = (int8_t)way;
	return way;
}

/* False: the record is neither's. */
static bool marker_read(const struct markers *m, const struct step *s, const struct merge_record *r,
			struct marker *to)
{
	struct hypertrace_event event;
	struct crosvm_line line;
	const uint8_t *data;
	size_t n;

	*to = (struct marker){ .ts = s->ts, .stream = s->stream, .who = (uint32_t)s->pid };
	if (field_load_bytes(&m->texts[s->input], r->data, r->len, &data, &n) != 1)
		return false;
	n = strnlen((const char *)data, n);
	while (n && (data[n - 1] == '\n' || data[n - 1] == '\r'))
		n--;
	if (crosvm_line_parse((const char *)data, n, &line))
		return marker_crosvm(&line, to);
	return m->desc && hypertrace_line_parse((const char *)data, n, &event) &&
	       marker_hypertrace(m->desc, &event, to);
}

/* False: it begins or ends nothing. */
static bool marker_mark(const struct markers *m, const struct step *s, const struct merge_record *r,
			struct marker *to)
{
	struct hypertrace_event event;
	const char *guest;
	size_t n;

	*to = (struct marker){ .ts = s->ts, .stream = s->stream };
	if (!m->desc || !marks_load(&m->marks[s->input], r->data, r->len, &event, &guest, &n))
		return false;
	to->who = hypertrace_source(event.client, guest, n);
	to->guest = guest;
	to->guest_len = (uint32_t)n;
	return marker_hypertrace(m->desc, &event, to);
}

/* A line has no client. */
static bool marker_of(const struct markers *m, const struct step *s, const struct merge_record *r,
		      struct marker *to)
{
	if (s->kind != STEP_PRINT)
		return false;
	return s->a == STEP_UNKNOWN ? marker_read(m, s, r, to) : marker_mark(m, s, r, to);
}

static int marker_push(struct marker_run *run, const struct marker *new)
{
	struct marker *v;

	if (run->n == run->room) {
		v = realloc(run->v, (2 * run->room + 64) * sizeof(*v));
		if (!v)
			return -ENOMEM;
		run->v = v;
		run->room = 2 * run->room + 64;
	}
	run->v[run->n++] = *new;
	return 0;
}

static int markers_work(void *ctx, struct pass_run *run)
{
	const struct markers *m = ctx;
	struct marker_run *own = run->own;

	if (!own)
		run->own = own = calloc(1, sizeof(*own));
	if (!own)
		return -ENOMEM;
	own->n = 0;
	for (size_t i = 0; i < run->n_steps; i++) {
		const struct step *s = &run->steps[i];
		struct marker new = { .stream = s->stream };

		if (s->kind == STEP_LOST)
			new.missing = s->b ? MISSING_LAST : MISSING_TO;
		else if (s->kind != STEP_GAP && !marker_of(m, s, &run->records->v[s->at], &new))
			continue;
		if (marker_push(own, &new))
			return -ENOMEM;
	}
	return 0;
}

static void marker_run_free(void *own)
{
	struct marker_run *r = own;

	free(r->v);
	free(r);
}

/* ---- names and threads ------------------------------------------------------------------------------ */

static uint64_t marker_hash(uint64_t h, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		h = (h ^ (uint8_t)s[i]) * 0x100000001b3;
	return (h * 0x9e3779b97f4a7c15) >> 32;
}

static bool marker_same(const struct markers_row *r, const struct marker *new, size_t input)
{
	return r->input == input && r->kind == new->kind && !strncmp(r->name, new->name, new->len) &&
	       !r->name[new->len];
}

/* *row: 1 + its index; 0: there are too many. */
static int marker_row(struct markers *m, const struct marker *new, size_t input, uint32_t *row)
{
	struct markers_row r = { .input = input, .kind = new->kind };
	size_t i = marker_hash(input * 2 + new->kind, new->name, new->len) % (2 * NAMES_MAX);

	while (m->by_name[i] && !marker_same(&m->rows[m->by_name[i] - 1], new, input))
		i = (i + 1) % (2 * NAMES_MAX);
	*row = m->by_name[i];
	if (*row || m->n_rows == NAMES_MAX)
		return 0;
	r.name = strndup(new->name, new->len);
	if (!r.name || array_push(&m->rows, &m->n_rows, &r, sizeof(r))) {
		free(r.name);
		return -ENOMEM;
	}
	*row = m->by_name[i] = (uint16_t)m->n_rows;
	return 0;
}

/* NULL: there are too many. */
static int marker_thread(struct markers *m, const struct marker *new, size_t input,
			 struct marker_thread **thread)
{
	struct marker_thread fresh = { .input = input,
				       .buffer = gaps_buffer(&m->gaps, new->stream),
				       .who = new->who };
	size_t i = marker_hash(new->who * 31 + input, "", 0) % (2 * THREADS_MAX);

	for (; m->by_thread[i]; i = (i + 1) % (2 * THREADS_MAX)) {
		*thread = &m->threads[m->by_thread[i] - 1];
		if ((*thread)->who == new->who && (*thread)->input == input)
			return 0;
	}
	*thread = NULL;
	if (m->n_threads == THREADS_MAX)
		return 0;
	if (new->guest)
		snprintf(fresh.client, sizeof(fresh.client), "%.*s client %u", (int)new->guest_len,
			 new->guest, (unsigned int)new->who);
	if (array_push(&m->threads, &m->n_threads, &fresh, sizeof(fresh)))
		return -ENOMEM;
	m->by_thread[i] = (uint16_t)m->n_threads;
	*thread = &m->threads[m->n_threads - 1];
	return 0;
}

/* ---- spans, in order ----------------------------------------------------------------------------------- */

/* Ends of so many were lost that the first one is taken for lost, too. */
static void marker_begin(struct markers *m, struct marker_thread *t, const struct marker *new, uint32_t row)
{
	struct marker_lane *lane = &t->lanes[0];

	for (size_t i = MARKERS_OPEN; i-- > 0;)
		if (!t->lanes[i].row)
			lane = &t->lanes[i];
	m->cut.begins += lane->row != 0;
	*lane = (struct marker_lane){ .since = new->ts, .id = new->id, .row = row };
}

/* crosvm's ids tell its spans apart, hypertrace's have none but their names. */
static bool marker_ends(const struct markers *m, const struct marker_lane *l, const struct marker *new,
			uint32_t row)
{
	return l->row && m->rows[l->row - 1].kind == new->kind && l->id == new->id &&
	       (new->kind == MARKERS_CROSVM || l->row == row);
}

/* What is open around it, from the outermost on. The innermost of those learns how long it took. */
static int marker_tell(struct markers *m, struct marker_thread *t, const struct marker_lane *lane,
		       uint64_t ns)
{
	struct markers_span span = { .input = t->input,
				     .pid = (int32_t)t->who,
				     .client = *t->client ? t->client : NULL,
				     .own = ns > lane->inside ? ns - lane->inside : 0 };
	struct marker_lane *around[MARKERS_OPEN] = { 0 }, *l;

	for (size_t i = 0; i < MARKERS_OPEN; i++) {
		size_t at = span.n;

		l = &t->lanes[i];
		if (!l->row || l == lane || l->since > lane->since)
			continue;
		for (; at && around[at - 1]->since > l->since; at--)
			around[at] = around[at - 1];
		around[at] = l;
		span.n++;
	}
	if (span.n)
		around[span.n - 1]->inside += ns;
	for (size_t i = 0; i < span.n; i++)
		span.names[i] = m->rows[around[i]->row - 1].name;
	span.names[span.n++] = m->rows[lane->row - 1].name;
	return m->ended(m->ctx, &span);
}

/* The latest that began. */
static int marker_end(struct markers *m, struct marker_thread *t, const struct marker *new, uint32_t row)
{
	struct marker_lane *lane = NULL;
	int ret = 0;

	for (size_t i = 0; i < MARKERS_OPEN; i++) {
		struct marker_lane *l = &t->lanes[i];

		if (marker_ends(m, l, new, row) && (!lane || l->since > lane->since))
			lane = l;
	}
	if (lane && new->ts >= lane->since) {
		ret = histogram_add(&m->rows[lane->row - 1].time, new->ts - lane->since);
		if (!ret && m->ended)
			ret = marker_tell(m, t, lane, new->ts - lane->since);
	} else {
		m->cut.ends++;
	}
	if (lane)
		lane->row = 0;
	return ret;
}

/* crosvm: its ids are good beyond a loss. */
static void marker_forget(struct markers *m, struct marker_thread *t, bool crosvm)
{
	for (size_t i = 0; i < MARKERS_OPEN; i++) {
		struct marker_lane *l = &t->lanes[i];

		if (!l->row || (!crosvm && m->rows[l->row - 1].kind == MARKERS_CROSVM))
			continue;
		m->cut.begins++;
		l->row = 0;
	}
}

static void marker_missing(struct markers *m, const struct marker *new)
{
	for (size_t i = 0; i < m->n_threads; i++)
		if (m->threads[i].buffer == gaps_buffer(&m->gaps, new->stream))
			marker_forget(m, &m->threads[i], false);
	if (new->missing == MISSING_ON)
		gaps_start(&m->gaps, new->stream);
	else if (new->missing == MISSING_TO)
		gaps_stop(&m->gaps, new->stream);
}

static int marker_line(struct markers *m, const struct marker *new)
{
	size_t input = m->gaps.v[new->stream].of->input;
	struct marker_thread *t;
	uint32_t row;
	int ret = marker_row(m, new, input, &row) ?: marker_thread(m, new, input, &t);

	if (ret)
		return ret;
	if (!row || !t || t->buffer != gaps_buffer(&m->gaps, new->stream))
		m->cut.others++;
	else if (new->kind != MARKERS_CROSVM && gaps_any(&m->gaps, new->stream))
		*(new->way > 0 ? &m->cut.begins : &m->cut.ends) += 1;
	else if (new->way > 0)
		marker_begin(m, t, new, row);
	else
		ret = marker_end(m, t, new, row);
	return ret;
}

static int marker_step(struct markers *m, const struct marker *new)
{
	if (new->way)
		return marker_line(m, new);
	marker_missing(m, new);
	return 0;
}

static int markers_after(void *ctx, struct pass_run *run)
{
	const struct marker_run *own = run->own;
	struct markers *m = ctx;
	int ret = 0;

	for (size_t i = 0; i < own->n && !ret; i++)
		ret = marker_step(m, &own->v[i]);
	return ret;
}

struct pass_part markers_part(struct markers *m)
{
	return (struct pass_part){ .ctx = m,
				   .steps = STEP_SET(STEP_PRINT),
				   .work = markers_work,
				   .after = markers_after,
				   .release = marker_run_free };
}

/* ---- the whole ----------------------------------------------------------------------------- */

int markers_open(struct markers **out, const struct inputs *in, const struct timeline *t,
		 const struct hypertrace_desc *desc)
{
	struct markers *m = calloc(1, sizeof(*m));

	if (!m)
		return -ENOMEM;
	m->desc = desc;
	m->texts = calloc(in->n + 1, sizeof(*m->texts));
	m->marks = calloc(in->n + 1, sizeof(*m->marks));
	if (!m->texts || !m->marks || gaps_open(&m->gaps, t)) {
		markers_close(m);
		return -ENOMEM;
	}
	for (size_t i = 0; i < in->n; i++) {
		struct tep_event *print = tep_find_event_by_name(in->v[i].tep, "ftrace", "print");

		struct tep_event *mark = tep_find_event_by_name(in->v[i].tep, MARKS_SYSTEM, HYPERTRACE_EVENT);

		m->texts[i] = field_load(print ? tep_find_field(print, "buf") : NULL);
		if (mark)
			m->marks[i] = marks_fields(mark);
	}
	*out = m;
	return 0;
}

void markers_close(struct markers *m)
{
	if (!m)
		return;
	for (size_t i = 0; i < m->n_rows; i++) {
		histogram_release(&m->rows[i].time);
		free(m->rows[i].name);
	}
	free(m->rows);
	free(m->threads);
	gaps_release(&m->gaps);
	free(m->texts);
	free(m->marks);
	free(m);
}

void markers_listen(struct markers *m, markers_listener *ended, void *ctx)
{
	m->ended = ended;
	m->ctx = ctx;
}

void markers_finish(struct markers *m)
{
	for (size_t i = 0; i < m->n_threads; i++)
		marker_forget(m, &m->threads[i], true);
}

const struct markers_row *markers_rows(const struct markers *m, size_t *n)
{
	*n = m->n_rows;
	return m->rows;
}

struct markers_cut markers_cut(const struct markers *m)
{
	return m->cut;
}
