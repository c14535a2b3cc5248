// SPDX-License-Identifier: LGPL-2.1-or-later
/* Counts what drivers put into virtio's queues, by the events that record --preset virtio makes. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ask/latency/latency-priv.h"
#include "base/array.h"

#define QUEUES_MAX 256 /* further ones share a row */

/* A field called NAME, or NAME0, NAME1 ... False: the event has none. */
static bool queue_field(struct tep_event *e, const struct merge_record *m, const char *name, int i,
			uint64_t *v)
{
	const struct tep_format_field *f;
	char numbered[24];

	snprintf(numbered, sizeof(numbered), "%s%d", name, i);
	f = tep_find_field(e, i < 0 ? name : numbered);
	*v = 0;
	return f && field_number(f, m->data, m->len, v);
}

/*
 * Adds the bytes of the descriptors [from, to), or of lists of one descriptor. False: the event does not
 * carry all of them.
 */
static bool queue_bytes(struct tep_event *e, const struct merge_record *m, uint64_t from, uint64_t to,
			uint64_t *bytes)
{
	uint64_t sum = 0, len, end;

	for (uint64_t i = from; i < to; i++) {
		/* SG_END of include/linux/scatterlist.h, in the lowest byte of page_link: a list ends */
		if (i > INT8_MAX || !queue_field(e, m, "len", (int)i, &len) ||
		    (queue_field(e, m, "end", (int)i, &end) && !(end & 2)))
			return false;
		sum += len;
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

static int queue_add(struct queues *q, struct tep_event *e, size_t input, const struct merge_record *m)
{
	struct queue key = { .input = input }, *to;
	uint64_t out, in, device;
	const uint8_t *name;
	size_t n;

	key.device = queue_field(e, m, "device", -1, &device) ? (int64_t)device : -1;
	field_bytes(tep_find_field(e, "queue"), m->data, m->len, &name, &n);
	snprintf(key.name, sizeof(key.name), "%.*s", (int)(n < sizeof(key.name) ? n : sizeof(key.name)),
		 name);
	to = queue_find(q, &key);
	if (!to)
		return -ENOMEM;
	queue_field(e, m, "out", -1, &out);
	queue_field(e, m, "in", -1, &in);
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
		const struct known_event *e = m->data ? input_event(&l->in->v[input], timeline_id(m)) : NULL;

		if (e && !strcmp(e->event->system, "virtio") && !strncmp(e->event->name, "add", 3))
			ret = queue_add(&l->queues, e->event, input, m);
	}
	return ret;
}
