/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SQL_PRIV_H
#define HYPTRACE_SQL_PRIV_H

#include <sqlite3.h>
#include <stdatomic.h>

#include "base/arena.h"
#include "ask/states/steps.h"
#include "ask/sql/sql.h"

/* Shared by the files of lib/ask/sql. Errors are -errno; virtual-table.c makes SQLite's of them. SQLITE_OK is
 * 0. */

/* A CPU of a buffer of an input, in the order of the files. */
struct sql_stream {
	size_t input, buffer, index;
	unsigned int cpu;
	bool hyp; /* a buffer of the hypervisor */
};

/* ---- ids ------------------------------------------------------------------------------------- */

/*
 * A row has the id of the record that it is made of: kind, stream and place of that in the stream's pages, in
 * words of 4 bytes, of which each record has one of its own. They fit into the 53 bits that JSON's readers
 * keep of a number.
 */
enum sql_id_kind { ID_EVENT, ID_HYP, ID_EXIT };
#define ID_RECORD_BITS 38
#define ID_STREAM_BITS 12

static inline int64_t sql_id(enum sql_id_kind kind, size_t stream, uint64_t record)
{
	return (int64_t)((uint64_t)kind << (ID_RECORD_BITS + ID_STREAM_BITS) |
			 (uint64_t)stream << ID_RECORD_BITS | record);
}
static inline uint64_t sql_id_record(int64_t id)
{
	return (uint64_t)id & ((1ULL << ID_RECORD_BITS) - 1);
}
static inline size_t sql_id_stream(int64_t id)
{
	return (size_t)id >> ID_RECORD_BITS & ((1u << ID_STREAM_BITS) - 1);
}
static inline int64_t sql_id_kind(int64_t id)
{
	return id >> (ID_RECORD_BITS + ID_STREAM_BITS);
}

struct sql_range {
	int64_t from, to; /* both included */
};

/* ---- arguments -------------------------------------------------------------------------------- */

#define SQL_ARGS 64

struct sql_arg {
	const char *key; /* the format's, or ours */
	struct cell value;
};

/* Zero-initialised = none. */
struct sql_args {
	struct sql_arg v[SQL_ARGS];
	size_t n;
	struct arena texts;
};

/* Bytes in hexadecimal; NULL: out of memory, and to->bad. */
char *sql_hex(struct arena *to, const uint8_t *data, size_t n);

struct sql_tasks { /* threads.c; by input and tid */
	struct sql_task *v;
	size_t n;
};

struct sql {
	bool dated; /* a file says which time of day it was */
	sqlite3 *db;
	const struct inputs *in;
	const struct log *log;
	struct steps *steps;
	struct sql_stream *streams;
	size_t n_streams;
	size_t **first;	   /* by input and buffer: index of its first stream */
	uint64_t bytes;	   /* of all pages, for guesses */
	size_t store_room; /* for times in the hypervisor in memory, bytes */
	atomic_bool stop;
	atomic_uint_least64_t records, rows;
	uint64_t damaged;
	int (*progress)(void *ctx, double part); /* of sql_read_tables() */
	void *progress_ctx;
	struct strlist notes, said; /* said: messages about the files */
	struct log once;	    /* logs each message once */
	struct sql_hyp *hyp;	    /* hyp-store.c; NULL: nothing is known yet */
	struct sql_scan *readers;   /* scan.c; by stream */
	struct print *print;	    /* record-tables.c; NULL: nothing was printed yet */
	struct sql_tasks saved;	    /* of the files' own tables of names */
	unsigned int used,
		filled; /* file-tables.c; bits of tables: the statement reads them, and they have rows */
	bool filling;
	struct sql_copy *copies; /* join-copy.c; of the statement that runs */
	bool copying;		 /* the scan that runs fills a copy */
	bool numbers;		 /* a statement has asked for numbers of rows (rowid) */
	struct sql_range bounds; /* perfetto-functions.c: times of the first and the last event */
	bool bounds_known;
	struct sql_args args; /* args.c: those of args_id, for the next EXTRACT_ARG of the same */
	int64_t args_id;      /* -1: none */
};

static inline bool sql_stopped(const struct sql *s)
{
	return atomic_load_explicit(&s->stop, memory_order_relaxed);
}
/* A sentence about the answer, once. */
void sql_note(struct sql *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static inline const struct input *sql_input(const struct sql *s, size_t stream)
{
	return &s->in->v[s->streams[stream].input];
}

/* ---- constraints of a query: constraints.c --------------------------------------------------- */

enum sql_key { KEY_NONE, KEY_ID, KEY_TS, KEY_DUR, KEY_CPU, KEY_NAME, KEY_MACHINE, KEY_REASON };

/* In which order rows come. */
enum sql_order { ORDER_ANY, ORDER_TS, ORDER_CPU, ORDER_CPU_REASON, ORDER_REASON, ORDER_COUNTED };

struct sql_want {
	struct sql_range id, ts, dur, cpu;
	bool by_name, by_machine, by_reason, nothing;
	struct strlist names; /* any of them */
	char *machine;
	char *reason; /* NULL: it is to be NULL */
	enum sql_order order;
	int counted; /* ORDER_COUNTED: what sql_counted_order() gave */
};

void sql_want_release(struct sql_want *w);
static inline bool sql_in(const struct sql_range *r, int64_t v)
{
	return v >= r->from && v <= r->to;
}
/* Times of records have 64 bits without a sign; what SQLite cannot hold becomes its greatest. */
static inline int64_t sql_ts(uint64_t ts)
{
	return ts > INT64_MAX ? INT64_MAX : (int64_t)ts;
}

struct reading;
struct sql_table;
/*
 * xBestIndex, and xFilter's reading of its plan. SQLite's codes. A plan is the columns that are used,
 * 16 hexadecimal digits, and three characters for each condition: 'a' + key, operator, '0' + column.
 */
#define SQL_PLAN_COLUMNS 16
#define SQL_PLAN_STEP	 3
int sql_want_plan(const struct sql *s, const struct sql_table *t, sqlite3_index_info *info);
int sql_want_read(struct sql_want *w, int order, const char *text, int n, sqlite3_value **v);

/* ---- tables: virtual-table.c ------------------------------------------------------------------------- */

/* The time of day of a table with times, and its bound: numbers of no other value. */
enum { SQL_UTC_NS = 100, SQL_UTC_BOUND };
#define SQL_UTC(name, what) ((struct sql_column){ name, "INTEGER", KEY_NONE, what })
/* The last columns of such a table; machine_id: its value's number. */
#define SQL_LAST_COLUMNS(machine_id)                                                                         \
	{ "machine_id", "INTEGER", KEY_NONE, machine_id }, SQL_UTC("utc_ns", SQL_UTC_NS),                    \
		SQL_UTC("utc_bound", SQL_UTC_BOUND)

struct sql_column {
	const char *name, *type;
	enum sql_key key;
	int what; /* its value's number; 0: column() goes by the place */
};

#define SQL_NOTHING ((struct cell){ 0 })

static inline struct cell sql_number(int64_t v)
{
	return (struct cell){ .kind = CELL_NUMBER, .number = v };
}

/* VALUE_NULL: NULL. */
static inline struct cell sql_value(int64_t v)
{
	return v == VALUE_NULL ? SQL_NOTHING : sql_number(v);
}

/* NULL: NULL. */
static inline struct cell sql_text(const char *text)
{
	return (struct cell){ .kind = text ? CELL_TEXT : CELL_NULL, .text = text };
}

/* SQLite's code. */
static inline int sql_cell_give(struct cell v, sqlite3_context *to)
{
	if (v.kind == CELL_NUMBER)
		sqlite3_result_int64(to, v.number);
	else if (v.kind != CELL_NULL && v.kind != CELL_FAILED)
		sqlite3_result_text(to, v.text, -1, v.kind == CELL_TEXT ? SQLITE_STATIC : SQLITE_TRANSIENT);
	return v.kind == CELL_FAILED ? SQLITE_NOMEM : SQLITE_OK;
}

/* The value of such a column, of a row of an input at ts; bound: that of ts, UINT64_MAX: unknown. */
static inline int64_t sql_utc(const struct sql *s, size_t input, uint64_t ts, uint64_t bound, int what)
{
	uint64_t utc;

	if (!s->dated || !inputs_utc(s->in, &s->in->v[input], ts, &utc, &bound))
		return VALUE_NULL;
	utc = what == SQL_UTC_NS ? utc : bound;
	return utc <= INT64_MAX ? (int64_t)utc : VALUE_NULL;
}

struct sql_cursor {
	sqlite3_vtab_cursor base;
	const struct sql_table *table;
	struct sql *sql;
	struct sql_want want;
	bool over, copied; /* copied: rows are those of `copy` */
	int64_t row;	   /* counted from 1 */
	size_t at, n;	   /* the row, of those that next() has made */
	char number[24];   /* sql_number_text() */
	sqlite3_stmt *copy;
	const struct sql_reader *to; /* of a reading that others share: gets the rows */
};

/* A row has one such cell. */
static inline struct cell sql_number_text(struct sql_cursor *c, int64_t v)
{
	snprintf(c->number, sizeof(c->number), "%" PRId64, v);
	return (struct cell){ .kind = CELL_COPY, .text = c->number };
}

#define SQL_ROWS 256 /* that next() makes at once, about */

struct sql_table {
	const char *name;
	const struct sql_column *columns;
	size_t n;
	unsigned int orders;   /* 1 << ORDER_: those that it has */
	unsigned int bytes;    /* of the files for a row, about */
	unsigned int patience; /* so many scans are less work than a copy (join-copy.c) */
	bool sets;	       /* several rows have one id */
	uint64_t counted;      /* the columns, as bits, that rows may be counted by: counted.c */
	size_t size;	       /* of its cursor, which begins with a struct sql_cursor */
	/*
	 * From the beginning, by c->want; then the next rows, at least one: their number; 0: the end. Leaves
	 * nothing open on an error. column() and number() are of the row c->at of them.
	 */
	int (*filter)(struct sql_cursor *c);
	int (*next)(struct sql_cursor *c);
	struct cell (*column)(struct sql_cursor *c, int i);
	/* In place of column(): so many rows from `from` on at once. False: column() has that column. */
	bool (*values)(struct sql_cursor *c, int i, size_t from, size_t n, union value *out);
	/* Of what the cursor has behind its struct sql_cursor, which is zeroed before each filter(). */
	void (*close)(struct sql_cursor *c);
	/*
	 * The row's number, of no other row and the same in every scan: SQLite takes rows of one number for
	 * one. NULL: all rows come in every scan, in one order, and are counted.
	 */
	int64_t (*number)(const struct sql_cursor *c);
	/*
	 * In place of filter() and next(): joins a reading for several tables, which gives rows as they come
	 * (sql_cursor_give), the last of them by last(). NULL: the table is read by itself; it has no last
	 * ones.
	 */
	int (*join)(struct sql_cursor *c, struct reading *r);
	int (*last)(struct sql_cursor *c);
};

/* To c->to, if it has one: so many rows. The result of its sink. */
int sql_cursor_give(struct sql_cursor *c, size_t n);

/* A table: names of its columns, its cursor, its functions. */
#define SQL_TABLE(title, its_columns, of)                                                                    \
	.name = title, .columns = its_columns, .n = ARRAY_SIZE(its_columns),                                 \
	.size = sizeof(struct sql_##of##_cursor), .filter = sql_##of##_filter, .next = sql_##of##_next,      \
	.close = sql_##of##_close
/* In values(): a column of rows from v to the end. */
#define SQL_EACH(what, of)                                                                                   \
	do                                                                                                   \
		out++->what = (of);                                                                          \
	while (++v < end);                                                                                   \
	return true
#define SQL_NUMBERS(of) SQL_EACH(number, of)
#define SQL_TEXTS(of)	SQL_EACH(text, of)

extern const struct sql_table sql_events_table, sql_args_table, sql_slices_table, sql_pkvm_table,
	sql_calls_table, sql_exits_table, sql_lost_table, sql_vcpu_states_table, sql_thread_states_table,
	sql_steal_table, sql_ancestor_table, sql_descendant_table;
/* All of these. */
extern const struct sql_table *const sql_tables[];
extern const size_t sql_tables_n;

/* "CREATE TABLE name(...)", malloc'ed; NULL: no memory. */
char *sql_table_text(const struct sql_table *t);
/* All of them, for SQLite. Its codes. */
int sql_tables_add(struct sql *s);

/* Serves xFilter by a copy of the table: c->copied; else the table has to be scanned. SQLite's codes. */
int sql_copy_filter(struct sql_cursor *c, int order, const char *plan, int n, sqlite3_value **v);
/* All of the statement that ran. */
void sql_copies_release(struct sql *s);

/* EXTRACT_ARG(arg_set_id, key). */
void sql_extract_arg(sqlite3_context *to, int n, sqlite3_value **v);
/* The first statement after blanks, comments and Perfetto's INCLUDE and IMPORT; notes modules that are not
 * here. */
const char *sql_dialect_skip(struct sql *s, const char *text);
/*
 * Perfetto's CREATE as SQLite's, for the temporary database: `out` replaces the text up to *text; empty: the
 * statement is SQLite's already. -EINVAL (why has the reason), -ENOMEM.
 */
int sql_dialect(struct sql *s, const char **text, struct buf *out, char why[SQL_WHY_MAX]);
/* -errno of SQLite's code, and its message in why; names what there is instead of a table that only Perfetto
 * has. */
int sql_failed(struct sql *s, int code, char why[SQL_WHY_MAX]);
/* Perfetto's functions, and its tables as views. SQLite's codes. */
int sql_perfetto_add(struct sql *s);
extern const char sql_perfetto_text[], sql_tables_text[]; /* perfetto.sql, tables.sql */

/* Of a host's thread: its guest's name; the number of the vCPU that it runs. */
static inline const char *sql_guest(const struct input *in, int32_t tid)
{
	const struct offset_guest *of = NULL;

	return tid > 0 && input_vcpu(in, tid, &of) ? of->name : NULL;
}

static inline int64_t sql_vcpu(const struct input *in, int32_t tid)
{
	const struct offset_guest *of = NULL;
	const struct offset_vcpu *vcpu = tid > 0 ? input_vcpu(in, tid, &of) : NULL;

	return vcpu ? vcpu->cpu : VALUE_NULL;
}

/* Reads the files' own tables of tasks' names. -ENOMEM. */
int sql_tasks_read(struct sql_tasks *t, const struct inputs *in);
void sql_tasks_free(struct sql_tasks *t);
/* The task's name by those: whatever was read or printed before, it is the same. NULL: unknown. */
const char *sql_comm(const struct sql *s, size_t input, int32_t tid);

/* ---- tables that SQLite keeps: file-tables.c --------------------------------------------------- */

struct sql_insert {
	struct sql *sql;
	sqlite3_stmt *stmt;
	const char *kinds;
	int ret;   /* -errno, the first */
	void *job; /* of a join: until its end */
};
/*
 * A row: for each letter of the table's kinds a number as int64_t (n; N: NULL if negative), or a text that
 * may be NULL (t).
 */
void sql_insert(struct sql_insert *in, ...);
/*
 * All rows of a table, of a reading that is joined. Each end() comes after the reading, and frees what the
 * join made; in->ret: an error of the reading, or of the end. threads.c, reading-tables.c.
 */
int sql_threads_join(struct sql_insert *in, struct reading *r);
void sql_threads_end(struct sql_insert *in);
int sql_findings_join(struct sql_insert *in, struct reading *r);
void sql_findings_end(struct sql_insert *in);
int sql_spans_join(struct sql_insert *in, struct reading *r);
int sql_latency_join(struct sql_insert *in, struct reading *r);
void sql_latency_end(struct sql_insert *in);
/* Makes all of them, and fills those of the files' metadata. SQLite's codes. */
int sql_filled_add(struct sql *s);
/* A statement that is being prepared uses the table. */
void sql_filled_use(struct sql *s, const char *table);
/*
 * Before it runs: reads the files, once for the tables that it uses and the cursors, which join.
 * -ENOMEM, -EINTR, -errno of the files; a sink's result.
 */
int sql_filled_read(struct sql *s, struct sql_cursor *const *cursors, size_t n);

/* ---- records: scan.c ------------------------------------------------------------------------- */

enum sql_part { PART_ALL, PART_HYP, PART_OTHER };

/* The records that a table wants, in the order of time or CPU by CPU. Zero-initialised = nothing. */
struct sql_scan {
	struct sql *sql;
	struct timeline *t;
	bool joined;	/* the timeline and the run are of a reading that others share */
	size_t *map;	/* of the timeline's streams: which of s->streams */
	size_t n;	/* of them */
	bool single;	/* of one stream: that one alone */
	size_t one;	/* the timeline's number of it; n: it has no records */
	size_t *blocks; /* for merge_run_place, of each of the timeline's streams */
	struct merge_run run;
	size_t at; /* in the run: behind the record */
	/* the record */
	const struct merge_record *m;
	size_t stream; /* of s->streams */
};

/* want: NULL: all. */
int sql_scan_open(struct sql_scan *c, struct sql *s, const struct sql_want *w, enum sql_part part);
/* Of all records of a timeline that somebody else reads. -ENOMEM. */
int sql_scan_join(struct sql_scan *c, struct sql *s, struct timeline *t);
/* 1, 0: the end. */
int sql_scan_next(struct sql_scan *c);
/* The record's part of an id; ~0 of it where the record has no bytes. */
uint64_t sql_scan_record(const struct sql_scan *c);
/* The same, run by run: c->run; of a scan of one stream its records alone. */
int sql_scan_run(struct sql_scan *c);
/* The next records of the timeline's stream i, as merge_take_stream; several threads, each its own. */
int sql_scan_take(struct sql_scan *c, size_t i, struct merge_run *run);
/* Allows to leave out what is before want->ts. */
void sql_scan_from(struct sql_scan *c, const struct sql_want *want);
/* Of that one alone. */
int sql_scan_one(struct sql_scan *c, struct sql *s, size_t stream);
/* Takes one that is not open. */
void sql_scan_close(struct sql_scan *c);
/* Finds the streams, and which are the hypervisor's. */
int sql_streams_find(struct sql *s);

/* 1: (*c)->m, good until the next call for the same stream, from which sql_scan_next() leads on; 0: there is
 * none. Quickest when asked in order. */
int sql_record(struct sql *s, size_t stream, uint64_t record, struct sql_scan **c);

/* ---- events by counts: counted.c ------------------------------------------------------------- */

/* Columns that a counted scan orders by at most, and the bits of each: its number + 1, and whether it
 * descends. */
#define COUNTED_ORDERS 3
#define COUNTED_BITS   6

/* ORDER_COUNTED and above it the columns to order by, if counts can answer the query; ordered: then they are
 * in the query's order. ORDER_ANY: they cannot. */
int sql_counted_order(const struct sql *s, const struct sql_table *t, const sqlite3_index_info *info,
		      bool *ordered);

struct sql_counted {
	size_t stream;
	unsigned int id; /* of an event; the input's n_known: events that have no format */
	uint64_t n;
};

typedef struct cell sql_kinds_cell(const struct sql *s, const struct sql_counted *c, int column);

/* Zero-initialised = none; v is the caller's to free. */
struct sql_kinds {
	const struct sql *sql;
	int order;
	sql_kinds_cell *cell;
	struct sql_counted *v;
	size_t n;
};

/* All events, in that order. -ENOMEM, -EINTR, or what reading has. */
int sql_kinds_read(struct sql_kinds *c, struct sql *s, int order, sql_kinds_cell *cell);

/* ---- the hypervisor's time: hyp-table.c, hyp-store.c ---------------------------------------- */

#define SPAN_DUR_OPEN (-1) /* the recording ended meanwhile */
#define SPAN_DUR_LOST (-2) /* no end was seen */

/* A visit (spans/spans.h). Packed: there are millions. */
struct __attribute__((packed, aligned(2))) sql_span {
	uint64_t ts;
	int64_t dur;
	uint64_t record : 40;	     /* hyp_enter's */
	int32_t vcpu;		     /* thread; 0: none */
	uint8_t reason, left, event; /* words; 0: not recorded. event: the last one within */
};

/* Makes spans of a stream's records, run by run. Zero-initialised = before the first. */
struct sql_span_maker {
	struct visit visit;
	size_t input;
	const struct merge_run *run;
	size_t i, n;  /* records of the run: the next one, and behind the last one */
	size_t block; /* for merge_run_place */
};

struct sql_hyp {
	uint8_t **why, **left;	/* by input: words of spans' `why` and of the reasons of their ends */
	const char *words[256]; /* the files', from 1 on */
	size_t n_words;
	struct sql_pieces *store; /* hyp-store.c; by stream */
	bool too_many;		  /* for the store */
};

int sql_hyp_open(struct sql *s);
void sql_hyp_close(struct sql *s);
/* The word's number; 0: there is none. */
uint8_t sql_hyp_word(const struct sql_hyp *h, const char *word);
/* The next records of the maker's stream, of timeline t: those of the run in front of `to`. */
void sql_spans_feed(struct sql_span_maker *k, const struct timeline *t, const struct merge_run *run,
		    size_t from, size_t to);
/* The next span that ended among them: true with *out. */
bool sql_spans_next(const struct sql *s, struct sql_span_maker *k, struct sql_span *out);
/* The span of the record, a hyp_enter, and in args, if not NULL, the fields of the events in it that have
 * reasons: 1; 0: there is none. */
int sql_span_read(struct sql *s, size_t stream, uint64_t record, struct sql_span *out, struct sql_args *args);
/* No more records: whether a span was open. */
bool sql_span_last(const struct sql *s, struct sql_span_maker *k, struct sql_span *out);

/*
 * The spans of one stream after the other, out of memory where they all fit there, else out of the files:
 * a piece at a time.
 */
struct sql_feed {
	struct sql *sql;
	size_t stream;
	const struct sql_span *v;
	size_t i, n;  /* v[i] is the next one */
	size_t piece; /* in the store: of the next one */
	struct sql_scan scan;
	struct sql_span_maker maker;
	struct sql_span *room;
	bool over;
	bool done, noted; /* the cursor's, whose feed has no more for it; that has made a note of it */
};

/* Reads all spans into memory, unless there are too many, or they are there. */
int sql_hyp_load(struct sql *s);
void sql_feed_begin(struct sql_feed *f, struct sql *s, size_t stream);
/* The next piece, of which some may lie in that range: 1; 0: the end. */
int sql_feed_more(struct sql_feed *f, const struct sql_want *w);

#endif
