// SPDX-License-Identifier: LGPL-2.1-or-later
/* Notes to an answer, each once, and rows: of tables that SQLite keeps, and those that a sink gets. */
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

/* The cursor's rows from `from` to `to`. */
static int sql_cursor_cells(struct sql_cursor *c, size_t from, size_t to)
{
	const struct cell_sink *sink = c->to->sink;
	union value values[VALUES_MAX];
	int ret = 0;

	for (size_t i = 0; i < c->table->n && !ret; i++) {
		if (c->table->values && c->table->values(c, (int)i, from, to - from, values)) {
			sink->values(c->to->ctx, i, values, to - from);
			continue;
		}
		for (c->at = from; c->at < to && !ret; c->at++) {
			struct cell one = c->table->column(c, (int)i);

			ret = one.kind == CELL_FAILED ? -ENOMEM : sink->cell(c->to->ctx, i, one);
		}
	}
	return ret ?: sink->rows(c->to->ctx, to - from);
}

int sql_cursor_give(struct sql_cursor *c, size_t n)
{
	int ret = 0;

	atomic_fetch_add_explicit(&c->sql->rows, c->to ? n : 0, memory_order_relaxed);
	for (size_t at = 0; at < n && c->to && !ret; at += VALUES_MAX)
		ret = sql_cursor_cells(c, at, n - at < VALUES_MAX ? n : at + VALUES_MAX);
	return ret;
}
