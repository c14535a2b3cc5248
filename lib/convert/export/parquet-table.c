// SPDX-License-Identifier: LGPL-2.1-or-later
/* Row groups of a Parquet file, and tables of numbers and texts as such files. */
#include <stdatomic.h>

#include "convert/export/parquet-priv.h"
#include "base/outfile.h"
#include "base/workers.h"

#define PACKERS_MAX 4 /* threads, each with a column of a group in memory */

struct packing {
	struct parquet_rows *rows;
	atomic_size_t next;
	atomic_int ret;
};

static void parquet_pack_columns(void *ctx, size_t worker)
{
	struct packing *k = ctx;
	struct parquet_rows *r = k->rows;
	size_t i;

	while ((i = atomic_fetch_add(&k->next, 1)) < r->file.n_columns) {
		int ret = parquet_chunk_end(&r->chunks[i], &r->file.columns[i]);

		if (ret)
			atomic_store(&k->ret, ret);
	}
}

int parquet_rows_flush(struct parquet_rows *r, int output)
{
	struct packing k = { .rows = r };
	size_t workers = pipeline_workers();
	int ret;

	if (!r->n)
		return 0;
	/* threads for some rows take longer than the rows */
	workers = r->n < GROUP_ROWS_MAX / 16 ? 1 : workers < PACKERS_MAX ? workers : PACKERS_MAX;
	workers_share(workers, parquet_pack_columns, &k);
	ret = atomic_load(&k.ret) ?: parquet_file_group(&r->file, output, r->chunks, r->n);
	for (size_t i = 0; i < r->file.n_columns; i++)
		parquet_chunk_release(&r->chunks[i]);
	r->n = r->bytes = 0;
	return ret;
}

void parquet_rows_release(struct parquet_rows *r)
{
	for (size_t i = 0; r->chunks && i < r->file.n_columns; i++)
		parquet_chunk_release(&r->chunks[i]);
	free(r->chunks);
	parquet_file_release(&r->file);
	*r = (struct parquet_rows){ 0 };
}

struct parquet_tables {
	struct outfile out;
	const struct siphash_key *key;
	const char *name;	  /* of the table that is written, the caller's */
	struct arena names;	  /* of columns */
	struct parquet_rows rows; /* of the table that is written */
};

int parquet_tables_open(struct parquet_tables **out, const char *dir, const struct siphash_key *key,
			const struct log *log)
{
	struct parquet_tables *t = calloc(1, sizeof(*t));
	int ret = t ? outdir_open(&t->out, dir, log) : -ENOMEM;

	if (ret) {
		free(t);
	} else {
		t->key = key;
		*out = t;
	}
	return ret;
}

int parquet_tables_close(struct parquet_tables *t, int ret)
{
	parquet_rows_release(&t->rows);
	ret = outdir_close(&t->out, ret);
	arena_release(&t->names);
	free(t);
	return ret;
}

int parquet_table_begin(struct parquet_tables *t, const char *name)
{
	struct buf dir = { 0 };

	parquet_rows_release(&t->rows);
	t->name = name;
	parquet_dir(&dir, "table", name, 0);
	t->rows.file.dir = (char *)buf_str(&dir);
	return t->rows.file.dir ? 0 : -ENOMEM;
}

int parquet_table_column(struct parquet_tables *t, const char *name, bool text)
{
	enum anonymize hide = t->key ? anonymize_column(t->name, name, text) : ANONYMIZE_KEEP;
	struct parquet_column c = { .name = arena_text(&t->names, name, strlen(name)),
				    .what = PARQUET_CELL,
				    .type = text ? PARQUET_BYTES : PARQUET_INT64,
				    .bits = 64,
				    .optional = true,
				    .address = hide == ANONYMIZE_DROP,
				    .key = hide == ANONYMIZE_HASH ? t->key : NULL };
	size_t n = t->rows.file.n_columns;

	if (t->names.bad ||
	    array_push(&t->rows.chunks, &n, &(struct parquet_chunk){ 0 }, sizeof(*t->rows.chunks)))
		return -ENOMEM;
	return array_push(&t->rows.file.columns, &t->rows.file.n_columns, &c, sizeof(c));
}

int parquet_table_cell(struct parquet_tables *t, size_t column, const struct table_cell *cell)
{
	const struct parquet_column *c = &t->rows.file.columns[column];

	if (cell->known && (cell->text != NULL) != (c->type == PARQUET_BYTES))
		return -EINVAL;
	parquet_chunk_cell(&t->rows.chunks[column], c, cell);
	t->rows.bytes += cell->text ? strlen(cell->text) : sizeof(cell->number);
	return 0;
}

int parquet_table_row(struct parquet_tables *t)
{
	return parquet_rows_full(&t->rows, 0) ? parquet_rows_flush(&t->rows, t->out.fd) : 0;
}

int parquet_table_end(struct parquet_tables *t)
{
	return parquet_rows_flush(&t->rows, t->out.fd) ?: parquet_file_end(&t->rows.file, t->out.fd);
}
