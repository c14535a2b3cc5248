// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * A Parquet file: its columns, schema and row groups, as https://github.com/apache/parquet-format,
 * parquet.thrift has them; and the names of its directories.
 */
#include <endian.h>

#include "base/files.h"
#include "convert/export/parquet-priv.h"
#include "base/escape.h"

/* FieldRepetitionType, ConvertedType, CompressionCodec, Encoding: their numbers */
enum { REQUIRED = 0, OPTIONAL = 1, REPEATED = 2 };
enum { CONVERTED_UTF8 = 0, CONVERTED_LIST = 3, CONVERTED_UINT_8 = 11, CONVERTED_INT_8 = 15 };
enum { CODEC_ZSTD = 6 };
enum { ENCODING_PLAIN = 0, ENCODING_RLE = 3 };

#define NONE (-1)

#define PARQUET_FIELDS_MAX 256 /* a format's others are left out */

static const struct parquet_column parquet_own[PARQUET_OWN] = {
	{ "ts", PARQUET_TS, PARQUET_INT64, .bits = 64 },
	{ "cpu", PARQUET_CPU, PARQUET_INT32, .bits = 32 },
	{ "pid", PARQUET_PID, PARQUET_INT32, .bits = 32, .optional = true },
	{ "comm", PARQUET_COMM, PARQUET_BYTES, .optional = true },
	{ "buffer", PARQUET_BUFFER, PARQUET_BYTES, .optional = false },
	{ "lost", PARQUET_LOST, PARQUET_INT64, .bits = 64, .optional = true },
	{ "bound", PARQUET_BOUND, PARQUET_INT64, .bits = 64, .optional = true },
	{ "utc_ns", PARQUET_UTC, PARQUET_INT64, .bits = 64, .optional = true },
	{ "utc_bound", PARQUET_UTC_BOUND, PARQUET_INT64, .bits = 64, .optional = true },
};

/* Of the numbers, or the items of an array, that l loads. */
static void parquet_column_integer(struct parquet_column *c, size_t size, bool is_signed)
{
	c->type = size == 8 ? PARQUET_INT64 : PARQUET_INT32;
	c->bits = (uint8_t)(8 * size);
	c->is_unsigned = !is_signed;
}

/* False: it has no value, as a struct has none. */
static bool parquet_column_of_field(struct parquet_column *c, const struct tep_format_field *f)
{
	bool is_signed = f->flags & TEP_FIELD_IS_SIGNED;

	*c = (struct parquet_column){ .optional = true,
				      .load = field_load(f),
				      .address = anonymize_drops_field(f) };
	if (c->load.kind == FIELD_NONE)
		return false;
	if (c->load.kind == FIELD_NUMBER) {
		c->what = PARQUET_NUMBER;
		parquet_column_integer(c, c->load.size, is_signed);
		if (!strcmp(f->type, "bool") || !strcmp(f->type, "_Bool"))
			c->type = PARQUET_BOOL;
	} else if (f->flags & TEP_FIELD_IS_STRING) {
		c->what = PARQUET_TEXT;
		c->type = PARQUET_BYTES;
	} else {
		c->what = PARQUET_LIST;
		c->item = field_load_item(f);
		parquet_column_integer(c, c->item.size, is_signed);
	}
	return true;
}

static struct parquet_column *parquet_columns_new(size_t n_fields)
{
	struct parquet_column *v = calloc(PARQUET_OWN + n_fields, sizeof(*v));

	if (v)
		memcpy(v, parquet_own, sizeof(parquet_own));
	return v;
}

int parquet_columns(struct parquet_column **out, size_t *n, const struct tep_event *e, struct arena *kept)
{
	const struct tep_format_field *f = e ? e->format.fields : NULL;
	struct parquet_column *v = parquet_columns_new(PARQUET_FIELDS_MAX);
	const char *name;

	if (!v)
		return -ENOMEM;
	*n = PARQUET_OWN;
	for (; f && *n < PARQUET_OWN + PARQUET_FIELDS_MAX; f = f->next) {
		if (!parquet_column_of_field(&v[*n], f))
			continue;
		/* as UTF-8 and unlike those before: engines take Name and name for the same */
		name = arena_text(kept, f->name, strlen(f->name));
		name = *name ? name : "_";
		for (size_t i = PARQUET_OWN; i < *n && !kept->bad; i++)
			if (!strcasecmp(v[i].name, name)) {
				name = arena_printf(kept, "%s_", name);
				i = PARQUET_OWN - 1;
			}
		v[*n].name = name;
		++*n;
	}
	*out = reallocarray(v, *n, sizeof(*v)) ?: v;
	return kept->bad ? -ENOMEM : 0;
}

int parquet_columns_unknown(struct parquet_column **out, size_t *n)
{
	static const struct parquet_column own[] = {
		{ "id", PARQUET_NUMBER, PARQUET_INT32, true, true, 16, .load = { FIELD_NUMBER, 0, 2 } },
		{ "data", PARQUET_LIST, PARQUET_INT32, true, true, 8, .load = { FIELD_BYTES, 0, 0 },
		  .item = { FIELD_NUMBER, 0, 1 }, .address = true },
	};

	*out = parquet_columns_new(ARRAY_SIZE(own));
	if (!*out)
		return -ENOMEM;
	memcpy(*out + PARQUET_OWN, own, sizeof(own));
	*n = PARQUET_OWN + ARRAY_SIZE(own);
	return 0;
}

/* NONE: it has none. */
static void parquet_element_put(struct thrift *t, const char *name, int type, int repetition, int children,
				int converted)
{
	thrift_begin(t);
	if (type != NONE)
		thrift_i32(t, 1, type);
	if (repetition != NONE)
		thrift_i32(t, 3, repetition);
	thrift_bytes(t, 4, name, strlen(name));
	if (children != NONE)
		thrift_i32(t, 5, children);
	if (converted != NONE)
		thrift_i32(t, 6, converted);
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

/* The root, its columns, and an event's own fields as a group after those; no group may be empty. */
static void parquet_schema_put(struct thrift *t, const struct parquet_column *v, size_t n)
{
	const char *root = v[0].what == PARQUET_CELL ? "row" : "event";
	size_t own = 0, elements;
	bool fields;

	while (own < n && !parquet_is_field(&v[own]))
		own++;
	fields = own < n;
	elements = 1 + fields;
	for (size_t i = 0; i < n; i++)
		elements += v[i].what == PARQUET_LIST ? 3 : 1;
	thrift_list(t, 2, THRIFT_STRUCT, elements);
	parquet_element_put(t, root, NONE, NONE, (int)own + fields, NONE);
	for (size_t i = 0; i < n; i++) {
		int repetition, converted;

		if (i == own)
			parquet_element_put(t, "fields", NONE, REQUIRED, (int)(n - own), NONE);
		repetition = v[i].optional ? OPTIONAL : REQUIRED;
		converted = parquet_converted_type(&v[i]);
		if (v[i].what != PARQUET_LIST) {
			parquet_element_put(t, v[i].name, v[i].type, repetition, NONE, converted);
			continue;
		}
		parquet_element_put(t, v[i].name, NONE, repetition, 1, CONVERTED_LIST);
		parquet_element_put(t, "list", NONE, REPEATED, 1, NONE);
		parquet_element_put(t, "element", v[i].type, REQUIRED, NONE, converted);
	}
}

static void parquet_chunk_meta_put(struct thrift *t, const struct parquet_column *c,
				   const struct parquet_chunk *k, uint64_t at)
{
	uint64_t max = htole64(k->max), min = htole64(k->min);
	size_t size = c->type == PARQUET_INT32 ? 4 : 8, n = 0;
	const char *path[4];

	thrift_begin(t);
	thrift_i64(t, 2, (int64_t)at);
	thrift_field(t, 3, THRIFT_STRUCT);
	thrift_begin(t);
	thrift_i32(t, 1, c->type);
	thrift_list(t, 2, THRIFT_I32, 2);
	thrift_zigzag(t->out, ENCODING_PLAIN);
	thrift_zigzag(t->out, ENCODING_RLE);
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
	thrift_i32(t, 4, CODEC_ZSTD);
	thrift_i64(t, 5, (int64_t)k->n);
	thrift_i64(t, 6, (int64_t)k->size);
	thrift_i64(t, 7, (int64_t)k->page.len);
	thrift_i64(t, 9, (int64_t)at);
	if (c->what != PARQUET_LIST) { /* statistics, by which engines pass over row groups */
		thrift_field(t, 12, THRIFT_STRUCT);
		thrift_begin(t);
		thrift_i64(t, 3, (int64_t)k->nulls);
		if (c->type != PARQUET_BOOL && c->type != PARQUET_BYTES && k->n_values) {
			thrift_bytes(t, 5, &max, size);
			thrift_bytes(t, 6, &min, size);
		}
		thrift_end(t);
	}
	thrift_end(t);
	thrift_end(t);
}

/* Of a row group whose pages lie in the file from `at` on. */
static void parquet_group_put(struct parquet_file *f, const struct parquet_chunk *chunks, size_t n_rows,
			      uint64_t at)
{
	struct thrift t = { .out = &f->groups };
	uint64_t size = 0, page = at;

	thrift_list(&t, 1, THRIFT_STRUCT, f->n_columns);
	for (size_t i = 0; i < f->n_columns; i++) {
		parquet_chunk_meta_put(&t, &f->columns[i], &chunks[i], page);
		size += chunks[i].size;
		page += chunks[i].page.len;
	}
	thrift_i64(&t, 2, (int64_t)size);
	thrift_i64(&t, 3, (int64_t)n_rows);
	thrift_i64(&t, 5, (int64_t)at);
	thrift_i64(&t, 6, (int64_t)(page - at));
	buf_add(&f->groups, "", 1);
	f->n_groups++;
	f->rows += n_rows;
}

static void parquet_footer_put(struct buf *out, const struct parquet_file *f)
{
	static const char by[] = "hyptrace version " HYPTRACE_VERSION, tables[] = "hyptrace.tables";
	struct thrift t = { .out = out };
	size_t begin = out->len;
	uint32_t len;

	thrift_i32(&t, 1, 1);
	parquet_schema_put(&t, f->columns, f->n_columns);
	thrift_i64(&t, 3, (int64_t)f->rows);
	thrift_list(&t, 4, THRIFT_STRUCT, f->n_groups);
	buf_add(out, f->groups.data, f->groups.len);
	if (f->columns[0].what == PARQUET_CELL) {
		thrift_list(&t, 5, THRIFT_STRUCT, 1);
		thrift_begin(&t);
		thrift_bytes(&t, 1, tables, sizeof(tables) - 1);
		thrift_bytes(&t, 2, TABLES_VERSION, sizeof(TABLES_VERSION) - 1);
		thrift_end(&t);
	}
	thrift_bytes(&t, 6, by, sizeof(by) - 1);
	thrift_list(&t, 7, THRIFT_STRUCT, f->n_columns);
	for (size_t i = 0; i < f->n_columns; i++) { /* numbers are ordered by their types */
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
	out->bad |= f->groups.bad;
}

/* To append to: only one is open at a time, however many events there are. */
static int parquet_file_open(struct parquet_file *f, int output)
{
	int flags = O_WRONLY | O_NOFOLLOW | O_CLOEXEC, fd, ret;
	char *path;

	if (!f->size) {
		for (char *slash = f->dir; slash;) {
			slash = strchr(slash + 1, '/');
			if (slash)
				*slash = 0;
			ret = mkdirat(output, f->dir, 0755) < 0 && errno != EEXIST ? -errno : 0;
			if (slash)
				*slash = '/';
			if (ret)
				return ret;
		}
	}
	path = str_printf("%s/part-%u.parquet", f->dir, f->part);
	if (!path)
		return -ENOMEM;
	fd = openat(output, path, flags | (f->size ? O_APPEND : O_CREAT | O_EXCL), 0644);
	ret = fd < 0 ? -errno : 0;
	free(path);
	if (!ret && !f->size) {
		f->size = sizeof(PARQUET_MAGIC) - 1;
		ret = write_all(fd, PARQUET_MAGIC, f->size);
	}
	if (ret)
		fd_close(&fd);
	return ret ? ret : fd;
}

static int parquet_file_close(int fd, int ret)
{
	return close(fd) < 0 && !ret ? -errno : ret;
}

int parquet_file_group(struct parquet_file *f, int output, const struct parquet_chunk *chunks, size_t n_rows)
{
	int fd = parquet_file_open(f, output), ret = 0;
	uint64_t at = f->size;

	if (fd < 0)
		return fd;
	for (size_t i = 0; i < f->n_columns && !ret; i++) {
		ret = write_all(fd, chunks[i].page.data, chunks[i].page.len);
		f->size += chunks[i].page.len;
	}
	ret = parquet_file_close(fd, ret);
	parquet_group_put(f, chunks, n_rows, at);
	return ret ? ret : buf_status(&f->groups);
}

int parquet_file_end(struct parquet_file *f, int output)
{
	struct buf footer = { 0 };
	int fd, ret;

	parquet_footer_put(&footer, f);
	fd = footer.bad ? -ENOMEM : parquet_file_open(f, output);
	ret = fd < 0 ? fd : parquet_file_close(fd, write_all(fd, footer.data, footer.len));
	buf_release(&footer);
	buf_release(&f->groups);
	f->size = f->rows = f->n_groups = 0;
	return ret;
}

void parquet_file_release(struct parquet_file *f)
{
	free(f->dir);
	free(f->columns);
	buf_release(&f->groups);
}

#define PARQUET_NULL	"__HIVE_DEFAULT_PARTITION__"
#define PARQUET_DIR_MAX 200 /* bytes of the name; file systems have 255 for all of it */

void parquet_dir(struct buf *b, const char *key, const char *name, unsigned int id)
{
	/* engines and shells take no other of ASCII's for itself everywhere */
	static const char bytes[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
	/* engines take these for null */
	bool null = name && (!strcmp(name, PARQUET_NULL) || !strcasecmp(name, "null"));
	const uint8_t *u = (const uint8_t *)(name ?: "");
	size_t begin;

	buf_printf(b, "%s%s=", b->len ? "/" : "", key);
	begin = b->len;
	if (!name)
		buf_addstr(b, PARQUET_NULL);
	/* each character itself, or each of its bytes as %XX; what is no UTF-8 is U+FFFD */
	while (*u && b->len - begin < PARQUET_DIR_MAX && !b->bad) {
		size_t left = strlen((const char *)u), n = utf8_len(u, left);

		if (!n)
			buf_addstr(b, "\xef\xbf\xbd");
		else if (!null &&
			 (n == 1 ? memchr(bytes, *u, sizeof(bytes) - 1) != NULL : !escape_control(u, left)))
			buf_add(b, u, n);
		else
			for (size_t i = 0; i < n; i++)
				buf_printf(b, "%%%02X", u[i]);
		u += n ?: 1;
		null = false;
	}
	if (b->len - begin >= PARQUET_DIR_MAX)
		buf_printf(b, "%%7E%u", id);
}
