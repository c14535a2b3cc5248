// SPDX-License-Identifier: LGPL-2.1-or-later
/* Sorts the records of a run by event, and loads the fields that are wanted of each. */
#include "read/columns.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/array.h"

struct columns {
	const struct inputs *in;
	struct columns_event *events;
	size_t n;
	/* by input, and by its events' ids: 1 + the index in events; 0: not wanted */
	uint32_t **slots;
};

/* ---- what is wanted -------------------------------------------------------------------- */

/* NULL: nobody wants it. */
static const struct columns_want *columns_find(const struct columns_want *wants, size_t n,
					       const struct tep_event *e)
{
	for (size_t i = 0; i < n; i++)
		if ((!wants[i].system || !strcmp(wants[i].system, e->system)) &&
		    (!wants[i].event || !strcmp(wants[i].event, e->name)))
			return &wants[i];
	return NULL;
}

static int columns_add_event(struct columns *c, size_t input, struct tep_event *event, size_t want,
			     const struct columns_want *w)
{
	struct columns_event e = { input, want, event, NULL, w->n_fields };
	int ret = -ENOMEM;

	e.fields = calloc(w->n_fields + 1, sizeof(*e.fields));
	if (e.fields)
		ret = array_push(&c->events, &c->n, &e, sizeof(e));
	if (ret) {
		free(e.fields);
		return ret;
	}
	for (size_t i = 0; i < w->n_fields; i++)
		e.fields[i] = field_load(tep_find_any_field(event, w->fields[i]));
	c->slots[input][event->id] = (uint32_t)c->n;
	return 0;
}

static int columns_add_input(struct columns *c, size_t input, const struct columns_want *wants, size_t n)
{
	const struct input *in = &c->in->v[input];
	int ret = 0;

	c->slots[input] = calloc(in->n_known + 1, sizeof(*c->slots[input]));
	if (!c->slots[input])
		return -ENOMEM;
	for (unsigned int id = 0; id < in->n_known && !ret; id++) {
		const struct known_event *e = input_event(in, id);
		const struct columns_want *w = e ? columns_find(wants, n, e->event) : NULL;

		if (w)
			ret = columns_add_event(c, input, e->event, (size_t)(w - wants), w);
	}
	return ret;
}

int columns_open(struct columns **out, const struct inputs *in, const struct columns_want *wants, size_t n)
{
	struct columns *c = calloc(1, sizeof(*c));
	int ret = -ENOMEM;

	if (!c)
		return ret;
	c->in = in;
	c->slots = calloc(in->n + 1, sizeof(*c->slots));
	if (!c->slots)
		goto fail;
	for (size_t i = 0; i < in->n; i++) {
		ret = columns_add_input(c, i, wants, n);
		if (ret)
			goto fail;
	}
	*out = c;
	return 0;
fail:
	columns_close(c);
	return ret;
}

void columns_close(struct columns *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->n; i++)
		free(c->events[i].fields);
	for (size_t i = 0; c->slots && i < c->in->n; i++)
		free(c->slots[i]);
	free(c->slots);
	free(c->events);
	free(c);
}

const struct columns_event *columns_events(const struct columns *c, size_t *n)
{
	*n = c->n;
	return c->events;
}

/* ---- records by event -------------------------------------------------------------------- */

/* The events' records lie one event behind the other; first: where those of each begin. */
static int columns_room(struct columns_batch *b, size_t n_records, size_t n_events)
{
	if (!b->v) {
		b->v = calloc(n_events + 1, sizeof(*b->v));
		b->first = calloc(n_events + 1, sizeof(*b->first));
	}
	if (!b->v || !b->first)
		return -ENOMEM;
	memset(b->first, 0, (n_events + 1) * sizeof(*b->first));
	if (n_records <= b->room)
		return 0;
	free(b->which);
	free(b->ts);
	free(b->records);
	b->which = malloc(n_records * sizeof(*b->which));
	b->ts = malloc(n_records * sizeof(*b->ts));
	b->records = malloc(n_records * sizeof(*b->records));
	b->room = b->which && b->ts && b->records ? n_records : 0;
	return b->room ? 0 : -ENOMEM;
}

/* Which event each record is of, and how many there are of each. */
static void columns_count(const struct columns *c, const struct timeline *t, const struct merge_run *run,
			  struct columns_batch *b)
{
	const uint32_t *slots = NULL;
	uint32_t stream = 0;
	size_t n = 0;

	for (size_t i = 0; i < run->n; i++) {
		const struct merge_record *m = &run->v[i];
		unsigned int id = timeline_id(m);

		if (!slots || m->stream != stream) {
			size_t input = timeline_stream(t, m)->input;

			stream = m->stream;
			slots = c->slots[input];
			n = c->in->v[input].n_known;
		}
		b->which[i] = id && id < n ? slots[id] : 0;
		b->first[b->which[i]]++;
	}
}

static void columns_sort(const struct columns *c, const struct merge_run *run, struct columns_batch *b)
{
	size_t at = 0;

	for (size_t i = 1; i <= c->n; i++) {
		size_t n = b->first[i];

		if (n)
			b->v[b->n++] = (struct columns_rows){ &c->events[i - 1], n, b->ts + at,
							      b->records + at, NULL };
		b->first[i] = at;
		at += n;
	}
	for (size_t i = 0; i < run->n; i++) {
		size_t to;

		if (!b->which[i])
			continue;
		to = b->first[b->which[i]]++;
		b->ts[to] = run->v[i].ts;
		b->records[to] = &run->v[i];
	}
}

/* ---- their fields -------------------------------------------------------------------------- */

static void columns_load(const struct field_load *l, const struct columns_rows *rows, union column *to)
{
	const struct merge_record *const *v = rows->records;

	if (l->kind == FIELD_NUMBER)
		for (size_t i = 0; i < rows->n; i++)
			field_load_number(l, v[i]->data, v[i]->len, &to->numbers[i]);
	else
		for (size_t i = 0; i < rows->n; i++)
			field_load_bytes(l, v[i]->data, v[i]->len, &to->bytes[i].data, &to->bytes[i].len);
}

/* Room for all values of the run, and a pointer to those of each field. */
static int columns_cells(struct columns_batch *b)
{
	size_t cells = 0;

	for (size_t i = 0; i < b->n; i++)
		cells += b->v[i].of->n_fields * b->v[i].n;
	if (cells <= b->cells)
		return 0;
	free(b->columns);
	free(b->values);
	b->columns = malloc(cells * sizeof(*b->columns));
	b->values = malloc(cells * sizeof(*b->values));
	b->cells = b->columns && b->values ? cells : 0;
	return b->cells ? 0 : -ENOMEM;
}

int columns_fill(const struct columns *c, const struct timeline *t, const struct merge_run *run,
		 struct columns_batch *b)
{
	struct columns_bytes *value;
	union column *column;
	int ret = columns_room(b, run->n, c->n);

	b->n = 0;
	if (ret)
		return ret;
	columns_count(c, t, run, b);
	columns_sort(c, run, b);
	ret = columns_cells(b);
	if (ret)
		return ret;
	value = b->values;
	column = b->columns;
	for (size_t i = 0; i < b->n; i++) {
		struct columns_rows *rows = &b->v[i];

		rows->fields = column;
		for (size_t f = 0; f < rows->of->n_fields; f++, column++, value += rows->n) {
			column->bytes = value;
			columns_load(&rows->of->fields[f], rows, column);
		}
	}
	return 0;
}

void columns_batch_release(struct columns_batch *b)
{
	free(b->v);
	free(b->first);
	free(b->which);
	free(b->ts);
	free(b->records);
	free(b->columns);
	free(b->values);
	*b = (struct columns_batch){ 0 };
}
