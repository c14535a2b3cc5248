// SPDX-License-Identifier: LGPL-2.1-or-later
/* What statements may do: read the tables. No other files, no extensions, nothing written. */
#include <string.h>

#include "sql/sql-priv.h"

#define SQL_TEXT_MAX (16 << 20) /* of a value, bytes */

static bool sql_guard_word(const char *word, const char *const *words, size_t n)
{
	for (size_t i = 0; word && i < n; i++)
		if (!sqlite3_stricmp(word, words[i]))
			return true;
	return false;
}

static int sql_guard_action(void *ctx, int action, const char *a, const char *b, const char *db,
			    const char *by)
{
	/* what looks and touches nothing */
	static const char *const pragmas[] = { "table_info",	"table_xinfo", "table_list",
					       "function_list", "module_list", "compile_options",
					       "collation_list" };

	switch (action) {
	case SQLITE_SELECT:
	case SQLITE_READ:
	case SQLITE_RECURSIVE:
		return SQLITE_OK;
	case SQLITE_FUNCTION:
		return sqlite3_stricmp(b, "load_extension") ? SQLITE_OK : SQLITE_DENY;
	case SQLITE_PRAGMA:
		return sql_guard_word(a, pragmas, ARRAY_SIZE(pragmas)) ? SQLITE_OK : SQLITE_DENY;
	}
	return SQLITE_DENY;
}

int sql_guard(struct sql *s)
{
	static const struct {
		int id, value;
	} limits[] = { { SQLITE_LIMIT_LENGTH, SQL_TEXT_MAX },
		       { SQLITE_LIMIT_SQL_LENGTH, 1 << 20 },
		       { SQLITE_LIMIT_COLUMN, 64 },
		       { SQLITE_LIMIT_EXPR_DEPTH, 100 },
		       { SQLITE_LIMIT_COMPOUND_SELECT, 50 },
		       { SQLITE_LIMIT_VDBE_OP, 100000 },
		       { SQLITE_LIMIT_FUNCTION_ARG, 32 },
		       { SQLITE_LIMIT_ATTACHED, 0 },
		       { SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 256 },
		       { SQLITE_LIMIT_TRIGGER_DEPTH, 1 },
		       { SQLITE_LIMIT_WORKER_THREADS, 0 } };
	int ret = sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);

	for (size_t i = 0; i < ARRAY_SIZE(limits); i++)
		sqlite3_limit(s->db, limits[i].id, limits[i].value);
	if (ret == SQLITE_OK)
		ret = sqlite3_db_config(s->db, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, NULL);
	if (ret == SQLITE_OK)
		ret = sqlite3_exec(s->db, "PRAGMA query_only = 1", NULL, NULL, NULL);
	return ret == SQLITE_OK ? sqlite3_set_authorizer(s->db, sql_guard_action, s) : ret;
}
