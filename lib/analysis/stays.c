// SPDX-License-Identifier: LGPL-2.1-or-later
/* Keeps the longest of many stretches of time, and adds all of them up by slices of time. */
#include "analysis/stays.h"

#include <errno.h>
#include <stdlib.h>

#include "util/array.h"

static uint64_t stay_length(const struct stay *s)
{
	return s->to - s->from;
}

int stays_open(struct stays *s, size_t most, uint64_t width)
{
	*s = (struct stays){ .most = most < STAYS_LONGEST_MAX ? most : STAYS_LONGEST_MAX, .width = width };
	for (size_t i = 0; i < STAY_KINDS; i++) {
		s->longest[i] = calloc(s->most + 1, sizeof(*s->longest[i]));
		if (!s->longest[i]) {
			stays_release(s);
			return -ENOMEM;
		}
	}
	return 0;
}

void stays_release(struct stays *s)
{
	for (size_t i = 0; i < STAY_KINDS; i++)
		free(s->longest[i]);
	for (size_t i = 0; i < s->n_rows; i++) {
		free(s->rows[i].cells);
		histogram_release(&s->rows[i].time);
	}
	free(s->rows);
	*s = (struct stays){ 0 };
}

void stays_begin(struct stays *s, uint64_t ts)
{
	if (!s->begun)
		s->origin = ts;
	s->begun = true;
}

/* ---- the longest: a heap with the shortest of them on top ---------------------------------------- */

static bool stay_shorter(const struct stay *a, const struct stay *b)
{
	uint64_t x = stay_length(a), y = stay_length(b);

	return x < y || (x == y && a->from > b->from);
}

static void stays_swap(struct stay *a, struct stay *b)
{
	struct stay was = *a;

	*a = *b;
	*b = was;
}

static void stays_sink(struct stay *v, size_t n)
{
	size_t i = 0, child;

	while ((child = 2 * i + 1) < n) {
		if (child + 1 < n && stay_shorter(&v[child + 1], &v[child]))
			child++;
		if (!stay_shorter(&v[child], &v[i]))
			return;
		stays_swap(&v[child], &v[i]);
		i = child;
	}
}

static void stays_keep(struct stays *s, const struct stay *stay)
{
	struct stay *v = s->longest[stay->what];
	size_t *n = &s->n_longest[stay->what], i = *n;

	if (i == s->most) {
		if (!i || !stay_shorter(&v[0], stay))
			return;
		v[0] = *stay;
		stays_sink(v, i);
		return;
	}
	v[(*n)++] = *stay;
	for (; i && stay_shorter(&v[i], &v[(i - 1) / 2]); i = (i - 1) / 2)
		stays_swap(&v[i], &v[(i - 1) / 2]);
}

static int stays_longer_first(const void *a, const void *b)
{
	return stay_shorter(b, a) ? -1 : stay_shorter(a, b);
}

/* ---- by slices of time ---------------------------------------------------------------------------- */

/* NULL: there are too many. */
static int stays_row(struct stays *s, const struct stay *stay, struct stays_row **row)
{
	struct stays_row new = { .what = stay->what, .input = stay->input, .kind = stay->kind };
	int ret;

	*row = NULL;
	for (size_t i = 0; i < s->n_rows; i++) {
		struct stays_row *r = &s->rows[i];

		if (r->kind == stay->kind && r->what == stay->what && r->input == stay->input) {
			*row = r;
			return 0;
		}
	}
	if (s->n_rows == STAYS_ROWS_MAX)
		return 0;
	ret = array_push(&s->rows, &s->n_rows, &new, sizeof(new));
	*row = ret ? NULL : &s->rows[s->n_rows - 1];
	return ret;
}

static int stays_room(struct stays_row *r, size_t slices)
{
	size_t room = r->room ?: 64;
	struct stays_cell *v;

	while (room < slices)
		room *= 2;
	if (room == r->room)
		return 0;
	v = realloc(r->cells, room * sizeof(*v));
	if (!v)
		return -ENOMEM;
	memset(v + r->room, 0, (room - r->room) * sizeof(*v));
	r->cells = v;
	r->room = room;
	return 0;
}

/* From and to count from the origin. What lies between the first and the last slice is not gone through. */
static void stays_spread(const struct stays *s, struct stays_row *r, uint64_t from, uint64_t to)
{
	uint64_t first = from / s->width, last = to / s->width;

	r->cells[first].n++;
	if (first == last) {
		r->cells[first].ns += to - from;
		return;
	}
	r->cells[first].ns += (first + 1) * s->width - from;
	r->cells[last].ns += to - last * s->width;
	r->cells[first + 1].passes++;
	r->cells[last].passes--;
}

static int stays_slice(struct stays *s, const struct stay *stay)
{
	struct stays_row *row;
	size_t slices;
	int ret;

	if (stay->from < s->origin || (stay->to - s->origin) / s->width >= STAYS_SLICES_MAX) {
		s->beyond++;
		return 0;
	}
	ret = stays_row(s, stay, &row);
	if (ret || !row) {
		s->beyond += !ret;
		return ret;
	}
	slices = (size_t)((stay->to - s->origin) / s->width) + 1;
	ret = stays_room(row, slices);
	if (ret)
		return ret;
	s->n_slices = slices > s->n_slices ? slices : s->n_slices;
	stays_spread(s, row, stay->from - s->origin, stay->to - s->origin);
	return histogram_add(&row->time, stay->to - stay->from);
}

int stays_add(struct stays *s, const struct stay *stay)
{
	stays_keep(s, stay);
	return s->width ? stays_slice(s, stay) : 0;
}

/* ---- the whole ---------------------------------------------------------------------------------------- */

static void stays_row_finish(struct stays_row *r, uint64_t width)
{
	int64_t through = 0;

	for (size_t i = 0; i < r->room; i++) {
		through += r->cells[i].passes;
		r->cells[i].ns += (uint64_t)through * width;
	}
}

void stays_finish(struct stays *s)
{
	for (size_t i = 0; i < STAY_KINDS; i++)
		array_sort(s->longest[i], s->n_longest[i], sizeof(struct stay), stays_longer_first);
	for (size_t i = 0; i < s->n_rows; i++)
		stays_row_finish(&s->rows[i], s->width);
}
