// SPDX-License-Identifier: LGPL-2.1-or-later
/* Keeps the longest of many spans, and adds all of them up by slices of time. */
#include "ask/states/tally.h"

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

int tally_keep(struct tally *s, const struct span *span)
{
	uint64_t from = span->from - s->origin, to = span->to - s->origin, first, last;
	struct span *v = s->longest[span->kind];
	size_t *n = &s->n_longest[span->kind], i = *n;
	uint64_t took = span->to - span->from;
	const struct tally_row new = { .what = span->kind, .input = span->machine, .why = span->why };
	struct tally_row *row;
	size_t at = 0;

	/* the longest, in their order */
	for (; i; i--) {
		uint64_t other = v[i - 1].to - v[i - 1].from;

		if (other > took || (other == took && v[i - 1].from <= span->from))
			break;
	}
	if (i < s->most) {
		*n += *n < s->most;
		memmove(&v[i + 1], &v[i], (*n - 1 - i) * sizeof(*v));
		v[i] = *span;
	}
	if (!s->width)
		return 0;
	if (span->from < s->origin || to / s->width >= TALLY_SLICES_MAX) {
		s->beyond++;
		return 0;
	}
	while (at < s->n_rows &&
	       (s->rows[at].why != new.why || s->rows[at].what != new.what || s->rows[at].input != new.input))
		at++;
	if (at == TALLY_ROWS_MAX) {
		s->beyond++;
		return 0;
	}
	if (at == s->n_rows && array_push(&s->rows, &s->n_rows, &new, sizeof(new)))
		return -ENOMEM;
	row = &s->rows[at];
	first = from / s->width;
	last = to / s->width;
	if (array_reach(&row->cells, &row->room, last + 1, sizeof(*row->cells)))
		return -ENOMEM;
	s->n_slices = last >= s->n_slices ? last + 1 : s->n_slices;
	row->cells[first].n++;
	for (size_t k = first; k <= last; k++) {
		uint64_t begin = k * s->width, end = begin + s->width;

		row->cells[k].ns += (to < end ? to : end) - (from > begin ? from : begin);
	}
	return histogram_add(&row->time, to - from);
}
