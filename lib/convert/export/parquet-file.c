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

#define NONE		    (-1)
#define STATISTICS_TEXT_MAX 64

static const struct parquet_column parquet_own[PARQUET_OWN] = {
	{ "ts", .type = PARQUET_INT64, .bits = 64 },
	{ "cpu", .type = PARQUET_INT32, .bits = 32 },
	{ "pid", .type = PARQUET_INT32, .bits = 32, .optional = true },
	{ "comm", .type = PARQUET_BYTES, .optional = true },
	{ "buffer", .type = PARQUET_BYTES },
	{ "lost", .type = PARQUET_INT64, .bits = 64, .optional = true },
	{ "bound", .type = PARQUET_INT64, .bits = 64, .optional = true },
	{ "utc_ns", .type = PARQUET_INT64, .bits = 64, .optional = true },
	{ "utc_bound", .type = PARQUET_INT64, .bits = 64, .optional = true },
	{ "event", .type = PARQUET_BYTES },
};

static const struct parquet_column parquet_unknown[] = {
	{ "id", NULL, PARQUET_NUMBER, PARQUET_INT32, true, true, 16, .load = { FIELD_NUMBER, 0, 2 } },
	{ "data", NULL, PARQUET_LIST, PARQUET_INT32, true, true, 8, .load = { FIELD_BYTES, 0, 0 },
	  .item = { FIELD_NUMBER, 0, 1 }, .address = true },
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

int parquet_file_events(struct parquet_file *f, const struct siphash_key *key)
{
	f->columns = malloc(sizeof(parquet_own));
	if (!f->columns)
		return -ENOMEM;
	memcpy(f->columns, parquet_own, sizeof(parquet_own));
	f->n_columns = PARQUET_OWN;
	for (size_t i = 0; i < PARQUET_OWN; i++)
		f->columns[i].key = i + 1 < PARQUET_OWN ? key : NULL; /* events' names stay */
	return 0;
}

size_t parquet_fields(const struct tep_event *e)
{
	return e ? (size_t)e->format.nr_fields : ARRAY_SIZE(parquet_unknown);
}

/*
 * As UTF-8 and unlike those before: engines take Name and name for the same. from: of the first column that
 * has another one; 0: it is a structure's.
 */
static const char *parquet_name(const struct parquet_file *f, size_t from, const char *name,
				struct arena *kept)
{
	name = arena_text(kept, name, strlen(name));
	name = *name ? name : "_";
	for (size_t i = from; i < f->n_columns && !kept->bad; i++) {
		const struct parquet_column *c = &f->columns[i];

		if (!strcasecmp(from || !c->group ? c->name : c->group, name)) {
			name = arena_printf(kept, "%s_", name);
			i = from - 1;
		}
	}
	return name;
}

int parquet_file_fields(struct parquet_file *f, const struct tep_event *e, const struct siphash_key *key,
			struct arena *kept)
{
	size_t from = f->n_columns, room = from + parquet_fields(e);
	struct parquet_column *v = reallocarray(f->columns, room, sizeof(*v));
	const struct tep_format_field *field = e ? e->format.fields : NULL;
	const char *group;

	if (!v)
		return -ENOMEM;
	f->columns = v;
	group = parquet_name(f, 0, e ? e->name : "unknown", kept);
	if (!e) {
		memcpy(v + from, parquet_unknown, sizeof(parquet_unknown));
		f->n_columns = room;
	}
	for (; field && f->n_columns < PARQUET_OWN + PARQUET_FIELDS_MAX; field = field->next)
		if (parquet_column_of_field(&v[f->n_columns], field)) {
			v[f->n_columns].name = parquet_name(f, from, field->name, kept);
			f->n_columns++;
		}
	for (size_t i = from; i < f->n_columns; i++) {
		v[i].group = group;
		v[i].key = key;
	}
	return kept->bad ? -ENOMEM : 0;
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

/* True if the column begins a structure of an event's fields. */
static bool parquet_begins(const struct parquet_column *c, size_t i)
{
	return c[i].group && (!i || c[i].group != c[i - 1].group);
}

/* The root, its columns, and after those each event's own fields as a group; no group may be empty. */
static void parquet_schema_put(struct thrift *t, const struct parquet_file *f)
{
	const struct parquet_column *v = f->columns;
	size_t n = f->n_columns, elements = 1, children = 0;

	for (size_t i = 0; i < n; i++) {
		elements += (v[i].what == PARQUET_LIST ? 3 : 1) + parquet_begins(v, i);
		children += !v[i].group || parquet_begins(v, i);
	}
	thrift_list(t, 2, THRIFT_STRUCT, elements);
	parquet_element_put(t, f->table ? "row" : "event", NONE, NONE, (int)children, NONE);
	for (size_t i = 0; i < n; i++) {
		int repetition, converted;

		for (children = 1; i + children < n && v[i + children].group == v[i].group;)
			children++;
		if (parquet_begins(v, i))
			parquet_element_put(t, v[i].group, NONE, REQUIRED, (int)children, NONE);
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

/* Statistics, by which engines pass over row groups: of texts where all are one, as the name of an event. */
static void parquet_statistics_put(struct thrift *t, const struct parquet_column *c,
				   const struct parquet_chunk *k)
{
	const void *min = k->min, *max = k->max;
	size_t n = c->type == PARQUET_INT32 ? 4 : c->type == PARQUET_INT64 ? 8 : 0;

	if (k->words && k->words->n == 1 && k->words->plain.len <= 4 + STATISTICS_TEXT_MAX) {
		min = max = k->words->plain.data + 4;
		n = k->words->plain.len - 4;
	}
	thrift_field(t, 12, THRIFT_STRUCT);
	thrift_begin(t);
	thrift_i64(t, 3, (int64_t)k->nulls);
	if (n && k->n_values) {
		thrift_bytes(t, 5, max, n);
		thrift_bytes(t, 6, min, n);
	}
	thrift_end(t);
}

static void parquet_chunk_meta_put(struct thrift *t, const struct parquet_column *c,
				   const struct parquet_chunk *k, uint64_t at)
{
	const char *path[4];
	size_t n = 0;

	thrift_begin(t);
	thrift_i64(t, 2, (int64_t)at);
	thrift_field(t, 3, THRIFT_STRUCT);
	thrift_begin(t);
	thrift_i32(t, 1, c->type);
	thrift_list(t, 2, THRIFT_I32, 2);
	pb_put_zigzag(t->out, k->encoding);
	pb_put_zigzag(t->out, ENCODING_RLE);
	if (c->group)
		path[n++] = c->group;
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
	thrift_i64(t, 9, (int64_t)(at + k->dictionary));
	if (k->dictionary)
		thrift_i64(t, 11, (int64_t)at);
	if (c->what != PARQUET_LIST)
		parquet_statistics_put(t, c, k);
	thrift_end(t);
	thrift_end(t);
}

/* To append to: only one is open at a time, however many events there are. */
static int parquet_file_open(struct parquet_file *f, int output)
{
	int flags = O_WRONLY | O_NOFOLLOW | O_CLOEXEC, fd, ret;
	char *path;

	for (char *slash = f->size ? NULL : f->dir; slash;) {
		slash = strchr(slash + 1, '/');
		if (slash)
			*slash = 0;
		ret = mkdirat(output, f->dir, 0755) < 0 && errno != EEXIST ? -errno : 0;
		if (slash)
			*slash = '/';
		if (ret)
			return ret;
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

int parquet_file_group(struct parquet_file *f, int output, const struct parquet_chunk *const *chunks,
		       size_t n_rows)
{
	int fd = parquet_file_open(f, output), ret;
	struct thrift t = { .out = &f->groups };
	struct buf pages = { 0 };
	uint64_t size = 0;

	if (fd < 0)
		return fd;
	/* its metadata, and the pages that lie in the file from its end on */
	thrift_list(&t, 1, THRIFT_STRUCT, f->n_columns);
	for (size_t i = 0; i < f->n_columns; i++) {
		parquet_chunk_meta_put(&t, &f->columns[i], chunks[i], f->size + pages.len);
		size += chunks[i]->size;
		buf_add(&pages, chunks[i]->page.data, chunks[i]->page.len);
	}
	thrift_i64(&t, 2, (int64_t)size);
	thrift_i64(&t, 3, (int64_t)n_rows);
	thrift_i64(&t, 5, (int64_t)f->size);
	thrift_i64(&t, 6, (int64_t)pages.len);
	buf_add(&f->groups, "", 1);
	ret = parquet_file_close(fd, buf_status(&pages) ?: write_all(fd, pages.data, pages.len));
	f->n_groups++;
	f->rows += n_rows;
	f->size += pages.len;
	buf_release(&pages);
	return ret ? ret : buf_status(&f->groups);
}

int parquet_file_end(struct parquet_file *f, int output)
{
	static const char by[] = "hyptrace version " HYPTRACE_VERSION, tables[] = "hyptrace.tables";
	struct buf footer = { 0 };
	struct thrift t = { .out = &footer };
	uint32_t len;
	int fd, ret;

	thrift_i32(&t, 1, 1);
	parquet_schema_put(&t, f);
	thrift_i64(&t, 3, (int64_t)f->rows);
	thrift_list(&t, 4, THRIFT_STRUCT, f->n_groups);
	buf_add(&footer, f->groups.data, f->groups.len);
	if (f->table) {
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
	buf_add(&footer, "", 1);
	len = htole32((uint32_t)footer.len);
	buf_add(&footer, &len, sizeof(len));
	buf_add(&footer, PARQUET_MAGIC, sizeof(PARQUET_MAGIC) - 1);
	footer.bad |= f->groups.bad;
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
	*f = (struct parquet_file){ 0 };
}

#define PARQUET_NULL	"__HIVE_DEFAULT_PARTITION__"
#define PARQUET_DIR_MAX 200 /* bytes of the name; file systems have 255 for all of it */

void parquet_dir(struct buf *b, const char *key, const char *name, unsigned int id)
{
	/* engines take these for null */
	bool null = name && (!strcmp(name, PARQUET_NULL) || !strcasecmp(name, "null"));
	const uint8_t *u = (const uint8_t *)(name ?: "");
	size_t begin;

	buf_printf(b, "%s%s=", b->len ? "/" : "", key);
	begin = b->len;
	if (!name)
		buf_addstr(b, PARQUET_NULL);
	/*
	 * Each character itself, or each of its bytes as %XX, as engines and shells take few of ASCII's for
	 * themselves everywhere; what is no UTF-8 is U+FFFD.
	 */
	while (*u && b->len - begin < PARQUET_DIR_MAX && !b->bad) {
		size_t left = strlen((const char *)u), n = utf8_len(u, left);

		if (!n)
			buf_addstr(b, "\xef\xbf\xbd");
		else if (!null &&
			 (n == 1 ? word_len((const char *)u, 1, "-.") == 1 : !escape_control(u, left)))
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
