/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_PARQUET_PRIV_H
#define HYPTRACE_PARQUET_PRIV_H

#include "convert/export/export.h"
#include "convert/export/thrift.h"
#include "read/print.h"
#include "base/arena.h"
#include "base/map.h"
#include "base/workers.h"

/*
 * The files of hyptrace export --parquet: what is written of https://parquet.apache.org/docs/file-format is
 * its oldest and plainest part, which every engine reads (differences: Spark since 3.3). A row group has one
 * data page (version 1) for each column, PLAIN, with a dictionary or, of numbers that mostly grow, as
 * differences (DELTA_BINARY_PACKED), compressed by zstd; levels are runs (RLE).
 */

/* Parquet's Encoding */
enum { ENCODING_PLAIN = 0, ENCODING_DICTIONARY = 2, ENCODING_RLE = 3, ENCODING_DELTAS = 5 };

/* ---- columns ------------------------------------------------------------------------ */

/* Parquet's Type, with its numbers. */
enum parquet_type { PARQUET_BOOL = 0, PARQUET_INT32 = 1, PARQUET_INT64 = 2, PARQUET_BYTES = 6 };

struct parquet_column {
	const char *name, *group; /* group: the structure of an event's fields that it is in; NULL: none */
	enum parquet_what {
		PARQUET_CELL,
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

#define PARQUET_OWN 10 /* the columns that every event has; those of fields come after them */

/* ---- a column's values in a row group ------------------------------------------------- */

/* Runs of equal levels: Parquet's RLE. */
struct parquet_levels {
	struct buf runs;
	uint8_t level;
	uint64_t n; /* so many came last */
};

/* Appends a text, of which each byte that is no UTF-8 becomes U+FFFD. */
void parquet_text_put(struct buf *out, const char *text, size_t n);
void parquet_levels_flush(struct parquet_levels *l);

/* The texts of a column, each once, in the order of their appearance. */
struct parquet_words {
	struct buf plain; /* as in a dictionary's page: the length, 4 bytes, and the text as it is shown */
	struct buf texts; /* as they were given */
	struct parquet_word {
		size_t at, n; /* in texts */
	} * v;
	size_t n;
	struct map map;
	struct parquet_seen {
		const char *text;
		uint32_t word;
	} seen[256]; /* by address */
};

/* parquet_chunk_next keeps the memory for the next group. */
struct parquet_chunk {
	struct buf values; /* numbers, 8 bytes each; of texts their places in words, 4 bytes */
	size_t n_same;	   /* so many numbers, each `same`, are in place of values: then all are */
	uint64_t same;
	struct parquet_words *words; /* of texts; NULL: none yet */
	struct buf page;	     /* with its header, and before it the dictionary's: as in the file */
	size_t dictionary;	     /* bytes of the page that are the dictionary's; 0: there is none */
	int encoding;		     /* of the data page */
	struct parquet_levels def, rep;
	uint64_t n, n_values; /* nulls and empty lists among the first */
	uint64_t nulls;
	uint8_t min[8], max[8]; /* as in the file */
	uint64_t size;		/* bytes of the pages as if they were not compressed */
};

/* A row group has so many rows at most, or bytes. */
#define GROUP_ROWS_MAX	65536
#define GROUP_BYTES_MAX (16u << 20)

/* Add values: of a PARQUET_CELL column (-EINVAL: another type); of a record's field; nulls. */
int parquet_chunk_cell(struct parquet_chunk *chunk, const struct parquet_column *c, struct cell v);
void parquet_chunk_values(struct parquet_chunk *chunk, const struct parquet_column *c, const union value *v,
			  size_t n);
void parquet_chunk_field(struct parquet_chunk *chunk, const struct parquet_column *c,
			 const struct merge_record *m);
/* Numbers that are the same become values. */
void parquet_chunk_spread(struct parquet_chunk *chunk);
void parquet_chunk_nulls(struct parquet_chunk *chunk, const struct parquet_column *c, size_t n);

/* All so far become chunk->page. packers: memory of threads that do so. -ENOMEM, -EFBIG. */
int parquet_chunk_end(struct parquet_chunk *chunk, const struct parquet_column *c, struct pool *packers);
void parquet_packers_release(struct pool *packers);
/* The page is written: the next group begins. */
void parquet_chunk_next(struct parquet_chunk *chunk);
void parquet_chunk_release(struct parquet_chunk *chunk);

/* ---- files ------------------------------------------------------------------------------ */

#define PARQUET_MAGIC	   "PAR1"
#define PARQUET_FIELDS_MAX 256 /* of the events of a file; a format's others are left out */

/* DIR/part-N.parquet below the output, and its metadata so far. It is open only while a call writes it. */
struct parquet_file {
	char *dir;
	struct parquet_column *columns;
	size_t n_columns;
	unsigned int part;
	bool table;    /* of the tables that have a version */
	bool begun;    /* a thread may be writing a group of it, or has: columns are final */
	uint64_t size; /* bytes; 0: there is none, and the next group makes it */
	struct buf groups;
	size_t n_groups;
	uint64_t rows;
};

/* The columns that every event has. -ENOMEM. */
int parquet_file_events(struct parquet_file *file, const struct siphash_key *key);
/*
 * Adds columns of an event's fields, in a structure of its name; e NULL: of records whose event is not known,
 * their ids and bytes. kept: has the names. -ENOMEM.
 */
int parquet_file_fields(struct parquet_file *file, const struct tep_event *e, const struct siphash_key *key,
			struct arena *kept);
/* Count of those columns at most. */
size_t parquet_fields(const struct tep_event *e);
/*
 * Appends a row group, of a chunk for each column. output: the directory that file->dir lies in. -ENOMEM, or
 * why it cannot be written.
 */
int parquet_file_group(struct parquet_file *file, int output, const struct parquet_chunk *const *chunks,
		       size_t n_rows);
/* Appends what ends the file, which may have no group; the next group begins another. The same errors. */
int parquet_file_end(struct parquet_file *file, int output);
void parquet_file_release(struct parquet_file *file);

/* The row group of a file that grows: rows are added to each of its chunks. */
struct parquet_rows {
	struct parquet_file *file;
	struct parquet_chunk *chunks; /* of the file's first columns, then of those from `fields` on */
	size_t n_chunks, own, fields; /* own: so many are the first; the group is null in all others */
	size_t n, bytes;	      /* of the rows; bytes: about */
};

static inline struct parquet_column *parquet_rows_column(const struct parquet_rows *rows, size_t chunk)
{
	return &rows->file->columns[chunk < rows->own ? chunk : rows->fields + chunk - rows->own];
}
/* Rows of so many bytes have been added. Whether the group is full, or may be with the next ones. */
static inline bool parquet_rows_full(struct parquet_rows *rows, size_t n, size_t bytes)
{
	rows->n += n;
	rows->bytes += bytes;
	return rows->n + VALUES_MAX > GROUP_ROWS_MAX || rows->bytes >= GROUP_BYTES_MAX;
}
/* They become a row group in two steps: packed, and written. -ENOMEM, -EFBIG, or why they cannot be written.
 */
int parquet_rows_pack(struct parquet_rows *rows, struct pool *packers);
int parquet_rows_write(struct parquet_rows *rows, int output, struct pool *packers);
void parquet_rows_release(struct parquet_rows *rows);

/* Rows that are packed while others are added: a column each by threads that have time. Zero-initialised but
 * for the output. */
struct parquet_behind {
	int output;
	struct pool packers;
	struct parquet_rows full;
	struct parquet_pack *packs; /* of its chunks */
};

/* The rows so far will be a row group, after those before. Returns how these went: -ENOMEM, or why they
 * cannot be written. */
int parquet_behind_flush(struct parquet_behind *behind, struct parquet_rows *rows);
/* Until those are packed and written. */
int parquet_behind_wait(struct parquet_behind *behind);
void parquet_behind_release(struct parquet_behind *behind);

/*
 * Appends KEY=NAME, a directory below those that are there: what engines or file systems could take for
 * something else is %XX, and a name that is too long is cut and ends in ~ID. NULL: the key's null.
 */
void parquet_dir(struct buf *out, const char *key, const char *name, unsigned int id);

#endif
