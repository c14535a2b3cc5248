// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Perfetto's statements as SQLite's: CREATE PERFETTO TABLE, VIEW and INDEX, SPAN_JOIN, INCLUDE PERFETTO
 * MODULE. Tables, views and indices of a query live in the temporary database, whatever the statement calls
 * them.
 */
#include "ask/sql/sql-priv.h"

#define SQL_NAME_MAX 128

/* Skips blanks and comments. */
static const char *sql_dialect_blanks(const char *p)
{
	for (;;) {
		while (isspace((unsigned char)*p))
			p++;
		if (p[0] == '-' && p[1] == '-') {
			p += strcspn(p, "\n");
		} else if (p[0] == '/' && p[1] == '*') {
			const char *end = strstr(p + 2, "*/");

			p = end ? end + 2 : p + strlen(p);
		} else {
			return p;
		}
	}
}

/* Moves *at after these words, separated by one blank in `words`; false: other words are there. */
static bool sql_dialect_words(const char **at, const char *words)
{
	const char *p = *at;

	while (*words) {
		size_t n = strcspn(words, " ");

		p = sql_dialect_blanks(p);
		if (strncasecmp(p, words, n) != 0 || isalnum((unsigned char)p[n]) || p[n] == '_')
			return false;
		p += n;
		words += n + (words[n] == ' ');
	}
	*at = p;
	return true;
}

/* Moves *at after one character. */
static bool sql_dialect_mark(const char **at, char c)
{
	const char *p = sql_dialect_blanks(*at);

	if (*p != c)
		return false;
	*at = p + 1;
	return true;
}

/* Moves *at after a name, with dots between its parts or quoted. */
static bool sql_dialect_name(const char **at, char name[SQL_NAME_MAX])
{
	const char *p = sql_dialect_blanks(*at);
	char quote = *p == '"' || *p == '`' || *p == '\'' ? *p++ : '\0';
	size_t n = 0;

	if (quote)
		n = strcspn(p, (const char[]){ quote, '"', '\0' });
	else
		while (isalnum((unsigned char)p[n]) || p[n] == '_' || p[n] == '.' || p[n] == '*')
			n++;
	if (!n || n >= SQL_NAME_MAX || (quote && p[n] != quote))
		return false;
	memcpy(name, p, n);
	name[n] = '\0';
	*at = p + n + (quote != '\0');
	return true;
}

/* Moves *at after INCLUDE PERFETTO MODULE name; or SELECT IMPORT("name"); */
static bool sql_dialect_include(const char **at, char name[SQL_NAME_MAX])
{
	const char *p = *at;

	if (sql_dialect_words(&p, "INCLUDE PERFETTO MODULE")) {
		if (!sql_dialect_name(&p, name))
			return false;
	} else if (!sql_dialect_words(&p, "SELECT IMPORT") || !sql_dialect_mark(&p, '(') ||
		   !sql_dialect_name(&p, name) || !sql_dialect_mark(&p, ')')) {
		return false;
	}
	if (!sql_dialect_mark(&p, ';') && *sql_dialect_blanks(p))
		return false;
	*at = p;
	return true;
}

const char *sql_dialect_skip(struct sql *s, const char *text)
{
	char name[SQL_NAME_MAX];

	while (sql_dialect_include(&text, name))
		if (strcasecmp(name, "pkvm.hypervisor") != 0 &&
		    strcasecmp(name, "slices.with_context") != 0 && strncasecmp(name, "prelude", 7) != 0)
			sql_note(s,
				 "no module '%s': hyptrace has pkvm.hypervisor, slices.with_context and the "
				 "tables of .tables",
				 name);
	return sql_dialect_blanks(text);
}

struct sql_join_side {
	char table[SQL_NAME_MAX], key[SQL_NAME_MAX]; /* key: PARTITIONED by it; "": not */
};

static bool sql_join_side(const char **at, struct sql_join_side *side)
{
	*side->key = '\0';
	return sql_dialect_name(at, side->table) &&
	       (!sql_dialect_words(at, "PARTITIONED") || sql_dialect_name(at, side->key));
}

/* Rows of one side as the table `as`: _p is the partition, _i counts by partition and time. */
static void sql_join_rows(struct buf *out, const char *as, const struct sql_join_side *side,
			  const struct sql_join_side *other)
{
	buf_printf(out, "%s AS MATERIALIZED (SELECT row_number() OVER (ORDER BY _p, ts) AS _i, * FROM (", as);
	if (*side->key)
		buf_printf(out, "SELECT \"%s\" AS _p, * FROM \"%s\" WHERE \"%s\" IS NOT NULL", side->key,
			   side->table, side->key);
	else if (*other->key)
		buf_printf(out,
			   "SELECT _p, t.* FROM \"%s\" AS t, (SELECT DISTINCT \"%s\" AS _p FROM \"%s\" WHERE "
			   "\"%s\" IS NOT NULL)",
			   side->table, other->key, other->table, other->key);
	else
		buf_printf(out, "SELECT 0 AS _p, * FROM \"%s\"", side->table);
	buf_addstr(out, ") WHERE ts IS NOT NULL), ");
}

/* Columns of one side but for the time and the partition. SQLite's codes. */
static int sql_join_columns(struct sql *s, struct buf *out, const char *as, const struct sql_join_side *side)
{
	char *text = str_printf("SELECT * FROM \"%s\"", side->table);
	sqlite3_stmt *stmt = NULL;
	int ret = text ? sqlite3_prepare_v2(s->db, text, -1, &stmt, NULL) : SQLITE_NOMEM;

	for (int i = 0; ret == SQLITE_OK && i < sqlite3_column_count(stmt); i++) {
		const char *name = sqlite3_column_name(stmt, i);

		if (name && !strchr(name, '"') && strcasecmp(name, "ts") != 0 &&
		    strcasecmp(name, "dur") != 0 && strcasecmp(name, side->key) != 0)
			buf_printf(out, ", %s.\"%s\"", as, name);
	}
	sqlite3_finalize(stmt);
	free(text);
	return ret;
}

extern const char sql_segments_text[]; /* segments.sql */

static const char sql_join_on[] =
	" FROM both LEFT JOIN a ON a._i = both.a AND NOT coalesce(a.dur > 0 AND a.ts + a.dur <= both.t, 0)"
	" LEFT JOIN b ON b._i = both.b AND NOT coalesce(b.dur > 0 AND b.ts + b.dur <= both.t, 0) WHERE ";

/* From "name USING SPAN_JOIN(a PARTITIONED key, b)" on: a table of its rows. */
static int sql_dialect_span_join(struct sql *s, const char **text, struct buf *out, char why[SQL_WHY_MAX])
{
	static const struct {
		const char *words, *rows;
	} kinds[] = { { "USING SPAN_JOIN", "a._i IS NOT NULL AND b._i IS NOT NULL" },
		      { "USING SPAN_LEFT_JOIN", "a._i IS NOT NULL" },
		      { "USING SPAN_OUTER_JOIN", "(a._i IS NOT NULL OR b._i IS NOT NULL)" } };
	const char *p = *text, *key;
	struct sql_join_side a, b;
	char name[SQL_NAME_MAX];
	size_t kind = 0;
	int ret;

	if (!sql_dialect_name(&p, name))
		return 0;
	while (kind < ARRAY_SIZE(kinds) && !sql_dialect_words(&p, kinds[kind].words))
		kind++;
	if (kind == ARRAY_SIZE(kinds))
		return 0; /* another module: SQLite refuses it */
	if (!sql_dialect_mark(&p, '(') || !sql_join_side(&p, &a) || !sql_dialect_mark(&p, ',') ||
	    !sql_join_side(&p, &b) || !sql_dialect_mark(&p, ')') ||
	    (*a.key && *b.key && strcasecmp(a.key, b.key))) {
		snprintf(why, SQL_WHY_MAX,
			 "span join %s: expected (table [PARTITIONED column], table [PARTITIONED the same "
			 "column])",
			 name);
		return -EINVAL;
	}
	key = *a.key ? a.key : b.key;
	buf_printf(out, "CREATE TABLE temp.\"%s\" AS WITH ", name);
	sql_join_rows(out, "a", &a, &b);
	sql_join_rows(out, "b", &b, &a);
	buf_addstr(out, sql_segments_text);
	if (*key)
		buf_printf(out, ", both.p AS \"%s\"", key);
	ret = sql_join_columns(s, out, "a", &a);
	ret = ret ?: sql_join_columns(s, out, "b", &b);
	buf_printf(out, "%s%s ORDER BY both.p, both.t, both.d IS NOT NULL", sql_join_on, kinds[kind].rows);
	*text = p;
	return ret == SQLITE_OK ? 0 : sql_failed(s, ret, why);
}

int sql_dialect(struct sql *s, const char **text, struct buf *out, char why[SQL_WHY_MAX])
{
	static const char *const kinds[] = { "TABLE", "VIEW", "INDEX", "UNIQUE INDEX" };
	char name[SQL_NAME_MAX];
	const char *p = *text;
	bool replace, perfetto, missing;
	size_t kind = 0;
	int ret, depth = 1;

	if (!sql_dialect_words(&p, "CREATE"))
		return 0;
	if (sql_dialect_words(&p, "VIRTUAL TABLE")) {
		ret = sql_dialect_span_join(s, &p, out, why);
		*text = out->len ? p : *text;
		return ret;
	}
	replace = sql_dialect_words(&p, "OR REPLACE");
	perfetto = sql_dialect_words(&p, "PERFETTO");
	if (!perfetto && !sql_dialect_words(&p, "TEMP"))
		sql_dialect_words(&p, "TEMPORARY");
	while (kind < ARRAY_SIZE(kinds) && !sql_dialect_words(&p, kinds[kind]))
		kind++;
	if (kind == ARRAY_SIZE(kinds)) {
		if (!perfetto)
			return 0;
		snprintf(why, SQL_WHY_MAX,
			 "no CREATE PERFETTO FUNCTION or MACRO: hyptrace has CREATE PERFETTO TABLE, VIEW and "
			 "INDEX");
		return -EINVAL;
	}
	missing = sql_dialect_words(&p, "IF NOT EXISTS");
	if (!sql_dialect_name(&p, name))
		return 0;
	if (!strncasecmp(name, "temp.", 5))
		memmove(name, name + 5, strlen(name + 5) + 1);
	if (strchr(name, '.')) /* SQLite refuses it */
		return 0;
	if (replace) {
		buf_printf(out, "DROP %s IF EXISTS temp.\"%s\"", kinds[kind], name);
		ret = buf_str(out) ? sqlite3_exec(s->db, buf_str(out), NULL, NULL, NULL) : SQLITE_NOMEM;
		if (ret != SQLITE_OK)
			return sql_failed(s, ret, why);
		out->len = 0;
	}
	buf_printf(out, "CREATE %s %s temp.\"%s\" ", kinds[kind], missing ? "IF NOT EXISTS" : "", name);
	*text = p;
	/* skips Perfetto's list of columns and types between the name and AS: the query has them */
	if (sql_dialect_mark(&p, '(')) {
		for (; depth && *(p = sql_dialect_blanks(p)); p++)
			depth += (*p == '(') - (*p == ')');
		if (!depth && sql_dialect_words(&(const char *){ p }, "AS"))
			*text = p;
	}
	return 0;
}
