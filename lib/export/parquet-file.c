// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * What a Parquet file says about itself: its schema and its row groups, as
 * https://github.com/apache/parquet-format, parquet.thrift has them; and the names of its directories.
 */
#include <endian.h>
#include <string.h>

#include "export/parquet-priv.h"
#include "util/visible.h"

/* FieldRepetitionType, ConvertedType, CompressionCodec, Encoding: their numbers */
enum { REQUIRED = 0, OPTIONAL = 1, REPEATED = 2 };
enum { CONVERTED_UTF8 = 0, CONVERTED_LIST = 3, CONVERTED_UINT_8 = 11, CONVERTED_INT_8 = 15 };
enum { CODEC_ZSTD = 6 };
enum { ENCODING_PLAIN = 0, ENCODING_RLE = 3 };

#define NONE (-1)

/* ---- schema ----------------------------------------------------------------------- */

struct parquet_element {
	const char *name;
	int type, repetition, children, converted; /* NONE: it has none */
};

static void parquet_element_put(struct thrift *t, const struct parquet_element *e)
{
	thrift_begin(t);
	if (e->type != NONE)
		thrift_i32(t, 1, e->type);
	if (e->repetition != NONE)
		thrift_i32(t, 3, e->repetition);
	thrift_bytes(t, 4, e->name, strlen(e->name));
	if (e->children != NONE)
		thrift_i32(t, 5, e->children);
	if (e->converted != NONE)
		thrift_i32(t, 6, e->converted);
	thrift_end(t);
}

/* 8, 16, 32 and 64 bits follow on each other. Signed ones of 32 and 64 are what the types mean anyway. */
static int parquet_converted_type(const struct parquet_column *c)
{
	if (c->type == PARQUET_BYTES)
		return CONVERTED_UTF8;
	if (c->type == PARQUET_BOOL || (!c->is_unsigned && c->bits >= 32))
		return NONE;
	return (c->is_unsigned ? CONVERTED_UINT_8 : CONVERTED_INT_8) + __builtin_ctz(c->bits) - 3;
}

static size_t parquet_column_elements(const struct parquet_column *c)
{
	return c->what == PARQUET_LIST ? 3 : 1;
}

static void parquet_column_put(struct thrift *t, const struct parquet_column *c)
{
	int repetition = c->optional ? OPTIONAL : REQUIRED;

	if (c->what != PARQUET_LIST) {
		parquet_element_put(t, &(struct parquet_element){ c->name, c->type, repetition, NONE,
								  parquet_converted_type(c) });
		return;
	}
	parquet_element_put(t, &(struct parquet_element){ c->name, NONE, repetition, 1, CONVERTED_LIST });
	parquet_element_put(t, &(struct parquet_element){ "list", NONE, REPEATED, 1, NONE });
	parquet_element_put(t, &(struct parquet_element){ "element", c->type, REQUIRED, NONE,
							  parquet_converted_type(c) });
}

/* The root, what every event has, and its own fields as a group; no group may be empty. */
static void parquet_schema_put(struct thrift *t, const struct parquet_column *v, size_t n)
{
	bool fields = n > PARQUET_OWN;
	size_t elements = 1 + fields;

	for (size_t i = 0; i < n; i++)
		elements += parquet_column_elements(&v[i]);
	thrift_list(t, 2, THRIFT_STRUCT, elements);
	parquet_element_put(t, &(struct parquet_element){ "event", NONE, NONE, PARQUET_OWN + fields, NONE });
	for (size_t i = 0; i < n; i++) {
		if (i == PARQUET_OWN)
			parquet_element_put(t, &(struct parquet_element){ "fields", NONE, REQUIRED,
									  (int)(n - PARQUET_OWN), NONE });
		parquet_column_put(t, &v[i]);
	}
}

/* ---- row groups ----------------------------------------------------------------------- */

static void parquet_path_put(struct thrift *t, const struct parquet_column *c)
{
	const char *path[4];
	size_t n = 0;

	if (parquet_is_field(c))
		path[n++] = "fields";
	path[n++] = c->name;
	if (c->what == PARQUET_LIST) {
		path[n++] = "list";
		path[n++] = "element";
	}
	thrift_list(t, 3, THRIFT_BYTES, n);
	for (size_t i = 0; i < n; i++)
		thrift_text(t->out, path[i], strlen(path[i]));
}

/* By which engines pass over row groups. */
static void parquet_statistics_put(struct thrift *t, const struct parquet_column *c,
				   const struct parquet_chunk *k)
{
	bool bounds = c->type != PARQUET_BOOL && c->type != PARQUET_BYTES && k->n_values;
	uint64_t max = htole64(k->max), min = htole64(k->min);
	size_t size = c->type == PARQUET_INT32 ? 4 : 8;

	thrift_field(t, 12, THRIFT_STRUCT);
	thrift_begin(t);
	thrift_i64(t, 3, (int64_t)k->nulls);
	if (bounds) {
		thrift_bytes(t, 5, &max, size);
		thrift_bytes(t, 6, &min, size);
	}
	thrift_end(t);
}

static void parquet_chunk_meta_put(struct thrift *t, const struct parquet_column *c,
				   const struct parquet_chunk *k, uint64_t at)
{
	thrift_begin(t);
	thrift_i64(t, 2, (int64_t)at);
	thrift_field(t, 3, THRIFT_STRUCT);
	thrift_begin(t);
	thrift_i32(t, 1, c->type);
	thrift_list(t, 2, THRIFT_I32, 2);
	thrift_zigzag(t->out, ENCODING_PLAIN);
	thrift_zigzag(t->out, ENCODING_RLE);
	parquet_path_put(t, c);
	thrift_i32(t, 4, CODEC_ZSTD);
	thrift_i64(t, 5, (int64_t)k->n);
	thrift_i64(t, 6, (int64_t)k->size);
	thrift_i64(t, 7, (int64_t)k->page.len);
	thrift_i64(t, 9, (int64_t)at);
	if (c->what != PARQUET_LIST)
		parquet_statistics_put(t, c, k);
	thrift_end(t);
	thrift_end(t);
}

void parquet_group_put(struct buf *out, const struct parquet_column *columns,
		       const struct parquet_chunk *chunks, size_t n_columns, size_t n_rows, uint64_t at)
{
	struct thrift t = { .out = out };
	uint64_t size = 0, page = at;

	thrift_list(&t, 1, THRIFT_STRUCT, n_columns);
	for (size_t i = 0; i < n_columns; i++) {
		parquet_chunk_meta_put(&t, &columns[i], &chunks[i], page);
		size += chunks[i].size;
		page += chunks[i].page.len;
	}
	thrift_i64(&t, 2, (int64_t)size);
	thrift_i64(&t, 3, (int64_t)n_rows);
	thrift_i64(&t, 5, (int64_t)at);
	thrift_i64(&t, 6, (int64_t)(page - at));
	buf_add(out, "", 1);
}

/* ---- the end of a file --------------------------------------------------------------------- */

void parquet_footer_put(struct buf *out, const struct parquet_column *columns, size_t n_columns,
			const struct buf *groups, size_t n_groups, uint64_t n_rows)
{
	static const char by[] = "hyptrace version " HYPTRACE_VERSION;
	struct thrift t = { .out = out };
	size_t begin = out->len;
	uint32_t len;

	thrift_i32(&t, 1, 1);
	parquet_schema_put(&t, columns, n_columns);
	thrift_i64(&t, 3, (int64_t)n_rows);
	thrift_list(&t, 4, THRIFT_STRUCT, n_groups);
	buf_add(out, groups->data, groups->len);
	thrift_bytes(&t, 6, by, sizeof(by) - 1);
	thrift_list(&t, 7, THRIFT_STRUCT, n_columns);
	for (size_t i = 0; i < n_columns; i++) { /* numbers are ordered as their types say */
		thrift_begin(&t);
		thrift_field(&t, 1, THRIFT_STRUCT);
		thrift_begin(&t);
		thrift_end(&t);
		thrift_end(&t);
	}
	buf_add(out, "", 1);
	len = htole32((uint32_t)(out->len - begin));
	buf_add(out, &len, sizeof(len));
	buf_add(out, PARQUET_MAGIC, sizeof(PARQUET_MAGIC) - 1);
	out->bad |= groups->bad;
}

/* ---- directories ---------------------------------------------------------------------------- */

#define PARQUET_NULL	"__HIVE_DEFAULT_PARTITION__"
#define PARQUET_DIR_MAX 200 /* bytes of the name; file systems have 255 for all of it */

/* Engines and shells take no other of ASCII's for itself everywhere. */
static bool parquet_dir_plain_byte(uint8_t c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
	       c == '-' || c == '.';
}

/* The next character of a name, of n bytes: itself, or each of its bytes as %XX. What is no UTF-8 is U+FFFD.
 */
static size_t parquet_dir_put(struct buf *b, const char *p, bool plain)
{
	const uint8_t *u = (const uint8_t *)p;
	size_t left = strlen(p), n = utf8_len(u, left);

	if (!n)
		buf_addstr(b, "\xef\xbf\xbd");
	else if (plain && (n == 1 ? parquet_dir_plain_byte(*u) : !visible_control(u, left)))
		buf_add(b, p, n);
	else
		for (size_t i = 0; i < n; i++)
			buf_printf(b, "%%%02X", u[i]);
	return n ?: 1;
}

char *parquet_dir(const char *key, const char *name, unsigned int id)
{
	/* what engines take for null */
	bool null = name && (!strcmp(name, PARQUET_NULL) || !strcasecmp(name, "null"));
	struct buf b = { 0 };
	size_t begin;

	buf_printf(&b, "%s=", key);
	begin = b.len;
	if (!name)
		buf_addstr(&b, PARQUET_NULL);
	for (const char *p = name ?: ""; *p && b.len - begin < PARQUET_DIR_MAX && !b.bad; null = false)
		p += parquet_dir_put(&b, p, !null);
	if (b.len - begin >= PARQUET_DIR_MAX)
		buf_printf(&b, "%%7E%u", id);
	return (char *)buf_str(&b);
}
