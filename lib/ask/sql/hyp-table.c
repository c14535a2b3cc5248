// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The tables of times in the hypervisor: Perfetto's slices and pkvm_hypervisor_events, and hyp_calls, which
 * has all that is known. Rows come in the order of time, or grouped by CPU and reason, as GROUP BY wants
 * them: then all are looked through for each reason, which is less work than SQLite's sorting. Of a reading
 * that several tables share they come stream by stream.
 */
#include "ask/states/reading.h"
#include "ask/sql/sql-priv.h"

/* Visits of a stream that are kept until they are given: differences of ids are small among them. */
#define STREAM_ROWS 1024

struct sql_span_cursor {
	struct sql_cursor c;
	bool by_id, lost; /* lost: those without an end, too */
	/* by CPU, input and buffer */
	struct sql_feed *feeds;
	size_t n_feeds;
	int wanted,
		same; /* pkvm_hypervisor_events: the reason's word, and hyp_enter's for it; -1: any, none */
	/* a pass: one look through the feeds from `from` to `to`, which are all or those of one CPU, for the
	 * reason order[word], or, if that is empty, for any */
	size_t from, to, feed; /* feed: the one that is read; by time: all are */
	uint8_t order[256];
	size_t n_order, word;
	bool seen[256]; /* reasons, in the first pass of each range: for word 0 */
	struct sql_span_row {
		struct sql_span span;
		size_t stream;
	} own[SQL_ROWS];
	const struct sql_span_row *rows; /* those that next() has made, or of a stream */
	/* of a reading that others share: */
	struct sql_scan scan;
	struct sql_span_stream {
		struct sql_span_maker maker;
		size_t n; /* not given yet */
		struct sql_span_row rows[STREAM_ROWS];
	} * streams;
};

/* A reason of hyp_enter's own is found by the name of Perfetto's event for it, too. */
static void sql_span_wanted(struct sql_span_cursor *c)
{
	const struct sql_hyp *h = c->c.sql->hyp;
	const char *reason = c->c.want.reason;

	c->wanted = c->same = -1;
	if (!c->c.want.by_reason)
		return;
	c->wanted = reason ? sql_hyp_word(h, reason) : 0;
	if (reason && !c->wanted)
		c->wanted = ARRAY_SIZE(h->words); /* no span's */
	for (size_t i = 1; reason && i <= h->n_words; i++) {
		const char *event = visit_reason_event(h->words[i]);

		if (event && !strcmp(event, reason))
			c->same = (int)i;
	}
}

/* The reason as Perfetto has it: by the event. */
static uint8_t sql_span_word(const struct sql_span *v)
{
	return v->event ?: v->reason;
}

static int sql_span_by_cpu(const void *a, const void *b, void *sql)
{
	const struct sql *s = sql;
	size_t x = ((const struct sql_feed *)a)->stream, y = ((const struct sql_feed *)b)->stream;

	return ORDER(s->streams[x].cpu, s->streams[y].cpu) ?: ORDER(x, y);
}

/* All reasons as SQLite orders them: NULL, then by their bytes. */
static void sql_span_order(struct sql_span_cursor *c)
{
	const struct sql_hyp *h = c->c.sql->hyp;

	for (size_t i = 0; i <= h->n_words; i++) {
		size_t k = i;

		for (; k > 1 && strcmp(h->words[c->order[k - 1]], h->words[i]) > 0; k--)
			c->order[k] = c->order[k - 1];
		c->order[k] = (uint8_t)i;
	}
	c->n_order = h->n_words + 1;
}

static void sql_span_close(struct sql_cursor *cursor)
{
	struct sql_span_cursor *c = (struct sql_span_cursor *)cursor;

	for (size_t i = 0; i < c->n_feeds; i++) {
		sql_scan_close(&c->feeds[i].scan);
		free(c->feeds[i].room);
	}
	free(c->feeds);
	sql_scan_close(&c->scan);
	free(c->streams);
}

static int sql_span_filter(struct sql_cursor *cursor)
{
	struct sql_span_cursor *c = (struct sql_span_cursor *)cursor;
	const struct sql_want *w = &cursor->want;
	struct sql *s = cursor->sql;
	int ret;

	c->rows = c->own;
	c->lost = cursor->table == &sql_calls_table;
	c->by_id = w->id.from == w->id.to;
	ret = sql_hyp_open(s);
	if (ret || c->by_id)
		return ret;
	/* who wants a part of the time reads that alone */
	if (w->ts.from == INT64_MIN && w->ts.to == INT64_MAX)
		ret = sql_hyp_load(s);
	sql_span_wanted(c);
	if (ret)
		return ret;
	c->feeds = calloc(s->n_streams + 1, sizeof(*c->feeds));
	if (!c->feeds)
		return -ENOMEM;
	for (size_t i = 0; i < s->n_streams; i++)
		if (s->streams[i].hyp && sql_in(&w->cpu, s->streams[i].cpu) &&
		    (!w->by_machine || (w->machine && !strcmp(w->machine, sql_input(s, i)->machine))))
			sql_feed_begin(&c->feeds[c->n_feeds++], s, i);
	qsort_r(c->feeds, c->n_feeds, sizeof(*c->feeds), sql_span_by_cpu, s);
	if (w->order == ORDER_REASON || w->order == ORDER_CPU_REASON)
		sql_span_order(c);
	return 0;
}

static bool sql_span_fits(const struct sql_span_cursor *c, const struct sql_span *v, int word)
{
	const struct sql_want *w = &c->c.want;

	return (word < 0 || sql_span_word(v) == word) &&
	       (c->wanted < 0 || sql_span_word(v) == c->wanted || sql_span_word(v) == c->same) &&
	       (c->lost || v->dur >= 0) && sql_in(&w->dur, v->dur) && sql_in(&w->ts, sql_ts(v->ts));
}

/* To the feed's next span that is wanted: 1; 0: there is none. */
static int sql_span_seek(struct sql_span_cursor *c, size_t feed, int word)
{
	struct sql_feed *f = &c->feeds[feed];

	for (;;) {
		int ret;

		for (; f->i < f->n; f->i++) {
			if (!word)
				c->seen[sql_span_word(&f->v[f->i])] = true;
			if (sql_span_fits(c, &f->v[f->i], word))
				return 1;
		}
		ret = sql_stopped(c->c.sql) ? -EINTR : sql_feed_more(f, &c->c.want);
		if (ret != 1)
			return ret;
	}
}

/* Notes the name that this kernel's hyp_enter gives the row's reason, if that has no event of its own. */
static bool sql_span_note(struct sql_span_cursor *c, const struct sql_span_row *row)
{
	struct sql *s = c->c.sql;

	if (c->same < 0 || sql_span_word(&row->span) != c->same)
		return false;
	sql_note(s,
		 "%s: this kernel has no event %s: rows are those that its hyp_enter calls %s, without the "
		 "event's arguments",
		 sql_input(s, row->stream)->machine, c->c.want.reason, s->hyp->words[c->same]);
	return true;
}

static int sql_span_give_row(struct sql_span_cursor *c, struct sql_feed *f, struct sql_span_row *row)
{
	row->span = f->v[f->i++];
	row->stream = f->stream;
	f->noted = f->noted || sql_span_note(c, row);
	return 1;
}

/* All feeds side by side: the earliest. */
static int sql_span_next_by_time(struct sql_span_cursor *c, struct sql_span_row *row)
{
	struct sql_feed *first = NULL;

	for (size_t i = 0; i < c->n_feeds; i++) {
		struct sql_feed *f = &c->feeds[i];
		int ret = f->done ? 0 : sql_span_seek(c, i, -1);

		if (ret < 0)
			return ret;
		f->done = !ret;
		if (ret && (!first || f->v[f->i].ts < first->v[first->i].ts))
			first = f;
	}
	return first ? sql_span_give_row(c, first, row) : 0;
}

/* The next pass: for the next reason, else through the next feeds. False: there is none. */
static bool sql_span_pass(struct sql_span_cursor *c)
{
	const struct sql_stream *of = c->c.sql->streams;

	if (c->from == c->to || ++c->word >= c->n_order) {
		c->word = 0;
		c->from = c->to;
		while (c->to < c->n_feeds &&
		       (c->c.want.order != ORDER_CPU_REASON ||
			of[c->feeds[c->to].stream].cpu == of[c->feeds[c->from].stream].cpu))
			c->to++;
	}
	c->feed = c->from;
	return c->from < c->to;
}

/* One feed after the other, pass after pass. */
static int sql_span_next_by_pass(struct sql_span_cursor *c, struct sql_span_row *row)
{
	for (;;) {
		int word = c->n_order ? c->order[c->word] : -1, ret;

		if (c->feed == c->to || (word > 0 && !c->seen[word])) {
			if (!sql_span_pass(c))
				return 0;
			continue;
		}
		ret = sql_span_seek(c, c->feed, word);
		if (ret)
			return ret < 0 ? ret : sql_span_give_row(c, &c->feeds[c->feed], row);
		sql_feed_begin(&c->feeds[c->feed], c->c.sql, c->feeds[c->feed].stream);
		c->feed++;
	}
}

/* The one with the id, once: from its hyp_enter on. */
static int sql_span_one(struct sql_span_cursor *c, struct sql_span_row *row)
{
	struct sql *s = c->c.sql;
	int64_t id = c->c.want.id.from;
	int ret;

	row->stream = sql_id_stream(id);
	if (c->c.row || id < 0 || sql_id_kind(id) != ID_HYP || row->stream >= s->n_streams)
		return 0;
	ret = sql_span_read(s, row->stream, sql_id_record(id), &row->span, NULL);
	if (ret != 1)
		return ret;
	/* only now are its words known; SQLite does not test reasons again */
	sql_span_wanted(c);
	if (!sql_span_fits(c, &row->span, -1))
		return 0;
	sql_span_note(c, row);
	return 1;
}

static int sql_span_next(struct sql_cursor *cursor)
{
	struct sql_span_cursor *c = (struct sql_span_cursor *)cursor;
	bool by_time = cursor->want.order == ORDER_ANY || cursor->want.order == ORDER_TS;
	int n = 0, ret = 1;

	if (c->by_id)
		return sql_span_one(c, c->own);
	while (n < SQL_ROWS && ret == 1) {
		ret = by_time ? sql_span_next_by_time(c, &c->own[n]) : sql_span_next_by_pass(c, &c->own[n]);
		n += ret == 1;
	}
	return ret < 0 ? ret : n;
}

static int sql_span_give(struct sql_span_cursor *c, struct sql_span_stream *of)
{
	size_t n = of->n;

	c->rows = of->rows;
	of->n = 0;
	return sql_cursor_give(&c->c, n);
}

/* The stream's visits that end among its maker's records become rows; last: the one without an end, too. */
static int sql_span_add(struct sql_span_cursor *c, size_t i, bool last)
{
	struct sql_span_stream *of = &c->streams[i];
	const struct sql *s = c->c.sql;
	struct sql_span span;
	int ret = 0;

	while (!ret &&
	       (sql_spans_next(s, &of->maker, &span) || (last && sql_span_last(s, &of->maker, &span)))) {
		if (!sql_span_fits(c, &span, -1))
			continue;
		of->rows[of->n++] = (struct sql_span_row){ span, c->scan.map[i] };
		if (of->n == STREAM_ROWS)
			ret = sql_span_give(c, of);
	}
	return ret || !last ? ret : sql_span_give(c, of);
}

static int sql_span_first(void *ctx, struct pass_run *run)
{
	struct sql_span_cursor *c = ctx;
	const struct merge_record *v = run->records->v;
	size_t n = run->records->n;
	int ret = 0;

	for (size_t from = 0, to; from < n && !ret; from = to) {
		uint32_t stream = v[from].stream;

		for (to = from + 1; to < n && v[to].stream == stream;)
			to++;
		if (!c->c.sql->streams[c->scan.map[stream]].hyp)
			continue;
		sql_spans_feed(&c->streams[stream].maker, c->scan.t, run->records, from, to);
		ret = sql_span_add(c, stream, false);
	}
	return ret;
}

static int sql_span_join(struct sql_cursor *cursor, struct reading *r)
{
	struct sql_span_cursor *c = (struct sql_span_cursor *)cursor;
	int ret = sql_hyp_open(cursor->sql) ?: sql_scan_join(&c->scan, cursor->sql, r->timeline);

	if (ret)
		return ret;
	c->lost = cursor->table == &sql_calls_table;
	sql_span_wanted(c);
	c->streams = calloc(c->scan.n + 1, sizeof(*c->streams));
	reading_add(r, (struct pass_part){ .ctx = c, .first = sql_span_first });
	return c->streams ? 0 : -ENOMEM;
}

static int sql_span_ended(struct sql_cursor *cursor)
{
	struct sql_span_cursor *c = (struct sql_span_cursor *)cursor;
	int ret = 0;

	for (size_t i = 0; i < c->scan.n && !ret; i++)
		ret = sql_span_add(c, i, true);
	return ret;
}

enum sql_span_what {
	SPAN_ID,
	SPAN_CPU,
	SPAN_TS,
	SPAN_DUR, /* NULL where no end was seen */
	SPAN_ENDED,
	SPAN_REASON,
	SPAN_REASON_EVENT, /* as Perfetto's view has it */
	SPAN_NAME,
	SPAN_LEFT,
	SPAN_VCPU,
	SPAN_GUEST,
	SPAN_GUEST_VCPU,
	SPAN_MACHINE,
	SPAN_CATEGORY,
	SPAN_TRACK,
	SPAN_DEPTH,
	SPAN_MACHINE_ID,
	SPAN_EVENT /* hyp_enter */
};

static int64_t sql_span_number(const struct sql_cursor *cursor)
{
	const struct sql_span_cursor *c = (const struct sql_span_cursor *)cursor;

	return sql_id(ID_HYP, c->rows[cursor->at].stream, c->rows[cursor->at].span.record);
}

static bool sql_span_values(struct sql_cursor *cursor, int i, size_t from, size_t n, union value *out)
{
	const struct sql_span_row *v = &((const struct sql_span_cursor *)cursor)->rows[from], *end = v + n;
	const struct sql *s = cursor->sql;
	const struct sql_stream *of = s->streams;
	const char *const *words = s->hyp->words;
	int what = cursor->table->columns[i].what;

	switch (what) {
	case SPAN_ID:
		SQL_NUMBERS(sql_id(ID_HYP, v->stream, v->span.record));
	case SPAN_MACHINE_ID:
		SQL_NUMBERS((int64_t)of[v->stream].input);
	case SPAN_EVENT:
		SQL_NUMBERS(sql_id(ID_EVENT, v->stream, v->span.record));
	case SPAN_CPU:
		SQL_NUMBERS(of[v->stream].cpu);
	case SPAN_TS:
		SQL_NUMBERS(sql_ts(v->span.ts));
	case SPAN_DUR:
		SQL_NUMBERS(v->span.dur >= 0 ? v->span.dur : VALUE_NULL);
	case SPAN_VCPU:
		SQL_NUMBERS(v->span.vcpu ?: VALUE_NULL);
	case SPAN_GUEST:
		SQL_TEXTS(sql_guest(sql_input(s, v->stream), v->span.vcpu));
	case SPAN_GUEST_VCPU:
		SQL_NUMBERS(sql_vcpu(sql_input(s, v->stream), v->span.vcpu));
	case SPAN_TRACK:
		SQL_NUMBERS((int64_t)v->stream);
	case SPAN_DEPTH:
		SQL_NUMBERS(0);
	case SPAN_REASON:
		SQL_TEXTS(words[v->span.reason]);
	case SPAN_REASON_EVENT:
		SQL_TEXTS(words[sql_span_word(&v->span)]);
	case SPAN_NAME:
		SQL_TEXTS(words[v->span.reason] ?: "hyp");
	case SPAN_LEFT:
		SQL_TEXTS(words[v->span.left]);
	case SPAN_ENDED:
		SQL_TEXTS(v->span.dur == SPAN_DUR_LOST	 ? "lost"
			  : v->span.dur == SPAN_DUR_OPEN ? "open"
							 : "exit");
	case SPAN_MACHINE:
		SQL_TEXTS(sql_input(s, v->stream)->machine);
	case SPAN_CATEGORY:
		SQL_TEXTS("hyp");
	default: /* SQL_UTC_NS, SQL_UTC_BOUND */
		SQL_NUMBERS(sql_utc(s, of[v->stream].input, v->span.ts, 0, what));
	}
}

static const struct sql_column sql_slice_columns[] = {
	{ "id", "INTEGER", KEY_ID, SPAN_ID },
	{ "ts", "INTEGER", KEY_TS, SPAN_TS },
	{ "dur", "INTEGER", KEY_DUR, SPAN_DUR },
	{ "name", "TEXT", KEY_NONE, SPAN_NAME },
	{ "category", "TEXT", KEY_NONE, SPAN_CATEGORY },
	{ "cpu", "INTEGER", KEY_CPU, SPAN_CPU },
	{ "machine", "TEXT", KEY_MACHINE, SPAN_MACHINE },
	{ "track_id", "INTEGER", KEY_NONE, SPAN_TRACK },
	{ "depth", "INTEGER", KEY_NONE, SPAN_DEPTH },
	{ "arg_set_id", "INTEGER", KEY_ID, SPAN_ID },
	SQL_LAST_COLUMNS(SPAN_MACHINE_ID),
};

static const struct sql_column sql_pkvm_columns[] = {
	{ "slice_id", "INTEGER", KEY_ID, SPAN_ID },
	{ "cpu", "INTEGER", KEY_CPU, SPAN_CPU },
	{ "ts", "INTEGER", KEY_TS, SPAN_TS },
	{ "dur", "INTEGER", KEY_DUR, SPAN_DUR },
	{ "reason", "TEXT", KEY_REASON, SPAN_REASON_EVENT },
};

static const struct sql_column sql_call_columns[] = {
	{ "id", "INTEGER", KEY_ID, SPAN_ID },
	{ "ts", "INTEGER", KEY_TS, SPAN_TS },
	{ "dur", "INTEGER", KEY_DUR, SPAN_DUR },
	{ "machine", "TEXT", KEY_MACHINE, SPAN_MACHINE },
	{ "cpu", "INTEGER", KEY_CPU, SPAN_CPU },
	{ "reason", "TEXT", KEY_REASON, SPAN_REASON },
	{ "left_for", "TEXT", KEY_NONE, SPAN_LEFT },
	{ "ended", "TEXT", KEY_NONE, SPAN_ENDED },
	{ "tid", "INTEGER", KEY_NONE, SPAN_VCPU },
	{ "guest", "TEXT", KEY_NONE, SPAN_GUEST },
	{ "vcpu", "INTEGER", KEY_NONE, SPAN_GUEST_VCPU },
	{ "arg_set_id", "INTEGER", KEY_ID, SPAN_ID },
	{ "event_id", "INTEGER", KEY_NONE, SPAN_EVENT },
	SQL_LAST_COLUMNS(SPAN_MACHINE_ID),
};

#define SPAN_TABLE(table, of)                                                                                \
	.orders = 1u << ORDER_TS | 1u << ORDER_CPU | 1u << ORDER_CPU_REASON | 1u << ORDER_REASON,            \
	.bytes = 64, .patience = 100, .number = sql_span_number, .values = sql_span_values,                  \
	.join = sql_span_join, .last = sql_span_ended, SQL_TABLE(table, sql_##of##_columns, span)

const struct sql_table sql_slices_table = { SPAN_TABLE("slices", slice) };
const struct sql_table sql_pkvm_table = { SPAN_TABLE("pkvm_hypervisor_events", pkvm) };
const struct sql_table sql_calls_table = { SPAN_TABLE("hyp_calls", call) };
