// SPDX-License-Identifier: LGPL-2.1-or-later
/* The table events: each record, with its text as `hyptrace report` prints it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "read/print.h"
#include "sql/sql-priv.h"

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
	EVENT_ARGS
};

static const struct sql_column sql_event_columns[] = {
	[EVENT_ID] = { "id", "INTEGER", KEY_ID },
	[EVENT_TS] = { "ts", "INTEGER", KEY_TS },
	[EVENT_NAME] = { "name", "TEXT", KEY_NAME },
	[EVENT_SYSTEM] = { "system", "TEXT", KEY_NONE },
	[EVENT_MACHINE] = { "machine", "TEXT", KEY_MACHINE },
	[EVENT_BUFFER] = { "buffer", "TEXT", KEY_NONE },
	[EVENT_CPU] = { "cpu", "INTEGER", KEY_CPU },
	[EVENT_TID] = { "tid", "INTEGER", KEY_NONE },
	[EVENT_COMM] = { "comm", "TEXT", KEY_NONE },
	[EVENT_TEXT] = { "text", "TEXT", KEY_NONE },
	[EVENT_BOUND] = { "bound", "INTEGER", KEY_NONE },
	[EVENT_ARGS] = { "arg_set_id", "INTEGER", KEY_ID },
};

struct sql_event_cursor {
	struct sql_cursor c;
	struct sql_scan scan;
	/* the row */
	const struct merge_record *m;
	const struct timeline *t;
	size_t stream;
	uint64_t record;
	bool by_id;
	bool **named; /* by input and id: it has a name that is wanted; NULL: all are */
	struct padded room;
	struct buf ready, text;
};

/* ---- which -------------------------------------------------------------------------------------- */

static void sql_event_names_free(struct sql_event_cursor *e)
{
	for (size_t i = 0; e->named && i < e->c.sql->in->n; i++)
		free(e->named[i]);
	free(e->named);
	e->named = NULL;
}

/* Of all files: whose events have such names. */
struct sql_event_parts {
	bool hyp, other;
};

static int sql_event_names(struct sql_event_cursor *e, struct sql_event_parts *found)
{
	const struct inputs *in = e->c.sql->in;

	e->named = calloc(in->n + 1, sizeof(*e->named));
	for (size_t i = 0; e->named && i < in->n; i++) {
		e->named[i] = calloc(in->v[i].n_known + 1, sizeof(**e->named));
		for (unsigned int id = 0; e->named[i] && id < in->v[i].n_known; id++) {
			const struct known_event *k = input_event(&in->v[i], id);

			if (!k || !strlist_has(&e->c.want.names, k->event->name))
				continue;
			e->named[i][id] = true;
			*(k->hyp ? &found->hyp : &found->other) = true;
		}
		if (!e->named[i])
			return -ENOMEM;
	}
	return e->named ? 0 : -ENOMEM;
}

static bool sql_event_wanted(const struct sql_event_cursor *e, const struct merge_record *m, size_t input)
{
	unsigned int id = timeline_id(m);

	return m->data && m->ts >= (uint64_t)(e->c.want.ts.from < 0 ? 0 : e->c.want.ts.from) &&
	       (!e->named || (id < e->c.sql->in->v[input].n_known && e->named[input][id]));
}

/* ---- rows --------------------------------------------------------------------------------------- */

static void sql_event_close(struct sql_cursor *c)
{
	struct sql_event_cursor *e = (struct sql_event_cursor *)c;

	sql_event_names_free(e);
	if (e->scan.t)
		sql_scan_close(&e->scan);
	padded_release(&e->room);
	buf_release(&e->ready);
	buf_release(&e->text);
}

static int sql_event_filter(struct sql_cursor *c)
{
	struct sql_event_cursor *e = (struct sql_event_cursor *)c;
	struct sql_event_parts found = { false, false };
	int ret;

	sql_event_close(c);
	e->by_id = c->want.id.from == c->want.id.to;
	if (e->by_id)
		return 0;
	ret = c->want.by_name ? sql_event_names(e, &found) : 0;
	if (ret || (c->want.by_name && !found.hyp && !found.other))
		return ret;
	return sql_scan_open(&e->scan, c->sql, &c->want,
			     found.hyp == found.other ? PART_ALL
			     : found.hyp	      ? PART_HYP
						      : PART_OTHER);
}

/* The one with the id, once. */
static int sql_event_one(struct sql_event_cursor *e)
{
	int64_t id = e->c.want.id.from;
	int ret;

	if (e->c.row || id < 0 || sql_id_kind(id) != ID_EVENT)
		return 0;
	e->stream = sql_id_stream(id);
	e->record = sql_id_record(id);
	ret = sql_record(e->c.sql, e->stream, e->record, &e->m, &e->t);
	return ret == 1 ? e->m->data != NULL : ret;
}

static int sql_event_next(struct sql_cursor *c)
{
	struct sql_event_cursor *e = (struct sql_event_cursor *)c;
	int ret;

	if (e->by_id)
		return sql_event_one(e);
	if (!e->scan.t)
		return 0;
	while ((ret = sql_scan_next(&e->scan)) == 1) {
		const struct merge_record *m = e->scan.m;

		if (sql_ts(m->ts) > c->want.ts.to)
			return 0;
		if (!sql_event_wanted(e, m, c->sql->streams[e->scan.stream].input))
			continue;
		e->m = m;
		e->t = e->scan.t;
		e->stream = e->scan.stream;
		e->record = e->scan.record;
		return 1;
	}
	return ret;
}

/* ---- columns ------------------------------------------------------------------------------------- */

static void sql_event_text(struct sql_event_cursor *e, sqlite3_context *to)
{
	struct sql *s = e->c.sql;
	struct print_record r;
	int ret = s->print ? 0 : print_open(&s->print, s->in, false);

	e->ready.len = e->text.len = 0;
	ret = ret ?: print_begin(s->print, e->t, e->m, &r, &e->ready);
	if (!ret)
		print_fields(s->print, &r, &e->ready, 0, &e->text);
	if (ret || buf_status(&e->text))
		sqlite3_result_error_nomem(to);
	else
		sqlite3_result_text(to, buf_str(&e->text), (int)e->text.len, SQLITE_TRANSIENT);
}

static void sql_event_task(struct sql_event_cursor *e, sqlite3_context *to, bool name)
{
	const struct input *in = sql_input(e->c.sql, e->stream);
	unsigned int id;
	const struct known_event *k = timeline_event(e->t, e->m, &id);
	struct timeline_record r = { .in = in, .pid = timeline_pid(k ? &k->pid : &in->pid, e->m) };

	if (r.pid < 0)
		sqlite3_result_null(to);
	else if (!name)
		sqlite3_result_int(to, r.pid);
	else
		sqlite3_result_text(to, timeline_comm(&r), -1, SQLITE_TRANSIENT);
}

static void sql_event_bound(const struct sql_event_cursor *e, sqlite3_context *to)
{
	const struct input *in = sql_input(e->c.sql, e->stream);
	uint64_t bound = in->guest ? filetime_bound(&in->time, e->m->raw) : 0;

	if (bound > INT64_MAX)
		sqlite3_result_null(to);
	else
		sqlite3_result_int64(to, (int64_t)bound);
}

static void sql_event_column(struct sql_cursor *c, sqlite3_context *to, int i)
{
	struct sql_event_cursor *e = (struct sql_event_cursor *)c;
	unsigned int id;
	const struct known_event *k = timeline_event(e->t, e->m, &id);

	switch (i) {
	case EVENT_ID:
	case EVENT_ARGS:
		sqlite3_result_int64(to, sql_id(ID_EVENT, e->stream, e->record));
		break;
	case EVENT_TS:
		sqlite3_result_int64(to, sql_ts(e->m->ts));
		break;
	case EVENT_NAME:
		sql_give_text(to, k ? k->event->name : NULL);
		break;
	case EVENT_SYSTEM:
		sql_give_text(to, k ? k->event->system : NULL);
		break;
	case EVENT_MACHINE:
		sql_give_text(to, sql_input(c->sql, e->stream)->machine);
		break;
	case EVENT_BUFFER:
		sql_give_text(to, sql_buffer_name(c->sql, e->stream));
		break;
	case EVENT_CPU:
		sqlite3_result_int64(to, c->sql->streams[e->stream].cpu);
		break;
	case EVENT_TID:
	case EVENT_COMM:
		sql_event_task(e, to, i == EVENT_COMM);
		break;
	case EVENT_TEXT:
		sql_event_text(e, to);
		break;
	case EVENT_BOUND:
		sql_event_bound(e, to);
		break;
	}
}

const struct sql_table sql_events_table = {
	.name = "events",
	.columns = sql_event_columns,
	.n = ARRAY_SIZE(sql_event_columns),
	.orders = 1u << ORDER_TS,
	.bytes = 40,
	.size = sizeof(struct sql_event_cursor),
	.filter = sql_event_filter,
	.next = sql_event_next,
	.column = sql_event_column,
	.close = sql_event_close,
};
