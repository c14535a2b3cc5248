/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_ANSWER_H
#define HYPTRACE_ANSWER_H

#include "base/strings.h"
#include "base/json.h"

/*
 * Result of a command as tables and notes: text of 80 columns for people, JSON or CSV for
 * programs. The same calls write either form.
 */
enum answer_form {
	ANSWER_TEXT, /* tables with a title; 80 columns wide at most */
	ANSWER_JSON, /* one object: a table is an array of objects, notes are an array of texts */
	ANSWER_CSV   /* RFC 4180; each line begins with the table's key, so that one table can be picked */
};

enum answer_kind {
	ANSWER_WORD,
	ANSWER_COUNT,	 /* n */
	ANSWER_SIGNED,	 /* n as int64_t */
	ANSWER_HEX,	 /* n; a text of hexadecimal digits for programs, too */
	ANSWER_DURATION, /* n: ns; "187.3us" for people, ns for programs */
	ANSWER_TIME,	 /* n: ns of the host's clock; seconds with 9 digits, as a text for programs */
	ANSWER_REAL,	 /* share: any number */
	ANSWER_SHARE,	 /* share: 0 to 1; "12.3%" for people */
	ANSWER_BOOL,	 /* n */
	ANSWER_LIST	 /* list; for programs only */
};

struct answer_column {
	const char *key;   /* for programs: "p99_ns" */
	const char *title; /* for people: "p99" */
	enum answer_kind kind;
};

struct answer_cell {
	bool known;    /* false: "-", null, empty */
	bool left_out; /* JSON: not even null */
	const char *word;
	uint64_t n;
	double share;
	const struct answer_list *list;
};

/* Rows in a cell: an array of objects, of values where there is but one column; CSV: "0:122;1:123". */
struct answer_list {
	const struct answer_column *columns;
	size_t n_columns;
	const struct answer_cell *cells; /* row after row */
	size_t n;
	bool one; /* the only row, an object */
};

/* clang-format off */
#define CELL_NONE ((struct answer_cell){ 0 })
#define CELL_WORD(w) ((struct answer_cell){ .known = (w) != NULL, .word = (w) })
#define CELL_N(v) ((struct answer_cell){ .known = true, .n = (v) })
#define CELL_NOT_0(v) ((struct answer_cell){ .known = (v) != 0, .n = (v) })
#define CELL_BOUND(v) ((struct answer_cell){ .known = (v) != UINT64_MAX, .n = (v) })
#define CELL_SHARE(v) ((struct answer_cell){ .known = true, .share = (v) })
#define CELL_LIST(l) ((struct answer_cell){ .known = true, .list = (l) })
#define CELL_LEFT_OUT ((struct answer_cell){ .left_out = true })
/* clang-format on */

#define ANSWER_WIDTH	   80
#define ANSWER_COLUMNS_MAX 40

/*
 * Writes to out, the caller's. Between two calls out.data may be written elsewhere and out.len set
 * to 0. buf_status returns -ENOMEM if memory ran out.
 */
struct answer {
	struct buf *out;
	enum answer_form form;
	bool any;      /* something stands there */
	bool ticks;    /* set after answer_begin: durations and times are ticks, and keys end in _ticks */
	bool indented; /* set after answer_begin: JSON has a line for each value, and no notes */
	struct json json;
	struct strlist notes; /* JSON: for the end */
	/* the table that is open */
	const char *table;
	struct answer_column columns[ANSWER_COLUMNS_MAX];
	char keys[ANSWER_COLUMNS_MAX][32]; /* of columns that become ticks */
	size_t n_columns;
	struct buf rows; /* text: cells with a NUL behind each, until widths are known */
	size_t n_rows;
	size_t widths[ANSWER_COLUMNS_MAX]; /* text: 0 until then */
	size_t slack; /* text: what is left of the line, for later words that are wider */
};

void answer_begin(struct answer *a, enum answer_form form, struct buf *out);
/* Frees what it holds, and writes the end of the form. */
void answer_end(struct answer *a);

/*
 * A table, from here to answer_table_end. key, title and columns must last until then; a NULL title
 * is no heading. Columns without titles are for programs only. In text, widths are those of the first 1,000
 * rows; what is too wide for the line is cut in the widest column of words, with "..." at the cut.
 */
void answer_table(struct answer *a, const char *key, const char *title, const struct answer_column *columns,
		  size_t n);
/* As many cells as columns; words are copied and cleaned of what a terminal obeys. */
void answer_row(struct answer *a, const struct answer_cell *cells);
void answer_table_end(struct answer *a);
/* A table of one row for programs; in JSON an object instead of an array of them. */
void answer_object(struct answer *a, const char *key, const struct answer_column *columns, size_t n,
		   const struct answer_cell *cells);

/* printf's text for people only. */
#define answer_text(a, ...) ((a)->form == ANSWER_TEXT ? buf_printf((a)->out, __VA_ARGS__) : (void)0)
/* A sentence about the answer: "12 events were lost on CPU 3: ...". */
void answer_note(struct answer *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* "912ns", "187.3us", "1.204ms", "2.500s"; returns out. */
const char *duration_text(uint64_t ns, char out[16]);
/* A time in ns as seconds: "12.345678901". */
const char *seconds_text(uint64_t ns, char out[32]);

/* The same of an answer whose durations may be ticks: "912 ticks". */
const char *answer_duration(const struct answer *a, uint64_t n, char out[32]);
/* A time of the timeline: "12.345678901", or ticks. */
const char *answer_time(const struct answer *a, uint64_t time, char out[32]);

#endif
