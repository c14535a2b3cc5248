// SPDX-License-Identifier: LGPL-2.1-or-later
/* A column of a row group as pages: a dictionary where it is shorter, levels and values, compressed by zstd.
 */
#include <endian.h>
#include <zstd.h>

#include "convert/export/parquet-priv.h"

#define PARQUET_ZSTD_LEVEL 1 /* more takes much longer for little */
/* Numbers have a dictionary of so many at most, if they are not fewer than this; texts always have one. */
#define NUMBERS_MAX 1024
#define NUMBERS_FEW 64

/* Parquet's PageType and Encoding */
enum { DATA_PAGE = 0, DICTIONARY_PAGE = 2 };

/* A thread's memory to pack, kept from column to column. */
struct parquet_packer {
	ZSTD_CCtx *zstd;
	struct buf body, codes, zip;
};

static void parquet_packer_free(struct parquet_packer *p)
{
	if (!p)
		return;
	ZSTD_freeCCtx(p->zstd);
	buf_release(&p->body);
	buf_release(&p->codes);
	buf_release(&p->zip);
	free(p);
}

void parquet_packers_release(struct pool *packers)
{
	for (struct parquet_packer *p; (p = pool_take(packers));)
		parquet_packer_free(p);
}

void parquet_levels_flush(struct parquet_levels *l)
{
	if (l->n) {
		pb_put_varint(&l->runs, l->n << 1);
		buf_add(&l->runs, &l->level, 1);
	}
	l->n = 0;
}

void parquet_chunk_spread(struct parquet_chunk *k)
{
	for (; k->n_same; k->n_same--)
		buf_add(&k->values, &k->same, sizeof(k->same));
}

static void parquet_levels_put(struct buf *out, struct parquet_levels *l)
{
	uint32_t len;

	parquet_levels_flush(l);
	len = htole32((uint32_t)l->runs.len);
	buf_add(out, &len, sizeof(len));
	buf_add(out, l->runs.data, l->runs.len);
	out->bad |= l->runs.bad;
	buf_release(&l->runs);
}

/* Numbers of so many bits each, the first one lowest. */
struct packed {
	uint8_t *to;
	uint64_t bits;
	unsigned int have; /* of bits; below 64 */
};

static inline void pack_end(const struct packed *p)
{
	uint64_t le = htole64(p->bits);

	memcpy(p->to, &le, sizeof(le));
}

static inline void pack(struct packed *p, uint64_t v, unsigned int width)
{
	p->bits |= v << p->have;
	p->have += width;
	if (p->have < 64)
		return;
	pack_end(p);
	p->to += sizeof(p->bits);
	p->have -= 64;
	p->bits = p->have ? v >> (width - p->have) : 0;
}

/* In eights, whose last has zeros. v: NULL: all are 0. */
static void codes_put(struct buf *out, const uint32_t *v, size_t n, unsigned int width)
{
	size_t bytes = (n + 7) / 8 * width;
	struct packed p = { .to = n ? buf_room(out, bytes + sizeof(uint64_t)) : NULL };

	if (!p.to)
		return;
	memset(p.to, 0, bytes);
	for (size_t i = 0; i < n && v; i++)
		pack(&p, v[i], width);
	pack_end(&p);
	out->len += bytes;
}

#define DELTAS 128 /* of a block; a quarter of them has one width */

/*
 * DELTA_BINARY_PACKED: how each number differs from the one before, in blocks, less the least difference of
 * the block. False, and not all are there: the numbers do not grow mostly, as times and ids do, or would take
 * more than half of their plain bytes; zstd makes those shorter.
 */
static bool deltas_put(struct buf *out, const uint64_t *v, size_t n)
{
	size_t most = out->len + n * sizeof(*v) / 2, falls = 0;

	for (size_t i = 1; i < n; i++)
		falls += v[i] < v[i - 1];
	if (4 * falls >= n)
		return false;
	pb_put_varint(out, DELTAS);
	pb_put_varint(out, 4);
	pb_put_varint(out, n);
	pb_put_zigzag(out, (int64_t)v[0]);
	for (size_t i = 1; i < n; i += DELTAS) {
		size_t count = n - i < DELTAS ? n - i : DELTAS;
		uint64_t d[DELTAS] = { 0 }, all[4] = { 0 };
		int64_t least = INT64_MAX;
		struct packed p = { 0 };
		uint8_t widths[4];

		for (size_t k = 0; k < count; k++) {
			d[k] = v[i + k] - v[i + k - 1];
			least = (int64_t)d[k] < least ? (int64_t)d[k] : least;
		}
		for (size_t k = 0; k < count; k++) {
			d[k] -= (uint64_t)least;
			all[k / 32] |= d[k];
		}
		for (size_t k = 0; k < ARRAY_SIZE(widths); k++)
			widths[k] = (uint8_t)(all[k] ? 64 - __builtin_clzll(all[k]) : 0);
		pb_put_zigzag(out, least);
		buf_add(out, widths, sizeof(widths));
		p.to = buf_room(out, sizeof(d));
		if (!p.to || out->len > most)
			return false;
		for (size_t k = 0; k < count || k % 32; k++)
			pack(&p, d[k], widths[k / 32]);
		pack_end(&p);
		out->len = (size_t)(p.to - out->data) + p.have / 8;
	}
	return out->len <= most;
}

static void numbers_put(struct buf *out, const struct parquet_column *c, const uint64_t *v, size_t n)
{
	size_t size = c->type == PARQUET_INT32 ? 4 : 8;

	uint8_t *to = buf_room(out, n * sizeof(uint64_t));

	for (size_t i = 0; i < n && to; i++, to += size) {
		uint64_t le = htole64(v[i]);

		memcpy(to, &le, sizeof(le));
	}
	out->len += to ? n * size : 0;
}

/*
 * The places of the numbers among those that differ, in p->codes, and these in `known`. The count of these;
 * 0: they are too many. Of a bool's the codes are the values.
 */
static size_t numbers_codes(struct parquet_packer *p, bool bools, const uint64_t *v, size_t n,
			    uint64_t known[NUMBERS_MAX])
{
	uint32_t *codes = buf_room(&p->codes, n * sizeof(*codes));
	uint16_t slots[4 * NUMBERS_MAX] = { 0 }; /* by hash: 1 + place in known */
	size_t n_known = 0;

	for (size_t i = 0; codes && i < n; i++) {
		size_t slot = map_hash(v[i]) % ARRAY_SIZE(slots);

		if (bools || (i && v[i] == v[i - 1])) {
			codes[i] = bools ? v[i] != 0 : codes[i - 1];
			continue;
		}
		while (slots[slot] && known[slots[slot] - 1] != v[i])
			slot = (slot + 1) % ARRAY_SIZE(slots);
		if (!slots[slot]) {
			if (n_known == NUMBERS_MAX || n_known > n / 2 || n < NUMBERS_FEW)
				return 0;
			known[n_known++] = v[i];
			slots[slot] = (uint16_t)n_known;
		}
		codes[i] = slots[slot] - 1u;
	}
	return n_known;
}

static void chunk_range(struct parquet_chunk *k, const struct parquet_column *c, const uint64_t *v, size_t n)
{
	uint64_t sign = c->is_unsigned ? 0 : 1ull << 63, min = UINT64_MAX, max = 0;

	for (size_t i = 0; i < n; i++) {
		uint64_t one = v[i] ^ sign;

		min = one < min ? one : min;
		max = one > max ? one : max;
	}
	min = htole64(min ^ sign);
	max = htole64(max ^ sign);
	memcpy(k->min, &min, sizeof(min));
	memcpy(k->max, &max, sizeof(max));
}

/* The page's header has the packed length, so packing comes first. */
static int page_put(struct parquet_chunk *k, struct parquet_packer *p, const struct buf *body, int type,
		    uint64_t n, int encoding)
{
	size_t room = ZSTD_compressBound(body->len), packed = 0, begin = k->page.len;
	struct thrift t = { .out = &k->page };
	void *to;

	p->zip.len = 0;
	p->zstd = p->zstd ?: ZSTD_createCCtx();
	to = p->zstd ? buf_room(&p->zip, room) : NULL;
	if (body->len > INT32_MAX || n > INT32_MAX)
		return -EFBIG;
	if (to && !body->bad)
		packed = ZSTD_compressCCtx(p->zstd, to, room, body->data, body->len, PARQUET_ZSTD_LEVEL);
	if (!to || body->bad || ZSTD_isError(packed))
		return -ENOMEM;
	thrift_i32(&t, 1, type);
	thrift_i32(&t, 2, (int32_t)body->len);
	thrift_i32(&t, 3, (int32_t)packed);
	thrift_field(&t, type == DATA_PAGE ? 5 : 7, THRIFT_STRUCT);
	thrift_begin(&t);
	thrift_i32(&t, 1, (int32_t)n);
	thrift_i32(&t, 2, encoding);
	if (type == DATA_PAGE) {
		thrift_i32(&t, 3, ENCODING_RLE);
		thrift_i32(&t, 4, ENCODING_RLE);
	}
	thrift_end(&t);
	buf_add(&k->page, "", 1);
	k->size += k->page.len - begin + body->len;
	buf_add(&k->page, to, packed);
	return buf_status(&k->page);
}

static int chunk_pack(struct parquet_chunk *k, const struct parquet_column *c, struct parquet_packer *p)
{
	uint64_t known[NUMBERS_MAX];
	const uint32_t *codes = NULL;
	const uint64_t *v;
	struct buf *body = &p->body;
	size_t n_words, begin;
	uint8_t width = 1;
	int ret = 0;

	if (k->n_same < NUMBERS_FEW)
		parquet_chunk_spread(k);
	v = (const uint64_t *)k->values.data;
	if (k->values.bad || (k->words && k->words->plain.bad))
		return -ENOMEM;
	/* the dictionary of a column that has one, and the codes of its values */
	body->len = 0;
	if (k->words) {
		n_words = k->words->n;
		codes = (const uint32_t *)k->values.data;
	} else if (k->n_same) {
		n_words = 1;
		known[0] = k->same;
	} else {
		n_words = numbers_codes(p, c->type == PARQUET_BOOL, v, k->n_values, known);
		codes = (const uint32_t *)p->codes.data;
	}
	if (!k->words && n_words)
		numbers_put(body, c, known, n_words);
	if (!k->words)
		chunk_range(k, c, n_words ? known : v, n_words ?: k->n_values);
	k->encoding = n_words ? ENCODING_DICTIONARY : ENCODING_PLAIN;
	if (n_words) {
		ret = page_put(k, p, k->words ? &k->words->plain : body, DICTIONARY_PAGE, n_words,
			       k->encoding);
		k->dictionary = k->page.len;
	}
	if (ret)
		return ret;
	body->len = 0;
	if (c->what == PARQUET_LIST)
		parquet_levels_put(body, &k->rep);
	if (c->optional)
		parquet_levels_put(body, &k->def);
	if (n_words) {
		while (n_words > 1ull << width)
			width++;
		buf_add(body, &width, 1);
		pb_put_varint(body, (k->n_values + 7) / 8 << 1 | 1);
	}
	begin = body->len;
	if (n_words || c->type == PARQUET_BOOL) {
		codes_put(body, codes, k->n_values, width);
	} else if (c->type == PARQUET_INT64 && deltas_put(body, v, k->n_values)) {
		k->encoding = ENCODING_DELTAS;
	} else {
		body->len = body->bad ? 0 : begin;
		numbers_put(body, c, v, k->n_values);
	}
	body->bad |= p->codes.bad;
	return page_put(k, p, body, DATA_PAGE, k->n, k->encoding);
}

int parquet_chunk_end(struct parquet_chunk *k, const struct parquet_column *c, struct pool *packers)
{
	struct parquet_packer *p = pool_take(packers) ?: calloc(1, sizeof(*p));
	int ret = p ? chunk_pack(k, c, p) : -ENOMEM;

	parquet_packer_free(pool_put(packers, p));
	return ret;
}
