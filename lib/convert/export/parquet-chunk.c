// SPDX-License-Identifier: LGPL-2.1-or-later
/* The values of a column in a row group, as one page: levels, values, compressed. */
#include <endian.h>
#include <zstd.h>

#include "convert/export/parquet-priv.h"
#include "base/escape.h"

#define PARQUET_ZSTD_LEVEL 1 /* more takes much longer for little */

/* Parquet's PageType and Encoding */
enum { DATA_PAGE = 0, PLAIN = 0, RLE = 3 };

static void parquet_levels_flush(struct parquet_levels *l)
{
	if (l->n) {
		thrift_varint(&l->runs, l->n << 1);
		buf_add(&l->runs, &l->level, 1);
	}
	l->n = 0;
}

static inline void parquet_levels_add(struct parquet_levels *l, uint8_t level)
{
	if (level != l->level)
		parquet_levels_flush(l);
	l->level = level;
	l->n++;
}

/* Of a list also the repetition level is to be added. */
static void chunk_level(struct parquet_chunk *k, uint8_t def)
{
	parquet_levels_add(&k->def, def);
	k->n++;
}

static bool parquet_number_before(const struct parquet_column *c, uint64_t a, uint64_t b)
{
	return c->is_unsigned ? a < b : (int64_t)a < (int64_t)b;
}

static void chunk_number(struct parquet_chunk *k, const struct parquet_column *c, uint64_t v)
{
	uint64_t le = htole64(v);

	if (!k->n_values || parquet_number_before(c, v, k->min))
		k->min = v;
	if (!k->n_values || parquet_number_before(c, k->max, v))
		k->max = v;
	if (c->type == PARQUET_BOOL) { /* eight to a byte, the first one lowest */
		if (k->n_values % 8 == 0)
			buf_add(&k->values, "", 1);
		if (v && !k->values.bad)
			k->values.data[k->values.len - 1] |= (uint8_t)(1 << k->n_values % 8);
	} else {
		buf_add(&k->values, &le, c->type == PARQUET_INT32 ? 4 : 8);
	}
	k->n_values++;
}

static void chunk_value(struct parquet_chunk *k, const struct parquet_column *c, uint64_t v)
{
	chunk_level(k, 1);
	chunk_number(k, c, v);
}

static void chunk_optional(struct parquet_chunk *k, const struct parquet_column *c, bool there, uint64_t v)
{
	if (there) {
		chunk_value(k, c, v);
	} else {
		chunk_level(k, 0);
		k->nulls++;
	}
}

/* A text up to its first NUL: each byte that is no UTF-8 becomes U+FFFD. */
static void chunk_text(struct parquet_chunk *k, const struct parquet_column *c, const char *text, size_t n)
{
	size_t begin = k->values.len;
	uint32_t len = 0;

	chunk_level(k, 1);
	k->n_values++;
	buf_add(&k->values, &len, sizeof(len));
	n = strnlen(text, n);
	for (size_t i = 0, plain, bad; i < n; i += plain + bad) {
		for (plain = 0; i + plain < n;) {
			size_t one = utf8_len((const uint8_t *)text + i + plain, n - i - plain);

			if (!one)
				break;
			plain += one;
		}
		bad = i + plain < n;
		buf_add(&k->values, text + i, plain);
		buf_add(&k->values, "\xef\xbf\xbd", bad ? 3 : 0);
	}
	if (c->key)
		anonymize_text(c->key, &k->values, begin + sizeof(len));
	if (k->values.bad)
		return;
	len = htole32((uint32_t)(k->values.len - begin - sizeof(len)));
	memcpy(k->values.data + begin, &len, sizeof(len));
}

static void chunk_list(struct parquet_chunk *k, const struct parquet_column *c, const uint8_t *data, size_t n)
{
	size_t size = c->item.size, i;

	for (i = 0; i + size <= n; i += size) {
		chunk_level(k, 2);
		parquet_levels_add(&k->rep, i > 0);
		chunk_number(k, c, field_word(&c->item, data + i));
	}
	if (!i) {
		chunk_level(k, 1);
		parquet_levels_add(&k->rep, 0);
	}
}

static void chunk_field(struct parquet_chunk *k, const struct parquet_column *c, const struct merge_record *m)
{
	bool hidden = c->key && c->address, there;
	const uint8_t *data;
	uint64_t v = 0;
	size_t n;

	if (c->what == PARQUET_NUMBER) {
		there = !hidden && field_load_number(&c->load, m->data, m->len, &v);
		chunk_optional(k, c, there, c->type == PARQUET_BOOL ? v != 0 : v);
	} else if (hidden || field_load_bytes(&c->load, m->data, m->len, &data, &n) != 1) {
		chunk_optional(k, c, false, 0);
		parquet_levels_add(&k->rep, 0); /* of a list */
	} else if (c->what == PARQUET_TEXT) {
		chunk_text(k, c, (const char *)data, n);
	} else {
		chunk_list(k, c, data, n);
	}
}

void parquet_chunk_record(struct parquet_chunk *k, const struct parquet_column *c, const struct inputs *in,
			  const struct print_record *r, uint64_t bound)
{
	const struct merge_stream *at = r->at;
	const char *buffer;
	uint64_t utc;
	bool known;

	switch (c->what) {
	case PARQUET_TS:
		chunk_value(k, c, r->m->ts);
		return;
	case PARQUET_CPU:
		chunk_value(k, c, at->cpu);
		return;
	case PARQUET_BUFFER:
		buffer = reader_info(in->v[at->input].reader)->buffers[at->buffer].name;
		chunk_text(k, c, buffer, strlen(buffer));
		return;
	case PARQUET_PID:
		chunk_optional(k, c, r->event && r->pid >= 0, (uint64_t)r->pid);
		return;
	case PARQUET_COMM:
		if (r->event && r->comm)
			chunk_text(k, c, r->comm, SIZE_MAX);
		else
			chunk_optional(k, c, false, 0);
		return;
	case PARQUET_LOST:
		chunk_optional(k, c, r->m->missed, (uint64_t)r->m->missed);
		return;
	case PARQUET_BOUND:
		chunk_optional(k, c, bound <= INT64_MAX, bound);
		return;
	case PARQUET_UTC:
	case PARQUET_UTC_BOUND:
		known = inputs_utc(in, &in->v[at->input], r->m->ts, &utc, &bound);
		utc = c->what == PARQUET_UTC ? utc : bound;
		chunk_optional(k, c, known && utc <= INT64_MAX, utc);
		return;
	default:
		chunk_field(k, c, r->m);
	}
}

static void parquet_levels_put(struct buf *out, struct parquet_levels *l)
{
	uint32_t len;

	parquet_levels_flush(l);
	len = htole32((uint32_t)l->runs.len);
	buf_add(out, &len, sizeof(len));
	buf_add(out, l->runs.data, l->runs.len);
	out->bad |= l->runs.bad;
}

/* The page's header has the packed length, so packing comes first. */
static int chunk_pack(struct parquet_chunk *k, const struct buf *body)
{
	size_t room = ZSTD_compressBound(body->len), packed = 0, header;
	struct thrift t = { .out = &k->page };
	struct buf zip = { 0 };
	void *to = buf_room(&zip, room);

	if (to && !body->bad)
		packed = ZSTD_compress(to, room, body->data, body->len, PARQUET_ZSTD_LEVEL);
	if (!to || body->bad || ZSTD_isError(packed)) {
		buf_release(&zip);
		return -ENOMEM;
	}
	k->page.len = 0;
	thrift_i32(&t, 1, DATA_PAGE);
	thrift_i32(&t, 2, (int32_t)body->len);
	thrift_i32(&t, 3, (int32_t)packed);
	thrift_field(&t, 5, THRIFT_STRUCT);
	thrift_begin(&t);
	thrift_i32(&t, 1, (int32_t)k->n);
	thrift_i32(&t, 2, PLAIN);
	thrift_i32(&t, 3, RLE);
	thrift_i32(&t, 4, RLE);
	thrift_end(&t);
	buf_add(&k->page, "", 1);
	header = k->page.len;
	buf_add(&k->page, to, packed);
	k->size = header + body->len;
	buf_release(&zip);
	return buf_status(&k->page);
}

void parquet_chunk_cell(struct parquet_chunk *k, const struct parquet_column *c,
			const struct table_cell *cell)
{
	bool known = cell->known && !c->address;

	if (known && cell->text)
		chunk_text(k, c, cell->text, SIZE_MAX);
	else
		chunk_optional(k, c, known, (uint64_t)cell->number);
}

int parquet_chunk_end(struct parquet_chunk *k, const struct parquet_column *c)
{
	struct buf body = { 0 };
	int ret;

	if (c->what == PARQUET_LIST)
		parquet_levels_put(&body, &k->rep);
	if (c->optional)
		parquet_levels_put(&body, &k->def);
	buf_add(&body, k->values.data, k->values.len);
	body.bad |= k->values.bad;
	ret = body.len > INT32_MAX || k->n > INT32_MAX ? -EFBIG : chunk_pack(k, &body);
	buf_release(&body);
	buf_release(&k->values);
	buf_release(&k->def.runs);
	buf_release(&k->rep.runs);
	return ret;
}

void parquet_chunk_release(struct parquet_chunk *k)
{
	buf_release(&k->values);
	buf_release(&k->page);
	buf_release(&k->def.runs);
	buf_release(&k->rep.runs);
	*k = (struct parquet_chunk){ 0 };
}
