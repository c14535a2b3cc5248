// SPDX-License-Identifier: LGPL-2.1-or-later
/* The calls that SQLite makes of a virtual table, for all of them. */
#include "ask/sql/sql-priv.h"

struct sql_vtab {
	sqlite3_vtab base;
	struct sql *sql;
	const struct sql_table *table;
};

/* NULL: none is called so. */
static const struct sql_table *sql_table_called(const char *name)
{
	for (size_t i = 0; i < sql_tables_n; i++)
		if (!strcmp(sql_tables[i]->name, name))
			return sql_tables[i];
	return NULL;
}

/* Returns SQLite's code; an error of reading has the reason as its message. */
static int sql_table_failed(struct sql_cursor *c, int error)
{
	c->over = true;
	if (error == -ENOMEM || error == -EINTR)
		return error == -ENOMEM ? SQLITE_NOMEM : SQLITE_INTERRUPT;
	sqlite3_free(c->base.pVtab->zErrMsg);
	c->base.pVtab->zErrMsg = sqlite3_mprintf("cannot read the files: %s", errno_text(error));
	return SQLITE_IOERR;
}

char *sql_table_text(const struct sql_table *t)
{
	struct buf text = { 0 };

	buf_printf(&text, "CREATE TABLE %s(", t->name);
	for (size_t i = 0; i < t->n; i++)
		buf_printf(&text, "%s%s %s", i ? ", " : "", t->columns[i].name, t->columns[i].type);
	buf_addstr(&text, ")");
	if (!buf_str(&text))
		buf_release(&text);
	return (char *)text.data;
}

/* argv[0]: the name. */
static int sql_table_connect(sqlite3 *db, void *sql, int argc, const char *const *argv, sqlite3_vtab **out,
			     char **why)
{
	const struct sql_table *table = sql_table_called(argv[0]);
	char *text = sql_table_text(table);
	struct sql_vtab *t = calloc(1, sizeof(*t));
	int ret = text && t ? sqlite3_declare_vtab(db, text) : SQLITE_NOMEM;

	free(text);
	ret = ret ?: sqlite3_vtab_config(db, SQLITE_VTAB_INNOCUOUS);
	if (ret != SQLITE_OK) {
		free(t);
		return ret;
	}
	t->sql = sql;
	t->table = table;
	*out = &t->base;
	return SQLITE_OK;
}

static int sql_table_disconnect(sqlite3_vtab *t)
{
	free(t);
	return SQLITE_OK;
}

static int sql_table_plan(sqlite3_vtab *vtab, sqlite3_index_info *info)
{
	const struct sql_vtab *t = (const struct sql_vtab *)vtab;

	return sql_want_plan(t->sql, t->table, info);
}

static int sql_table_open(sqlite3_vtab *vtab, sqlite3_vtab_cursor **out)
{
	const struct sql_vtab *t = (const struct sql_vtab *)vtab;
	struct sql_cursor *c = calloc(1, t->table->size);

	if (!c)
		return SQLITE_NOMEM;
	c->sql = t->sql;
	c->table = t->table;
	*out = &c->base;
	return SQLITE_OK;
}

static int sql_table_close(sqlite3_vtab_cursor *cursor)
{
	struct sql_cursor *c = (struct sql_cursor *)cursor;

	c->table->close(c);
	sqlite3_finalize(c->copy);
	sql_want_release(&c->want);
	free(c);
	return SQLITE_OK;
}

static int sql_table_next(sqlite3_vtab_cursor *cursor)
{
	struct sql_cursor *c = (struct sql_cursor *)cursor;
	int ret;

	if (c->copied) {
		ret = sqlite3_step(c->copy);
		c->over = ret != SQLITE_ROW;
		return ret == SQLITE_ROW || ret == SQLITE_DONE ? SQLITE_OK : ret;
	}
	ret = ++c->at < c->n ? 1 : c->table->next(c);
	if (c->at >= c->n) { /* they are the next ones */
		c->at = 0;
		c->n = ret > 0 ? (size_t)ret : 0;
		atomic_fetch_add_explicit(&c->sql->rows, c->n, memory_order_relaxed);
	}
	c->over = !ret;
	c->row++;
	return ret < 0 ? sql_table_failed(c, ret) : SQLITE_OK;
}

static int sql_table_filter(sqlite3_vtab_cursor *cursor, int order, const char *text, int n,
			    sqlite3_value **v)
{
	struct sql_cursor *c = (struct sql_cursor *)cursor;
	int ret = sql_copy_filter(c, order, text, n, v);

	if (ret != SQLITE_OK || c->copied)
		return ret != SQLITE_OK ? ret : sql_table_next(cursor);
	ret = sql_want_read(&c->want, order, text + SQL_PLAN_COLUMNS, n, v);
	if (ret != SQLITE_OK)
		return ret;
	c->row = 0;
	c->at = c->n = 0;
	c->over = c->want.nothing;
	if (c->over)
		return SQLITE_OK;
	/* ends the scan before */
	c->table->close(c);
	memset(c + 1, 0, c->table->size - sizeof(*c));
	ret = c->table->filter(c);
	return ret ? sql_table_failed(c, ret) : sql_table_next(cursor);
}

static int sql_table_eof(sqlite3_vtab_cursor *cursor)
{
	return ((const struct sql_cursor *)cursor)->over;
}

static int sql_table_column(sqlite3_vtab_cursor *cursor, sqlite3_context *to, int i)
{
	struct sql_cursor *c = (struct sql_cursor *)cursor;
	union value v;

	if (!c->copied && c->table->values && c->table->values(c, i, c->at, 1, &v))
		return sql_cell_give(
			*c->table->columns[i].type == 'T' ? sql_text(v.text) : sql_value(v.number), to);
	if (!c->copied)
		return sql_cell_give(c->table->column(c, i), to);
	sqlite3_result_value(to, sqlite3_column_value(c->copy, i + 1));
	return SQLITE_OK;
}

static int sql_table_rowid(sqlite3_vtab_cursor *cursor, sqlite3_int64 *row)
{
	const struct sql_cursor *c = (const struct sql_cursor *)cursor;

	*row = c->copied ? sqlite3_column_int64(c->copy, 0) : c->table->number ? c->table->number(c) : c->row;
	return SQLITE_OK;
}

/* No xCreate: the tables are there without CREATE VIRTUAL TABLE. */
static const sqlite3_module sql_table_module = {
	.xConnect = sql_table_connect,
	.xBestIndex = sql_table_plan,
	.xDisconnect = sql_table_disconnect,
	.xDestroy = sql_table_disconnect,
	.xOpen = sql_table_open,
	.xClose = sql_table_close,
	.xFilter = sql_table_filter,
	.xNext = sql_table_next,
	.xEof = sql_table_eof,
	.xColumn = sql_table_column,
	.xRowid = sql_table_rowid,
};

const struct sql_table *const sql_tables[] = {
	&sql_events_table,	  &sql_args_table,  &sql_slices_table,	 &sql_pkvm_table,
	&sql_calls_table,	  &sql_exits_table, &sql_lost_table,	 &sql_vcpu_states_table,
	&sql_thread_states_table, &sql_steal_table, &sql_ancestor_table, &sql_descendant_table,
};
const size_t sql_tables_n = ARRAY_SIZE(sql_tables);

int sql_tables_add(struct sql *s)
{
	int ret = SQLITE_OK;

	for (size_t i = 0; i < sql_tables_n && ret == SQLITE_OK; i++) {
		char *text = str_printf("SELECT 1 FROM %s", sql_tables[i]->name);
		sqlite3_stmt *stmt = NULL;

		ret = text ? sqlite3_create_module(s->db, sql_tables[i]->name, &sql_table_module, s)
			   : SQLITE_NOMEM;
		/* known now: later it would be CREATE TABLE, which statements may not */
		ret = ret ?: sqlite3_prepare_v2(s->db, text, -1, &stmt, NULL);
		sqlite3_finalize(stmt);
		free(text);
	}
	return ret;
}

int sql_read_tables(struct sql *s, struct sql_reader *v, size_t n, int (*progress)(void *ctx, double part),
		    void *ctx)
{
	struct sql_cursor **cursors = calloc(n + 1, sizeof(struct sql_cursor *));
	size_t n_cursors = 0;
	int ret = cursors ? 0 : -ENOMEM;

	atomic_store(&s->stop, false);
	for (size_t i = 0; i < n && !ret; i++) {
		const struct sql_table *t = sql_table_called(v[i].name);
		struct sql_cursor *c = t ? calloc(1, t->size) : NULL;

		v[i].kept = !t;
		if (!c) {
			ret = t ? -ENOMEM : 0;
			sql_filled_use(s, v[i].name);
			continue;
		}
		c->sql = s;
		c->table = t;
		c->to = &v[i];
		sql_want_read(&c->want, ORDER_ANY, "", 0, NULL);
		cursors[t->join ? n_cursors++ : n_cursors] = c;
		if (t->join)
			continue;
		ret = t->filter(c);
		while (!ret && (ret = t->next(c)) > 0)
			ret = sql_cursor_give(c, (size_t)ret);
		sql_table_close(&c->base);
	}
	s->progress = progress;
	s->progress_ctx = ctx;
	ret = ret ?: sql_filled_read(s, cursors, n_cursors);
	s->progress = NULL;
	for (size_t i = 0; i < n_cursors; i++)
		sql_table_close(&cursors[i]->base);
	free(cursors);
	return ret;
}
