// SPDX-License-Identifier: LGPL-2.1-or-later
/* Row groups of a Parquet file, and tables of numbers and texts as such files. */
#include <stdatomic.h>

#include "convert/export/parquet-priv.h"
#include "base/outfile.h"
#include "base/workers.h"

#define PACKERS_MAX 4 /* threads, each with a column of a group in memory */

struct packing {
	struct parquet_rows *rows;
	struct parquet_packer *packer; /* the caller's, or NULL */
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
	struct parquet_packer own = { 0 };
	size_t i;

	while ((i = atomic_fetch_add(&k->next, 1)) < r->n_chunks + ARRAY_SIZE(k->nulls)) {
		bool null = i >= r->n_chunks;
		struct parquet_chunk *chunk = null ? &k->nulls[i - r->n_chunks] : &r->chunks[i];
		int ret = parquet_chunk_end(
			chunk, null ? &parquet_nulls[i - r->n_chunks] : parquet_rows_column(r, i),
			k->packer ?: &own);

		if (ret)
			atomic_store(&k->ret, ret);
	}
	parquet_packer_release(&own);
}

int parquet_rows_flush(struct parquet_rows *r, int output, struct parquet_packer *packer)
{
	struct packing k = { .rows = r, .packer = packer };
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
	workers = packer || r->n < GROUP_ROWS_MAX / 16 ? 1 : workers < PACKERS_MAX ? workers : PACKERS_MAX;
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

/* Its rows become cells while a thread packs those before them, so that the file has them in order. */
struct parquet_table {
	struct parquet_tables *of;
	const char *name; /* the caller's */
	struct parquet_file file;
	struct parquet_rows rows, full; /* full: the thread's */
	struct parquet_packer packer;
	struct workers *thread; /* from the first group on, if there was another thread */
	int ret;		/* of that thread, when it has finished */
};

struct parquet_tables {
	struct outfile out;
	const struct siphash_key *key;
	struct arena names; /* of columns */
	struct parquet_table **v;
	size_t n;
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
	for (size_t i = 0; i < t->n; i++) {
		workers_free(t->v[i]->thread);
		parquet_rows_release(&t->v[i]->rows);
		parquet_rows_release(&t->v[i]->full);
		parquet_packer_release(&t->v[i]->packer);
		parquet_file_release(&t->v[i]->file);
		free(t->v[i]);
	}
	free(t->v);
	ret = outdir_close(&t->out, ret);
	arena_release(&t->names);
	free(t);
	return ret;
}

int parquet_table_begin(struct parquet_tables *of, const char *name, struct parquet_table **out)
{
	struct parquet_table *t = *out = calloc(1, sizeof(*t));
	struct buf dir = { 0 };

	if (!t || array_push(&of->v, &of->n, &t, sizeof(t))) {
		free(t);
		return -ENOMEM;
	}
	t->of = of;
	t->name = name;
	t->rows.file = &t->file;
	parquet_dir(&dir, "table", name, 0);
	t->file = (struct parquet_file){ .dir = (char *)buf_str(&dir), .table = true };
	return t->file.dir ? 0 : -ENOMEM;
}

int parquet_table_column(struct parquet_table *t, const char *name, bool text)
{
	struct parquet_tables *of = t->of;
	enum anonymize hide = of->key ? anonymize_column(t->name, name, text) : ANONYMIZE_KEEP;
	struct parquet_column c = { .name = arena_text(&of->names, name, strlen(name)),
				    .what = PARQUET_CELL,
				    .type = text ? PARQUET_BYTES : PARQUET_INT64,
				    .bits = 64,
				    .optional = true,
				    .address = hide == ANONYMIZE_DROP,
				    .key = hide == ANONYMIZE_HASH ? of->key : NULL };

	if (of->names.bad || array_push(&t->rows.chunks, &t->rows.n_chunks, &(struct parquet_chunk){ 0 },
					sizeof(*t->rows.chunks)))
		return -ENOMEM;
	t->rows.own = t->rows.n_chunks;
	return array_push(&t->file.columns, &t->file.n_columns, &c, sizeof(c));
}

static int parquet_table_cells(void *ctx, size_t column, const struct cell *v, size_t n)
{
	struct parquet_table *t = ctx;

	if (v[n - 1].kind == CELL_COPY) /* the last one alone can be */
		t->rows.bytes += strlen(v[n - 1].text);
	return parquet_chunk_cells(&t->rows.chunks[column], &t->file.columns[column], v, n);
}

static void parquet_table_pack(void *table, size_t worker)
{
	struct parquet_table *t = table;

	t->ret = t->ret ?: parquet_rows_flush(&t->full, t->of->out.fd, &t->packer);
}

static int parquet_table_rows(void *ctx, size_t n)
{
	struct parquet_table *t = ctx;
	struct parquet_rows next;

	if (!parquet_rows_full(&t->rows, n, 8 * n * t->rows.n_chunks))
		return 0;
	if (t->thread)
		workers_finish(t->thread);
	else if (workers_new(&t->thread, 1))
		return parquet_rows_flush(&t->rows, t->of->out.fd, &t->packer);
	if (t->ret)
		return t->ret;
	next = t->full;
	if (!next.chunks) {
		next = t->rows;
		next.n = next.bytes = 0;
		next.chunks = calloc(next.n_chunks, sizeof(*next.chunks));
		if (!next.chunks)
			return -ENOMEM;
	}
	t->full = t->rows;
	t->rows = next;
	workers_begin(t->thread, parquet_table_pack, t);
	return 0;
}

const struct cell_sink parquet_table_sink = { parquet_table_cells, parquet_table_rows };

int parquet_table_end(struct parquet_table *t)
{
	if (t->thread)
		workers_finish(t->thread);
	return t->ret ?: parquet_rows_flush(&t->rows, t->of->out.fd, &t->packer)
			      ?: parquet_file_end(&t->file, t->of->out.fd);
}
