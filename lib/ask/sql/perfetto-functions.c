// SPDX-License-Identifier: LGPL-2.1-or-later
/* Perfetto's functions, and names of what Perfetto has and hyptrace has not; its tables are views:
 * perfetto.sql. */
#include "ask/sql/sql-priv.h"

/* Beginnings of names of tables and functions in Perfetto, and what hyptrace has instead. */
static const char *const sql_perfetto_missing[][2] = {
	{ "android_ linux_ gpu heap_ memory_ process_memory instant", "events (name, text) and args" },
	{ "chrome_ actual_frame expected_frame frame_slice process_slice thread_or_process_slice",
	  "slice and thread_slice (B and E of trace_marker)" },
	{ "perf_s cpu_profile stack_profile experimental_", "hyptrace flame for samples and stacks" },
	{ "flow directly_connected_flow following_flow preceding_flow _thread_executing thread_executing "
	  "_critical_path",
	  "thread_state.waker_utid, thread_states.other_tid and hyptrace path" },
	{ "sched_ spurious_sched", "sched, thread_state and thread_states" },
	{ "process_counter thread_counter cpu_freq cpu_idle cpu_available", "counter and cpu_counter_track" },
	{ "cpu_track", "track and slice.cpu" },
	{ "slice_ ancestor_ descendant_", "ancestor_slice() and descendant_slice()" },
	{ "clock_snapshot to_ abs_time time_", "clocks; ts is in nanoseconds of the host's trace clock" },
	{ "extract_metadata", "the table metadata (name, str_value, machine_id)" },
	{ "str_split regexp_extract demangle unhex base64_proto", "SQLite's substr, instr, printf and GLOB" },
	{ "irq_counter_track softirq_counter_track", "events (irq_handler_entry, softirq_entry)" },
	{ "create_function create_view_function", "CREATE VIEW" },
	{ "run_metric", "hyptrace stat" },
	{ "perfetto_table", ".tables and .schema" },
};

int sql_failed(struct sql *s, int code, char why[SQL_WHY_MAX])
{
	const char *message = sqlite3_errmsg(s->db), *name = strstr(message, ": "), *instead = NULL;
	bool missing = name && !strncmp(message, "no such ", 8) && message[8] != 'c'; /* not of a column */

	snprintf(why, SQL_WHY_MAX, "%s", message);
	for (size_t i = 0; missing && i < ARRAY_SIZE(sql_perfetto_missing) && !instead; i++)
		for (const char *p = sql_perfetto_missing[i][0]; *p && !instead; p += *p == ' ') {
			size_t n = strcspn(p, " ");

			if (!sqlite3_strnicmp(name + 2, p, (int)n))
				instead = sql_perfetto_missing[i][1];
			p += n;
		}
	if (instead)
		snprintf(why, SQL_WHY_MAX, "no %.*s '%s': hyptrace has %s", (int)(name - message - 8),
			 message + 8, name + 2, instead);
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

/* trace_start(), trace_end(), trace_dur(): factors of the first and the last time, which are read once. */
static void sql_trace_bounds(sqlite3_context *to, int64_t first, int64_t last)
{
	struct sql *s = sqlite3_user_data(to);
	sqlite3_stmt *stmt = NULL;
	int ret = s->bounds_known ? SQLITE_OK
				  : sqlite3_prepare_v2(s->db, "SELECT min(ts), max(ts) FROM main.events", -1,
						       &stmt, NULL);

	if (stmt && sqlite3_step(stmt) == SQLITE_ROW) {
		s->bounds =
			(struct sql_range){ sqlite3_column_int64(stmt, 0), sqlite3_column_int64(stmt, 1) };
		s->bounds_known = true;
	}
	ret = stmt ? sqlite3_finalize(stmt) : ret;
	if (ret == SQLITE_OK)
		sqlite3_result_int64(to, first * s->bounds.from + last * s->bounds.to);
	else
		sqlite3_result_error_code(to, ret);
}

static void sql_trace_start(sqlite3_context *to, int n, sqlite3_value **v)
{
	sql_trace_bounds(to, 1, 0);
}

static void sql_trace_end(sqlite3_context *to, int n, sqlite3_value **v)
{
	sql_trace_bounds(to, 0, 1);
}

static void sql_trace_dur(sqlite3_context *to, int n, sqlite3_value **v)
{
	sql_trace_bounds(to, -1, 1);
}

int sql_perfetto_add(struct sql *s)
{
	static const struct {
		const char *name;
		int n;
		void (*call)(sqlite3_context *to, int n, sqlite3_value **v);
	} functions[] = { { "trace_start", 0, sql_trace_start },
			  { "trace_end", 0, sql_trace_end },
			  { "trace_dur", 0, sql_trace_dur },
			  { "extract_arg", 2, sql_extract_arg } };
	int ret = SQLITE_OK;

	for (size_t i = 0; i < ARRAY_SIZE(functions) && ret == SQLITE_OK; i++)
		ret = sqlite3_create_function_v2(s->db, functions[i].name, functions[i].n,
						 SQLITE_UTF8 | SQLITE_INNOCUOUS, s, functions[i].call, NULL,
						 NULL, NULL);
	return ret ?: sqlite3_exec(s->db, sql_perfetto_text, NULL, NULL, NULL);
}

/*
 * Only slices of threads have any. The last columns are the one asked for and the row's number: a slice has
 * one ancestor of a level.
 */
#define SQL_RELATIVES(start, next, number)                                                                   \
	"WITH RECURSIVE t AS MATERIALIZED (SELECT * FROM main._thread_slice), r(id) AS (" start              \
	" UNION " next ") SELECT id, ts, dur, 3 << 44 | utid, NULL, name, level, parent, id, ?1, " number    \
	" FROM t WHERE id IN r ORDER BY level, ts"

static const struct sql_column sql_relative_columns[] = {
	{ "id", "INTEGER", KEY_NONE, 0 },	  { "ts", "INTEGER", KEY_NONE, 0 },
	{ "dur", "INTEGER", KEY_NONE, 0 },	  { "track_id", "INTEGER", KEY_NONE, 0 },
	{ "category", "TEXT", KEY_NONE, 0 },	  { "name", "TEXT", KEY_NONE, 0 },
	{ "depth", "INTEGER", KEY_NONE, 0 },	  { "parent_id", "INTEGER", KEY_NONE, 0 },
	{ "arg_set_id", "INTEGER", KEY_NONE, 0 }, { "slice_id", "INTEGER HIDDEN", KEY_ID, 0 },
};

struct sql_relative_cursor {
	struct sql_cursor c;
	sqlite3_stmt *stmt;
};

static void sql_relative_close(struct sql_cursor *cursor)
{
	sqlite3_finalize(((struct sql_relative_cursor *)cursor)->stmt);
}

static int sql_relative_filter(struct sql_cursor *cursor)
{
	static const char ancestors[] =
		SQL_RELATIVES("SELECT parent FROM t WHERE id = ?1",
			      "SELECT t.parent FROM t JOIN r ON t.id = r.id", "?1 << 13 | (level & 8191)");
	static const char descendants[] = SQL_RELATIVES(
		"SELECT id FROM t WHERE parent = ?1", "SELECT t.id FROM t JOIN r ON t.parent = r.id",
		"id << 13 | (SELECT level & 8191 FROM t WHERE id = ?1)");
	struct sql_relative_cursor *c = (struct sql_relative_cursor *)cursor;
	const char *text = cursor->table == &sql_ancestor_table ? ancestors : descendants;
	bool one = cursor->want.id.from == cursor->want.id.to;

	if (one && (sqlite3_prepare_v2(cursor->sql->db, text, -1, &c->stmt, NULL) != SQLITE_OK ||
		    sqlite3_bind_int64(c->stmt, 1, cursor->want.id.from) != SQLITE_OK))
		return -ENOMEM;
	return 0;
}

static int sql_relative_next(struct sql_cursor *cursor)
{
	struct sql_relative_cursor *c = (struct sql_relative_cursor *)cursor;
	int code = c->stmt ? sqlite3_step(c->stmt) : SQLITE_DONE;

	return code == SQLITE_ROW ? 1 : code == SQLITE_DONE ? 0 : code == SQLITE_INTERRUPT ? -EINTR : -EIO;
}

static struct cell sql_relative_column(struct sql_cursor *cursor, int i)
{
	sqlite3_stmt *stmt = ((struct sql_relative_cursor *)cursor)->stmt;

	if (sqlite3_column_type(stmt, i) == SQLITE_INTEGER)
		return sql_number(sqlite3_column_int64(stmt, i));
	return (struct cell){ .kind = CELL_COPY, .text = (const char *)sqlite3_column_text(stmt, i) };
}

static int64_t sql_relative_number(const struct sql_cursor *cursor)
{
	return sqlite3_column_int64(((const struct sql_relative_cursor *)cursor)->stmt,
				    ARRAY_SIZE(sql_relative_columns));
}

#define RELATIVE_TABLE(of)                                                                                   \
	.sets = true, .bytes = 100, .patience = 2, .number = sql_relative_number,                            \
	.column = sql_relative_column, SQL_TABLE(#of "_slice", sql_relative_columns, relative)

const struct sql_table sql_ancestor_table = { RELATIVE_TABLE(ancestor) };
const struct sql_table sql_descendant_table = { RELATIVE_TABLE(descendant) };
