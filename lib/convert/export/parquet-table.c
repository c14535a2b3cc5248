// SPDX-License-Identifier: LGPL-2.1-or-later
/* Row groups of a Parquet file, and tables of numbers and texts as such files. */
#include "convert/export/parquet-priv.h"
#include "base/outfile.h"

/* Of columns that the rows do not have: numbers or texts, and lists. */
static const struct parquet_column parquet_nulls[] = {
	{ .what = PARQUET_TEXT, .type = PARQUET_BYTES, .optional = true },
	{ .what = PARQUET_LIST, .type = PARQUET_INT32, .optional = true },
};

int parquet_rows_pack(struct parquet_rows *r, struct pool *packers)
{
	int ret = 0;

	for (size_t i = 0; i < r->n_chunks && r->n && !ret; i++)
		ret = parquet_chunk_end(&r->chunks[i], parquet_rows_column(r, i), packers);
	return ret;
}

int parquet_rows_write(struct parquet_rows *r, int output, struct pool *packers)
{
	struct parquet_chunk nulls[ARRAY_SIZE(parquet_nulls)] = { 0 };
	const struct parquet_chunk **v;
	int ret = 0;

	if (!r->n)
		return 0;
	v = malloc(r->file->n_columns * sizeof(const struct parquet_chunk *));
	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < ARRAY_SIZE(nulls) && !ret; i++) {
		parquet_chunk_nulls(&nulls[i], &parquet_nulls[i], r->n);
		ret = parquet_chunk_end(&nulls[i], &parquet_nulls[i], packers);
	}
	for (size_t i = 0; i < r->file->n_columns; i++)
		v[i] = &nulls[r->file->columns[i].what == PARQUET_LIST];
	for (size_t i = 0; i < r->n_chunks; i++)
		v[parquet_rows_column(r, i) - r->file->columns] = &r->chunks[i];
	ret = ret ?: parquet_file_group(r->file, output, v, r->n);
	for (size_t i = 0; i < ARRAY_SIZE(nulls); i++)
		parquet_chunk_release(&nulls[i]);
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

/* A column of full rows. */
struct parquet_pack {
	struct errand errand;
	struct parquet_behind *behind;
	size_t chunk;
	int ret;
};

static void parquet_behind_pack(void *ctx)
{
	struct parquet_pack *pack = ctx;
	struct parquet_rows *full = &pack->behind->full;

	pack->ret = parquet_chunk_end(&full->chunks[pack->chunk], parquet_rows_column(full, pack->chunk),
				      &pack->behind->packers);
}

int parquet_behind_wait(struct parquet_behind *b)
{
	int ret = 0;

	for (size_t i = 0; i < b->full.n_chunks && b->full.n; i++) {
		errand_finish(&b->packs[i].errand);
		ret = ret ?: b->packs[i].ret;
	}
	return ret ?: parquet_rows_write(&b->full, b->output, &b->packers);
}

int parquet_behind_flush(struct parquet_behind *b, struct parquet_rows *rows)
{
	int ret = parquet_behind_wait(b);
	struct parquet_rows next = *rows;

	if (ret)
		return ret;
	rows->file->begun = true;
	/* the memory of those before, if they had the same columns */
	if (b->full.file != rows->file || b->full.fields != rows->fields ||
	    b->full.n_chunks != rows->n_chunks) {
		parquet_rows_release(&b->full);
		free(b->packs);
		b->packs = calloc(rows->n_chunks, sizeof(*b->packs));
	}
	next.chunks = b->packs ? b->full.chunks ?: calloc(next.n_chunks, sizeof(*next.chunks)) : NULL;
	if (!next.chunks)
		return -ENOMEM;
	next.n = next.bytes = 0;
	b->full = *rows;
	*rows = next;
	for (size_t i = 0; i < b->full.n_chunks; i++) {
		b->packs[i] = (struct parquet_pack){ .behind = b, .chunk = i };
		errand_begin(&b->packs[i].errand, parquet_behind_pack, &b->packs[i]);
	}
	return 0;
}

void parquet_behind_release(struct parquet_behind *b)
{
	for (size_t i = 0; i < b->full.n_chunks; i++)
		errand_drop(&b->packs[i].errand);
	free(b->packs);
	parquet_rows_release(&b->full);
	parquet_packers_release(&b->packers);
}

struct parquet_table {
	struct parquet_tables *of;
	const char *name; /* the caller's */
	struct parquet_file file;
	struct parquet_rows rows;
	struct parquet_behind behind;
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
		parquet_behind_release(&t->v[i]->behind);
		parquet_rows_release(&t->v[i]->rows);
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
	t->behind.output = of->out.fd;
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

static int parquet_table_cell(void *ctx, size_t column, struct cell v)
{
	struct parquet_table *t = ctx;

	if (v.kind == CELL_COPY)
		t->rows.bytes += strlen(v.text);
	return parquet_chunk_cell(&t->rows.chunks[column], &t->file.columns[column], v);
}

static void parquet_table_values(void *ctx, size_t column, const union value *v, size_t n)
{
	struct parquet_table *t = ctx;

	parquet_chunk_values(&t->rows.chunks[column], &t->file.columns[column], v, n);
}

static int parquet_table_rows(void *ctx, size_t n)
{
	struct parquet_table *t = ctx;

	return parquet_rows_full(&t->rows, n, 8 * n * t->rows.n_chunks)
		       ? parquet_behind_flush(&t->behind, &t->rows)
		       : 0;
}

const struct cell_sink parquet_table_sink = { parquet_table_cell, parquet_table_values, parquet_table_rows };

int parquet_table_end(struct parquet_table *t)
{
	return parquet_behind_wait(&t->behind)
		       ?: parquet_rows_pack(&t->rows, &t->behind.packers)
		       ?: parquet_rows_write(&t->rows, t->of->out.fd, &t->behind.packers)
		       ?: parquet_file_end(&t->file, t->of->out.fd);
}
