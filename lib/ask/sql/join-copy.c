// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Copies of tables for joins: SQLite makes no index of a virtual table, so the table that is asked once for
 * each row of another one would be read from the files each time. From some times on, the columns that the
 * statement uses are asked of a copy, in a temporary database of its own, with an index by the conditions.
 */
#include "ask/sql/sql-priv.h"

struct sql_copy {
	struct sql_copy *next;
	const struct sql_table *table;
	unsigned int asked; /* times */
	sqlite3 *db;	    /* NULL: not copied yet */
	char plan[];	    /* sql_want_plan's */
};

/* The conditions of a plan: column by column, with SQLite's operators. */
static const char *sql_copy_op(char op)
{
	return op == '='   ? "="
	       : op == '>' ? ">"
	       : op == 'g' ? ">="
	       : op == '<' ? "<"
	       : op == 'l' ? "<="
			   : NULL;
}

/* Ids are found without; a reason may have another name (hyp-table.c); other orders are those of the files.
 */
static bool sql_copy_fits(const struct sql_table *t, int order, const char *plan, sqlite3_value **v)
{
	if (order != ORDER_ANY && order != ORDER_TS)
		return false; /* counted ones are read once more as quickly */
	for (const char *p = plan + SQL_PLAN_COLUMNS; *p; p += SQL_PLAN_STEP, v++) {
		enum sql_key key = (enum sql_key)(p[0] - 'a');
		bool text = !strcmp(t->columns[p[2] - '0'].type, "TEXT");

		if (key == KEY_ID || key == KEY_REASON)
			return false;
		/* SQLite compares a text with a number as numbers, an index would by their texts */
		if (text && sql_copy_op(p[1]) && sqlite3_value_type(*v) != SQLITE_TEXT)
			return false;
	}
	return true;
}

void sql_copies_release(struct sql *s)
{
	for (struct sql_copy *copy; (copy = s->copies);) {
		s->copies = copy->next;
		sqlite3_close_v2(copy->db);
		free(copy);
	}
}

static int sql_copy_fill(struct sql *s, struct sql_copy *copy)
{
	unsigned long long used = 0;
	char range = 0;
	struct buf create = { 0 }, select = { 0 }, insert = { 0 };
	sqlite3_stmt *from = NULL, *to = NULL;
	int ret = sqlite3_open("", &copy->db);

	sscanf(copy->plan, "%16llx", &used);
	buf_addstr(&create, "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -65536;"
			    "CREATE TABLE c(r INTEGER");
	buf_addstr(&select, "SELECT rowid");
	buf_addstr(&insert, "INSERT INTO c VALUES (?");
	for (size_t i = 0; i < copy->table->n; i++) {
		bool wanted = used >> (i < 63 ? i : 63) & 1;

		buf_printf(&create, ", c%zu %s", i, copy->table->columns[i].type);
		buf_printf(&select, wanted ? ", \"%s\"" : ", NULL", copy->table->columns[i].name);
		buf_addstr(&insert, ", ?");
	}
	buf_addstr(&create, ");");
	/* the index: columns that are to be equal, then one with a range */
	buf_addstr(&create, "CREATE INDEX i ON c(");
	for (const char *p = copy->plan + SQL_PLAN_COLUMNS; *p; p += SQL_PLAN_STEP) {
		if (p[1] == '=')
			buf_printf(&create, "c%d, ", p[2] - '0');
		else if (sql_copy_op(p[1]))
			range = p[2];
	}
	if (range)
		buf_printf(&create, "c%d, ", range - '0');
	buf_addstr(&create, "r);BEGIN");
	buf_printf(&select, " FROM main.%s", copy->table->name);
	buf_addstr(&insert, ")");
	if (!buf_str(&create) || !buf_str(&select) || !buf_str(&insert))
		ret = SQLITE_NOMEM;
	ret = ret ?: sqlite3_exec(copy->db, buf_str(&create), NULL, NULL, NULL);
	ret = ret ?: sqlite3_prepare_v2(s->db, buf_str(&select), -1, &from, NULL);
	ret = ret ?: sqlite3_prepare_v2(copy->db, buf_str(&insert), -1, &to, NULL);
	s->copying = true;
	while (ret == SQLITE_OK && (ret = sqlite3_step(from)) == SQLITE_ROW) {
		for (int i = 0; i <= (int)copy->table->n; i++) /* the row's number, then the columns */
			sqlite3_bind_value(to, i + 1, sqlite3_column_value(from, i));
		ret = sqlite3_step(to);
		sqlite3_reset(to);
		ret = ret == SQLITE_DONE ? SQLITE_OK : ret;
	}
	ret = ret == SQLITE_DONE ? SQLITE_OK : ret;
	s->copying = false;
	sqlite3_finalize(from);
	sqlite3_finalize(to);
	ret = ret ?: sqlite3_exec(copy->db, "COMMIT", NULL, NULL, NULL);
	buf_release(&create);
	buf_release(&select);
	buf_release(&insert);
	return ret;
}

int sql_copy_filter(struct sql_cursor *c, int order, const char *plan, int n, sqlite3_value **v)
{
	struct buf text = { 0 };
	struct sql_copy *copy = c->sql->copies;
	int ret = SQLITE_OK, i = 0;

	c->copied = false;
	if (c->sql->copying || !sql_copy_fits(c->table, order, plan, v))
		return SQLITE_OK;
	while (copy && (copy->table != c->table || strcmp(copy->plan, plan) != 0))
		copy = copy->next;
	if (!copy) {
		copy = calloc(1, sizeof(*copy) + strlen(plan) + 1);
		if (!copy)
			return SQLITE_NOMEM;
		copy->next = c->sql->copies;
		copy->table = c->table;
		strcpy(copy->plan, plan);
		c->sql->copies = copy;
	}
	if (++copy->asked <= c->table->patience)
		return SQLITE_OK;
	if (!copy->db)
		ret = sql_copy_fill(c->sql, copy);
	if (ret == SQLITE_OK && (!c->copy || sqlite3_db_handle(c->copy) != copy->db)) {
		buf_addstr(&text, "SELECT * FROM c WHERE 1");
		for (const char *p = plan + SQL_PLAN_COLUMNS; *p; p += SQL_PLAN_STEP, i++)
			if (sql_copy_op(p[1]))
				buf_printf(&text, " AND c%d %s ?%d", p[2] - '0', sql_copy_op(p[1]), i + 1);
		/* the rows are in the order of the table, which is that of time where a plan asks for it */
		buf_addstr(&text, order == ORDER_TS ? " ORDER BY rowid" : "");
		sqlite3_finalize(c->copy);
		c->copy = NULL;
		ret = buf_str(&text) ? sqlite3_prepare_v2(copy->db, buf_str(&text), -1, &c->copy, NULL)
				     : SQLITE_NOMEM;
		buf_release(&text);
	}
	if (ret != SQLITE_OK)
		return ret;
	sqlite3_reset(c->copy);
	for (i = 0; i < n; i++)
		if (sql_copy_op(plan[SQL_PLAN_COLUMNS + i * SQL_PLAN_STEP + 1]))
			sqlite3_bind_value(c->copy, i + 1, v[i]);
	c->copied = true;
	return SQLITE_OK;
}
