// SPDX-License-Identifier: LGPL-2.1-or-later
/* Tables of numbers and texts as Parquet files, a row group at a time. */
#include "convert/export/parquet-priv.h"
#include "base/outfile.h"

struct parquet_tables {
	struct outfile out;
	struct arena names; /* of columns */
	/* the table that is written, and its next row group */
	struct parquet_file file;
	struct parquet_chunk *chunks; /* by column */
	size_t n_rows, bytes;
};

int parquet_tables_open(struct parquet_tables **out, const char *dir, const struct log *log)
{
	struct parquet_tables *t = calloc(1, sizeof(*t));
	int ret = t ? outdir_open(&t->out, dir, log) : -ENOMEM;

	if (ret)
		free(t);
	else
		*out = t;
	return ret;
}

static void parquet_table_release(struct parquet_tables *t)
{
	for (size_t i = 0; t->chunks && i < t->file.n_columns; i++)
		parquet_chunk_release(&t->chunks[i]);
	free(t->chunks);
	t->chunks = NULL;
	parquet_file_release(&t->file);
	t->file = (struct parquet_file){ 0 };
	t->n_rows = t->bytes = 0;
}

int parquet_tables_close(struct parquet_tables *t, int ret)
{
	parquet_table_release(t);
	ret = outdir_close(&t->out, ret);
	arena_release(&t->names);
	free(t);
	return ret;
}

int parquet_table_begin(struct parquet_tables *t, const char *name)
{
	struct buf dir = { 0 };

	parquet_table_release(t);
	parquet_dir(&dir, "table", name, 0);
	t->file.dir = (char *)buf_str(&dir);
	return t->file.dir ? 0 : -ENOMEM;
}

int parquet_table_column(struct parquet_tables *t, const char *name, bool text)
{
	struct parquet_column c = { .name = arena_text(&t->names, name, strlen(name)),
				    .what = PARQUET_CELL,
				    .type = text ? PARQUET_BYTES : PARQUET_INT64,
				    .bits = 64,
				    .optional = true };
	size_t n = t->file.n_columns;

	if (t->names.bad || array_push(&t->chunks, &n, &(struct parquet_chunk){ 0 }, sizeof(*t->chunks)))
		return -ENOMEM;
	return array_push(&t->file.columns, &t->file.n_columns, &c, sizeof(c));
}

int parquet_table_cell(struct parquet_tables *t, size_t column, const struct table_cell *cell)
{
	const struct parquet_column *c = &t->file.columns[column];

	if (cell->known && (cell->text != NULL) != (c->type == PARQUET_BYTES))
		return -EINVAL;
	parquet_chunk_cell(&t->chunks[column], c, cell);
	t->bytes += cell->text ? strlen(cell->text) : sizeof(cell->number);
	return 0;
}

/* The rows so far become a row group. */
static int parquet_table_flush(struct parquet_tables *t)
{
	int ret = 0;

	for (size_t i = 0; i < t->file.n_columns && !ret; i++)
		ret = parquet_chunk_end(&t->chunks[i], &t->file.columns[i]);
	ret = ret ?: parquet_file_group(&t->file, t->out.fd, t->chunks, t->n_rows);
	for (size_t i = 0; i < t->file.n_columns; i++)
		parquet_chunk_release(&t->chunks[i]);
	t->n_rows = t->bytes = 0;
	return ret;
}

int parquet_table_row(struct parquet_tables *t)
{
	t->n_rows++;
	return t->n_rows == GROUP_ROWS_MAX || t->bytes >= GROUP_BYTES_MAX ? parquet_table_flush(t) : 0;
}

int parquet_table_end(struct parquet_tables *t)
{
	int ret = t->n_rows ? parquet_table_flush(t) : 0;

	return ret ?: parquet_file_end(&t->file, t->out.fd);
}
