// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counts the events of a trace.dat by name, and by the value of a numeric field of theirs.
 * usage: count FILE [FIELD]    (common_pid)
 * Prints: NAME, events; NAME, FIELD=VALUE, events; sorted.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "read/columns.h"
#include "read/pipeline.h"
#include "read/streams.h"
#include "util/array.h"

/* How often each value came: open addressing, at most half full. */
struct counts {
	uint64_t total;
	struct count {
		uint64_t value, n; /* 0: free */
	} * v;
	size_t room, used;
};

/* A thread's. */
struct counter {
	struct columns_batch batch;
	struct counts *events;
};

struct counting {
	struct inputs in;
	struct timeline *timeline;
	struct columns *columns;
	const struct columns_event *events;
	size_t n, n_threads;
	struct counter *threads;
};

/* ---- values ----------------------------------------------------------------------- */

static struct count *counts_find(const struct counts *c, uint64_t value)
{
	size_t i = (size_t)((value * 0x9e3779b97f4a7c15) >> 32) & (c->room - 1);

	while (c->v[i].n && c->v[i].value != value)
		i = (i + 1) & (c->room - 1);
	return &c->v[i];
}

static int counts_grow(struct counts *c)
{
	struct counts old = *c;

	c->room = old.room ? 2 * old.room : 64;
	c->v = calloc(c->room, sizeof(*c->v));
	if (!c->v) {
		*c = old;
		return -ENOMEM;
	}
	for (size_t i = 0; i < old.room; i++)
		if (old.v[i].n)
			*counts_find(c, old.v[i].value) = old.v[i];
	free(old.v);
	return 0;
}

static int counts_add(struct counts *c, uint64_t value, uint64_t n)
{
	struct count *at;

	if (2 * c->used >= c->room && counts_grow(c))
		return -ENOMEM;
	at = counts_find(c, value);
	c->used += !at->n;
	at->value = value;
	at->n += n;
	return 0;
}

/* ---- records ------------------------------------------------------------------------ */

static int count_rows(struct counter *c, const struct columns_event *events, const struct columns_rows *rows)
{
	struct counts *to = &c->events[rows->of - events];
	int ret = 0;

	to->total += rows->n;
	if (rows->of->fields[0].kind != FIELD_NUMBER)
		return 0;
	for (size_t i = 0; i < rows->n && !ret; i++)
		ret = counts_add(to, rows->fields[0].numbers[i], 1);
	return ret;
}

static int count_run(void *ctx, const struct merge_run *run, size_t worker)
{
	struct counting *c = ctx;
	struct counter *mine = &c->threads[worker];
	int ret = columns_fill(c->columns, c->timeline, run, &mine->batch);

	for (size_t i = 0; i < mine->batch.n && !ret; i++)
		ret = count_rows(mine, c->events, &mine->batch.v[i]);
	return ret;
}

/* Those of all threads into those of the first. */
static int count_sum(struct counting *c)
{
	int ret = 0;

	for (size_t t = 1; t < c->n_threads; t++)
		for (size_t e = 0; e < c->n; e++) {
			const struct counts *from = &c->threads[t].events[e];

			c->threads[0].events[e].total += from->total;
			for (size_t i = 0; i < from->room && !ret; i++)
				if (from->v[i].n)
					ret = counts_add(&c->threads[0].events[e], from->v[i].value,
							 from->v[i].n);
		}
	return ret;
}

/* ---- the answer ------------------------------------------------------------------------ */

static int by_name(const void *a, const void *b)
{
	const struct columns_event *const *x = a, *const *y = b;

	return strcmp((*x)->event->name, (*y)->event->name);
}

static int by_value(const void *a, const void *b)
{
	const struct count *x = a, *y = b;

	return x->value < y->value ? -1 : x->value > y->value;
}

static void print_counts(const struct columns_event *e, struct counts *counts, const char *field)
{
	printf("%s %" PRIu64 "\n", e->event->name, counts->total);
	if (!counts->used)
		return;
	qsort(counts->v, counts->room, sizeof(*counts->v), by_value);
	for (size_t i = 0; i < counts->room; i++)
		if (counts->v[i].n)
			printf("%s %s=%" PRId64 " %" PRIu64 "\n", e->event->name, field,
			       (int64_t)counts->v[i].value, counts->v[i].n);
}

static int print_all(struct counting *c, const char *field)
{
	const struct columns_event **order = calloc(c->n + 1, sizeof(struct columns_event *));

	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < c->n; i++)
		order[i] = &c->events[i];
	qsort(order, c->n, sizeof(struct columns_event *), by_name);
	for (size_t i = 0; i < c->n; i++) {
		struct counts *counts = &c->threads[0].events[order[i] - c->events];

		if (counts->total)
			print_counts(order[i], counts, field);
	}
	free(order);
	return 0;
}

/* ---- all of it --------------------------------------------------------------------------- */

static int counting_open(struct counting *c, char *path, const char *field)
{
	const struct columns_want want = { .fields = &field, .n_fields = 1 };
	int ret = inputs_open(&c->in, &path, 1, 0, NULL) ?: inputs_load(&c->in, NULL) ?:
		      timeline_open(&c->timeline, &c->in, NULL, NULL, NULL) ?:
		      columns_open(&c->columns, &c->in, &want, 1);

	if (ret)
		return ret;
	c->events = columns_events(c->columns, &c->n);
	c->threads = calloc(pipeline_workers(), sizeof(*c->threads));
	if (!c->threads)
		return -ENOMEM;
	for (; c->n_threads < pipeline_workers(); c->n_threads++) {
		struct counter *t = &c->threads[c->n_threads];

		t->events = calloc(c->n + 1, sizeof(*t->events));
		if (!t->events)
			return -ENOMEM;
	}
	return 0;
}

static void counting_close(struct counting *c)
{
	for (size_t t = 0; t < c->n_threads; t++) {
		columns_batch_release(&c->threads[t].batch);
		for (size_t e = 0; e < c->n; e++)
			free(c->threads[t].events[e].v);
		free(c->threads[t].events);
	}
	free(c->threads);
	columns_close(c->columns);
	timeline_close(c->timeline);
	inputs_release(&c->in);
}

int main(int argc, char **argv)
{
	const char *field = argc > 2 ? argv[2] : "common_pid";
	struct counting c = { 0 };
	int ret;

	if (argc < 2 || argc > 3) {
		fprintf(stderr, "usage: count FILE [FIELD]\n");
		return 2;
	}
	ret = counting_open(&c, argv[1], field);
	if (!ret)
		ret = streams_work(c.timeline, count_run, &c) ?: count_sum(&c) ?: print_all(&c, field);
	if (!ret && timeline_damaged(c.timeline))
		ret = -EBADMSG;
	if (ret)
		fprintf(stderr, "count: %s: %s\n", argv[1], errno_text(ret));
	counting_close(&c);
	return ret ? 1 : 0;
}
