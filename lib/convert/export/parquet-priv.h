/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_PARQUET_PRIV_H
#define HYPTRACE_PARQUET_PRIV_H

#include "convert/export/export.h"
#include "convert/export/thrift.h"
#include "read/print.h"
#include "base/arena.h"

/*
 * The files of hyptrace export --parquet: what is written of https://parquet.apache.org/docs/file-format is
 * its oldest and plainest part, which every engine reads. A row group has one data page (version 1) for each
 * column, PLAIN and compressed by zstd; levels are runs (RLE).
 */

/* ---- columns ------------------------------------------------------------------------ */

/* Parquet's Type, with its numbers. */
enum parquet_type { PARQUET_BOOL = 0, PARQUET_INT32 = 1, PARQUET_INT64 = 2, PARQUET_BYTES = 6 };

struct parquet_column {
	const char *name;
	enum parquet_what {
		PARQUET_TS,
		PARQUET_CPU,
		PARQUET_PID,
		PARQUET_COMM,
		PARQUET_BUFFER,
		PARQUET_LOST,
		PARQUET_BOUND,
		PARQUET_UTC,
		PARQUET_UTC_BOUND,
		PARQUET_CELL,	/* of a table that is no event's */
		PARQUET_NUMBER, /* of the event's fields, as those below */
		PARQUET_TEXT,
		PARQUET_LIST
	} what;
	enum parquet_type type;
	bool optional, is_unsigned;
	uint8_t bits; /* of an integer */
	struct field_load load, item;
	bool address;		       /* or what may be one; lists are */
	const struct siphash_key *key; /* --anonymize: texts are hashed, addresses null. NULL: not */
};

#define PARQUET_OWN 9 /* the columns that every event has; those of its fields come behind */

static inline bool parquet_is_field(const struct parquet_column *c)
{
	return c->what >= PARQUET_NUMBER;
}

/*
 * Of the event's rows, by its format (NULL: of losses, which have no fields); of rows whose event is not
 * known: its id, and the record's bytes. *out is the caller's to free; kept: has the names. -ENOMEM.
 */
int parquet_columns(struct parquet_column **out, size_t *n, const struct tep_event *e, struct arena *kept);
int parquet_columns_unknown(struct parquet_column **out, size_t *n);

/* ---- a column's values in a row group ------------------------------------------------- */

/* Runs of equal levels: Parquet's RLE. */
struct parquet_levels {
	struct buf runs;
	uint8_t level;
	uint64_t n; /* so many came last */
};

struct parquet_chunk {
	struct buf values, page; /* page: with its header, as it goes into the file */
	struct parquet_levels def, rep;
	uint64_t n, n_values; /* nulls and empty lists among the first; in `values` */
	uint64_t nulls;
	uint64_t min, max;
	uint64_t size; /* bytes of the page as if it were not compressed */
};

/* A row group has so many rows at most, or bytes. */
#define GROUP_ROWS_MAX	65536
#define GROUP_BYTES_MAX (8u << 20)

/* Both add a row's value: of a record, whose time can be wrong by `bound` ns; of a PARQUET_CELL column. */
void parquet_chunk_record(struct parquet_chunk *chunk, const struct parquet_column *c,
			  const struct inputs *in, const struct print_record *r, uint64_t bound);
void parquet_chunk_cell(struct parquet_chunk *chunk, const struct parquet_column *c,
			const struct table_cell *cell);
/* All so far become a page. -ENOMEM. */
int parquet_chunk_end(struct parquet_chunk *chunk, const struct parquet_column *c);
void parquet_chunk_release(struct parquet_chunk *chunk);

/* ---- files ------------------------------------------------------------------------------ */

#define PARQUET_MAGIC "PAR1"

/* DIR/part-N.parquet below the output, and its metadata so far. It is open only while a call writes it. */
struct parquet_file {
	char *dir;
	struct parquet_column *columns;
	size_t n_columns;
	unsigned int part;
	uint64_t size; /* bytes; 0: there is none, and the next group makes it */
	struct buf groups;
	size_t n_groups;
	uint64_t rows;
};

/* Appends a row group. output: the directory that file->dir lies in. -ENOMEM, or why it cannot be written. */
int parquet_file_group(struct parquet_file *file, int output, const struct parquet_chunk *chunks,
		       size_t n_rows);
/* Appends what ends the file, which may have no group; the next group begins another. The same errors. */
int parquet_file_end(struct parquet_file *file, int output);
void parquet_file_release(struct parquet_file *file);

/* A file with the row group that grows: rows are added to each of its chunks. */
struct parquet_rows {
	struct parquet_file file;
	struct parquet_chunk *chunks; /* by column */
	size_t n, bytes;	      /* of the rows; bytes: about */
};

/* A row of so many bytes has been added. Whether the group is full. */
static inline bool parquet_rows_full(struct parquet_rows *rows, size_t bytes)
{
	rows->bytes += bytes;
	return ++rows->n == GROUP_ROWS_MAX || rows->bytes >= GROUP_BYTES_MAX;
}
/* The rows so far become a row group. -ENOMEM, or why it cannot be written. */
int parquet_rows_flush(struct parquet_rows *rows, int output);
void parquet_rows_release(struct parquet_rows *rows);

/*
 * Appends KEY=NAME, a directory below those that are there: what engines or file systems could take for
 * something else is %XX, and a name that is too long is cut and ends in ~ID. NULL: the key's null.
 */
void parquet_dir(struct buf *out, const char *key, const char *name, unsigned int id);

#endif
