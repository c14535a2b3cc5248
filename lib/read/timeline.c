// SPDX-License-Identifier: LGPL-2.1-or-later
/* Records of several files in the order of time, with their events, tasks and fields. */
#include "read/timeline.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/field.h"

/* common_type comes first in every kernel's records. */
#define TYPE_SIZE 2
#define KNOWN	  256

struct timeline {
	const struct inputs *in;
	struct merge_input *v;
	struct merge *merge;
	struct merge_record rec;
	struct padded room, next_room;
	/* of events, by the low bits of their ids */
	struct known {
		const struct tep_event *event;
		const struct tep_format_field *pid;
		int least; /* bytes that libtraceevent takes for granted */
	} known[KNOWN];
};

static const struct known *known_event(struct timeline *t, const struct timeline_record *r)
{
	struct known *k = &t->known[r->id % KNOWN];

	if (r->event == k->event)
		return k;
	*k = (struct known){ r->event, tep_find_common_field(r->event, "common_pid"),
			     tepfile_least_size(r->event) };
	return k;
}

static void fill_known(struct timeline *t, struct timeline_record *r)
{
	const struct known *k = known_event(t, r);
	uint64_t pid;

	if (field_is_number(k->pid) && field_number(k->pid, r->tep.data, (size_t)r->tep.size, &pid))
		r->pid = (int)(int32_t)pid;
	if (r->tep.size < k->least)
		r->tep.size = k->least;
}

static void fill_record(struct timeline *t, const struct merge_record *m, struct padded *room,
			struct timeline_record *r)
{
	const struct input *one = &t->in->v[m->input];

	*r = (struct timeline_record){ .input = m->input,
				       .in = one,
				       .buffer = &reader_info(one->reader)->buffers[m->buffer],
				       .index = m->index,
				       .cpu = m->cpu,
				       .ts = m->ts,
				       .raw = m->raw,
				       .missed = m->missed,
				       .pid = -1 };
	if (m->len)
		padded_record(room, m, &r->tep);
	if (m->len < TYPE_SIZE)
		return;
	r->id = (unsigned int)m->data[0] | (unsigned int)m->data[1] << 8;
	r->event = tep_find_event(one->tep, (int)r->id);
	if (r->event)
		fill_known(t, r);
}

int timeline_next(struct timeline *t, struct timeline_record *r)
{
	int ret = merge_next(t->merge, &t->rec);

	if (ret == 1)
		fill_record(t, &t->rec, &t->room, r);
	return ret;
}

int timeline_peek(struct timeline *t, struct timeline_record *next)
{
	struct merge_record m;
	int ret = merge_peek(t->merge, &t->rec, &m);

	if (ret == 1)
		fill_record(t, &m, &t->next_room, next);
	return ret;
}

uint64_t timeline_damaged(const struct timeline *t)
{
	return merge_damaged(t->merge);
}

int timeline_open(struct timeline **out, const struct inputs *in, merge_want *want, void *ctx,
		  const struct log *log)
{
	struct timeline *t = calloc(1, sizeof(*t));
	int ret = -ENOMEM;

	if (!t)
		return ret;
	t->in = in;
	t->v = calloc(in->n + 1, sizeof(*t->v));
	if (!t->v || padded_init(&t->room) || padded_init(&t->next_room))
		goto fail;
	for (size_t i = 0; i < in->n; i++)
		t->v[i] = (struct merge_input){ in->v[i].path, in->v[i].reader, in->v[i].time };
	ret = merge_open(&t->merge, t->v, in->n, want, ctx, log);
	if (ret)
		goto fail;
	*out = t;
	return 0;
fail:
	timeline_close(t);
	return ret;
}

void timeline_close(struct timeline *t)
{
	if (!t)
		return;
	merge_close(t->merge);
	padded_release(&t->room);
	padded_release(&t->next_room);
	free(t->v);
	free(t);
}

const char *timeline_comm(const struct timeline_record *r)
{
	const char *comm;

	if (r->pid < 0)
		return NULL;
	comm = tep_data_comm_from_pid(r->in->tep, r->pid);
	/* what libtraceevent calls tasks that it does not have; some may be called so */
	return strcmp(comm, "<...>") || tep_is_pid_registered(r->in->tep, r->pid) ? comm : NULL;
}

bool timeline_number(const struct timeline_record *r, const char *field, uint64_t *out)
{
	const struct tep_format_field *f = r->event ? tep_find_field(r->event, field) : NULL;

	*out = 0;
	return field_is_number(f) && field_number(f, r->tep.data, (size_t)r->tep.size, out);
}

bool timeline_is_hyp(const struct timeline_record *r)
{
	return r->event && (!strcmp(r->event->system, "hypervisor") || !strcmp(r->event->system, "hyp"));
}
