// SPDX-License-Identifier: LGPL-2.1-or-later
/* Notes to an answer, each once, and rows of tables that SQLite keeps. */
#include <stdarg.h>

#include "ask/sql/sql-priv.h"

void sql_note(struct sql *s, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (!strlist_has(&s->notes, text))
		strlist_add(&s->notes, text); /* without memory the note is left out */
}

void sql_insert(struct sql_insert *in, ...)
{
	int code = SQLITE_OK;
	va_list ap;

	va_start(ap, in);
	for (int i = 1; in->kinds[i - 1] && code == SQLITE_OK; i++) {
		if (in->kinds[i - 1] == 't') {
			code = sqlite3_bind_text(in->stmt, i, va_arg(ap, const char *), -1, SQLITE_TRANSIENT);
		} else {
			int64_t v = va_arg(ap, int64_t);

			code = in->kinds[i - 1] == 'N' && v < 0 ? sqlite3_bind_null(in->stmt, i)
								: sqlite3_bind_int64(in->stmt, i, v);
		}
	}
	va_end(ap);
	if (!in->ret && code == SQLITE_OK && sqlite3_step(in->stmt) != SQLITE_DONE)
		code = sqlite3_errcode(sqlite3_db_handle(in->stmt));
	sqlite3_reset(in->stmt);
	if (!in->ret && code != SQLITE_OK)
		in->ret = code == SQLITE_NOMEM ? -ENOMEM : -EIO;
}
