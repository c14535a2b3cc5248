// SPDX-License-Identifier: LGPL-2.1-or-later
/* Tables and notes of an answer, as text, JSON or CSV. */
#include "base/answer.h"

#include <stdarg.h>

#include "base/escape.h"

#define ROWS_KEPT 1000
#define GAP	  2 /* blanks between columns */
#define WORD_MIN  8 /* a column of words is not cut shorter */
#define CELL_MAX  ESCAPE_LINE

const char *duration_text(uint64_t ns, char out[16])
{
	static const char *const units[] = { "us", "ms", "s" };
	double value = (double)ns / 1000;
	size_t i = 0;

	if (ns < 1000) {
		snprintf(out, 16, "%" PRIu64 "ns", ns);
		return out;
	}
	for (; i < 2 && value >= 999.95; i++) /* rounded it would have a fifth digit */
		value /= 1000;
	snprintf(out, 16, "%.*f%s", value < 10 ? 3 : value < 100 ? 2 : 1, value, units[i]);
	return out;
}

const char *seconds_text(uint64_t ns, char out[32])
{
	snprintf(out, 32, "%" PRIu64 ".%09" PRIu64, ns / 1000000000, ns % 1000000000);
	return out;
}

const char *answer_duration(const struct answer *a, uint64_t n, char out[32])
{
	if (!a->ticks)
		return duration_text(n, out);
	snprintf(out, 32, "%" PRIu64 " ticks", n);
	return out;
}

const char *answer_time(const struct answer *a, uint64_t time, char out[32])
{
	if (!a->ticks)
		return seconds_text(time, out);
	snprintf(out, 32, "%" PRIu64, time);
	return out;
}

/* For people, and for CSV where it is the same; out has CELL_MAX bytes. */
static const char *cell_text(const struct answer_column *col, const struct answer_cell *c, char *out)
{
	if (!c->known)
		return "-";
	switch (col->kind) {
	case ANSWER_WORD:
		return escape_line(out, CELL_MAX, c->word);
	case ANSWER_COUNT:
		snprintf(out, CELL_MAX, "%" PRIu64, c->n);
		break;
	case ANSWER_SIGNED:
		snprintf(out, CELL_MAX, "%" PRId64, (int64_t)c->n);
		break;
	case ANSWER_HEX:
		snprintf(out, CELL_MAX, "0x%" PRIx64, c->n);
		break;
	case ANSWER_DURATION:
		return duration_text(c->n, out);
	case ANSWER_TIME:
		return seconds_text(c->n, out);
	case ANSWER_REAL:
		snprintf(out, CELL_MAX, "%.15g", c->share);
		break;
	case ANSWER_SHARE:
		snprintf(out, CELL_MAX, "%.1f%%", c->share * 100);
		break;
	case ANSWER_BOOL:
		return c->n ? "true" : "false";
	case ANSWER_LIST:
		return "";
	}
	return out;
}

/* Width on a terminal, approximated by the count of code points. */
static size_t text_width(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += (*s & 0xc0) != 0x80;
	return n;
}

/* The bytes of the first n code points. */
static size_t text_bytes(const char *s, size_t n)
{
	size_t i = 0;

	while (s[i] && (n || (s[i] & 0xc0) == 0x80))
		n -= (s[i++] & 0xc0) != 0x80;
	return i;
}

/* One cell to the width of its column; the last one of a line is not filled up. */
static void text_cell(struct answer *a, size_t column, const char *text)
{
	size_t width = a->widths[column], n = text_width(text), most = width + a->slack;
	bool left = a->columns[column].kind == ANSWER_WORD, last = column + 1 == a->n_columns;

	buf_printf(a->out, "%*s", column ? GAP : 0, "");
	if (n > most && left)
		buf_printf(a->out, "%.*s...", (int)text_bytes(text, most > 3 ? most - 3 : 0), text);
	else if (left)
		buf_printf(a->out, "%s%*s", text, last || n > width ? 0 : (int)(width - n), "");
	else
		buf_printf(a->out, "%*s%s", n < width ? (int)(width - n) : 0, "", text);
}

static void text_row(struct answer *a, const char *const *cells)
{
	for (size_t i = 0; i < a->n_columns; i++)
		text_cell(a, i, cells[i]);
	buf_addstr(a->out, "\n");
}

static size_t text_total(const struct answer *a)
{
	size_t n = GAP * (a->n_columns - 1);

	for (size_t i = 0; i < a->n_columns; i++)
		n += a->widths[i];
	return n;
}

/* Prints the rows that were kept until the widths are known. */
static void text_flush(struct answer *a)
{
	const char *cells[ANSWER_COLUMNS_MAX], *at = (const char *)a->rows.data, *cell = at;

	if (a->rows.bad)
		a->out->bad = true;
	if (a->out->bad)
		return;
	for (size_t i = 0; i < a->n_columns; i++)
		a->widths[i] = text_width(a->columns[i].title);
	for (size_t k = 0; k < a->n_rows * a->n_columns; k++, cell += strlen(cell) + 1) {
		size_t n = text_width(cell), i = k % a->n_columns;

		a->widths[i] = n > a->widths[i] ? n : a->widths[i];
	}
	while (text_total(a) > ANSWER_WIDTH) {
		size_t widest = a->n_columns; /* the column of words that can still be cut */

		for (size_t i = 0; i < a->n_columns; i++)
			if (a->columns[i].kind == ANSWER_WORD && a->widths[i] > WORD_MIN &&
			    (widest == a->n_columns || a->widths[i] > a->widths[widest]))
				widest = i;
		if (widest == a->n_columns)
			break;
		a->widths[widest]--;
	}
	a->slack = text_total(a) < ANSWER_WIDTH ? ANSWER_WIDTH - text_total(a) : 0;
	for (size_t i = 0; i < a->n_columns; i++)
		cells[i] = a->columns[i].title;
	text_row(a, cells);
	for (size_t r = 0; r < a->n_rows; r++) {
		for (size_t i = 0; i < a->n_columns; i++, at += strlen(at) + 1)
			cells[i] = at;
		text_row(a, cells);
	}
	a->rows.len = 0;
}

static void json_cells(struct answer *a, const struct answer_column *columns, size_t n,
		       const struct answer_cell *cells);

static void json_cell(struct answer *a, const struct answer_column *col, const struct answer_cell *c)
{
	const struct answer_list *list = c->list;
	struct json *j = &a->json;
	char room[CELL_MAX];

	if (!c->known) {
		json_null(j);
	} else if (col->kind == ANSWER_WORD) {
		json_str(j, c->word);
	} else if (col->kind == ANSWER_COUNT || col->kind == ANSWER_DURATION) {
		json_u64(j, c->n);
	} else if (col->kind == ANSWER_SIGNED) {
		json_i64(j, (int64_t)c->n);
	} else if (col->kind == ANSWER_SHARE || col->kind == ANSWER_REAL) {
		json_double(j, c->share);
	} else if (col->kind == ANSWER_BOOL) {
		json_bool(j, c->n);
	} else if (col->kind == ANSWER_LIST && list->one) {
		json_cells(a, list->columns, list->n_columns, list->cells);
	} else if (col->kind == ANSWER_LIST) {
		json_array(j);
		for (size_t i = 0; i < list->n; i++)
			if (list->n_columns == 1)
				json_cell(a, list->columns, &list->cells[i]);
			else
				json_cells(a, list->columns, list->n_columns,
					   &list->cells[i * list->n_columns]);
		json_array_end(j);
	} else {
		json_str(j, cell_text(col, c, room));
	}
}

/* An object, which is a line of its own. */
static void json_cells(struct answer *a, const struct answer_column *columns, size_t n,
		       const struct answer_cell *cells)
{
	json_object(&a->json);
	a->json.compact = !a->indented;
	for (size_t i = 0; i < n; i++) {
		if (cells[i].left_out)
			continue;
		json_key(&a->json, columns[i].key);
		json_cell(a, &columns[i], &cells[i]);
	}
	json_object_end(&a->json);
	a->json.compact = false;
}

static void csv_word(struct buf *out, const char *s)
{
	bool quoted = s[strcspn(s, "\",\r\n")];

	buf_addstr(out, quoted ? "\"" : "");
	for (; *s; s++) {
		if (*s == '"')
			buf_addstr(out, "\"");
		buf_add(out, s, 1);
	}
	buf_addstr(out, quoted ? "\"" : "");
}

/* A list is one field: "0:122;1:123". */
static void csv_list(struct buf *out, const struct answer_list *list)
{
	struct buf text = { 0 };
	char room[CELL_MAX];

	for (size_t i = 0; i < list->n * list->n_columns; i++) {
		const struct answer_cell *c = &list->cells[i];

		buf_addstr(&text, !i ? "" : i % list->n_columns ? ":" : ";");
		buf_addstr(&text, c->known ? cell_text(&list->columns[i % list->n_columns], c, room) : "");
	}
	csv_word(out, buf_str(&text) ?: "");
	out->bad |= text.bad;
	buf_release(&text);
}

static void csv_row(struct answer *a, const struct answer_cell *cells)
{
	char room[CELL_MAX];

	csv_word(a->out, a->table);
	for (size_t i = 0; i < a->n_columns; i++) {
		const struct answer_cell *c = &cells[i];

		buf_addstr(a->out, ",");
		if (!c->known)
			continue;
		if (a->columns[i].kind == ANSWER_DURATION)
			buf_add_u64(a->out, c->n);
		else if (a->columns[i].kind == ANSWER_SHARE)
			buf_printf(a->out, "%.9g", c->share);
		else if (a->columns[i].kind == ANSWER_LIST)
			csv_list(a->out, c->list);
		else
			csv_word(a->out, cell_text(&a->columns[i], c, room));
	}
	buf_addstr(a->out, "\n");
}

void answer_begin(struct answer *a, enum answer_form form, struct buf *out)
{
	*a = (struct answer){ .out = out, .form = form, .json = { .out = out } };
	if (form == ANSWER_JSON) {
		json_object(&a->json);
		json_key_u64(&a->json, "schema", JSON_SCHEMA);
	}
}

void answer_end(struct answer *a)
{
	if (a->ticks)
		answer_note(a, "times and durations are ticks, not ns");
	if (a->form == ANSWER_JSON && !a->indented) {
		json_key_array(&a->json, "notes");
		for (size_t i = 0; i < a->notes.n; i++)
			json_str(&a->json, a->notes.v[i]);
		json_array_end(&a->json);
	}
	if (a->form == ANSWER_JSON)
		json_object_end(&a->json);
	strlist_release(&a->notes);
	buf_release(&a->rows);
}

/* A table for programs, in a text. */
static bool answer_hidden(const struct answer *a)
{
	return a->form == ANSWER_TEXT && !a->columns[0].title;
}

void answer_table(struct answer *a, const char *key, const char *title, const struct answer_column *columns,
		  size_t n)
{
	a->table = key;
	a->n_columns = n < ANSWER_COLUMNS_MAX ? n : ANSWER_COLUMNS_MAX;
	memcpy(a->columns, columns, a->n_columns * sizeof(*columns));
	a->n_rows = a->rows.len = 0;
	if (a->ticks) {
		/* Times and durations become plain numbers, "p99_ns" becomes "p99_ticks". */
		for (size_t i = 0; i < a->n_columns; i++) {
			struct answer_column *c = &a->columns[i];
			size_t len = strlen(c->key);

			if (c->kind == ANSWER_DURATION || c->kind == ANSWER_TIME)
				c->kind = ANSWER_COUNT;
			if (len < 3 || strcmp(c->key + len - 3, "_ns"))
				continue;
			snprintf(a->keys[i], sizeof(a->keys[i]), "%.*s_ticks", (int)(len - 3), c->key);
			c->key = a->keys[i];
		}
	}
	if (a->form == ANSWER_JSON) {
		json_key_array(&a->json, key);
	} else if (a->form == ANSWER_CSV) {
		csv_word(a->out, a->table);
		for (size_t i = 0; i < a->n_columns; i++) {
			buf_addstr(a->out, ",");
			csv_word(a->out, a->columns[i].key);
		}
		buf_addstr(a->out, "\n");
	} else if (!answer_hidden(a)) {
		buf_addstr(a->out, a->any ? "\n" : "");
		if (title)
			buf_printf(a->out, "%s\n", ESCAPED(title));
	}
	a->any = true;
}

void answer_row(struct answer *a, const struct answer_cell *cells)
{
	char room[CELL_MAX];

	if (a->form == ANSWER_JSON)
		json_cells(a, a->columns, a->n_columns, cells);
	else if (a->form == ANSWER_CSV)
		csv_row(a, cells);
	else if (answer_hidden(a))
		return;
	else if (a->n_rows < ROWS_KEPT) {
		for (size_t i = 0; i < a->n_columns; i++) {
			const char *text = cell_text(&a->columns[i], &cells[i], room);

			buf_add(&a->rows, text, strlen(text) + 1);
		}
		if (++a->n_rows == ROWS_KEPT)
			text_flush(a);
	} else {
		for (size_t i = 0; i < a->n_columns; i++)
			text_cell(a, i, cell_text(&a->columns[i], &cells[i], room));
		buf_addstr(a->out, "\n");
	}
}

void answer_table_end(struct answer *a)
{
	if (a->form == ANSWER_JSON)
		json_array_end(&a->json);
	else if (a->form == ANSWER_TEXT && a->n_rows < ROWS_KEPT && !answer_hidden(a))
		text_flush(a);
	a->table = NULL;
}

void answer_object(struct answer *a, const char *key, const struct answer_column *columns, size_t n,
		   const struct answer_cell *cells)
{
	if (a->form == ANSWER_JSON) {
		json_key(&a->json, key);
		json_cells(a, columns, n, cells);
		return;
	}
	answer_table(a, key, NULL, columns, n);
	answer_row(a, cells);
	answer_table_end(a);
}

void answer_note(struct answer *a, const char *fmt, ...)
{
	char text[ESCAPE_LINE];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (a->form == ANSWER_JSON) {
		if (strlist_add(&a->notes, text))
			a->out->bad = true;
	} else if (a->form == ANSWER_CSV) {
		buf_addstr(a->out, "note,");
		csv_word(a->out, ESCAPED(text));
		buf_addstr(a->out, "\n");
	} else {
		buf_printf(a->out, "%s\n", ESCAPED(text));
	}
	a->any = true;
}
