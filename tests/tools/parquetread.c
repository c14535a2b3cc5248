// SPDX-License-Identifier: GPL-2.0-only
/*
 * Reads what hyptrace export --parquet may write of Parquet, and nothing else: each byte of a file has to be
 * accounted for, each number to be what it says (lengths, counts, levels, least and greatest values). Prints
 * a row a line as JSON behind its file's directory, integers of 64 bits as strings; or dies and tells why.
 * Knows nothing of the writer.
 *
 * usage: parquetread FILE.parquet...
 *        parquetread -s FILE.parquet...	the names and types of columns, and the tables' version
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "strict.h"

#define COLUMNS_MAX    512
#define PATH_MAX_PARTS 4

/* ---- the schema ---------------------------------------------------------------------------- */

enum { BOOL = 0, INT32 = 1, INT64 = 2, BYTES = 6 };
enum { PLAIN = 0, PLAIN_DICTIONARY = 2, RLE = 3, DELTAS = 5 };
enum { REQUIRED = 0, OPTIONAL = 1, REPEATED = 2 };
enum { UTF8 = 0, LIST = 3, UINT_8 = 11, UINT_64 = 14, INT_8 = 15, INT_16 = 16 };

struct element {
	char *name;
	int64_t type, repetition, children, converted;
};

struct column {
	char *path[PATH_MAX_PARTS];
	size_t n_path;
	int64_t type, converted;
	unsigned int max_def, max_rep;
	bool own;	    /* not in an event's structure */
	size_t name_length; /* of path[0] */
	size_t n_structure; /* columns from here on that are in one structure, of its first */
};

static struct column columns[COLUMNS_MAX];
static size_t n_columns;

static struct element element(struct bytes *b)
{
	struct field f[FIELDS];
	struct element e;

	read_struct(b, f, "-i-ibii");
	e = (struct element){ name_of(f[4].at), f[1].n, f[3].n, f[5].n, f[6].n };
	WANT((e.type == NONE) == (e.children > 0)); /* no group is empty */
	return e;
}

static void check_leaf(const struct element *e)
{
	switch (e->type) {
	case BOOL:
		WANT(e->converted == NONE);
		break;
	case INT32:
		WANT(e->converted == NONE || (e->converted >= UINT_8 && e->converted < UINT_64) ||
		     e->converted == INT_8 || e->converted == INT_16);
		break;
	case INT64:
		WANT(e->converted == NONE || e->converted == UINT_64);
		break;
	default:
		WANT(e->type == BYTES && e->converted == UTF8);
	}
}

/* The children of an element that has path and levels of `up`. */
static void children(struct bytes *b, size_t *left, int64_t n, const struct column *up)
{
	while (n--) {
		struct column c = *up;
		struct element e;

		WANT((*left)-- > 0);
		e = element(b);
		WANT(e.repetition >= REQUIRED && e.repetition <= REPEATED && c.n_path < PATH_MAX_PARTS);
		c.path[c.n_path++] = e.name;
		c.max_def += e.repetition != REQUIRED;
		c.max_rep += e.repetition == REPEATED;
		if (e.type == NONE) {
			WANT(e.converted == NONE || (e.converted == LIST && e.children == 1));
			c.own = false;
			children(b, left, e.children, &c);
			continue;
		}
		check_leaf(&e);
		WANT(c.max_rep <= 1 && n_columns < COLUMNS_MAX);
		c.type = e.type;
		c.converted = e.converted;
		columns[n_columns++] = c;
	}
}

static void schema(struct bytes *b)
{
	size_t left = list_of(b, T_STRUCT);
	struct element root;

	WANT(left-- > 1);
	root = element(b);
	WANT(root.repetition == NONE);
	children(b, &left, root.children, &(struct column){ .own = true });
	WANT(!left);
	for (size_t i = 0; i < n_columns; i++)
		for (size_t k = 0; k < i; k++) {
			bool top = strcasecmp(columns[i].path[0], columns[k].path[0]) != 0;

			WANT(top || (!columns[i].own && !columns[k].own &&
				     !strcmp(columns[i].path[0], columns[k].path[0]) &&
				     strcasecmp(columns[i].path[1], columns[k].path[1]) != 0));
		}
	for (size_t i = n_columns; i--;) {
		const bool goes_on = i + 1 < n_columns && !strcmp(columns[i].path[0], columns[i + 1].path[0]);

		columns[i].name_length = strlen(columns[i].path[0]);
		columns[i].n_structure = goes_on ? columns[i + 1].n_structure + 1 : 1;
	}
}

/* ---- metadata -------------------------------------------------------------------------------- */

struct chunk {
	int64_t type, codec, n, size, packed, data, at; /* at: of its first page */
	int64_t encoding;
	int64_t nulls; /* NONE: it does not say */
	bool has_min, has_max;
	struct bytes min, max;
};

struct group {
	struct chunk *chunks;
	int64_t n_rows, size, packed, at;
};

static int64_t total_rows;
static struct group *groups;
static size_t n_groups;

static void chunk_meta(struct bytes *b, struct chunk *k, const struct column *c)
{
	struct field f[FIELDS], stats[FIELDS];
	size_t n;

	read_struct(b, f, "-i[[illl-l-l{");
	*k = (struct chunk){ f[1].n, f[4].n, f[5].n, f[6].n, f[7].n, f[9].n, f[9].n, .nulls = NONE };
	if (f[11].type)
		k->at = f[11].n;
	WANT(k->type == c->type && k->codec == 6 && k->at <= k->data);
	n = list_of(&f[2].at, T_I32);
	WANT(n == 2);
	k->encoding = zigzag(&f[2].at);
	WANT(f[11].type ? k->encoding == PLAIN_DICTIONARY
			: k->encoding == PLAIN || (k->encoding == DELTAS && c->type == INT64));
	WANT(zigzag(&f[2].at) == RLE);
	WANT(list_of(&f[3].at, T_BYTES) == c->n_path);
	for (size_t i = 0; i < c->n_path; i++) {
		char *part = name_of(text_of(&f[3].at));

		WANT(!strcmp(part, c->path[i]));
		free(part);
	}
	if (!f[12].type)
		return;
	read_struct(&f[12].at, stats, "---l-bb");
	k->nulls = stats[3].n;
	k->has_min = stats[6].type;
	k->max = stats[5].at;
	k->min = stats[6].at;
	WANT(!stats[5].type == !stats[6].type);
}

static void row_group(struct bytes *b, struct group *g)
{
	struct field f[FIELDS], chunk[FIELDS];

	read_struct(b, f, "-[ll-ll");
	*g = (struct group){ calloc(n_columns, sizeof(*g->chunks)), f[3].n, f[2].n, f[6].n, f[5].n };
	WANT(list_of(&f[1].at, T_STRUCT) == n_columns);
	for (size_t i = 0; i < n_columns; i++) {
		read_struct(&f[1].at, chunk, "--l{");
		chunk_meta(&chunk[3].at, &g->chunks[i], &columns[i]);
		WANT(chunk[2].n == g->chunks[i].at);
	}
}

static void column_orders(struct bytes b)
{
	WANT(list_of(&b, T_STRUCT) == n_columns);
	for (size_t i = 0; i < n_columns; i++) /* a union of one empty struct */
		WANT(little(&b, 1) == (1 << 4 | T_STRUCT) && !little(&b, 1) && !little(&b, 1));
}

static bool schemas;

/* The one key that files of tables have. */
static void key_value(struct bytes b)
{
	struct field f[FIELDS];

	WANT(list_of(&b, T_STRUCT) == 1);
	read_struct(&b, f, "-bb");
	WANT(b.p == b.end && !strcmp(name_of(f[1].at), "hyptrace.tables"));
	if (schemas)
		printf("version %s\n", name_of(f[2].at));
}

static void footer(struct bytes b)
{
	struct field f[FIELDS];

	read_struct(&b, f, "-i[l[[b[");
	WANT(b.p == b.end && f[1].n == 1 && f[6].type);
	schema(&f[2].at);
	WANT(!strstr(file_name, "table=") == !f[5].type);
	if (f[5].type)
		key_value(f[5].at);
	for (size_t i = 0; i < n_columns && schemas; i++)
		printf("%s %s\n", columns[i].path[columns[i].n_path - 1],
		       columns[i].type == BYTES ? "text" : "integer");
	total_rows = f[3].n;
	n_groups = list_of(&f[4].at, T_STRUCT);
	WANT(n_columns && (n_groups || !total_rows));
	groups = calloc(n_groups, sizeof(*groups));
	for (size_t i = 0; i < n_groups; i++)
		row_group(&f[4].at, &groups[i]);
	column_orders(f[7].at);
}

enum { DATA_PAGE = 0, DICTIONARY_PAGE = 2 };

/* ---- a page ------------------------------------------------------------------------------------ */

struct cells {
	uint8_t *def, *rep; /* n of each */
	size_t n, at, used; /* how far printing has come: levels, values */
	uint8_t *body;
	struct bytes values; /* PLAIN; those of a dictionary are put in its place */
};

static struct cells cells[COLUMNS_MAX];
static struct bytes last; /* page() has read it */
static int64_t last_n;

/* The page's body, which is allocated. */
static uint8_t *page(struct bytes *b, int64_t type, int64_t n, int64_t encoding, int64_t *size)
{
	struct field f[FIELDS], data[FIELDS];
	const uint8_t *begin = b->p;
	static ZSTD_DCtx *zstd;
	uint8_t *body;

	zstd = zstd ?: ZSTD_createDCtx();
	read_struct(b, f, type ? "-iii---{" : "-iii-{");
	WANT(f[1].n == type && f[2].n >= 0 && f[3].n >= 0 && f[type ? 7 : 5].type);
	read_struct(&f[type ? 7 : 5].at, data, type ? "-ii" : "-iiii");
	WANT((n == NONE || data[1].n == n) && data[2].n == encoding);
	WANT(type || (data[3].n == RLE && data[4].n == RLE));
	*size += b->p - begin + f[2].n;
	body = malloc((size_t)f[2].n + 1);
	WANT(ZSTD_decompressDCtx(zstd, body, (size_t)f[2].n, take(b, (uint64_t)f[3].n), (size_t)f[3].n) ==
	     (size_t)f[2].n);
	last = (struct bytes){ body, body + f[2].n };
	last_n = data[1].n;
	return body;
}

/* Runs of one level each, which fit into a byte. */
static uint8_t *levels(struct bytes *b, size_t n, unsigned int max)
{
	uint8_t *v = calloc(n + 1, 1);
	size_t at = 0;
	struct bytes runs;

	if (!max)
		return v;
	runs.end = (runs.p = take(b, little(b, 4)));
	runs.end = b->p;
	while (runs.p < runs.end) {
		uint64_t head = varint(&runs), level;

		WANT(!(head & 1) && head >> 1 && head >> 1 <= n - at);
		level = little(&runs, 1);
		WANT(level <= max);
		memset(v + at, (int)level, head >> 1);
		at += head >> 1;
	}
	WANT(at == n);
	return v;
}

/* Of the last page, a dictionary, where each value begins; *n: as many, which no two are the same. */
static struct bytes *dictionary(const struct column *c, size_t *n)
{
	struct bytes *v = calloc((size_t)last_n + 1, sizeof(*v)), b = last;

	*n = (size_t)last_n;
	for (size_t i = 0; i < *n; i++) {
		struct bytes *one = &v[i];

		one->p = b.p;
		take(&b, c->type == BYTES ? little(&b, 4) : c->type == INT32 ? 4 : 8);
		one->end = b.p;
		for (size_t k = 0; k < i && i < 1024; k++)
			WANT(c->type == BYTES || memcmp(v[k].p, one->p, (size_t)(one->end - one->p)) != 0);
	}
	WANT(b.p == b.end);
	return v;
}

/* Codes, one run of eights: the values that they stand for, one after the other. */
static struct bytes decode(struct bytes b, size_t n_values, const struct bytes *v, size_t n_words)
{
	unsigned int width = (unsigned int)little(&b, 1);
	uint64_t head = varint(&b), bit = 0;
	struct bytes out = { 0 };
	uint8_t *to = NULL;
	size_t size = 0;

	WANT(width && width < 32 && n_words <= 1ull << width &&
	     (width == 1 || n_words > 1ull << (width - 1)));
	WANT(head == ((n_values + 7) / 8 << 1 | 1) && (uint64_t)(b.end - b.p) == (head >> 1) * width);
	for (int pass = 0; pass < 2; pass++) {
		bit = 0;
		for (size_t i = 0; i < (head >> 1) * 8; i++) {
			uint64_t code = 0;

			for (unsigned int k = 0; k < width; k++, bit++)
				code |= (uint64_t)(b.p[bit / 8] >> bit % 8 & 1) << k;
			WANT(i < n_values ? code < n_words : !code);
			if (i >= n_values)
				continue;
			if (pass)
				memcpy(to + size, v[code].p, (size_t)(v[code].end - v[code].p));
			size += (size_t)(v[code].end - v[code].p);
		}
		if (!pass) {
			to = malloc(size + 1);
			out = (struct bytes){ to, to + size };
			size = 0;
		}
	}
	return out;
}

/* DELTA_BINARY_PACKED: the numbers as PLAIN has them, of which they take half at most. */
static struct bytes undelta(struct bytes b, size_t n)
{
	size_t plain = n * sizeof(uint64_t);
	uint64_t *v = malloc(plain + 1);

	WANT((size_t)(b.end - b.p) <= plain / 2);
	WANT(n && varint(&b) == 128 && varint(&b) == 4 && varint(&b) == n);
	v[0] = (uint64_t)zigzag(&b);
	for (size_t i = 1, quarter; i < n; i += quarter) {
		uint64_t least = (uint64_t)zigzag(&b);
		const uint8_t *widths = take(&b, 4);

		for (quarter = 0; quarter < 128; quarter++) {
			unsigned int width = widths[quarter / 32];
			uint64_t d = 0;

			if (quarter % 32 == 0 && i + quarter >= n) {
				WANT(!width);
				continue;
			}
			WANT(width <= 64 && (quarter % 32 || b.end - b.p >= 4 * width));
			for (unsigned int k = 0, bit = quarter % 32 * width; k < width; k++, bit++)
				d |= (uint64_t)(b.p[bit / 8] >> bit % 8 & 1) << k;
			if (i + quarter < n)
				v[i + quarter] = v[i + quarter - 1] + least + d;
			else
				WANT(!d);
			if (quarter % 32 == 31)
				take(&b, 4 * (uint64_t)width);
		}
	}
	WANT(b.p == b.end);
	return (struct bytes){ (uint8_t *)v, (uint8_t *)v + plain };
}

static void read_pages(struct bytes all, const struct column *c, const struct chunk *k, struct cells *out)
{
	struct bytes b = { all.p + k->at, all.p + k->at + k->packed }, *v = NULL;
	size_t n_words = 0, n_values = 0;
	uint8_t *words = NULL;
	int64_t size = 0;

	if (k->data > k->at) {
		words = page(&b, DICTIONARY_PAGE, NONE, PLAIN_DICTIONARY, &size);
		v = dictionary(c, &n_words);
		WANT(n_words && b.p == all.p + k->data);
	}
	*out = (struct cells){ .n = (size_t)k->n };
	out->body = page(&b, DATA_PAGE, k->n, k->encoding, &size);
	WANT(b.p == b.end && size == k->size);
	out->values = last;
	out->rep = levels(&out->values, out->n, c->max_rep);
	out->def = levels(&out->values, out->n, c->max_def);
	WANT(!c->max_rep || !out->n || !out->rep[0]);
	for (size_t i = 0; i < out->n; i++)
		n_values += out->def[i] == c->max_def;
	WANT(v || c->type != BYTES || !n_values);
	if (k->encoding != PLAIN) {
		out->values = v ? decode(out->values, n_values, v, n_words) : undelta(out->values, n_values);
		free(out->body);
		out->body = (uint8_t *)out->values.p;
	}
	free(words);
	free(v);
}

/* ---- values ------------------------------------------------------------------------------------ */

static bool is_utf8(const uint8_t *p, size_t n)
{
	for (size_t i = 0, more; i < n; i += more + 1) {
		uint32_t u = p[i];

		more = u < 0x80		       ? 0
		       : u >= 0xc2 && u < 0xe0 ? 1
		       : u >= 0xe0 && u < 0xf0 ? 2
		       : u >= 0xf0 && u < 0xf5 ? 3
					       : n;
		if (more > n - i - 1)
			return false;
		u &= more ? 0x3fu >> more : 0x7fu;
		for (size_t j = 1; j <= more; j++) {
			if ((p[i + j] & 0xc0) != 0x80)
				return false;
			u = u << 6 | (p[i + j] & 0x3f);
		}
		if ((more == 2 && (u < 0x800 || (u >= 0xd800 && u < 0xe000))) ||
		    (more == 3 && (u < 0x10000 || u > 0x10ffff)))
			return false;
	}
	return true;
}

/* With the escapes that hyptrace export --json has. */
static void print_text(struct bytes s)
{
	static const char escaped[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";

	putchar('"');
	for (; s.p < s.end; s.p++) {
		const uint8_t *from = s.p;
		const char *at;

		while (s.p < s.end && *s.p >= 0x20 && *s.p != 0x7f && *s.p != '"' && *s.p != '\\')
			s.p++;
		fwrite(from, 1, (size_t)(s.p - from), stdout);
		if (s.p == s.end)
			break;
		at = *s.p ? strchr(escaped, *s.p) : NULL;
		if (at)
			printf("\\%c", letters[at - escaped]);
		else
			printf("\\u%04x", *s.p);
	}
	putchar('"');
}

static bool is_unsigned(const struct column *c)
{
	return c->converted >= UINT_8 && c->converted <= UINT_64;
}

/* Bits of the integer, of which the others have to be its sign, or 0. */
static int64_t fits(const struct column *c, uint64_t v)
{
	int64_t s = c->type == INT32 ? (int32_t)v : (int64_t)v;
	unsigned int bits;

	if (c->converted == NONE)
		return s;
	bits = 8u << (c->converted - (is_unsigned(c) ? UINT_8 : INT_8));
	if (is_unsigned(c)) {
		WANT(bits == 64 || v >> bits == 0);
		return (int64_t)v;
	}
	WANT(s >= -(1ll << (bits - 1)) && s < 1ll << (bits - 1));
	return s;
}

static void print_value(const struct column *c, struct cells *v)
{
	struct bytes s;
	uint64_t n;

	switch (c->type) {
	case BOOL:
		if (v->used % 8 == 0)
			take(&v->values, 1);
		printf("%s", v->values.p[-1] >> v->used % 8 & 1 ? "true" : "false");
		break;
	case BYTES:
		n = little(&v->values, 4);
		s.p = take(&v->values, n);
		s.end = s.p + n;
		WANT(is_utf8(s.p, n) && !memchr(s.p, 0, n));
		print_text(s);
		break;
	default:
		n = (uint64_t)fits(c, little(&v->values, c->type == INT32 ? 4 : 8));
		printf(is_unsigned(c) ? (c->type == INT64 ? "\"%" PRIu64 "\"" : "%" PRIu64)
				      : (c->type == INT64 ? "\"%" PRId64 "\"" : "%" PRId64),
		       n);
	}
	v->used++;
}

/* A column's cell of the next row; of a list all its items. */
static void print_cell(const struct column *c, struct cells *v)
{
	WANT(v->at < v->n);
	if (!c->max_rep) {
		if (v->def[v->at++] == c->max_def)
			print_value(c, v);
		else
			printf("null");
		return;
	}
	WANT(v->rep[v->at] == 0);
	if (!v->def[v->at]) {
		printf("null");
		v->at++;
		return;
	}
	printf("[");
	do {
		if (v->rep[v->at])
			printf(",");
		if (v->def[v->at] == c->max_def)
			print_value(c, v);
		else
			WANT(v->def[v->at] == c->max_def - 1 && !v->rep[v->at]);
		v->at++;
	} while (v->at < v->n && v->rep[v->at]);
	printf("]");
}

/* Whether a cell of the next row is null. */
static bool is_null(const struct cells *v)
{
	return !v->def[v->at];
}

/* Whether the structure from column i on is that of the row's event, or has a value. */
static bool is_shown(size_t i, struct bytes event)
{
	const struct column *c = &columns[i];
	const char *name = c->path[0];
	size_t n = (size_t)(event.end - event.p);
	/* last bytes first: they tell most names apart */
	bool own = n && c->name_length >= n && name[n - 1] == event.p[n - 1] && !memcmp(name, event.p, n) &&
		   strspn(name + n, "_") == c->name_length - n;

	for (size_t k = i; k < i + c->n_structure; k++)
		own |= !is_null(&cells[k]);
	return own;
}

static void print_name(const char *name)
{
	print_text((struct bytes){ (const uint8_t *)name, (const uint8_t *)strchr(name, 0) });
	printf(":");
}

/* The row's own columns, and the structure of its event: in all others there is nothing. */
static void print_row(void)
{
	struct bytes event = { 0 };
	const char *shown = NULL;
	size_t n;

	printf("%.*s ", (int)(strrchr(file_name, '/') ? strrchr(file_name, '/') - file_name : 1),
	       strrchr(file_name, '/') ? file_name : ".");
	for (size_t i = 0; i < n_columns; i += n) {
		const struct column *c = &columns[i];

		n = c->own ? 1 : c->n_structure;
		if (c->own && !strcmp(c->path[0], "event")) {
			struct bytes b = cells[i].values;
			uint64_t size = little(&b, 4);

			event = (struct bytes){ b.p, b.p + size };
		}
		if (!c->own && !is_shown(i, event)) {
			for (size_t k = i; k < i + n; k++)
				cells[k].at++;
			continue;
		}
		putchar(i ? ',' : '{');
		if (!c->own) {
			WANT(!shown);
			shown = c->path[0];
			print_name(shown);
		}
		for (size_t k = 0; k < n; k++) {
			if (!c->own)
				putchar(k ? ',' : '{');
			print_name(c[k].path[!c->own]);
			print_cell(&c[k], &cells[i + k]);
		}
		if (!c->own)
			putchar('}');
	}
	printf("}\n");
}

/* ---- what the metadata says of a chunk ------------------------------------------------------------ */

static int compare(const struct column *c, uint64_t a, uint64_t b)
{
	if (is_unsigned(c))
		return a < b ? -1 : a > b;
	return (int64_t)a < (int64_t)b ? -1 : (int64_t)a > (int64_t)b;
}

static void check_statistics(const struct column *c, const struct chunk *k, const struct cells *v)
{
	struct bytes b = v->values, min = k->min, max = k->max;
	unsigned int size = c->type == INT32 ? 4 : 8;
	uint64_t least = 0, most = 0;
	int64_t nulls = 0;

	for (size_t i = 0; i < v->n; i++)
		nulls += v->def[i] != c->max_def;
	WANT(c->max_rep || k->nulls == nulls);
	if (c->type == BYTES && k->has_min) { /* all have that text */
		WANT(min.end > min.p && min.end - min.p == max.end - max.p &&
		     !memcmp(min.p, max.p, (size_t)(min.end - min.p)));
		while (b.p < b.end) {
			uint64_t n = little(&b, 4);

			WANT(n == (uint64_t)(min.end - min.p) && !memcmp(take(&b, n), min.p, n));
		}
		return;
	}
	if (c->type == BOOL || c->type == BYTES || c->max_rep || !(v->n - (size_t)nulls)) {
		WANT(!k->has_min && (c->n_path != 1 || strcmp(c->path[0], "event") != 0 || v->n > 1u << 20 ||
				     b.end - b.p > 64));
		return;
	}
	WANT(k->has_min && min.end - min.p == size && max.end - max.p == size);
	for (bool first = true; b.p < b.end; first = false) {
		uint64_t n = (uint64_t)fits(c, little(&b, size));

		least = first || compare(c, n, least) < 0 ? n : least;
		most = first || compare(c, n, most) > 0 ? n : most;
	}
	WANT((uint64_t)fits(c, little(&min, size)) == least && (uint64_t)fits(c, little(&max, size)) == most);
}

/* Groups and their pages lie one behind the other, and the footer behind them. */
static int64_t read_group(struct bytes all, const struct group *g, int64_t at)
{
	int64_t size = 0;

	WANT(g->at == at && g->n_rows > 0);
	for (size_t i = 0; i < n_columns; i++) {
		const struct chunk *k = &g->chunks[i];

		WANT(k->at == at && k->packed > 0 && k->packed <= all.end - all.p - at);
		WANT(columns[i].max_rep ? k->n >= g->n_rows : k->n == g->n_rows);
		read_pages(all, &columns[i], k, &cells[i]);
		check_statistics(&columns[i], k, &cells[i]);
		at += k->packed;
		size += k->size;
	}
	WANT(g->packed == at - g->at && g->size == size);
	for (int64_t i = 0; i < g->n_rows; i++)
		print_row();
	for (size_t i = 0; i < n_columns; i++) {
		WANT(cells[i].at == cells[i].n && cells[i].values.p == cells[i].values.end);
		free(cells[i].body);
		free(cells[i].def);
		free(cells[i].rep);
	}
	return at;
}

static struct bytes whole_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data = NULL;
	size_t n = 0, got;

	WANT(f);
	do {
		data = realloc(data, n + (1 << 16));
		WANT(data);
		got = fread(data + n, 1, 1 << 16, f);
		n += got;
	} while (got);
	fclose(f);
	return (struct bytes){ data, data + n };
}

static void read_parquet(const char *path)
{
	struct bytes all, tail;
	int64_t at = 4, rows = 0;
	uint64_t len;

	n_columns = 0;
	file_name = path;
	all = whole_file(path);
	WANT(all.end - all.p >= 12 && !memcmp(all.p, "PAR1", 4) && !memcmp(all.end - 4, "PAR1", 4));
	tail = (struct bytes){ all.end - 8, all.end };
	len = little(&tail, 4);
	WANT(len <= (uint64_t)(all.end - all.p) - 12);
	footer((struct bytes){ all.end - 8 - len, all.end - 8 });
	for (size_t i = 0; i < n_groups && !schemas; i++) {
		at = read_group((struct bytes){ all.p, all.end - 8 - len }, &groups[i], at);
		rows += groups[i].n_rows;
		free(groups[i].chunks);
	}
	WANT(schemas || (at == all.end - 8 - (int64_t)len - all.p && rows == total_rows));
	free(groups);
	free((void *)all.p);
}

int main(int argc, char **argv)
{
	schemas = argc > 1 && !strcmp(argv[1], "-s");
	for (int i = 1 + schemas; i < argc; i++)
		read_parquet(argv[i]);
	return 0;
}
