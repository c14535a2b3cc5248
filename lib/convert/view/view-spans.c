// SPDX-License-Identifier: LGPL-2.1-or-later
/* Collects the spans of a page by lane: the longest as they are, sums of the others by buckets of time. */

#include "convert/view/view-priv.h"

void view_release(struct view *v)
{
	arena_release(&v->texts);
	map_release(&v->by_word);
	map_release(&v->by_lane);
	map_release(&v->by_label);
	map_release(&v->by_cell);
	free(v->words);
	free(v->lanes);
	free(v->labels);
	free(v->spans);
	free(v->cells);
	free(v->losses);
	free(v->rates);
}

static bool view_word_same(const void *array, size_t index, const void *wanted)
{
	return !strcmp(((char *const *)array)[index], wanted);
}

uint32_t view_word_of(struct view *v, const char *text)
{
	size_t len = strlen(text), at;
	uint32_t hash = map_hash_bytes(text, len);
	char *copy;

	at = map_find(&v->by_word, hash, view_word_same, v->words, text);
	if (at != MAP_NONE)
		return (uint32_t)at;
	copy = arena_alloc(&v->texts, len + 1);
	if (!copy || map_push(&v->by_word, hash, &v->words, &v->n_words, &copy, sizeof(copy))) {
		v->bad = true;
		return 0;
	}
	memcpy(copy, text, len + 1);
	return (uint32_t)v->n_words - 1;
}

uint32_t view_word(struct view *v, const char *text)
{
	struct view_seen *seen = &v->seen[map_hash((uintptr_t)text) % VIEW_SEEN];

	if (text && seen->text != text)
		*seen = (struct view_seen){ text, view_word_of(v, text) };
	return text ? seen->word : 0;
}

static bool view_lane_same(const void *array, size_t index, const void *wanted)
{
	return !memcmp((const struct view_lane *)array + index, wanted, sizeof(struct view_lane));
}

static bool view_label_same(const void *array, size_t index, const void *wanted)
{
	return !memcmp((const struct view_label *)array + index, wanted, sizeof(struct view_label));
}

static bool view_cell_same(const void *array, size_t index, const void *wanted)
{
	const struct view_cell *a = (const struct view_cell *)array + index, *b = wanted;

	return a->lane == b->lane && a->bucket == b->bucket && a->label == b->label;
}

uint64_t view_bucket(const struct view *v, uint64_t ts)
{
	uint64_t bucket = ts > v->from ? (ts - v->from) / v->width : 0;

	return bucket < VIEW_BUCKETS ? bucket : VIEW_BUCKETS - 1;
}

/* Adds a span to the buckets in which it lies. */
static int view_sum(struct view *v, const struct view_span *s)
{
	uint64_t from = s->from, first = view_bucket(v, from), end = v->from + (first + 1) * v->width;
	uint64_t last = s->to <= end ? first : view_bucket(v, s->to - 1);
	int ret = 0;

	for (uint64_t b = first; b <= last && !ret; b++) {
		uint64_t to = b < last ? v->from + (b + 1) * v->width : s->to;
		const struct view_cell cell = { .lane = s->lane, .bucket = (uint32_t)b, .label = s->label };
		uint32_t hash = map_hash(map_hash((uint64_t)cell.lane << 32 | cell.label) ^ cell.bucket);
		size_t at;

		ret = map_reach(&v->by_cell, hash, view_cell_same, &v->cells, &v->n_cells, &cell,
				sizeof(cell), &at);
		if (ret)
			break;
		v->cells[at].n += b == first;
		v->cells[at].ns += to - from;
		from = to;
	}
	return ret;
}

/* The duration that would be at a place if all were in order: found byte by byte, from the highest one. */
static uint64_t view_duration_at(const struct view *v, size_t place)
{
	uint64_t found = 0;

	for (int shift = 56; shift >= 0; shift -= 8) {
		uint64_t above = shift < 56 ? UINT64_MAX << (shift + 8) : 0;
		size_t count[256] = { 0 }, byte = 0;

		for (const struct view_span *s = v->spans; s < v->spans + v->n_spans; s++)
			if (((s->to - s->from) & above) == found)
				count[(s->to - s->from) >> shift & 0xff]++;
		for (; place >= count[byte]; byte++)
			place -= count[byte];
		found |= (uint64_t)byte << shift;
	}
	return found;
}

/* Sums the shortest spans, so that at most `keep` are left. */
static int view_fold(struct view *v, size_t keep)
{
	size_t n = 0;
	int ret = 0;

	v->least = view_duration_at(v, v->n_spans - keep - 1);
	v->folded = true;
	for (size_t i = 0; i < v->n_spans && !ret; i++) {
		const struct view_span s = v->spans[i];

		if (s.to - s.from > v->least)
			v->spans[n++] = s;
		else
			ret = view_sum(v, &s);
	}
	v->n_spans = n;
	return ret;
}

int view_add(struct view *v, const struct view_lane *lane, const struct view_label *label,
	     struct view_span span)
{
	uint64_t of_lane = (uint64_t)(uint32_t)lane->pid << 32 | (lane->number << 8 ^ lane->input << 4);
	uint64_t of_tasks = (uint64_t)(uint32_t)label->pid << 32 | (uint32_t)label->other_pid;
	uint64_t of_words = (uint64_t)label->reason << 32 | (label->task << 8 ^ label->other << 4);
	uint32_t lane_hash = map_hash(map_hash(of_lane) ^ (lane->name << 3 | lane->kind));
	uint32_t label_hash = map_hash(map_hash(of_words) ^ of_tasks ^ (label->state << 8 ^ label->class));
	size_t at[2];

	if (v->bad ||
	    map_reach(&v->by_lane, lane_hash, view_lane_same, &v->lanes, &v->n_lanes, lane, sizeof(*lane),
		      &at[0]) ||
	    map_reach(&v->by_label, label_hash, view_label_same, &v->labels, &v->n_labels, label,
		      sizeof(*label), &at[1]) ||
	    (!v->full && v->n_spans == 2 * VIEW_SPANS && view_fold(v, VIEW_SPANS)))
		return -ENOMEM;
	span.lane = (uint32_t)at[0];
	span.label = (uint32_t)at[1];
	if (v->folded && span.to - span.from <= v->least)
		return view_sum(v, &span);
	if (array_reach(&v->spans, &v->spans_room, v->n_spans + 1, sizeof(*v->spans)))
		return -ENOMEM;
	v->spans[v->n_spans++] = span;
	return 0;
}

static int view_span_order(const void *a, const void *b)
{
	const struct view_span *x = a, *y = b;

	return ORDER(x->lane, y->lane) ?: ORDER(x->from, y->from) ?: ORDER(x->to, y->to);
}

static int view_cell_order(const void *a, const void *b)
{
	const struct view_cell *x = a, *y = b;

	return ORDER(x->lane, y->lane) ?: ORDER(x->bucket, y->bucket) ?: ORDER(x->label, y->label);
}

int view_finish(struct view *v)
{
	int ret = !v->full && v->n_spans > VIEW_SPANS ? view_fold(v, VIEW_SPANS) : 0;

	array_sort(v->spans, v->n_spans, sizeof(*v->spans), view_span_order);
	array_sort(v->cells, v->n_cells, sizeof(*v->cells), view_cell_order);
	for (size_t i = 0; i < v->n_spans; i++)
		v->lanes[v->spans[i].lane].spans++;
	for (size_t i = 0; i < v->n_cells; i++)
		v->lanes[v->cells[i].lane].cells++;
	return ret;
}
