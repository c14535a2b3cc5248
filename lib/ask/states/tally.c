// SPDX-License-Identifier: LGPL-2.1-or-later
/* Keeps the longest of many spans, and adds all of them up by slices of time. */
#include "ask/states/tally.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"

static uint64_t span_length(const struct span *s)
{
	return s->to - s->from;
}

int tally_open(struct tally *s, size_t most, uint64_t width)
{
	*s = (struct tally){ .most = most < TALLY_LONGEST_MAX ? most : TALLY_LONGEST_MAX, .width = width };
	for (size_t i = 0; i < TALLY_KINDS; i++) {
		s->longest[i] = calloc(s->most + 1, sizeof(*s->longest[i]));
		if (!s->longest[i]) {
			tally_release(s);
			return -ENOMEM;
		}
	}
	return 0;
}

void tally_release(struct tally *s)
{
	for (size_t i = 0; i < TALLY_KINDS; i++)
		free(s->longest[i]);
	for (size_t i = 0; i < s->n_rows; i++) {
		free(s->rows[i].cells);
		histogram_release(&s->rows[i].time);
	}
	free(s->rows);
	*s = (struct tally){ 0 };
}

void tally_begin(struct tally *s, uint64_t ts)
{
	if (!s->begun)
		s->origin = ts;
	s->begun = true;
}

/* ---- the longest: a heap with the shortest of them on top ---------------------------------------- */

static bool span_shorter(const struct span *a, const struct span *b)
{
	uint64_t x = span_length(a), y = span_length(b);

	return x < y || (x == y && a->from > b->from);
}

static void tally_swap(struct span *a, struct span *b)
{
	struct span was = *a;

	*a = *b;
	*b = was;
}

static void tally_sink(struct span *v, size_t n)
{
	size_t i = 0, child;

	while ((child = 2 * i + 1) < n) {
		if (child + 1 < n && span_shorter(&v[child + 1], &v[child]))
			child++;
		if (!span_shorter(&v[child], &v[i]))
			return;
		tally_swap(&v[child], &v[i]);
		i = child;
	}
}

static void tally_longest(struct tally *s, const struct span *span)
{
	struct span *v = s->longest[span->kind];
	size_t *n = &s->n_longest[span->kind], i = *n;

	if (i == s->most) {
		if (!i || !span_shorter(&v[0], span))
			return;
		v[0] = *span;
		tally_sink(v, i);
		return;
	}
	v[(*n)++] = *span;
	for (; i && span_shorter(&v[i], &v[(i - 1) / 2]); i = (i - 1) / 2)
		tally_swap(&v[i], &v[(i - 1) / 2]);
}

static int tally_longer_first(const void *a, const void *b)
{
	return span_shorter(b, a) ? -1 : span_shorter(a, b);
}

/* ---- by slices of time ---------------------------------------------------------------------------- */

/* NULL: there are too many. */
static int tally_row(struct tally *s, const struct span *span, struct tally_row **row)
{
	struct tally_row new = { .what = span->kind, .input = span->machine, .why = span->why };
	int ret;

	*row = NULL;
	for (size_t i = 0; i < s->n_rows; i++) {
		struct tally_row *r = &s->rows[i];

		if (r->why == span->why && r->what == span->kind && r->input == span->machine) {
			*row = r;
			return 0;
		}
	}
	if (s->n_rows == TALLY_ROWS_MAX)
		return 0;
	ret = array_push(&s->rows, &s->n_rows, &new, sizeof(new));
	*row = ret ? NULL : &s->rows[s->n_rows - 1];
	return ret;
}

int tally_keep(struct tally *s, const struct span *span)
{
	uint64_t from = span->from - s->origin, to = span->to - s->origin, first, last;
	struct tally_cell *cells;
	struct tally_row *row;
	size_t room;
	int ret;

	tally_longest(s, span);
	if (!s->width)
		return 0;
	if (span->from < s->origin || to / s->width >= TALLY_SLICES_MAX) {
		s->beyond++;
		return 0;
	}
	ret = tally_row(s, span, &row);
	if (ret || !row) {
		s->beyond += !ret;
		return ret;
	}
	first = from / s->width;
	last = to / s->width;
	for (room = row->room ?: 64; room <= last;)
		room *= 2;
	if (room > row->room) {
		cells = realloc(row->cells, room * sizeof(*cells));
		if (!cells)
			return -ENOMEM;
		memset(cells + row->room, 0, (room - row->room) * sizeof(*cells));
		row->cells = cells;
		row->room = room;
	}
	s->n_slices = last >= s->n_slices ? last + 1 : s->n_slices;
	row->cells[first].n++;
	if (first == last) {
		row->cells[first].ns += to - from;
	} else { /* the slices in between get their time in tally_finish */
		row->cells[first].ns += (first + 1) * s->width - from;
		row->cells[last].ns += to - last * s->width;
		row->cells[first + 1].passes++;
		row->cells[last].passes--;
	}
	return histogram_add(&row->time, to - from);
}

/* ---- the whole ---------------------------------------------------------------------------------------- */

void tally_finish(struct tally *s)
{
	for (size_t i = 0; i < TALLY_KINDS; i++)
		array_sort(s->longest[i], s->n_longest[i], sizeof(struct span), tally_longer_first);
	for (size_t i = 0; i < s->n_rows; i++) {
		struct tally_row *r = &s->rows[i];
		int64_t through = 0;

		for (size_t k = 0; k < r->room; k++) {
			through += r->cells[k].passes;
			r->cells[k].ns += (uint64_t)through * s->width;
		}
	}
}
