/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SQL_H
#define HYPTRACE_SQL_H

#include "base/cell.h"
#include "read/inputs.h"

/*
 * The files as tables of an SQLite that holds nothing itself: rows are made as they are asked for, by reading
 * the files. There with HYPTRACE_SQL only, when libsqlite3 was there at build time. By one thread at a time,
 * but for sql_interrupt.
 */
struct sql; /* opaque */

/* in: loaded, and outlives it. -ENOMEM; -EIO: SQLite itself does not work (logged). */
int sql_open(struct sql **out, const struct inputs *in, const struct log *log);
/* Takes NULL. */
void sql_close(struct sql *s);
/* Ends the statement that runs, if any; from a signal's handler, too. */
void sql_interrupt(struct sql *s);

/* Names of the tables: of all that can be known of a recording; of other views of the same. */
#define SQL_TABLES                                                                                           \
	"clocks findings hyp_calls kvm_exits latency lost recordings spans steal thread_states threads "     \
	"vcpu_states"
#define SQL_TABLES_MORE "args cpus events pkvm_hypervisor_events slices vcpus"

struct sql_value {
	enum sql_kind { SQL_NULL, SQL_INTEGER, SQL_REAL, SQL_TEXT } kind;
	int64_t integer;
	double real;
	const char *text; /* a blob: its bytes in hexadecimal, X'00ff' */
};

/*
 * Receives results: each is called for every statement that has columns. 0, or an error that ends all. begin
 * and end: NULL: not needed.
 */
struct sql_sink {
	int (*begin)(void *ctx, const char *const *names, size_t n);
	/* Values are good until it returns. */
	int (*row)(void *ctx, const struct sql_value *v, size_t n);
	int (*end)(void *ctx);
};

#define SQL_WHY_MAX 512

/*
 * All statements of a text, one after the other. What they make is temporary. Perfetto's INCLUDE PERFETTO
 * MODULE and SELECT IMPORT(...) are passed over; its CREATE statements and SPAN_JOIN become SQLite's. 0;
 * -EINVAL: why has what is wrong with the text; -EINTR; -ENOMEM; errors of the sink and of reading the files.
 */
int sql_run(struct sql *s, const char *text, const struct sql_sink *sink, void *ctx, char why[SQL_WHY_MAX]);
/* The rows of "SELECT * FROM name", and who gets them; kept: not here: SQLite keeps that table. */
struct sql_reader {
	const char *name;
	const struct cell_sink *sink;
	void *ctx;
	bool kept;
};
/*
 * Several tables by one reading of the files, without SQLite; of those that it keeps a statement follows.
 * progress: called with how much has been read, 0 to 1; -errno ends the reading.
 */
int sql_read_tables(struct sql *s, struct sql_reader *v, size_t n, int (*progress)(void *ctx, double part),
		    void *ctx);
#define SQL_COLUMNS_MAX 64 /* of a table, or a statement */
/* True if a text of a prompt is whole: its last statement ends with a semicolon. */
bool sql_whole(const char *text);

/* Notes to the answers since the last call, one sentence each; the caller releases them. */
struct strlist sql_notes(struct sql *s);
/* "CREATE TABLE ..." of each table and view, sorted by name; the caller releases it. -ENOMEM. */
int sql_schema(const struct sql *s, struct strlist *out);

struct sql_counts {
	uint64_t records; /* that were read out of pages */
	uint64_t rows;	  /* that tables made of them */
	uint64_t damaged; /* places in the files */
};
struct sql_counts sql_counts(const struct sql *s);

#endif
