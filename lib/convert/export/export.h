/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_EXPORT_H
#define HYPTRACE_EXPORT_H

#include "base/cell.h"
#include "base/decode/mark-lines.h"
#include "base/workers.h"
#include "read/timeline.h"

/* Recordings in other forms, written as their records come, in memory that depends on CPUs and tasks alone.
 */

struct siphash_key {
	uint64_t v[2];
};

struct export_job {
	struct timeline *timeline;
	const struct inputs *in;       /* the timeline's */
	int fd;			       /* the output, if that is no directory */
	const struct siphash_key *key; /* export_parquet: of --anonymize; NULL: nothing is hidden */
	/* export_json: whether a record is, asked in the order of time; NULL: all are. */
	bool (*wanted)(void *ctx, const struct merge_run *run, size_t i);
	void *wanted_ctx;
	/* Called with how much of the files has been read, 0 to 1; -errno ends the export. NULL: not. */
	int (*progress)(void *ctx, double part);
	void *progress_ctx;
	OWN_LINE uint64_t records, unknown; /* read; of them without a format */
};

/* Reports how much has been read; in before() of a pipeline. */
static inline int export_tell(const struct export_job *job)
{
	return job->progress ? job->progress(job->progress_ctx, merge_fraction(job->timeline->merge)) : 0;
}

/* One JSON object a line for each record; hyptrace-export(1) has the members. -ENOMEM, -errno of fd. */
int export_json(struct export_job *job);

/*
 * A trace in Perfetto's format: the kernels' events by machine and CPU, the
 * hypervisor's time in slices that Perfetto's pkvm_hypervisor_events finds, and
 * tracks of our own for the hypervisor, vCPUs, crosvm and hypertrace. desc: NULL for none.
 * -ERANGE: a CPU number that Perfetto refuses (logged); -ENOMEM, -errno of fd.
 */
int export_perfetto(struct export_job *job, const struct mark_desc *desc, const struct log *log);

/* export --anonymize: names become keyed hashes, addresses are left out. hyptrace-export(1) has the rules. */

/* SipHash-2-4 (Aumasson and Bernstein, 2012): without the key its hashes can neither be computed nor be
 * distinguished from chance. */
uint64_t siphash(const struct siphash_key *key, const void *data, size_t len);
/* Reads the key. -errno, which the log explains. */
int anonymize_key(struct siphash_key *key, const char *path, const struct log *log);
/* The text from `begin` on becomes its hash, unless it is one that every machine has, as "host". */
void anonymize_text(const struct siphash_key *key, struct buf *text, size_t begin);

/* True if values of an event's field are left out: addresses, and what may be one. */
bool anonymize_drops_field(const struct tep_format_field *f);
/* For a column of a table of hyptrace sql. */
enum anonymize { ANONYMIZE_KEEP, ANONYMIZE_HASH, ANONYMIZE_DROP };
enum anonymize anonymize_column(const char *table, const char *column, bool text);

/*
 * Parquet files below the directory, which is made: machine=M/system=S/part-N.parquet;
 * hyptrace-export(1) has the columns. job->fd is not used; errors are logged.
 */
int export_parquet(struct export_job *job, const char *dir, const struct log *log);

/*
 * Tables as Parquet files below a directory, which is made: table=NAME/part-0.parquet, several at a time.
 * First each of a table's columns, then rows.
 */
struct parquet_tables; /* opaque */
struct parquet_table;  /* opaque; lives until parquet_tables_close() */

/* In the files' metadata. Documentation/tables.md has its meaning, and the tables. */
#define TABLES_VERSION "2"

/* key: of --anonymize, or NULL. -errno, which the log explains. */
int parquet_tables_open(struct parquet_tables **out, const char *dir, const struct siphash_key *key,
			const struct log *log);
/* ret: how the writing went. 0: the directory is in place; else nothing is left, and the log says why. */
int parquet_tables_close(struct parquet_tables *t, int ret);
/* -ENOMEM; errors of writing. */
int parquet_table_begin(struct parquet_tables *t, const char *name, struct parquet_table **out);
int parquet_table_column(struct parquet_table *t, const char *name, bool text);
int parquet_table_end(struct parquet_table *t);
/* The rows; ctx: struct parquet_table. -EINVAL: a text in a column of numbers, or a number in one of texts.
 */
extern const struct cell_sink parquet_table_sink;

/*
 * CTF 1.8 traces below a directory, which is made, one for each machine, by babeltrace2's library and its
 * plugin ctf: a stream for each CPU of each buffer, fields by the formats, lost events as discarded ones, all
 * on the host's clock. The timeline must be one that nothing was taken from. -ENOENT: the plugin is not
 * installed; -ENOMEM; -EIO: babeltrace2's errors, logged. There with HYPTRACE_CTF only.
 */
int export_ctf(struct export_job *job, const char *dir, const struct log *log);

#endif
