// SPDX-License-Identifier: LGPL-2.1-or-later
/* An SQLite that has the files as its tables, and cannot change anything: statements in, rows out. */
#include "read/print.h"
#include "ask/sql/sql-priv.h"

#define STORE_BYTES  (128u << 20)
#define SQL_TEXT_MAX (16 << 20) /* of a value, bytes */
#define SQL_TEMP_MAX "1048576"	/* pages of 4 KiB of all temporary tables together */

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
	return (struct sql_counts){ atomic_load(&s->records), atomic_load(&s->rows), s->damaged };
}

/* ---- the guard: statements read the tables and make temporary ones ------------------------------------
 */

static int sql_guard_action(void *ctx, int action, const char *a, const char *b, const char *db,
			    const char *by)
{
	/* these only read */
	static const char *const pragmas[] = { "table_info",	"table_xinfo", "table_list",
					       "function_list", "module_list", "compile_options",
					       "collation_list" };
	struct sql *s = ctx;

	if (s->filling)
		return SQLITE_OK;
	switch (action) {
	case SQLITE_READ:
		sql_filled_use(s, a);
		return SQLITE_OK;
	case SQLITE_SELECT:
	case SQLITE_RECURSIVE:
		return SQLITE_OK;
	case SQLITE_FUNCTION:
		return sqlite3_stricmp(b, "load_extension") ? SQLITE_OK : SQLITE_DENY;
	case SQLITE_CREATE_TABLE: /* "temp." before a name */
	case SQLITE_CREATE_VIEW:
	case SQLITE_CREATE_INDEX:
	case SQLITE_CREATE_TEMP_INDEX:
	case SQLITE_DROP_TEMP_TABLE:
	case SQLITE_DROP_TEMP_VIEW:
	case SQLITE_DROP_TEMP_INDEX:
	case SQLITE_INSERT:
	case SQLITE_UPDATE:
	case SQLITE_DELETE:
	case SQLITE_REINDEX:
		return db && !strcmp(db, "temp") ? SQLITE_OK : SQLITE_DENY;
	case SQLITE_PRAGMA:
		for (size_t i = 0; a && i < ARRAY_SIZE(pragmas); i++)
			if (!sqlite3_stricmp(a, pragmas[i]))
				return SQLITE_OK;
	}
	return SQLITE_DENY;
}

static int sql_guard(struct sql *s)
{
	static const struct {
		int id, value;
	} limits[] = { { SQLITE_LIMIT_LENGTH, SQL_TEXT_MAX },	  { SQLITE_LIMIT_SQL_LENGTH, 1 << 20 },
		       { SQLITE_LIMIT_COLUMN, SQL_COLUMNS_MAX },  { SQLITE_LIMIT_EXPR_DEPTH, 100 },
		       { SQLITE_LIMIT_COMPOUND_SELECT, 50 },	  { SQLITE_LIMIT_VDBE_OP, 100000 },
		       { SQLITE_LIMIT_FUNCTION_ARG, 32 },	  { SQLITE_LIMIT_ATTACHED, 0 },
		       { SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 256 }, { SQLITE_LIMIT_TRIGGER_DEPTH, 1 },
		       { SQLITE_LIMIT_WORKER_THREADS, 0 } };
	int ret = sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
		sqlite3_limit(s->db, limits[i].id, limits[i].value);
	ret = ret ?: sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
	ret = ret ?: sqlite3_exec(s->db, "PRAGMA temp.max_page_count = " SQL_TEMP_MAX, NULL, NULL, NULL);
	return ret ?: sqlite3_set_authorizer(s->db, sql_guard_action, s);
}

int sql_open(struct sql **out, const struct inputs *in, const struct log *log)
{
	static int (*const add[])(struct sql *) = { sql_tables_add, sql_filled_add, sql_perfetto_add,
						    sql_guard };
	struct sql *s = calloc(1, sizeof(*s));
	int ret, code;

	if (!s)
		return -ENOMEM;
	s->in = in;
	s->log = log;
	s->store_room = STORE_BYTES;
	s->args_id = -1;
	for (size_t i = 0; i < in->n; i++)
		s->dated |= in->v[i].time.wall.n || in->v[i].time.date;
	s->once = (struct log){ sql_log_once, s };
	ret = steps_open(&s->steps, in) ?: sql_streams_find(s) ?: sql_tasks_read(&s->saved, in);
	if (ret)
		goto fail;
	/* a file without a name, which SQLite writes when its cache is full */
	code = sqlite3_open_v2("", &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX,
			       NULL);
	code = code
		       ?: sqlite3_exec(s->db, "PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF", NULL,
				       NULL, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(add) && code == SQLITE_OK; i++)
		code = add[i](s);
	if (code == SQLITE_OK) {
		*out = s;
		return 0;
	}
	ret = code == SQLITE_NOMEM ? -ENOMEM : -EIO;
	if (ret == -EIO)
		log_err(log, "SQLite does not work: %s",
			s->db ? sqlite3_errmsg(s->db) : sqlite3_errstr(code));
fail:
	sql_close(s);
	return ret;
}

void sql_close(struct sql *s)
{
	if (!s)
		return;
	sqlite3_close(s->db);
	sql_hyp_close(s);
	arena_release(&s->args.texts);
	for (size_t i = 0; s->readers && i < s->n_streams; i++)
		sql_scan_close(&s->readers[i]);
	free(s->readers);
	sql_tasks_free(&s->saved);
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

struct sql_result {
	sqlite3_stmt *stmt;
	size_t n; /* at most SQL_COLUMNS_MAX: sql_guard() */
	struct sql_value v[SQL_COLUMNS_MAX];
	struct arena blobs; /* texts of the row */
};

static int sql_result_row(struct sql_result *r, const struct sql_sink *sink, void *ctx)
{
	arena_reset(&r->blobs);
	for (int i = 0; i < (int)r->n; i++) {
		struct sql_value *v = &r->v[i];

		*v = (struct sql_value){ SQL_NULL, 0, 0, NULL };
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
			v->text = arena_printf(&r->blobs, "X'%s'",
					       sql_hex(&r->blobs, sqlite3_column_blob(r->stmt, i),
						       (size_t)sqlite3_column_bytes(r->stmt, i)));
			break;
		}
		if (v->kind == SQL_TEXT && !v->text)
			return -ENOMEM;
	}
	return r->blobs.bad ? -ENOMEM : sink->row(ctx, r->v, r->n);
}

static int sql_rows(struct sql *s, struct sql_result *r, const struct sql_sink *sink, void *ctx,
		    char why[SQL_WHY_MAX])
{
	/* the first row in front of all: what fails at once has no heading */
	int code = sqlite3_step(r->stmt), ret = 0;
	const char *names[SQL_COLUMNS_MAX];

	if (code != SQLITE_ROW && code != SQLITE_DONE)
		return sql_failed(s, code, why);
	if (!r->n)
		return 0;
	for (size_t i = 0; i < r->n && !ret; i++) {
		names[i] = sqlite3_column_name(r->stmt, (int)i);
		ret = names[i] ? 0 : -ENOMEM;
	}
	ret = ret || !sink->begin ? ret : sink->begin(ctx, names, r->n);
	while (!ret && code == SQLITE_ROW) {
		ret = sql_result_row(r, sink, ctx);
		if (!ret)
			code = sqlite3_step(r->stmt);
	}
	if (ret)
		return ret;
	ret = sink->end ? sink->end(ctx) : 0;
	return code == SQLITE_DONE ? ret : sql_failed(s, code, why);
}

/* Runs the statement at *text, which moves after it. */
static int sql_run_one(struct sql *s, const char **text, const struct sql_sink *sink, void *ctx,
		       char why[SQL_WHY_MAX])
{
	struct sql_result r = { 0 };
	sqlite3_stmt *stmt = NULL;
	struct buf own = { 0 };
	const char *end = NULL, *whole;
	int ret = sql_dialect(s, text, &own, why), code;
	size_t made = own.len;

	if (made)
		buf_addstr(&own, *text);
	ret = ret ?: buf_status(&own);
	if (ret)
		goto out;
	whole = made ? buf_str(&own) : *text;
	s->numbers |= strcasestr(whole, "rowid") || strcasestr(whole, "oid");
	code = sqlite3_prepare_v2(s->db, whole, -1, &stmt, &end);
	ret = code != SQLITE_OK ? sql_failed(s, code, why) : sql_filled_read(s, NULL, 0);
	r.stmt = stmt;
	r.n = (size_t)sqlite3_column_count(stmt);
	if (!ret && stmt)
		ret = sql_rows(s, &r, sink, ctx, why);
	arena_release(&r.blobs);
	*text += (size_t)(end - whole) < made ? 0 : (size_t)(end - whole) - made;
out:
	sqlite3_finalize(stmt);
	sql_copies_release(s);
	buf_release(&own);
	return ret;
}

int sql_run(struct sql *s, const char *text, const struct sql_sink *sink, void *ctx, char why[SQL_WHY_MAX])
{
	int ret = 0;

	atomic_store(&s->stop, false);
	*why = '\0';
	while (!ret && *(text = sql_dialect_skip(s, text)))
		ret = sql_run_one(s, &text, sink, ctx, why);
	return ret;
}

bool sql_whole(const char *text)
{
	return sqlite3_complete(text);
}

int sql_schema(const struct sql *s, struct strlist *out)
{
	sqlite3_stmt *stmt;
	int ret = sqlite3_prepare_v2(s->db,
				     "SELECT sql FROM (SELECT * FROM sqlite_schema UNION ALL SELECT * FROM "
				     "sqlite_temp_schema) WHERE sql IS NOT NULL AND name NOT GLOB '_*'",
				     -1, &stmt, NULL) == SQLITE_OK
			  ? 0
			  : -ENOMEM;

	for (size_t i = 0; i < sql_tables_n && !ret; i++)
		ret = strlist_take(out, sql_table_text(sql_tables[i]));
	while (!ret && sqlite3_step(stmt) == SQLITE_ROW)
		ret = strlist_add(out, (const char *)sqlite3_column_text(stmt, 0));
	sqlite3_finalize(stmt);
	strlist_sort(out);
	return ret;
}
