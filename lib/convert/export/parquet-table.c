// SPDX-License-Identifier: LGPL-2.1-or-later
/* Row groups of a Parquet file, and tables of numbers and texts as such files. */
#include <stdatomic.h>

#include "convert/export/parquet-priv.h"
#include "base/outfile.h"
#include "base/workers.h"

#define PACKERS_MAX 4 /* threads, each with a column of a group in memory */

struct packing {
	struct parquet_rows *rows;
	struct parquet_chunk nulls[2]; /* of columns that the rows do not have: numbers or texts, and lists */
	atomic_size_t next;
	atomic_int ret;
};

static const struct parquet_column parquet_nulls[] = {
	{ .what = PARQUET_TEXT, .type = PARQUET_BYTES, .optional = true },
	{ .what = PARQUET_LIST, .type = PARQUET_INT32, .optional = true },
};

static void parquet_pack_columns(void *ctx, size_t worker)
{
	struct packing *k = ctx;
	struct parquet_rows *r = k->rows;
	struct parquet_packer p = { 0 };
	size_t i;

	while ((i = atomic_fetch_add(&k->next, 1)) < r->n_chunks + ARRAY_SIZE(k->nulls)) {
		bool null = i >= r->n_chunks;
		struct parquet_chunk *chunk = null ? &k->nulls[i - r->n_chunks] : &r->chunks[i];
		int ret = parquet_chunk_end(
			chunk, null ? &parquet_nulls[i - r->n_chunks] : parquet_rows_column(r, i), &p);

		if (ret)
			atomic_store(&k->ret, ret);
	}
	parquet_packer_release(&p);
}

int parquet_rows_flush(struct parquet_rows *r, int output)
{
	struct packing k = { .rows = r };
	const struct parquet_chunk **v;
	size_t workers = pipeline_workers();
	int ret;

	if (!r->n)
		return 0;
	v = malloc(r->file->n_columns * sizeof(const struct parquet_chunk *));
	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < ARRAY_SIZE(k.nulls); i++)
		parquet_chunk_nulls(&k.nulls[i], &parquet_nulls[i], r->n);
	/* threads for some rows take longer than the rows */
	workers = r->n < GROUP_ROWS_MAX / 16 ? 1 : workers < PACKERS_MAX ? workers : PACKERS_MAX;
	workers_share(workers, parquet_pack_columns, &k);
	for (size_t i = 0; i < r->file->n_columns; i++)
		v[i] = &k.nulls[r->file->columns[i].what == PARQUET_LIST];
	for (size_t i = 0; i < r->n_chunks; i++)
		v[parquet_rows_column(r, i) - r->file->columns] = &r->chunks[i];
	ret = atomic_load(&k.ret) ?: parquet_file_group(r->file, output, v, r->n);
	for (size_t i = 0; i < ARRAY_SIZE(k.nulls); i++)
		parquet_chunk_release(&k.nulls[i]);
	for (size_t i = 0; i < r->n_chunks; i++)
		parquet_chunk_next(&r->chunks[i]);
	free(v);
	r->n = r->bytes = 0;
	return ret;
}

void parquet_rows_release(struct parquet_rows *r)
{
	for (size_t i = 0; r->chunks && i < r->n_chunks; i++)
		parquet_chunk_release(&r->chunks[i]);
	free(r->chunks);
	*r = (struct parquet_rows){ 0 };
}

struct parquet_tables {
	struct outfile out;
	const struct siphash_key *key;
	const char *name;	  /* of the table that is written, the caller's */
	struct arena names;	  /* of columns */
	struct parquet_file file; /* that table */
	struct parquet_rows rows;
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
	parquet_file_release(&t->file);
	ret = outdir_close(&t->out, ret);
	arena_release(&t->names);
	free(t);
	return ret;
}

int parquet_table_begin(struct parquet_tables *t, const char *name)
{
	struct buf dir = { 0 };

	parquet_rows_release(&t->rows);
	parquet_file_release(&t->file);
	t->rows.file = &t->file;
	t->name = name;
	parquet_dir(&dir, "table", name, 0);
	t->file = (struct parquet_file){ .dir = (char *)buf_str(&dir), .table = true };
	return t->file.dir ? 0 : -ENOMEM;
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

	if (t->names.bad || array_push(&t->rows.chunks, &t->rows.n_chunks, &(struct parquet_chunk){ 0 },
				       sizeof(*t->rows.chunks)))
		return -ENOMEM;
	t->rows.own = t->rows.n_chunks;
	return array_push(&t->file.columns, &t->file.n_columns, &c, sizeof(c));
}

static int parquet_table_cells(void *ctx, size_t column, const struct cell *v, size_t n)
{
	struct parquet_tables *t = ctx;

	if (v[n - 1].kind == CELL_COPY) /* the last one alone can be */
		t->rows.bytes += strlen(v[n - 1].text);
	return parquet_chunk_cells(&t->rows.chunks[column], &t->file.columns[column], v, n);
}

static int parquet_table_rows(void *ctx, size_t n)
{
	struct parquet_tables *t = ctx;

	return parquet_rows_full(&t->rows, n, 8 * n * t->rows.n_chunks)
		       ? parquet_rows_flush(&t->rows, t->out.fd)
		       : 0;
}

const struct cell_sink parquet_table = { parquet_table_cells, parquet_table_rows };

int parquet_table_end(struct parquet_tables *t)
{
	return parquet_rows_flush(&t->rows, t->out.fd) ?: parquet_file_end(&t->file, t->out.fd);
}
