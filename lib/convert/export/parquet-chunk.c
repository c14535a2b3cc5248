// SPDX-License-Identifier: LGPL-2.1-or-later
/* The values of a column in a row group: their levels, numbers, and texts as places in a dictionary. */
#include "convert/export/parquet-priv.h"
#include "base/escape.h"

static inline void parquet_levels_add(struct parquet_levels *l, uint8_t level, size_t n)
{
	if (level != l->level)
		parquet_levels_flush(l);
	l->level = level;
	l->n += n;
}

/* Of a list also the repetition level is to be added. */
static inline void chunk_level(struct parquet_chunk *k, uint8_t def)
{
	parquet_levels_add(&k->def, def, 1);
	k->n++;
}

static inline void chunk_number(struct parquet_chunk *k, uint64_t v)
{
	buf_add(&k->values, &v, sizeof(v));
	k->n_values++;
}

void parquet_text_put(struct buf *out, const char *text, size_t n)
{
	for (size_t i = 0, plain, bad; i < n; i += plain + bad) {
		for (plain = 0; i + plain < n;) {
			size_t one = utf8_len((const uint8_t *)text + i + plain, n - i - plain);

			if (!one)
				break;
			plain += one;
		}
		bad = i + plain < n;
		buf_add(out, text + i, plain);
		buf_add(out, "\xef\xbf\xbd", bad ? 3 : 0);
	}
}

struct word_wanted {
	const char *text;
	size_t n;
};

static bool word_same(const void *array, size_t index, const void *wanted)
{
	const struct parquet_words *w = array;
	const struct word_wanted *want = wanted;

	return w->v[index].n == want->n &&
	       (!want->n || !memcmp(w->texts.data + w->v[index].at, want->text, want->n));
}

/* The text's place among the words, which it may become one of. */
static uint32_t word_of(struct parquet_words *w, const struct parquet_column *c, const char *text, size_t n)
{
	const struct word_wanted want = { text, n };
	uint32_t hash = map_hash_bytes(text, n), len = 0;
	size_t at = map_find(&w->map, hash, word_same, w, &want), begin = w->plain.len;
	const struct parquet_word word = { w->texts.len, n };

	if (at != MAP_NONE || w->plain.bad)
		return (uint32_t)at;
	buf_add(&w->texts, text, n);
	buf_add(&w->plain, &len, sizeof(len));
	parquet_text_put(&w->plain, text, n);
	if (c->key)
		anonymize_text(c->key, &w->plain, begin + sizeof(len));
	if (w->plain.bad || w->texts.bad || map_push(&w->map, hash, &w->v, &w->n, &word, sizeof(word))) {
		map_release(&w->map);
		w->plain.bad = true;
		return 0;
	}
	len = htole32((uint32_t)(w->plain.len - begin - sizeof(len)));
	memcpy(w->plain.data + begin, &len, sizeof(len));
	return (uint32_t)w->n - 1;
}

/* The place of a text up to its first NUL. lasting: no other text will be at this address. */
static uint32_t chunk_word(struct parquet_chunk *k, const struct parquet_column *c, const char *text,
			   size_t n, bool lasting)
{
	struct parquet_words *w = k->words = k->words ?: calloc(1, sizeof(*k->words));
	struct parquet_seen *seen = w ? &w->seen[map_hash((uintptr_t)text) % ARRAY_SIZE(w->seen)] : NULL;

	if (!w)
		k->values.bad = true;
	if (!w || (lasting && seen->text == text))
		return w ? seen->word : 0;
	if (!lasting)
		return word_of(w, c, text, strnlen(text, n));
	*seen = (struct parquet_seen){ text, word_of(w, c, text, strlen(text)) };
	return seen->word;
}

/* A text so many times. */
static void chunk_places(struct parquet_chunk *k, uint32_t word, size_t n)
{
	uint32_t *to = buf_room(&k->values, n * sizeof(word));

	for (size_t i = 0; to && i < n; i++)
		to[i] = word;
	k->values.len += to ? n * sizeof(word) : 0;
	parquet_levels_add(&k->def, 1, n);
	k->n += n;
	k->n_values += n;
}

void parquet_chunk_field(struct parquet_chunk *k, const struct parquet_column *c,
			 const struct merge_record *m)
{
	bool hidden = c->key && c->address, there;
	const uint8_t *data;
	uint64_t v = 0;
	size_t n, size = c->item.size, i;

	if (c->what == PARQUET_NUMBER) {
		there = !hidden && field_load_number(&c->load, m->data, m->len, &v);
		chunk_level(k, there);
		if (there)
			chunk_number(k, c->type == PARQUET_BOOL ? v != 0 : v);
		else
			k->nulls++;
	} else if (hidden || field_load_bytes(&c->load, m->data, m->len, &data, &n) != 1) {
		parquet_chunk_nulls(k, c, 1);
	} else if (c->what == PARQUET_TEXT) {
		chunk_places(k, chunk_word(k, c, (const char *)data, n, false), 1);
	} else {
		for (i = 0; i + size <= n; i += size) {
			chunk_level(k, 2);
			parquet_levels_add(&k->rep, i > 0, 1);
			chunk_number(k, field_word(&c->item, data + i));
		}
		if (!i) {
			chunk_level(k, 1);
			parquet_levels_add(&k->rep, 0, 1);
		}
	}
}

/* None is NULL. */
static void chunk_numbers(struct parquet_chunk *k, const union value *v, size_t n)
{
	size_t same = 0;

	if (k->n_values == k->n_same) {
		k->same = k->n_same ? k->same : (uint64_t)v->number;
		while (same < n && (uint64_t)v[same].number == k->same)
			same++;
	}
	if (same < n) {
		parquet_chunk_spread(k);
		buf_add(&k->values, v, n * sizeof(*v));
	} else {
		k->n_same += n;
	}
	parquet_levels_add(&k->def, 1, n);
	k->n += n;
	k->n_values += n;
}

int parquet_chunk_cell(struct parquet_chunk *k, const struct parquet_column *c, struct cell v)
{
	bool text = c->type == PARQUET_BYTES;

	if (v.kind != CELL_NULL && text == (v.kind == CELL_NUMBER))
		return -EINVAL;
	if (v.kind == CELL_NULL || c->address) {
		parquet_chunk_nulls(k, c, 1);
		return 0;
	}
	if (text)
		chunk_places(k, chunk_word(k, c, v.text, PTRDIFF_MAX, v.kind == CELL_TEXT), 1);
	else
		chunk_numbers(k, &(union value){ .number = v.number }, 1);
	return 0;
}

void parquet_chunk_values(struct parquet_chunk *k, const struct parquet_column *c, const union value *v,
			  size_t n)
{
	/* a run of nulls, of numbers or of one text */
	for (size_t i = 0, end; i < n; i = end) {
		bool text = c->type == PARQUET_BYTES;
		bool null = c->address || (text ? !v[i].text : c->optional && v[i].number == VALUE_NULL);

		end = i + 1;
		if (text)
			while (end < n && v[end].text == v[i].text)
				end++;
		else if (v[i].number == VALUE_NULL)
			while (end < n && v[end].number == VALUE_NULL)
				end++;
		else
			while (end < n && v[end].number != VALUE_NULL)
				end++;
		if (null)
			parquet_chunk_nulls(k, c, end - i);
		else if (text)
			chunk_places(k, chunk_word(k, c, v[i].text, PTRDIFF_MAX, true), end - i);
		else
			chunk_numbers(k, &v[i], end - i);
	}
}

void parquet_chunk_nulls(struct parquet_chunk *k, const struct parquet_column *c, size_t n)
{
	parquet_levels_add(&k->def, 0, n);
	if (c->what == PARQUET_LIST)
		parquet_levels_add(&k->rep, 0, n);
	k->n += n;
	k->nulls += n;
}

void parquet_chunk_next(struct parquet_chunk *k)
{
	struct parquet_words *w = k->words;

	if (w) {
		map_release(&w->map);
		free(w->v);
		*w = (struct parquet_words){ .plain = w->plain, .texts = w->texts };
		w->plain.len = w->texts.len = 0;
	}
	*k = (struct parquet_chunk){ .values = k->values, .words = w, .page = k->page };
	k->values.len = k->page.len = 0;
}

void parquet_chunk_release(struct parquet_chunk *k)
{
	parquet_chunk_next(k);
	buf_release(&k->values);
	buf_release(&k->page);
	if (k->words) {
		buf_release(&k->words->plain);
		buf_release(&k->words->texts);
		free(k->words);
	}
	*k = (struct parquet_chunk){ 0 };
}
