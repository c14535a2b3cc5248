// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The tables of times in the hypervisor: Perfetto's slices and pkvm_hypervisor_events, and hyp_calls, which
 * has all that is known. Rows come in the order of time, or grouped by CPU and reason, as GROUP BY wants
 * them: then all are looked through for each reason, which is less work than SQLite's sorting.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sql/sql-priv.h"
#include "util/array.h"

/* One look through some of the feeds. */
struct sql_pass {
	size_t from, to; /* feeds */
	int word;	 /* reasons wanted; -1: all */
};

struct sql_span_cursor {
	struct sql_cursor c;
	bool by_id, lost; /* lost: those without an end, too */
	/* by CPU, input and buffer */
	struct sql_feed *feeds;
	size_t n_feeds;
	bool (*reasons)[256]; /* by feed: those that are wanted; NULL: all are */
	struct sql_pass *passes;
	size_t n_passes, pass, feed; /* the feed that is read; by time: all are */
	bool seen[256];		     /* reasons, in the first pass of each range: for word 0 */
	/* the row */
	struct sql_span span;
	size_t stream;
};

/* ---- reasons ------------------------------------------------------------------------------------ */

/* What Android's events are called by mainline's own field, for queries that were written for those. */
static const char *sql_span_mainline(const char *reason)
{
	static const char *const same[][2] = { { "host_mem_abort", "host_abort" },
					       { "host_hcall", "hvc" },
					       { "host_smc", "smc" } };

	for (size_t i = 0; i < ARRAY_SIZE(same); i++)
		if (!strcmp(same[i][0], reason))
			return same[i][1];
	return NULL;
}

static void sql_span_wanted(struct sql_span_cursor *c, size_t feed)
{
	struct sql *s = c->c.sql;
	size_t input = s->streams[c->feeds[feed].stream].input;
	const char *reason = c->c.want.reason, *other = reason ? sql_span_mainline(reason) : NULL;
	uint8_t word = reason ? sql_hyp_word(s->hyp, reason) : 0;
	uint8_t there = other ? sql_hyp_word(s->hyp, other) : 0;

	c->reasons[feed][word] = word || !reason;
	if (!there || (word && sql_hyp_tells(s, input, word)))
		return;
	c->reasons[feed][there] = true;
	sql_note(s,
		 "%s: this kernel has no event %s: rows are those that its hyp_enter calls %s, without the "
		 "event's arguments",
		 s->in->v[input].machine, reason, other);
}

/* ---- feeds and passes ------------------------------------------------------------------------------ */

static int sql_span_by_cpu(const void *a, const void *b, void *sql)
{
	const struct sql *s = sql;
	size_t x = ((const struct sql_feed *)a)->stream, y = ((const struct sql_feed *)b)->stream;

	if (s->streams[x].cpu != s->streams[y].cpu)
		return s->streams[x].cpu < s->streams[y].cpu ? -1 : 1;
	return x < y ? -1 : x > y;
}

static bool sql_span_stream_wanted(const struct sql_span_cursor *c, size_t stream)
{
	const struct sql_stream *v = &c->c.sql->streams[stream];
	const struct sql_want *w = &c->c.want;

	return v->hyp && sql_in(&w->cpu, v->cpu) &&
	       (!w->by_machine || (w->machine && !strcmp(w->machine, sql_input(c->c.sql, stream)->machine)));
}

static int sql_span_feeds(struct sql_span_cursor *c)
{
	struct sql *s = c->c.sql;

	c->feeds = calloc(s->n_streams + 1, sizeof(*c->feeds));
	if (!c->feeds)
		return -ENOMEM;
	for (size_t i = 0; i < s->n_streams; i++)
		if (sql_span_stream_wanted(c, i))
			c->feeds[c->n_feeds++].stream = i;
	qsort_r(c->feeds, c->n_feeds, sizeof(*c->feeds), sql_span_by_cpu, s);
	if (!c->c.want.by_reason)
		return 0;
	c->reasons = calloc(c->n_feeds + 1, sizeof(*c->reasons));
	for (size_t i = 0; c->reasons && i < c->n_feeds; i++)
		sql_span_wanted(c, i);
	return c->reasons ? 0 : -ENOMEM;
}

/* Words as SQLite orders them: NULL, then by their bytes. */
static void sql_span_sort(const struct sql_hyp *h, uint8_t *order, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		size_t k = i;

		for (; k > 1 && strcmp(h->words[order[k - 1]], h->words[i]) > 0; k--)
			order[k] = order[k - 1];
		order[k] = (uint8_t)i;
	}
}

/* One for each reason, over those feeds. */
static int sql_span_reason_passes(struct sql_span_cursor *c, size_t from, size_t to)
{
	const struct sql_hyp *h = c->c.sql->hyp;
	uint8_t order[256];
	int ret = 0;

	sql_span_sort(h, order, h->n_words + 1);
	for (size_t i = 0; i <= h->n_words && !ret; i++) {
		struct sql_pass pass = { from, to, order[i] };

		ret = array_push(&c->passes, &c->n_passes, &pass, sizeof(pass));
	}
	return ret;
}

static int sql_span_passes(struct sql_span_cursor *c)
{
	const struct sql_stream *v = c->c.sql->streams;
	struct sql_pass all = { 0, c->n_feeds, -1 };
	int ret = 0;

	if (c->c.want.order == ORDER_REASON)
		return sql_span_reason_passes(c, 0, c->n_feeds);
	if (c->c.want.order != ORDER_CPU_REASON)
		return array_push(&c->passes, &c->n_passes, &all, sizeof(all));
	for (size_t from = 0, to; from < c->n_feeds && !ret; from = to) {
		for (to = from + 1; to < c->n_feeds; to++)
			if (v[c->feeds[to].stream].cpu != v[c->feeds[from].stream].cpu)
				break;
		ret = sql_span_reason_passes(c, from, to);
	}
	return ret;
}

/* ---- rows ------------------------------------------------------------------------------------------ */

static void sql_span_close(struct sql_cursor *cursor)
{
	struct sql_span_cursor *c = (struct sql_span_cursor *)cursor;

	for (size_t i = 0; i < c->n_feeds; i++)
		sql_feed_end(&c->feeds[i]);
	free(c->feeds);
	free(c->reasons);
	free(c->passes);
	c->feeds = NULL;
	c->reasons = NULL;
	c->passes = NULL;
	c->n_feeds = c->n_passes = 0;
}

static int sql_span_open(struct sql_span_cursor *c, bool lost)
{
	const struct sql_range *ts = &c->c.want.ts;
	int ret;

	sql_span_close(&c->c);
	c->lost = lost;
	c->by_id = c->c.want.id.from == c->c.want.id.to;
	ret = sql_hyp_open(c->c.sql);
	if (ret || c->by_id)
		return ret;
	/* who wants a part of the time reads that alone */
	if (ts->from == INT64_MIN && ts->to == INT64_MAX)
		ret = sql_hyp_load(c->c.sql);
	ret = ret ?: sql_span_feeds(c);
	ret = ret ?: sql_span_passes(c);
	c->pass = c->feed = 0;
	for (size_t i = 0; !ret && i < c->n_feeds; i++)
		sql_feed_begin(&c->feeds[i], c->c.sql, c->feeds[i].stream);
	return ret;
}

static int sql_span_filter(struct sql_cursor *c)
{
	return sql_span_open((struct sql_span_cursor *)c, false);
}

static int sql_span_filter_all(struct sql_cursor *c)
{
	return sql_span_open((struct sql_span_cursor *)c, true);
}

static bool sql_span_fits(const struct sql_span_cursor *c, const struct sql_span *v, size_t feed, int word)
{
	const struct sql_want *w = &c->c.want;

	return (word < 0 || v->reason == word) && (!c->reasons || c->reasons[feed][v->reason]) &&
	       (c->lost || v->dur != SPAN_LOST) && sql_in(&w->dur, v->dur) && sql_in(&w->ts, sql_ts(v->ts));
}

/* To the feed's next span that is wanted: 1; 0: there is none. */
static int sql_span_seek(struct sql_span_cursor *c, size_t feed, int word)
{
	struct sql_feed *f = &c->feeds[feed];

	for (;;) {
		int ret;

		for (; f->i < f->n; f->i++) {
			if (!word)
				c->seen[f->v[f->i].reason] = true;
			if (sql_span_fits(c, &f->v[f->i], feed, word))
				return 1;
		}
		ret = sql_stopped(c->c.sql) ? -EINTR : sql_feed_more(f, &c->c.want);
		if (ret != 1)
			return ret;
	}
}

static int sql_span_give_row(struct sql_span_cursor *c, struct sql_feed *f)
{
	c->span = f->v[f->i++];
	c->stream = f->stream;
	return 1;
}

/* All feeds side by side: the earliest. */
static int sql_span_next_by_time(struct sql_span_cursor *c)
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
	return first ? sql_span_give_row(c, first) : 0;
}

/* One feed after the other, pass after pass. */
static int sql_span_next_by_pass(struct sql_span_cursor *c)
{
	while (c->pass < c->n_passes) {
		const struct sql_pass *p = &c->passes[c->pass];
		int ret;

		if (c->feed < p->from)
			c->feed = p->from;
		if (c->feed < p->to && (p->word <= 0 || c->seen[p->word])) {
			ret = sql_span_seek(c, c->feed, p->word);
			if (ret)
				return ret < 0 ? ret : sql_span_give_row(c, &c->feeds[c->feed]);
			sql_feed_begin(&c->feeds[c->feed], c->c.sql, c->feeds[c->feed].stream);
			c->feed++;
			continue;
		}
		c->pass++;
		c->feed = 0;
	}
	return 0;
}

/* The one with the id, once: from its hyp_enter on. */
static int sql_span_one(struct sql_span_cursor *c)
{
	struct sql *s = c->c.sql;
	int64_t id = c->c.want.id.from;
	struct sql_span_maker k = { .record = sql_id_record(id) };
	int ret;

	c->stream = sql_id_stream(id);
	if (c->c.row || id < 0 || sql_id_kind(id) != ID_HYP || c->stream >= s->n_streams ||
	    !s->streams[c->stream].hyp)
		return 0;
	do {
		const struct merge_record *m;
		const struct timeline *t;

		ret = sql_record(s, c->stream, k.record, &m, &t);
		if (ret < 0)
			return ret;
		if (ret == 1 && sql_span_make(s, s->streams[c->stream].input, &k, m, &c->span))
			return c->span.record == sql_id_record(id) && (c->lost || c->span.dur != SPAN_LOST);
	} while (ret == 1 && k.open);
	return sql_span_last(&k, &c->span);
}

static int sql_span_next(struct sql_cursor *cursor)
{
	struct sql_span_cursor *c = (struct sql_span_cursor *)cursor;
	enum sql_order order = cursor->want.order;

	if (c->by_id)
		return sql_span_one(c);
	return order == ORDER_ANY || order == ORDER_TS ? sql_span_next_by_time(c) : sql_span_next_by_pass(c);
}

/* ---- columns ------------------------------------------------------------------------------------- */

enum sql_span_what {
	SPAN_ID,
	SPAN_CPU,
	SPAN_TS,
	SPAN_DUR,	/* as Perfetto has it */
	SPAN_DUR_KNOWN, /* NULL where no end was seen */
	SPAN_END,
	SPAN_REASON,
	SPAN_NAME,
	SPAN_LEFT,
	SPAN_VCPU,
	SPAN_GUEST,
	SPAN_GUEST_VCPU,
	SPAN_MACHINE,
	SPAN_CATEGORY,
	SPAN_TRACK,
	SPAN_DEPTH
};

static void sql_span_guest(const struct sql_span_cursor *c, sqlite3_context *to, bool name)
{
	const struct offset_guest *guest = NULL;
	const struct offset_vcpu *vcpu =
		c->span.vcpu > 0 ? input_vcpu(sql_input(c->c.sql, c->stream), c->span.vcpu, &guest) : NULL;

	if (!vcpu)
		sqlite3_result_null(to);
	else if (name)
		sql_give_text(to, guest->name);
	else
		sqlite3_result_int64(to, vcpu->cpu);
}

static void sql_span_give_dur(const struct sql_span_cursor *c, sqlite3_context *to, bool known)
{
	if (known && c->span.dur < 0)
		sqlite3_result_null(to);
	else
		sqlite3_result_int64(to, c->span.dur);
}

static void sql_span_text(const struct sql_span_cursor *c, sqlite3_context *to, enum sql_span_what what)
{
	const struct sql *s = c->c.sql;
	const char *reason = s->hyp->words[c->span.reason];

	switch (what) {
	case SPAN_REASON:
		sql_give_text(to, reason);
		break;
	case SPAN_NAME:
		sql_give_text(to, reason ? reason : "hyp");
		break;
	case SPAN_LEFT:
		sql_give_text(to, s->hyp->words[c->span.left]);
		break;
	case SPAN_END:
		sql_give_text(to, c->span.dur == SPAN_LOST   ? "lost"
				  : c->span.dur == SPAN_OPEN ? "open"
							     : "exit");
		break;
	case SPAN_MACHINE:
		sql_give_text(to, sql_input(s, c->stream)->machine);
		break;
	case SPAN_CATEGORY:
		sql_give_text(to, "hyp");
		break;
	default:
		break;
	}
}

static void sql_span_what(const struct sql_span_cursor *c, sqlite3_context *to, enum sql_span_what what)
{
	switch (what) {
	case SPAN_ID:
		sqlite3_result_int64(to, sql_id(ID_HYP, c->stream, c->span.record));
		break;
	case SPAN_CPU:
		sqlite3_result_int64(to, c->c.sql->streams[c->stream].cpu);
		break;
	case SPAN_TS:
		sqlite3_result_int64(to, sql_ts(c->span.ts));
		break;
	case SPAN_DUR:
	case SPAN_DUR_KNOWN:
		sql_span_give_dur(c, to, what == SPAN_DUR_KNOWN);
		break;
	case SPAN_VCPU:
		if (c->span.vcpu)
			sqlite3_result_int(to, c->span.vcpu);
		break;
	case SPAN_GUEST:
	case SPAN_GUEST_VCPU:
		sql_span_guest(c, to, what == SPAN_GUEST);
		break;
	case SPAN_TRACK:
		sqlite3_result_int64(to, (int64_t)c->stream);
		break;
	case SPAN_DEPTH:
		sqlite3_result_int(to, 0);
		break;
	default:
		sql_span_text(c, to, what);
	}
}

/* ---- the tables ------------------------------------------------------------------------------------- */

/* By their columns' places. */
static const enum sql_span_what sql_slice_what[] = { SPAN_ID,	    SPAN_TS,  SPAN_DUR,	    SPAN_NAME,
						     SPAN_CATEGORY, SPAN_CPU, SPAN_MACHINE, SPAN_TRACK,
						     SPAN_DEPTH,    SPAN_ID };
static const struct sql_column sql_slice_columns[] = {
	{ "id", "INTEGER", KEY_ID },	    { "ts", "INTEGER", KEY_TS },
	{ "dur", "INTEGER", KEY_DUR },	    { "name", "TEXT", KEY_NONE },
	{ "category", "TEXT", KEY_NONE },   { "cpu", "INTEGER", KEY_CPU },
	{ "machine", "TEXT", KEY_MACHINE }, { "track_id", "INTEGER", KEY_NONE },
	{ "depth", "INTEGER", KEY_NONE },   { "arg_set_id", "INTEGER", KEY_ID },
};

static const enum sql_span_what sql_pkvm_what[] = { SPAN_ID, SPAN_CPU, SPAN_TS, SPAN_DUR, SPAN_REASON };
static const struct sql_column sql_pkvm_columns[] = {
	{ "slice_id", "INTEGER", KEY_ID }, { "cpu", "INTEGER", KEY_CPU },    { "ts", "INTEGER", KEY_TS },
	{ "dur", "INTEGER", KEY_DUR },	   { "reason", "TEXT", KEY_REASON },
};

static const enum sql_span_what sql_call_what[] = { SPAN_ID,   SPAN_TS,	    SPAN_DUR_KNOWN,  SPAN_MACHINE,
						    SPAN_CPU,  SPAN_REASON, SPAN_LEFT,	     SPAN_END,
						    SPAN_VCPU, SPAN_GUEST,  SPAN_GUEST_VCPU, SPAN_ID };
static const struct sql_column sql_call_columns[] = {
	{ "id", "INTEGER", KEY_ID },	  { "ts", "INTEGER", KEY_TS },
	{ "dur", "INTEGER", KEY_DUR },	  { "machine", "TEXT", KEY_MACHINE },
	{ "cpu", "INTEGER", KEY_CPU },	  { "reason", "TEXT", KEY_REASON },
	{ "left_for", "TEXT", KEY_NONE }, { "ended", "TEXT", KEY_NONE },
	{ "tid", "INTEGER", KEY_NONE },	  { "guest", "TEXT", KEY_NONE },
	{ "vcpu", "INTEGER", KEY_NONE },  { "arg_set_id", "INTEGER", KEY_ID },
};

static void sql_slice_column(struct sql_cursor *c, sqlite3_context *to, int i)
{
	sql_span_what((const struct sql_span_cursor *)c, to, sql_slice_what[i]);
}

static void sql_pkvm_column(struct sql_cursor *c, sqlite3_context *to, int i)
{
	sql_span_what((const struct sql_span_cursor *)c, to, sql_pkvm_what[i]);
}

static void sql_call_column(struct sql_cursor *c, sqlite3_context *to, int i)
{
	sql_span_what((const struct sql_span_cursor *)c, to, sql_call_what[i]);
}

#define SPAN_TABLE(table, of, filter_by)                                                                     \
	.name = table, .columns = sql_##of##_columns, .n = ARRAY_SIZE(sql_##of##_columns),                   \
	.orders = 1u << ORDER_TS | 1u << ORDER_CPU | 1u << ORDER_CPU_REASON | 1u << ORDER_REASON,            \
	.bytes = 64, .size = sizeof(struct sql_span_cursor), .filter = filter_by, .next = sql_span_next,     \
	.column = sql_##of##_column, .close = sql_span_close

const struct sql_table sql_slices_table = { SPAN_TABLE("slices", slice, sql_span_filter) };
const struct sql_table sql_slice_table = { SPAN_TABLE("slice", slice, sql_span_filter) };
const struct sql_table sql_pkvm_table = { SPAN_TABLE("pkvm_hypervisor_events", pkvm, sql_span_filter) };
const struct sql_table sql_calls_table = { SPAN_TABLE("hyp_calls", call, sql_span_filter_all) };
