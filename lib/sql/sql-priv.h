/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SQL_PRIV_H
#define HYPTRACE_SQL_PRIV_H

#include <sqlite3.h>
#include <stdatomic.h>
#include <stdio.h>

#include "analysis/steps.h"
#include "sql/sql.h"

/* Shared by the files of lib/sql. Errors are -errno; table.c makes SQLite's of them. */

/* A CPU of a buffer of an input, in the order of the files. */
struct sql_stream {
	size_t input, buffer, index;
	unsigned int cpu;
	bool hyp; /* a buffer of the hypervisor */
};

/* ---- ids ------------------------------------------------------------------------------------- */

/*
 * What a row is made of is named by its place: kind, stream and number of its record there. They fit into the
 * 53 bits that JSON's readers keep of a number.
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

/* ---- all of it ------------------------------------------------------------------------------- */

struct sql {
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
	atomic_uint_least64_t records;
	uint64_t rows, damaged;
	struct strlist notes, said; /* said: what the log was told about the files */
	struct log once;	    /* tells the log each thing once */
	struct sql_hyp *hyp;	    /* hyp-store.c; NULL: nothing is known yet */
	struct sql_reader *readers; /* record.c; by stream */
	struct print *print;	    /* events.c; NULL: nothing was printed yet */
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
const char *sql_buffer_name(const struct sql *s, size_t stream);

/* ---- what a query wants of a table: want.c --------------------------------------------------- */

enum sql_key { KEY_NONE, KEY_ID, KEY_TS, KEY_DUR, KEY_CPU, KEY_NAME, KEY_MACHINE, KEY_REASON };

struct sql_range {
	int64_t from, to; /* both included */
};

/* In which order rows come. */
enum sql_order { ORDER_ANY, ORDER_TS, ORDER_CPU, ORDER_CPU_REASON, ORDER_REASON };

struct sql_want {
	struct sql_range id, ts, dur, cpu;
	bool by_name, by_machine, by_reason, nothing;
	bool numbered;	      /* ids are wanted, which need all records to be counted */
	struct strlist names; /* any of them */
	char *machine;
	char *reason; /* NULL: it is to be NULL */
	enum sql_order order;
};

void sql_want_release(struct sql_want *w);
static inline bool sql_in(const struct sql_range *r, int64_t v)
{
	return v >= r->from && v <= r->to;
}
/* Times of records have 64 bits without a sign; what SQLite cannot say is greater than all it can. */
static inline int64_t sql_ts(uint64_t ts)
{
	return ts > INT64_MAX ? INT64_MAX : (int64_t)ts;
}

struct sql_table;
/* xBestIndex, and what xFilter makes of what that said. SQLite's codes. */
int sql_want_plan(const struct sql *s, const struct sql_table *t, sqlite3_index_info *info);
int sql_want_read(struct sql_want *w, int order, const char *text, int n, sqlite3_value **v);

/* ---- tables: table.c ------------------------------------------------------------------------- */

struct sql_column {
	const char *name, *type;
	enum sql_key key;
};

struct sql_cursor {
	sqlite3_vtab_cursor base;
	const struct sql_table *table;
	struct sql *sql;
	struct sql_want want;
	bool over;
	int64_t row;
};

struct sql_table {
	const char *name;
	const struct sql_column *columns;
	size_t n;
	unsigned int orders; /* 1 << ORDER_: those that it has */
	unsigned int bytes;  /* of the files for a row, about */
	size_t size;	     /* of its cursor, which begins with a struct sql_cursor */
	/* From the beginning, by c->want; then row by row: 1; 0: the end. Leaves nothing open on an error. */
	int (*filter)(struct sql_cursor *c);
	int (*next)(struct sql_cursor *c);
	void (*column)(struct sql_cursor *c, sqlite3_context *to, int i);
	/* Zeroed ones, too. */
	void (*close)(struct sql_cursor *c);
};

extern const struct sql_table sql_events_table, sql_args_table, sql_slices_table, sql_slice_table,
	sql_pkvm_table, sql_calls_table, sql_exits_table, sql_lost_table, sql_vcpu_states_table,
	sql_thread_states_table;
/* All of them. */
extern const struct sql_table *const sql_tables[];
extern const size_t sql_tables_n;

/* Makes it a table for SQLite. Its codes. */
int sql_table_add(struct sql *s, const struct sql_table *t);
/* "CREATE TABLE name(...)", malloc'ed; NULL: no memory. */
char *sql_table_text(const struct sql_table *t);
/* All of them, for SQLite. Its codes. */
int sql_tables_add(struct sql *s);

/* EXTRACT_ARG. SQLite's codes. */
int sql_functions_add(struct sql *s);
/* From here on statements read, and do nothing else. SQLite's codes. */
int sql_guard(struct sql *s);
/* Behind blanks, comments and Perfetto's statements that import what is there. */
const char *sql_dialect_skip(const char *text);

/* A column's result: a text that stays as long as the files do; NULL: NULL. */
static inline void sql_give_text(sqlite3_context *to, const char *text)
{
	if (text)
		sqlite3_result_text(to, text, -1, SQLITE_STATIC);
}

/* The tables without records behind them: fixed.c. SQLite's codes. */
int sql_fixed_add(struct sql *s);

/* ---- records: scan.c ------------------------------------------------------------------------- */

enum sql_part { PART_ALL, PART_HYP, PART_OTHER };

/* The records that a table wants, in the order of time or CPU by CPU. Zero-initialised = nothing. */
struct sql_scan {
	struct sql *sql;
	struct timeline *t;
	size_t *map;	 /* of the timeline's streams: which of s->streams */
	size_t n, one;	 /* n: of them */
	uint64_t *count; /* records so far, of each of the timeline's streams */
	struct merge_run run;
	size_t at; /* in the run: behind the record */
	/* the record */
	const struct merge_record *m;
	size_t stream;	 /* of s->streams */
	uint64_t record; /* its number there */
};

/* want: NULL: all. */
int sql_scan_open(struct sql_scan *c, struct sql *s, const struct sql_want *w, enum sql_part part);
/* 1, 0: the end. */
int sql_scan_next(struct sql_scan *c);
/* The same, run by run: c->run. */
int sql_scan_run(struct sql_scan *c);
/* The next records of the timeline's stream i, as merge_take_stream; several threads, each its own. */
int sql_scan_take(struct sql_scan *c, size_t i, struct merge_run *run);
/* What is before want->ts may be left out, unless ids are wanted. */
void sql_scan_from(struct sql_scan *c, const struct sql_want *want);
/* Of that one alone: the timeline's stream c->one, c->n if it has no records. */
int sql_scan_one(struct sql_scan *c, struct sql *s, size_t stream);
void sql_scan_close(struct sql_scan *c);
/* Finds the streams, and which are the hypervisor's. */
int sql_streams_find(struct sql *s);

/* ---- a record by its id: record.c ------------------------------------------------------------ */

/* 1: *m, good until the next call of the same stream; 0: there is none. Quick when asked in order. */
int sql_record(struct sql *s, size_t stream, uint64_t record, const struct merge_record **m,
	       const struct timeline **t);
void sql_records_release(struct sql *s);

/* ---- the hypervisor's time: hyp.c, hyp-store.c ----------------------------------------------- */

#define SPAN_OPEN (-1) /* the recording ended meanwhile: Perfetto's number for it */
#define SPAN_LOST (-2) /* no end was seen */

/* Packed: there are millions. */
struct __attribute__((packed, aligned(2))) sql_span {
	uint64_t ts;
	int64_t dur;
	uint32_t record;      /* hyp_enter's number in the stream */
	int32_t vcpu;	      /* thread; 0: none */
	uint8_t reason, left; /* words; 0: not told */
};

/* What an event of the hypervisor says. */
struct sql_hyp_event {
	enum sql_hyp_role { SPAN_OTHER, SPAN_ENTER, SPAN_EXIT, SPAN_TELLS } role;
	uint8_t word; /* SPAN_TELLS: its name */
	struct field_load reason, vcpu;
	uint8_t *words; /* by the reason's number, below 256 */
};

/* What comes of a stream's records, one after the other. Zero-initialised = before the first. */
struct sql_span_maker {
	bool open;
	struct sql_span span;
	uint64_t record; /* number of the next one */
};

struct sql_hyp_store;

struct sql_hyp {
	struct sql_hyp_event **events; /* by input and id; NULL: the input has none */
	char *words[256];	       /* from 1 on */
	size_t n_words;
	struct sql_hyp_store *store;
	bool too_many; /* for the store */
};

int sql_hyp_open(struct sql *s);
void sql_hyp_close(struct sql *s);
/* The word's number; 0: there is none. */
uint8_t sql_hyp_word(const struct sql_hyp *h, const char *word);
/* Whether the input has an event of that name which tells reasons. */
bool sql_hyp_tells(const struct sql *s, size_t input, uint8_t word);
/* NULL: no event of the hypervisor. */
const struct sql_hyp_event *sql_hyp_event(const struct sql *s, size_t input, const struct merge_record *m);
/* Whether a span ended by the record: *out. */
bool sql_span_make(const struct sql *s, size_t input, struct sql_span_maker *k, const struct merge_record *m,
		   struct sql_span *out);
/* No more records: whether a span was open. */
bool sql_span_last(struct sql_span_maker *k, struct sql_span *out);

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
	struct merge_run run;
	bool over, done; /* done: the cursor's, whose feed has no more for it */
};

/* What was read into memory. */
void sql_store_close(struct sql *s);
/* Reads all spans into memory, unless there are too many, or they are there. */
int sql_hyp_load(struct sql *s);
void sql_feed_begin(struct sql_feed *f, struct sql *s, size_t stream);
/* The next piece, of which some may lie in that range: 1; 0: the end. */
int sql_feed_more(struct sql_feed *f, const struct sql_want *w);
void sql_feed_end(struct sql_feed *f);

/* ---- arguments: args.c ----------------------------------------------------------------------- */

#define SQL_ARGS 64

struct sql_arg {
	const char *key; /* the format's, or ours */
	bool number;
	int64_t value;
	size_t text; /* in texts */
};

/* Zero-initialised = none. */
struct sql_args {
	struct sql_arg v[SQL_ARGS];
	size_t n;
	struct buf texts;
};

/* Those of an event, or of a time in the hypervisor, by its id, in place of those before. */
int sql_args_of(struct sql *s, int64_t id, struct sql_args *a);

#endif
