// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Random queries over the files, and over copies of the tables in a plain SQLite, which were filled by one
 * scan each without conditions: all answers are the same. HYPTRACE_SQL_QUERIES, _SEED, _FILES ("a.dat
 * b.dat"): others than the sample.
 */
#include "captures.h"

#include <inttypes.h>
#include <signal.h>

#include "ask/sql/sql-priv.h"
#include "base/array.h"
#include "../leaks.h"

#ifdef __SANITIZE_ADDRESS__ /* the plain program has them all */
#define QUERIES 40
#else
#define QUERIES 120
#endif
#define TABLES_MAX  40
#define COLUMNS_MAX 40
#define SAMPLES	    48
#define PLAIN_OPS   8000000 /* of SQLite's machine for a query: more take too long */
#define SECONDS	    20	    /* for a query over the files */

struct column {
	char *name;
	bool text;
	struct strlist samples; /* as SQL has them */
};

struct table {
	char *name;
	size_t rows, n;
	struct column v[COLUMNS_MAX];
};

struct judge {
	struct inputs in;
	struct sql *sql;
	sqlite3 *plain;
	struct table tables[TABLES_MAX];
	size_t n;
	uint64_t seed;
	/* the query */
	struct buf query;
	unsigned int ordered;	     /* by its first columns */
	uint64_t with_rows, refused; /* answers */
};

/* ---- chance -------------------------------------------------------------------------------- */

static unsigned int roll(struct judge *j, size_t n)
{
	j->seed = j->seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (unsigned int)((j->seed >> 33) % n);
}

static const char *one_of(struct judge *j, const char *const *words, size_t n)
{
	return words[roll(j, n)];
}
#define ONE_OF(j, ...)                                                                                       \
	one_of(j, (const char *const[]){ __VA_ARGS__ }, ARRAY_SIZE(((const char *[]){ __VA_ARGS__ })))

/* ---- answers ------------------------------------------------------------------------------- */

struct answer {
	struct buf text; /* all rows */
	struct buf keys; /* the columns that they are ordered by */
	struct strlist rows;
	unsigned int ordered;
	sqlite3_stmt *insert; /* rows go there instead */
};

static void answer_free(struct answer *a)
{
	buf_release(&a->text);
	buf_release(&a->keys);
	strlist_release(&a->rows);
}

static int random_begin(void *ctx, const char *const *names, size_t n)
{
	return 0;
}

static int random_end(void *ctx)
{
	return 0;
}

static void answer_value(struct buf *to, const struct sql_value *v)
{
	if (v->kind == SQL_INTEGER)
		buf_printf(to, "%" PRId64, v->integer);
	else if (v->kind == SQL_REAL)
		buf_printf(to, "r%.9g", v->real);
	else if (v->kind == SQL_TEXT)
		buf_printf(to, "'%s", v->text);
	buf_addstr(to, "|");
}

static int random_row(void *ctx, const struct sql_value *v, size_t n)
{
	struct answer *a = ctx;
	struct buf row = { 0 };

	for (size_t i = 0; i < n; i++) {
		answer_value(&row, &v[i]);
		if (i < a->ordered)
			answer_value(&a->keys, &v[i]);
	}
	strlist_add(&a->rows, buf_str(&row));
	buf_release(&row);
	return 0;
}

static int copy_row(void *ctx, const struct sql_value *v, size_t n)
{
	struct answer *a = ctx;

	sqlite3_reset(a->insert);
	sqlite3_clear_bindings(a->insert);
	for (size_t i = 0; i < n; i++) {
		assert_int_not_equal(v[i].kind, SQL_REAL);
		if (v[i].kind == SQL_INTEGER)
			sqlite3_bind_int64(a->insert, (int)i + 1, v[i].integer);
		else if (v[i].kind == SQL_TEXT)
			sqlite3_bind_text(a->insert, (int)i + 1, v[i].text, -1, SQLITE_TRANSIENT);
	}
	assert_int_equal(sqlite3_step(a->insert), SQLITE_DONE);
	return 0;
}

static struct sql *running;

static void too_long(int sig)
{
	sql_interrupt(running);
}

/* 0; -EINTR: that took too long; else an error of the query. */
static int ask_files(struct judge *j, struct answer *a, char why[SQL_WHY_MAX])
{
	static const struct sql_sink sink = { random_begin, random_row, random_end };
	struct strlist notes;
	int ret;

	running = j->sql;
	alarm(SECONDS);
	ret = sql_run(j->sql, buf_str(&j->query), &sink, a, why);
	alarm(0);
	notes = sql_notes(j->sql);
	strlist_release(&notes);
	return ret;
}

static int ask_plain(struct judge *j, struct answer *a, char why[SQL_WHY_MAX])
{
	sqlite3_stmt *stmt = NULL;
	int ret = sqlite3_prepare_v2(j->plain, buf_str(&j->query), -1, &stmt, NULL);

	while (ret == SQLITE_OK && (ret = sqlite3_step(stmt)) == SQLITE_ROW) {
		struct sql_value v[COLUMNS_MAX];
		int n = sqlite3_column_count(stmt);

		for (int i = 0; i < n; i++) {
			int type = sqlite3_column_type(stmt, i);

			v[i] = (struct sql_value){ type == SQLITE_INTEGER ? SQL_INTEGER
						   : type == SQLITE_FLOAT ? SQL_REAL
						   : type == SQLITE_NULL  ? SQL_NULL
									  : SQL_TEXT,
						   sqlite3_column_int64(stmt, i),
						   sqlite3_column_double(stmt, i),
						   (const char *)sqlite3_column_text(stmt, i) };
		}
		random_row(a, v, (size_t)n);
		ret = SQLITE_OK;
	}
	snprintf(why, SQL_WHY_MAX, "%s", sqlite3_errmsg(j->plain));
	sqlite3_finalize(stmt);
	return ret == SQLITE_DONE ? 0 : ret == SQLITE_INTERRUPT ? -EINTR : -EINVAL;
}

/* ---- the copies ----------------------------------------------------------------------------- */

static void plain_run(sqlite3 *db, const char *text)
{
	if (sqlite3_exec(db, text, NULL, NULL, NULL) != SQLITE_OK)
		fail_msg("%s: %s", text, sqlite3_errmsg(db));
}

static void plain_samples(struct judge *j, struct table *t, struct column *c)
{
	char *text = str_printf(
		"SELECT quote(\"%s\") FROM \"%s\" WHERE \"%s\" IS NOT NULL AND rowid %% max(1, %zu) "
		"= 0 LIMIT %d",
		c->name, t->name, c->name, t->rows / SAMPLES, SAMPLES);
	sqlite3_stmt *stmt;

	assert_int_equal(sqlite3_prepare_v2(j->plain, text, -1, &stmt, NULL), SQLITE_OK);
	while (sqlite3_step(stmt) == SQLITE_ROW)
		strlist_add(&c->samples, (const char *)sqlite3_column_text(stmt, 0));
	sqlite3_finalize(stmt);
	free(text);
}

static void plain_columns(struct judge *j, struct table *t)
{
	char *text = str_printf("SELECT name, type FROM pragma_table_info('%s')", t->name);
	sqlite3_stmt *stmt;

	assert_int_equal(sqlite3_prepare_v2(j->plain, text, -1, &stmt, NULL), SQLITE_OK);
	while (sqlite3_step(stmt) == SQLITE_ROW && t->n < COLUMNS_MAX) {
		struct column *c = &t->v[t->n++];

		c->name = strdup((const char *)sqlite3_column_text(stmt, 0));
		c->text = !strcmp((const char *)sqlite3_column_text(stmt, 1), "TEXT");
	}
	sqlite3_finalize(stmt);
	free(text);
}

static void plain_fill(struct judge *j, struct table *t)
{
	static const struct sql_sink sink = { random_begin, copy_row, random_end };
	struct answer a = { 0 };
	struct buf insert = { 0 };
	char *select = str_printf("SELECT * FROM \"%s\"", t->name), why[SQL_WHY_MAX];
	char *count = str_printf("SELECT count(*) FROM \"%s\"", t->name);
	sqlite3_stmt *stmt;

	buf_printf(&insert, "INSERT INTO \"%s\" SELECT ?1", t->name);
	plain_columns(j, t);
	for (size_t i = 1; i < t->n; i++)
		buf_printf(&insert, ", ?%zu", i + 1);
	if (sqlite3_prepare_v2(j->plain, buf_str(&insert), -1, &a.insert, NULL) != SQLITE_OK)
		fail_msg("%s: %s", buf_str(&insert), sqlite3_errmsg(j->plain));
	if (sql_run(j->sql, select, &sink, &a, why))
		fail_msg("%s: %s", select, why);
	sqlite3_finalize(a.insert);
	assert_int_equal(sqlite3_prepare_v2(j->plain, count, -1, &stmt, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	t->rows = (size_t)sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	for (size_t i = 0; i < t->n; i++)
		plain_samples(j, t, &t->v[i]);
	buf_release(&insert);
	free(select);
	free(count);
}

static int skip_row(void *ctx, const struct sql_value *v, size_t n)
{
	return 0;
}

/* Texts have the names of tasks that were printed so far: all of them, before there is a copy of any. */
static void learn_names(struct sql *s)
{
	static const struct sql_sink sink = { random_begin, skip_row, random_end };
	struct answer a = { 0 };
	char why[SQL_WHY_MAX];

	assert_int_equal(sql_run(s, "SELECT max(text) FROM events", &sink, &a, why), 0);
}

static int plain_over(void *ctx)
{
	return 1;
}

static void judge_open(struct judge *j, char *const *files, size_t n)
{
	struct strlist schema = { 0 };

	assert_int_equal(inputs_open(&j->in, files, n, 0, NULL), 0);
	assert_int_equal(inputs_load(&j->in, NULL), 0);
	assert_int_equal(sql_open(&j->sql, &j->in, NULL), 0);
	assert_int_equal(sqlite3_open(":memory:", &j->plain), SQLITE_OK);
	learn_names(j->sql);
	assert_int_equal(sql_schema(j->sql, &schema), 0);
	plain_run(j->plain, "BEGIN");
	for (size_t i = 0; i < schema.n && j->n < TABLES_MAX; i++) {
		char name[80];

		if (sscanf(schema.v[i], "CREATE TABLE %79[a-z_]", name) != 1)
			continue;
		/* functions: they have a hidden parameter, which plain tables lack */
		if (!strcmp(name, "ancestor_slice") || !strcmp(name, "descendant_slice"))
			continue;
		plain_run(j->plain, schema.v[i]);
		j->tables[j->n].name = strdup(name);
		plain_fill(j, &j->tables[j->n]);
		j->n++;
	}
	plain_run(j->plain, "COMMIT");
	strlist_release(&schema);
}

static void judge_close(struct judge *j)
{
	for (size_t i = 0; i < TABLES_MAX; i++) {
		for (size_t k = 0; k < j->tables[i].n; k++) {
			free(j->tables[i].v[k].name);
			strlist_release(&j->tables[i].v[k].samples);
		}
		free(j->tables[i].name);
	}
	sqlite3_close(j->plain);
	sql_close(j->sql);
	inputs_release(&j->in);
	buf_release(&j->query);
}

/* ---- conditions ------------------------------------------------------------------------------ */

static const struct table *random_table(struct judge *j)
{
	const struct table *t = &j->tables[roll(j, j->n)];

	/* most queries are of tables with many rows */
	for (unsigned int i = 0; i < 2 && t->rows < SAMPLES; i++)
		t = &j->tables[roll(j, j->n)];
	return t;
}

/* Often one that a scan is made shorter by. */
static const struct column *random_column(struct judge *j, const struct table *t)
{
	const char *wanted =
		ONE_OF(j, "id", "ts", "cpu", "name", "machine", "reason", "dur", "event_id", "tid");

	for (size_t i = 0, often = roll(j, 3); often && i < t->n; i++)
		if (!strcmp(t->v[i].name, wanted))
			return &t->v[i];
	return &t->v[roll(j, t->n)];
}

static void add_value(struct judge *j, const struct column *c)
{
	unsigned int kind = roll(j, 20);

	if (kind == 0) {
		buf_addstr(&j->query, ONE_OF(j, "NULL", "-1", "0", "1.5", "'abc'", "''", "x'00'", "1e300",
					     "'7'", "9223372036854775807", "'1e2'"));
		return;
	}
	if (kind < 3) {
		const struct table *t = random_table(j);

		c = random_column(j, t);
	}
	if (!c->samples.n)
		buf_addstr(&j->query, "1");
	else
		buf_addstr(&j->query, c->samples.v[roll(j, c->samples.n)]);
	if (kind == 4 && !c->text)
		buf_printf(&j->query, " + %u", roll(j, 5000));
}

static void add_condition(struct judge *j, const char *alias, const struct table *t, unsigned int depth);

static const char *random_op(struct judge *j)
{
	return ONE_OF(j, "=", "=", "=", "<>", "<", "<=", ">", ">=", "IS", "IS NOT");
}

static bool is_id(const struct column *c)
{
	return !strcmp(c->name, "id") || strstr(c->name, "_id");
}

/* Of the same kind in the other table, if it has one. */
static const struct column *same_column(struct judge *j, const struct table *t, const struct column *c)
{
	for (size_t i = 0, from = roll(j, t->n); i < t->n; i++) {
		const struct column *v = &t->v[(from + i) % t->n];

		if (is_id(c) ? is_id(v) : !strcmp(v->name, c->name))
			return v;
	}
	return random_column(j, t);
}

/* (SELECT ... FROM another table) */
static void add_subquery(struct judge *j, const struct column *c, const char *what, unsigned int depth)
{
	const struct table *t = random_table(j);

	buf_printf(&j->query, "(SELECT %s(s%u.\"%s\") FROM %s AS s%u", what, depth,
		   same_column(j, t, c)->name, t->name, depth);
	if (roll(j, 3)) {
		char alias[8];

		snprintf(alias, sizeof(alias), "s%u", depth);
		buf_addstr(&j->query, " WHERE ");
		add_condition(j, alias, t, depth + 2);
	}
	buf_addstr(&j->query, ")");
}

static void add_exists(struct judge *j, const char *alias, const struct column *c, unsigned int depth)
{
	const struct table *t = random_table(j);
	char inner[8];

	snprintf(inner, sizeof(inner), "e%u", depth);
	buf_printf(&j->query, "EXISTS (SELECT 1 FROM %s AS %s WHERE %s.\"%s\" %s %s.\"%s\"", t->name, inner,
		   inner, same_column(j, t, c)->name, ONE_OF(j, "=", "=", "=", "<="), alias, c->name);
	if (roll(j, 2)) {
		buf_addstr(&j->query, " AND ");
		add_condition(j, inner, t, depth + 2);
	}
	buf_addstr(&j->query, ")");
}

static void add_leaf(struct judge *j, const char *alias, const struct table *t, unsigned int depth)
{
	const struct column *c = random_column(j, t);
	unsigned int kind = roll(j, depth > 2 ? 14 : 18);

	if (kind < 16)
		buf_printf(&j->query, "%s.\"%s\" ", alias, c->name);
	if (kind < 6) {
		buf_printf(&j->query, "%s ", random_op(j));
		add_value(j, c);
	} else if (kind < 9) {
		buf_addstr(&j->query, ONE_OF(j, "IN (", "IN (", "NOT IN ("));
		for (unsigned int i = 0, n = 1 + roll(j, 4); i < n; i++) {
			buf_addstr(&j->query, i ? ", " : "");
			add_value(j, c);
		}
		buf_addstr(&j->query, ")");
	} else if (kind < 11) {
		buf_addstr(&j->query, ONE_OF(j, "BETWEEN ", "NOT BETWEEN "));
		add_value(j, c);
		buf_addstr(&j->query, " AND ");
		add_value(j, c);
	} else if (kind < 13) {
		buf_addstr(&j->query, ONE_OF(j, "LIKE ", "NOT LIKE ", "GLOB "));
		buf_addstr(&j->query, "substr(");
		add_value(j, c);
		buf_printf(&j->query, ", 1, %u) || %s", 1 + roll(j, 6), ONE_OF(j, "'%'", "'*'", "'_%'"));
	} else if (kind < 14) {
		buf_addstr(&j->query, ONE_OF(j, "IS NULL", "IS NOT NULL"));
	} else if (kind < 15) {
		buf_addstr(&j->query, ONE_OF(j, "IN ", "NOT IN "));
		add_subquery(j, c, "", depth);
	} else if (kind < 16) {
		buf_printf(&j->query, "%s ", random_op(j));
		add_subquery(j, c, ONE_OF(j, "max", "min", "count"), depth);
	} else {
		add_exists(j, alias, c, depth);
	}
}

static void add_condition(struct judge *j, const char *alias, const struct table *t, unsigned int depth)
{
	if (depth < 4 && roll(j, 5) < 3) {
		buf_addstr(&j->query, ONE_OF(j, "(", "(", "(", "NOT ("));
		add_condition(j, alias, t, depth + 1);
		buf_addstr(&j->query, ONE_OF(j, " AND ", " OR "));
		add_condition(j, alias, t, depth + 1);
		buf_addstr(&j->query, ")");
	} else {
		add_leaf(j, alias, t, depth);
	}
}

/* ---- queries ----------------------------------------------------------------------------------- */

static void add_order(struct judge *j, unsigned int columns)
{
	static const char *const ways[] = { "", "", "", " DESC", " ASC" };
	bool limit = roll(j, 2);

	if (!roll(j, 3))
		return;
	/* ties of all columns make no difference behind a limit */
	j->ordered = limit ? columns : 1 + roll(j, columns);
	buf_addstr(&j->query, " ORDER BY ");
	for (unsigned int i = 0; i < j->ordered; i++)
		buf_printf(&j->query, "%s%u%s", i ? ", " : "", i + 1, one_of(j, ways, ARRAY_SIZE(ways)));
	if (limit)
		buf_printf(&j->query, " LIMIT %u", 1 + roll(j, 50));
	if (limit && roll(j, 2))
		buf_printf(&j->query, " OFFSET %u", roll(j, 100));
}

static void add_where(struct judge *j, const char *alias, const struct table *t)
{
	unsigned int kind = roll(j, 5);

	if (!kind)
		return;
	buf_addstr(&j->query, " WHERE ");
	if (kind > 2) {
		add_condition(j, alias, t, 0);
		return;
	}
	/* SQLite makes a scan of each, and one answer of them */
	for (unsigned int i = 0, n = 2 + roll(j, 2); i < n; i++) {
		const struct column *c = random_column(j, t);

		buf_printf(&j->query, "%s%s.\"%s\" %s ", !i ? "" : ONE_OF(j, " OR ", " OR ", " AND "), alias,
			   c->name, ONE_OF(j, "=", "=", "=", "<", ">"));
		add_value(j, c);
	}
}

static unsigned int add_columns(struct judge *j, const char *alias, const struct table *t)
{
	unsigned int n = 1 + roll(j, 4);

	for (unsigned int i = 0; i < n; i++)
		buf_printf(&j->query, "%s%s.\"%s\"", i ? ", " : "", alias, random_column(j, t)->name);
	return n;
}

static void add_rows(struct judge *j)
{
	const struct table *t = random_table(j);
	unsigned int n;

	buf_printf(&j->query, "SELECT %s", ONE_OF(j, "", "", "DISTINCT "));
	n = add_columns(j, "a", t);
	buf_printf(&j->query, " FROM %s AS a", t->name);
	add_where(j, "a", t);
	add_order(j, n);
}

static void add_aggregate(struct judge *j, const char *alias, const struct column *c)
{
	if (c->text)
		buf_printf(&j->query, ", %s(%s.\"%s\")", ONE_OF(j, "min", "max", "count", "count(DISTINCT"),
			   alias, c->name);
	else
		buf_printf(&j->query, ", %s(%s.\"%s\" %% 1000003)",
			   ONE_OF(j, "min", "max", "sum", "count", "total", "avg"), alias, c->name);
}

static void add_groups(struct judge *j)
{
	const struct table *t = random_table(j);
	unsigned int n, aggregates = 1 + roll(j, 3);

	buf_addstr(&j->query, "SELECT ");
	n = add_columns(j, "a", t);
	buf_addstr(&j->query, ", count(*)");
	for (unsigned int i = 0; i < aggregates; i++) {
		const struct column *c = random_column(j, t);
		size_t before = j->query.len;

		add_aggregate(j, "a", c);
		if (memmem(j->query.data + before, j->query.len - before, "DISTINCT", 8))
			buf_addstr(&j->query, ")");
	}
	buf_printf(&j->query, " FROM %s AS a", t->name);
	add_where(j, "a", t);
	buf_addstr(&j->query, " GROUP BY ");
	for (unsigned int i = 0; i < n; i++)
		buf_printf(&j->query, "%s%u", i ? ", " : "", i + 1);
	if (!roll(j, 4))
		buf_printf(&j->query, " HAVING count(*) > %u", roll(j, 20));
	add_order(j, n);
}

/* Some rows of a table: the product of two whole ones on a CPU takes too long. */
static void add_few(struct judge *j, const struct table *t, const struct column *on)
{
	const struct column *ts = NULL;

	for (size_t i = 0; i < t->n; i++)
		if (!strcmp(t->v[i].name, "ts"))
			ts = &t->v[i];
	if (!ts || !ts->samples.n || is_id(on) || on == ts) {
		buf_printf(&j->query, "%s", t->name);
		return;
	}
	buf_printf(&j->query, "(SELECT * FROM %s WHERE ts %s %s LIMIT 100000000)", t->name,
		   ONE_OF(j, "=", "= 100 +", "="), ts->samples.v[roll(j, ts->samples.n)]);
}

static void add_join(struct judge *j)
{
	const struct table *a = random_table(j), *b = random_table(j), *c;
	const struct column *on = random_column(j, a), *to;
	unsigned int n;

	for (unsigned int i = 0; i < 3 && !is_id(on) && strcmp(on->name, "ts") != 0; i++)
		on = random_column(j, a);
	to = same_column(j, b, on);
	buf_addstr(&j->query, "SELECT ");
	n = add_columns(j, "a", a);
	buf_addstr(&j->query, ", ");
	n += add_columns(j, "b", b);
	buf_addstr(&j->query, " FROM ");
	add_few(j, a, on);
	buf_printf(&j->query, " AS a %s %s AS b ON b.\"%s\" = a.\"%s\"",
		   ONE_OF(j, "JOIN", "LEFT JOIN", "LEFT JOIN", "CROSS JOIN"), b->name, to->name, on->name);
	if (!roll(j, 3)) {
		buf_addstr(&j->query, ONE_OF(j, " AND ", " AND ", " OR "));
		add_condition(j, "b", b, 3);
	}
	if (!roll(j, 4)) {
		c = random_table(j);
		on = random_column(j, b);
		for (unsigned int i = 0; i < 20 && !is_id(on); i++)
			on = random_column(j, b);
		buf_printf(&j->query, " %s %s AS c ON c.\"%s\" = b.\"%s\" AND ",
			   ONE_OF(j, "JOIN", "LEFT JOIN"), c->name, same_column(j, c, on)->name, on->name);
		add_condition(j, "c", c, 3);
	}
	if (roll(j, 2)) {
		buf_addstr(&j->query, " WHERE ");
		add_condition(j, roll(j, 2) ? "a" : "b", roll(j, 2) ? a : a, 2);
	}
	add_order(j, n);
}

/* Frames by range: peers have one value, whatever their order. */
static void add_window(struct judge *j)
{
	const struct table *t = random_table(j);
	unsigned int n;

	buf_addstr(&j->query, "SELECT ");
	n = add_columns(j, "a", t);
	buf_printf(&j->query, ", %s OVER (PARTITION BY a.\"%s\" ORDER BY a.\"%s\"%s) FROM %s AS a",
		   ONE_OF(j, "rank()", "dense_rank()", "count(*)", "cume_dist()"), random_column(j, t)->name,
		   random_column(j, t)->name, ONE_OF(j, "", " DESC"), t->name);
	add_where(j, "a", t);
	add_order(j, n + 1);
}

/* Compound selects, a table of a query, and common tables that are read more than once. */
static void add_compound(struct judge *j)
{
	const struct table *t = random_table(j), *u = random_table(j);
	const struct column *c = random_column(j, t), *d = same_column(j, u, c);

	switch (roll(j, 3)) {
	case 0:
		buf_printf(&j->query, "SELECT a.\"%s\" FROM %s AS a", c->name, t->name);
		add_where(j, "a", t);
		buf_printf(&j->query, " %s SELECT b.\"%s\" FROM %s AS b",
			   ONE_OF(j, "UNION", "UNION ALL", "EXCEPT", "INTERSECT"), d->name, u->name);
		add_where(j, "b", u);
		break;
	case 1:
		buf_printf(&j->query, "SELECT x, count(*) FROM (SELECT a.\"%s\" AS x, a.* FROM %s AS a",
			   c->name, t->name);
		add_where(j, "a", t);
		buf_addstr(&j->query, ") AS q");
		add_where(j, "q", t);
		buf_addstr(&j->query, " GROUP BY x");
		break;
	default:
		buf_printf(&j->query, "WITH q AS (SELECT * FROM %s AS a", t->name);
		add_where(j, "a", t);
		buf_printf(&j->query,
			   ") SELECT (SELECT count(*) FROM q), (SELECT count(*) FROM q AS q, %s AS b WHERE "
			   "b.\"%s\" = q.\"%s\" AND ",
			   u->name, is_id(c) ? d->name : u->v[0].name, is_id(c) ? c->name : t->v[0].name);
		add_condition(j, "q", t, 3);
		buf_addstr(&j->query, "), (SELECT max(q.\"");
		buf_printf(&j->query, "%s\") FROM q)", c->name);
	}
}

static void next_query(struct judge *j)
{
	static void (*const kinds[])(struct judge *) = { add_rows, add_rows,   add_groups,  add_join,
							 add_join, add_window, add_compound };

	j->query.len = j->ordered = 0;
	kinds[roll(j, ARRAY_SIZE(kinds))](j);
	assert_non_null(buf_str(&j->query));
}

/* ---- judging ------------------------------------------------------------------------------------ */

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static const char *first_difference(struct answer *files, struct answer *plain)
{
	size_t i = 0;

	if (files->keys.len != plain->keys.len ||
	    (files->keys.len && memcmp(files->keys.data, plain->keys.data, files->keys.len) != 0))
		return "another order";
	if (files->rows.n)
		qsort(files->rows.v, files->rows.n, sizeof(char *), by_text);
	if (plain->rows.n)
		qsort(plain->rows.v, plain->rows.n, sizeof(char *), by_text);
	while (i < files->rows.n && i < plain->rows.n && !strcmp(files->rows.v[i], plain->rows.v[i]))
		i++;
	if (i == files->rows.n && i == plain->rows.n)
		return NULL;
	return i < files->rows.n && (i == plain->rows.n || strcmp(files->rows.v[i], plain->rows.v[i]) < 0)
		       ? files->rows.v[i]
		       : plain->rows.v[i];
}

/* 1: judged, and the same; 0: it differs; -EINTR: it takes too long. */
static int judge_query(struct judge *j)
{
	struct answer files = { .ordered = j->ordered }, plain = { .ordered = j->ordered };
	char why[SQL_WHY_MAX], expected[SQL_WHY_MAX];
	const char *difference = NULL;
	int ret, got;

	sqlite3_progress_handler(j->plain, PLAIN_OPS, plain_over, NULL);
	ret = ask_plain(j, &plain, expected);
	got = ret == -EINTR ? ret : ask_files(j, &files, why);
	j->with_rows += !ret && plain.rows.n;
	j->refused += ret == -EINVAL;
	if (got != -EINTR)
		difference = got != ret ? why : !ret ? first_difference(&files, &plain) : NULL;
	if (difference)
		print_error("%s;\n%zu rows of the files, %zu of plain tables; first: %s (%s)\n",
			    buf_str(&j->query), files.rows.n, plain.rows.n, difference, expected);
	answer_free(&files);
	answer_free(&plain);
	return got == -EINTR ? got : !difference;
}

static void judge_files(char *const *files, size_t n, uint64_t queries)
{
	const char *seed = getenv("HYPTRACE_SQL_SEED");
	struct judge *j = calloc(1, sizeof(*j));
	uint64_t differ = 0, left_out = 0, begin = seed ? strtoull(seed, NULL, 0) : 1;

	assert_non_null(j);
	signal(SIGALRM, too_long);
	judge_open(j, files, n);
	for (uint64_t i = 0; i < queries; i++) {
		int ret;

		j->seed = (begin + i) * 0x9e3779b97f4a7c15ULL;
		next_query(j);
		ret = judge_query(j);
		if (!ret)
			print_error("seed %" PRIu64 "\n", begin + i);
		differ += !ret;
		left_out += ret == -EINTR;
	}
	print_message("%s: %" PRIu64 " queries from seed %" PRIu64 ": %" PRIu64 " differ; %" PRIu64
		      " have rows, %" PRIu64 " are refused by both, %" PRIu64 " take too long\n",
		      files[0], queries, begin, differ, j->with_rows, j->refused, left_out);
	assert_true(queries < 30 || j->with_rows * 3 > queries);
	judge_close(j);
	free(j);
	assert_int_equal(differ, 0);
	assert_true(left_out * 10 <= queries);
}

/* ---- files -------------------------------------------------------------------------------------- */

/* Two buffers with losses, many equal times, exits without entries and the other way round. */
static void make_file(struct judge *j, struct fixture *x)
{
	struct pages *buffers[] = { add_buffer(x, "", 4096, 3), add_buffer(x, "hyp", 4096, 3) };
	uint64_t ts = 1000000000;

	for (unsigned int i = 0; i < 4000; i++) {
		struct pages *host = &buffers[0][roll(j, 3)], *hyp = &buffers[1][roll(j, 3)];
		int pid = 87 + (int)roll(j, 4);

		ts += roll(j, 3) * 500;
		if (!roll(j, 150)) {
			struct pages *p = roll(j, 2) ? host : hyp;

			pages_cut(p);
			p->lost = (int64_t)roll(j, 100) - 1; /* 0: none */
		}
		switch (roll(j, 6)) {
		case 0:
			add_switch(host, ts, "CPU 0/KVM", pid, "bash", 101 + (int)roll(j, 3));
			break;
		case 1:
			add_entry(host, ts, pid);
			break;
		case 2:
			add_exit(host, ts, pid);
			break;
		default:
			add_hyp(hyp, ts, roll(j, 2) ? HYP_ENTER : HYP_EXIT, (uint8_t)roll(j, 9), pid);
		}
	}
	x->f.compression = "none"; /* the captures have zstd */
	dat_from_spool(x);
	assert_int_equal(write_dat(x), 0);
}

static uint64_t queries_wanted(void)
{
	const char *n = getenv("HYPTRACE_SQL_QUERIES");

	return n ? strtoull(n, NULL, 0) : 0;
}

static void test_random(void **state)
{
	static char *const sets[][2] = {
		{ "tests/data/raw/trace.dat", "tests/data/raw/trace-Guest.dat" },
		{ "tests/data/functions/trace.dat", "tests/data/functions/trace-Guest.dat" },
		{ "tests/data/lab-stock-arm64.dat", NULL },
	};
	char *names = getenv("HYPTRACE_SQL_FILES");
	struct strlist given = { 0 };
	uint64_t queries = queries_wanted();

	for (char *word = names ? strtok(names, " ") : NULL; word; word = strtok(NULL, " "))
		strlist_add(&given, word);
	if (given.n) {
		judge_files(given.v, given.n, queries ? queries : 1000);
		strlist_release(&given);
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(sets); i++)
		judge_files(sets[i], sets[i][1] ? 2 : 1, queries ? queries / 4 : QUERIES);
}

static void test_made_up(void **state)
{
	struct fixture *x = *state;
	struct judge *j = calloc(1, sizeof(*j));
	char *path = x->path;
	uint64_t queries = queries_wanted();

	assert_non_null(j);
	make_file(j, x);
	free(j);
	judge_files(&path, 1, queries ? queries / 4 : QUERIES);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_random),
					    cmocka_unit_test_setup_teardown(test_made_up, setup, teardown) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
