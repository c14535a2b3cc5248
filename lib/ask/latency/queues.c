// SPDX-License-Identifier: LGPL-2.1-or-later
/* Counts what drivers put into virtio's queues, by the events that record --preset virtio makes. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask/latency/latency-priv.h"
#include "base/array.h"

#define QUEUE_LENGTHS 8
#define QUEUES_MAX    256 /* further ones share a row */

/* Fields of one of these events (record/tracefs/dynamic.c). */
struct queue_event {
	struct field_load device, name, out, in, lengths[QUEUE_LENGTHS], ends[QUEUE_LENGTHS];
};

/* ... of an input. */
struct queue_events {
	struct queue_event **by_id; /* NULL: not one of them */
	size_t n;
	bool any;
};

static struct field_load queue_numbered(struct tep_event *e, const char *name, size_t i)
{
	char numbered[16];

	snprintf(numbered, sizeof(numbered), "%s%zu", name, i);
	return field_load(tep_find_field(e, numbered));
}

static struct queue_event *queue_event_new(struct tep_event *e)
{
	struct queue_event *q = calloc(1, sizeof(*q));

	if (!q)
		return NULL;
	q->device = field_load(tep_find_field(e, "device"));
	q->name = field_load(tep_find_field(e, "queue"));
	q->out = field_load(tep_find_field(e, "out"));
	q->in = field_load(tep_find_field(e, "in"));
	for (size_t i = 0; i < QUEUE_LENGTHS; i++) {
		q->lengths[i] = queue_numbered(e, "len", i);
		q->ends[i] = queue_numbered(e, "end", i);
	}
	return q;
}

int queues_open(struct queues *q, const struct inputs *in)
{
	q->events = calloc(in->n + 1, sizeof(*q->events));
	if (!q->events)
		return -ENOMEM;
	for (size_t i = 0; i < in->n; i++) {
		struct queue_events *of = &q->events[i];

		of->by_id = calloc(in->v[i].n_known + 1, sizeof(*of->by_id));
		if (!of->by_id)
			return -ENOMEM;
		of->n = in->v[i].n_known;
		for (unsigned int id = 0; id < of->n; id++) {
			const struct known_event *known = input_event(&in->v[i], id);

			if (!known || strcmp(known->event->system, "virtio") ||
			    strncmp(known->event->name, "add", 3))
				continue;
			of->by_id[id] = queue_event_new(known->event);
			if (!of->by_id[id])
				return -ENOMEM;
			of->any = q->any = true;
		}
	}
	return 0;
}

void queues_close(struct queues *q, size_t n_inputs)
{
	for (size_t i = 0; q->events && i < n_inputs; i++) {
		for (size_t id = 0; q->events[i].by_id && id < q->events[i].n; id++)
			free(q->events[i].by_id[id]);
		free(q->events[i].by_id);
	}
	free(q->events);
	free(q->v);
}

bool queues_want(const struct queues *q, size_t input)
{
	return q->any && q->events[input].any;
}

/* ---- a record ------------------------------------------------------------------------------- */

static uint64_t queue_number(const struct field_load *l, const struct merge_record *m, uint64_t none)
{
	uint64_t v;

	return l->kind == FIELD_NUMBER && field_load_number(l, m->data, m->len, &v) ? v : none;
}

/*
 * Bytes of the descriptors [from, to), or of the lists that have one descriptor each. False: the event does
 * not carry all of them.
 */
static bool queue_bytes(const struct queue_event *e, const struct merge_record *m, uint64_t from, uint64_t to,
			uint64_t *bytes)
{
	uint64_t sum = 0;

	for (uint64_t i = from; i < to; i++) {
		if (i >= QUEUE_LENGTHS || e->lengths[i].kind != FIELD_NUMBER)
			return false;
		/* SG_END of include/linux/scatterlist.h, in the lowest byte of page_link */
		if (e->ends[i].kind == FIELD_NUMBER && !(queue_number(&e->ends[i], m, 0) & 2))
			return false;
		sum += queue_number(&e->lengths[i], m, 0);
	}
	*bytes += sum;
	return true;
}

static struct queue *queue_find(struct queues *q, const struct queue *wanted)
{
	struct queue others = { .device = -1, .others = true };

	for (size_t i = 0; i < q->n; i++)
		if (q->v[i].others || (q->v[i].input == wanted->input && q->v[i].device == wanted->device &&
				       !strcmp(q->v[i].name, wanted->name)))
			return &q->v[i];
	if (array_push(&q->v, &q->n, q->n < QUEUES_MAX ? wanted : &others, sizeof(*wanted)))
		return NULL;
	return &q->v[q->n - 1];
}

static int queue_add(struct queues *q, const struct queue_event *e, size_t input, const struct merge_record *m)
{
	struct queue key = { .input = input, .device = (int64_t)queue_number(&e->device, m, UINT64_MAX) };
	uint64_t out = queue_number(&e->out, m, 0), in = queue_number(&e->in, m, 0);
	struct queue *to;
	const uint8_t *name;
	size_t n;

	field_load_bytes(&e->name, m->data, m->len, &name, &n);
	snprintf(key.name, sizeof(key.name), "%.*s", (int)(n < sizeof(key.name) ? n : sizeof(key.name)), name);
	to = queue_find(q, &key);
	if (!to)
		return -ENOMEM;
	to->buffers++;
	to->out += out;
	to->in += in;
	if (!queue_bytes(e, m, 0, out, &to->out_bytes) || !queue_bytes(e, m, out, out + in, &to->in_bytes))
		to->unknown++;
	return 0;
}

int queues_after(void *ctx, struct pass_run *run)
{
	struct latency *l = ctx;
	int ret = 0;

	for (size_t i = 0; i < run->records->n && !ret; i++) {
		const struct merge_record *m = &run->records->v[i];
		size_t input = merge_stream(l->t->merge, m)->input;
		const struct queue_events *of = &l->queues.events[input];
		unsigned int id = m->data && of->any ? timeline_id(m) : 0;

		if (id && id < of->n && of->by_id[id])
			ret = queue_add(&l->queues, of->by_id[id], input, m);
	}
	return ret;
}
