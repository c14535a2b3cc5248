// SPDX-License-Identifier: LGPL-2.1-or-later
/* The table lost: where events are missing, and how many. */
#include "sql/sql-priv.h"

enum { LOST_TS, LOST_MACHINE, LOST_BUFFER, LOST_CPU, LOST_EVENTS };

static const struct sql_column sql_lost_columns[] = {
	[LOST_TS] = { "ts", "INTEGER", KEY_TS },
	[LOST_MACHINE] = { "machine", "TEXT", KEY_MACHINE },
	[LOST_BUFFER] = { "buffer", "TEXT", KEY_NONE },
	[LOST_CPU] = { "cpu", "INTEGER", KEY_CPU },
	[LOST_EVENTS] = { "events", "INTEGER", KEY_NONE },
};

struct sql_lost_cursor {
	struct sql_cursor c;
	struct sql_scan scan;
};

static void sql_lost_close(struct sql_cursor *c)
{
	struct sql_lost_cursor *l = (struct sql_lost_cursor *)c;

	if (l->scan.t)
		sql_scan_close(&l->scan);
}

static int sql_lost_filter(struct sql_cursor *c)
{
	sql_lost_close(c);
	return sql_scan_open(&((struct sql_lost_cursor *)c)->scan, c->sql, &c->want, PART_ALL);
}

static int sql_lost_next(struct sql_cursor *c)
{
	struct sql_lost_cursor *l = (struct sql_lost_cursor *)c;
	int ret;

	while ((ret = sql_scan_next(&l->scan)) == 1) {
		if (sql_ts(l->scan.m->ts) > c->want.ts.to)
			return 0;
		if (l->scan.m->missed)
			return 1;
	}
	return ret;
}

static void sql_lost_column(struct sql_cursor *c, sqlite3_context *to, int i)
{
	const struct sql_scan *scan = &((const struct sql_lost_cursor *)c)->scan;

	switch (i) {
	case LOST_TS:
		sqlite3_result_int64(to, sql_ts(scan->m->ts));
		break;
	case LOST_MACHINE:
		sql_give_text(to, sql_input(c->sql, scan->stream)->machine);
		break;
	case LOST_BUFFER:
		sql_give_text(to, sql_buffer_name(c->sql, scan->stream));
		break;
	case LOST_CPU:
		sqlite3_result_int64(to, c->sql->streams[scan->stream].cpu);
		break;
	case LOST_EVENTS:
		if (scan->m->missed > 0) /* else nobody knows how many */
			sqlite3_result_int64(to, scan->m->missed);
		break;
	}
}

const struct sql_table sql_lost_table = {
	.name = "lost",
	.columns = sql_lost_columns,
	.n = ARRAY_SIZE(sql_lost_columns),
	.orders = 1u << ORDER_TS,
	.bytes = 10000,
	.size = sizeof(struct sql_lost_cursor),
	.filter = sql_lost_filter,
	.next = sql_lost_next,
	.column = sql_lost_column,
	.close = sql_lost_close,
};
