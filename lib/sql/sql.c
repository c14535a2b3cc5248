// SPDX-License-Identifier: LGPL-2.1-or-later
/* An SQLite that has the files as its tables, and cannot change anything: statements in, rows out. */
#include "sql/sql.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "read/print.h"
#include "sql/sql-priv.h"

#define STORE_BYTES (128u << 20)

/* ---- what is said ------------------------------------------------------------------------------------ */

struct strlist sql_notes(struct sql *s)
{
	struct strlist notes = s->notes;

	s->notes = (struct strlist){ 0 };
	return notes;
}

/* A file that is read twice has the same faults twice. */
static void sql_log_once(void *ctx, enum log_level level, const char *msg)
{
	struct sql *s = ctx;

	if (strlist_has(&s->said, msg))
		return;
	if (s->said.n < 100)
		strlist_add(&s->said, msg);
	log_msg(s->log, level, "%s", msg);
}

struct sql_counts sql_counts(const struct sql *s)
{
	return (struct sql_counts){ atomic_load(&s->records), s->rows, s->damaged };
}

/* ---- opening ----------------------------------------------------------------------------------------- */

static int sql_connect(struct sql *s)
{
	int ret = sqlite3_open_v2(
		":memory:", &s->db,
		SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_MEMORY | SQLITE_OPEN_NOMUTEX, NULL);

	if (ret == SQLITE_OK)
		ret = sql_tables_add(s);
	if (ret == SQLITE_OK)
		ret = sql_functions_add(s);
	if (ret == SQLITE_OK)
		ret = sql_fixed_add(s);
	if (ret == SQLITE_OK)
		ret = sql_guard(s);
	if (ret == SQLITE_OK)
		return 0;
	if (ret == SQLITE_NOMEM)
		return -ENOMEM;
	log_err(s->log, "SQLite does not work: %s", s->db ? sqlite3_errmsg(s->db) : sqlite3_errstr(ret));
	return -EIO;
}

int sql_open(struct sql **out, const struct inputs *in, const struct log *log)
{
	struct sql *s = calloc(1, sizeof(*s));
	int ret;

	if (!s)
		return -ENOMEM;
	s->in = in;
	s->log = log;
	s->store_room = STORE_BYTES;
	s->once = (struct log){ sql_log_once, s };
	ret = steps_open(&s->steps, in);
	ret = ret ?: sql_streams_find(s);
	ret = ret ?: sql_connect(s);
	if (ret)
		sql_close(s);
	else
		*out = s;
	return ret;
}

void sql_close(struct sql *s)
{
	if (!s)
		return;
	sqlite3_close(s->db);
	sql_store_close(s);
	sql_hyp_close(s);
	sql_records_release(s);
	print_close(s->print);
	steps_close(s->steps);
	for (size_t i = 0; s->first && i < s->in->n; i++)
		free(s->first[i]);
	free(s->first);
	free(s->streams);
	strlist_release(&s->notes);
	strlist_release(&s->said);
	free(s);
}

void sql_interrupt(struct sql *s)
{
	atomic_store(&s->stop, true);
	sqlite3_interrupt(s->db);
}

/* ---- rows ---------------------------------------------------------------------------------------------- */

struct sql_result {
	struct sql *sql;
	sqlite3_stmt *stmt;
	size_t n;
	struct sql_value *v;
	struct buf blobs;
	size_t *blob_at; /* where in blobs a value's text begins; SIZE_MAX: elsewhere */
};

static void sql_result_blob(struct sql_result *r, int i)
{
	const uint8_t *data = sqlite3_column_blob(r->stmt, i);
	int n = sqlite3_column_bytes(r->stmt, i);

	r->blob_at[i] = r->blobs.len;
	buf_addstr(&r->blobs, "X'");
	for (int k = 0; k < n; k++)
		buf_printf(&r->blobs, "%02x", data[k]);
	buf_add(&r->blobs, "'", 2);
}

static void sql_result_value(struct sql_result *r, int i)
{
	struct sql_value *v = &r->v[i];

	*v = (struct sql_value){ SQL_NULL, 0, 0, NULL };
	r->blob_at[i] = SIZE_MAX;
	switch (sqlite3_column_type(r->stmt, i)) {
	case SQLITE_INTEGER:
		v->kind = SQL_INTEGER;
		v->integer = sqlite3_column_int64(r->stmt, i);
		break;
	case SQLITE_FLOAT:
		v->kind = SQL_REAL;
		v->real = sqlite3_column_double(r->stmt, i);
		break;
	case SQLITE_TEXT:
		v->kind = SQL_TEXT;
		v->text = (const char *)sqlite3_column_text(r->stmt, i);
		break;
	case SQLITE_BLOB:
		v->kind = SQL_TEXT;
		sql_result_blob(r, i);
		break;
	}
}

static int sql_result_row(struct sql_result *r, const struct sql_sink *sink, void *ctx)
{
	r->blobs.len = 0;
	for (size_t i = 0; i < r->n; i++)
		sql_result_value(r, (int)i);
	if (buf_status(&r->blobs))
		return -ENOMEM;
	for (size_t i = 0; i < r->n; i++) {
		if (r->blob_at[i] != SIZE_MAX)
			r->v[i].text = (const char *)r->blobs.data + r->blob_at[i];
		if (r->v[i].kind == SQL_TEXT && !r->v[i].text)
			return -ENOMEM;
	}
	return sink->row(ctx, r->v, r->n);
}

static int sql_result_begin(struct sql_result *r, const struct sql_sink *sink, void *ctx)
{
	const char **names = calloc(r->n + 1, sizeof(*names));
	int ret = -ENOMEM;

	r->v = calloc(r->n + 1, sizeof(*r->v));
	r->blob_at = calloc(r->n + 1, sizeof(*r->blob_at));
	if (!names || !r->v || !r->blob_at)
		goto out;
	for (size_t i = 0; i < r->n; i++) {
		names[i] = sqlite3_column_name(r->stmt, (int)i);
		if (!names[i])
			goto out;
	}
	ret = sink->begin(ctx, names, r->n);
out:
	free(names);
	return ret;
}

/* ---- statements ---------------------------------------------------------------------------------------- */

static int sql_failed(struct sql *s, int code, char why[SQL_WHY_MAX])
{
	snprintf(why, SQL_WHY_MAX, "%s", sqlite3_errmsg(s->db));
	switch (code & 0xff) {
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_INTERRUPT:
		return -EINTR;
	case SQLITE_IOERR:
		return -EIO;
	}
	return -EINVAL;
}

static int sql_rows(struct sql *s, struct sql_result *r, const struct sql_sink *sink, void *ctx,
		    char why[SQL_WHY_MAX])
{
	int code, ret;

	/* the first row in front of all: what fails at once has no heading */
	code = sqlite3_step(r->stmt);
	if (code != SQLITE_ROW && code != SQLITE_DONE)
		return sql_failed(s, code, why);
	if (!r->n)
		return 0;
	ret = sql_result_begin(r, sink, ctx);
	while (!ret && code == SQLITE_ROW) {
		ret = sql_result_row(r, sink, ctx);
		if (!ret)
			code = sqlite3_step(r->stmt);
	}
	if (ret)
		return ret;
	ret = sink->end(ctx);
	return code == SQLITE_DONE ? ret : sql_failed(s, code, why);
}

static int sql_statement(struct sql *s, sqlite3_stmt *stmt, const struct sql_sink *sink, void *ctx,
			 char why[SQL_WHY_MAX])
{
	struct sql_result r = { .sql = s, .stmt = stmt, .n = (size_t)sqlite3_column_count(stmt) };
	int ret = sql_rows(s, &r, sink, ctx, why);

	free(r.v);
	free(r.blob_at);
	buf_release(&r.blobs);
	return ret;
}

int sql_run(struct sql *s, const char *text, const struct sql_sink *sink, void *ctx, char why[SQL_WHY_MAX])
{
	int ret = 0;

	atomic_store(&s->stop, false);
	*why = '\0';
	while (!ret && *(text = sql_dialect_skip(text))) {
		sqlite3_stmt *stmt = NULL;
		int code = sqlite3_prepare_v2(s->db, text, -1, &stmt, &text);

		if (code != SQLITE_OK)
			ret = sql_failed(s, code, why);
		else if (stmt)
			ret = sql_statement(s, stmt, sink, ctx, why);
		sqlite3_finalize(stmt);
	}
	return ret;
}

bool sql_whole(const char *text)
{
	return sqlite3_complete(text);
}

/* ---- the schema ------------------------------------------------------------------------------------------
 */

static int sql_schema_by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int sql_schema(const struct sql *s, struct strlist *out)
{
	sqlite3_stmt *stmt;
	int ret = sqlite3_prepare_v2(s->db, "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL", -1, &stmt,
				     NULL) == SQLITE_OK
			  ? 0
			  : -ENOMEM;

	for (size_t i = 0; i < sql_tables_n && !ret; i++)
		ret = strlist_take(out, sql_table_text(sql_tables[i]));
	while (!ret && sqlite3_step(stmt) == SQLITE_ROW)
		ret = strlist_add(out, (const char *)sqlite3_column_text(stmt, 0));
	sqlite3_finalize(stmt);
	qsort(out->v, out->n, sizeof(*out->v), sql_schema_by_name);
	return ret;
}
