// SPDX-License-Identifier: LGPL-2.1-or-later
/* The tables events (each record, with its text as `hyptrace report` prints it) and lost (gaps before
 * records). */
#include "read/print.h"
#include "ask/states/reading.h"
#include "ask/sql/sql-priv.h"

enum {
	EVENT_ID,
	EVENT_TS,
	EVENT_NAME,
	EVENT_SYSTEM,
	EVENT_MACHINE,
	EVENT_BUFFER,
	EVENT_CPU,
	EVENT_TID,
	EVENT_COMM,
	EVENT_TEXT,
	EVENT_BOUND,
	EVENT_MACHINE_ID,
	EVENT_MISSED /* of lost */
};

static const struct sql_column sql_event_columns[] = {
	{ "id", "INTEGER", KEY_ID, EVENT_ID },
	{ "ts", "INTEGER", KEY_TS, EVENT_TS },
	{ "name", "TEXT", KEY_NAME, EVENT_NAME },
	{ "system", "TEXT", KEY_NONE, EVENT_SYSTEM },
	{ "machine", "TEXT", KEY_MACHINE, EVENT_MACHINE },
	{ "buffer", "TEXT", KEY_NONE, EVENT_BUFFER },
	{ "cpu", "INTEGER", KEY_CPU, EVENT_CPU },
	{ "tid", "INTEGER", KEY_NONE, EVENT_TID },
	{ "comm", "TEXT", KEY_NONE, EVENT_COMM },
	{ "text", "TEXT", KEY_NONE, EVENT_TEXT },
	{ "bound", "INTEGER", KEY_NONE, EVENT_BOUND },
	{ "arg_set_id", "INTEGER", KEY_ID, EVENT_ID },
	{ "pid", "INTEGER", KEY_NONE, EVENT_TID },
	SQL_LAST_COLUMNS(EVENT_MACHINE_ID),
};

static const struct sql_column sql_lost_columns[] = {
	{ "ts", "INTEGER", KEY_TS, EVENT_TS },
	{ "machine", "TEXT", KEY_MACHINE, EVENT_MACHINE },
	{ "buffer", "TEXT", KEY_NONE, EVENT_BUFFER },
	{ "cpu", "INTEGER", KEY_CPU, EVENT_CPU },
	{ "events", "INTEGER", KEY_NONE, EVENT_MISSED }, /* NULL: unknown */
	SQL_LAST_COLUMNS(EVENT_MACHINE_ID),
};

struct sql_event_cursor {
	struct sql_cursor c;
	struct sql_scan scan;
	/* the row */
	const struct merge_record *m;
	const struct timeline *t;
	size_t stream;
	bool by_id;
	bool **named; /* by input and id: it has a name that is wanted; NULL: all are */
	struct buf ready, text;
	struct sql_kinds kinds; /* ORDER_COUNTED: the row is kinds.v[at], for the nth time */
	size_t at;
	uint64_t nth;
	struct merge_record one; /* by_id: the record, in bytes */
	struct buf bytes;
};

static void sql_event_close(struct sql_cursor *c)
{
	struct sql_event_cursor *e = (struct sql_event_cursor *)c;

	free(e->named);
	free(e->kinds.v);
	sql_scan_close(&e->scan);
	buf_release(&e->ready);
	buf_release(&e->text);
	buf_release(&e->bytes);
}

/* A column that is the same for all events of one kind on one CPU. */
static struct cell sql_event_kind(const struct sql *s, size_t stream, const struct known_event *k, int what)
{
	switch (what) {
	case EVENT_NAME:
		return sql_text(k ? k->event->name : NULL);
	case EVENT_SYSTEM:
		return sql_text(k ? k->event->system : NULL);
	case EVENT_MACHINE:
		return sql_text(sql_input(s, stream)->machine);
	case EVENT_BUFFER:
		return sql_text(
			reader_info(sql_input(s, stream)->reader)->buffers[s->streams[stream].buffer].name);
	case EVENT_CPU:
		return sql_number(s->streams[stream].cpu);
	case EVENT_MACHINE_ID:
		return sql_number((int64_t)s->streams[stream].input);
	}
	return SQL_NOTHING;
}

static struct cell sql_event_counted(const struct sql *s, const struct sql_counted *c, int column)
{
	return sql_event_kind(s, c->stream, input_event(sql_input(s, c->stream), c->id),
			      sql_event_columns[column].what);
}

static int sql_event_filter(struct sql_cursor *c)
{
	struct sql_event_cursor *e = (struct sql_event_cursor *)c;
	const struct inputs *in = c->sql->in;
	bool hyp = false, other = false;

	if (c->want.order == ORDER_COUNTED)
		return sql_kinds_read(&e->kinds, c->sql, c->want.counted, sql_event_counted);
	e->by_id = c->want.id.from == c->want.id.to;
	if (e->by_id)
		return 0;
	if (c->want.by_name) {
		e->named = inputs_table(in, 0, sizeof(**e->named));
		if (!e->named)
			return -ENOMEM;
	}
	/* finds the events with wanted names, and whether the hypervisor or others have such */
	for (size_t i = 0; e->named && i < in->n; i++)
		for (unsigned int id = 0; id < in->v[i].n_known; id++) {
			const struct known_event *k = input_event(&in->v[i], id);

			e->named[i][id] = k && strlist_has(&c->want.names, k->event->name);
			if (e->named[i][id])
				*(k->hyp ? &hyp : &other) = true;
		}
	if (e->named && !hyp && !other)
		return 0;
	return sql_scan_open(&e->scan, c->sql, &c->want,
			     hyp == other ? PART_ALL
			     : hyp	  ? PART_HYP
					  : PART_OTHER);
}

static int sql_event_next(struct sql_cursor *c)
{
	struct sql_event_cursor *e = (struct sql_event_cursor *)c;
	uint64_t from = c->want.ts.from < 0 ? 0 : (uint64_t)c->want.ts.from;
	int64_t id = c->want.id.from;
	struct sql_scan *one;
	int ret;

	if (c->want.order == ORDER_COUNTED) {
		if (e->at < e->kinds.n && e->nth++ == e->kinds.v[e->at].n) {
			e->nth = 1;
			e->at++;
		}
		return e->at < e->kinds.n;
	}
	if (e->by_id) { /* once */
		if (c->row || id < 0 || sql_id_kind(id) != ID_EVENT)
			return 0;
		e->stream = sql_id_stream(id);
		ret = sql_record(c->sql, e->stream, sql_id_record(id), &one);
		if (ret != 1)
			return ret;
		/* other cursors ask for records of the stream, too, while this is the row */
		e->bytes.len = 0;
		buf_add(&e->bytes, one->m->data, one->m->len);
		e->one = *one->m;
		e->one.data = e->bytes.data;
		e->m = &e->one;
		e->t = one->t;
		return buf_status(&e->bytes) ?: 1;
	}
	if (!e->scan.t)
		return 0;
	while ((ret = sql_scan_next(&e->scan)) == 1) {
		const struct merge_record *m = e->scan.m;
		size_t input = c->sql->streams[e->scan.stream].input;
		unsigned int type = timeline_id(m);

		if (sql_ts(m->ts) > c->want.ts.to)
			return 0;
		if (c->table == &sql_lost_table ? !m->missed : !m->data || m->ts < from)
			continue;
		if (e->named && (type >= c->sql->in->v[input].n_known || !e->named[input][type]))
			continue;
		e->m = m;
		e->t = e->scan.t;
		e->stream = e->scan.stream;
		return 1;
	}
	return ret;
}

static int64_t sql_event_number(const struct sql_cursor *c)
{
	const struct sql_event_cursor *e = (const struct sql_event_cursor *)c;

	if (c->want.order == ORDER_COUNTED) /* not asked for */
		return c->row;
	return e->by_id ? c->want.id.from : sql_id(ID_EVENT, e->stream, sql_scan_record(&e->scan));
}

static struct cell sql_event_column(struct sql_cursor *c, int i)
{
	struct sql_event_cursor *e = (struct sql_event_cursor *)c;
	struct sql *s = c->sql;
	unsigned int id;
	const struct known_event *k;
	const struct input *in;
	struct print_record r;
	int what = c->table->columns[i].what, pid, ret;
	uint64_t bound;

	if (c->want.order == ORDER_COUNTED)
		return sql_event_counted(c->sql, &e->kinds.v[e->at], i);
	k = timeline_event(e->t, e->m, &id);
	in = sql_input(c->sql, e->stream);
	switch (what) {
	case EVENT_ID:
		return sql_number(sql_event_number(c));
	case EVENT_TS:
		return sql_number(sql_ts(e->m->ts));
	case EVENT_TID:
	case EVENT_COMM:
		pid = timeline_pid(k ? &k->pid : &in->pid, e->m);
		if (pid < 0)
			return SQL_NOTHING;
		return what == EVENT_TID ? sql_number(pid)
					 : sql_text(sql_comm(c->sql, c->sql->streams[e->stream].input, pid));
	case EVENT_TEXT:
		ret = s->print ? 0 : print_open(&s->print, s->in, false);
		e->ready.len = e->text.len = 0;
		ret = ret ?: print_begin(s->print, e->t, e->m, &r, &e->ready);
		if (!ret)
			print_fields(s->print, &r, &e->ready, 0, &e->text);
		merge_damage_join(&s->damaged, s->in->damaged); /* a guest's symbols, maybe */
		if (ret || !buf_str(&e->text))
			return (struct cell){ .kind = CELL_FAILED };
		return (struct cell){ .kind = CELL_COPY, .text = buf_str(&e->text) };
	case SQL_UTC_NS:
	case SQL_UTC_BOUND:
	case EVENT_BOUND:
		bound = in->guest ? filetime_bound(&in->time, e->m->raw) : 0;
		if (what != EVENT_BOUND)
			return sql_value(
				sql_utc(c->sql, c->sql->streams[e->stream].input, e->m->ts, bound, what));
		return bound <= INT64_MAX ? sql_number((int64_t)bound) : SQL_NOTHING;
	case EVENT_MISSED:
		return e->m->missed > 0 ? sql_number(e->m->missed) : SQL_NOTHING;
	}
	return sql_event_kind(c->sql, e->stream, k, what);
}

static int sql_lost_after(void *ctx, struct pass_run *run)
{
	struct sql_event_cursor *e = ctx;
	const struct merge_record *m = run->records->v;
	int ret = 0;

	for (size_t i = 0; i < run->records->n && !ret; i++)
		if (m[i].missed) {
			e->m = &m[i];
			e->stream = e->scan.map[m[i].stream];
			ret = sql_cursor_give(&e->c, 1);
		}
	return ret;
}

static int sql_lost_join(struct sql_cursor *c, struct reading *r)
{
	struct sql_event_cursor *e = (struct sql_event_cursor *)c;

	e->t = r->timeline;
	reading_add(r, (struct pass_part){ .ctx = e, .after = sql_lost_after });
	return sql_scan_join(&e->scan, c->sql, r->timeline);
}

#define RECORD_TABLE(table, of, per_row)                                                                     \
	.orders = 1u << ORDER_TS, .bytes = per_row, .patience = 2, .number = sql_event_number,               \
	.column = sql_event_column, SQL_TABLE(table, sql_##of##_columns, event)

#define EVENT_BIT(what) (1u << (what)) /* a column's place is its number up to EVENT_BOUND */

const struct sql_table sql_events_table = { RECORD_TABLE("events", event, 40),
					    .counted = EVENT_BIT(EVENT_NAME) | EVENT_BIT(EVENT_SYSTEM) |
						       EVENT_BIT(EVENT_MACHINE) | EVENT_BIT(EVENT_BUFFER) |
						       EVENT_BIT(EVENT_CPU) };
const struct sql_table sql_lost_table = { RECORD_TABLE("lost", lost, 10000), .join = sql_lost_join };
