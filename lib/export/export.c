// SPDX-License-Identifier: LGPL-2.1-or-later
#include "export/export.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "util/field.h"
#include "read/merge.h"

/* common_type comes first in every kernel's records. */
#define TYPE_SIZE 2

static int record_pid(const struct export_record *r)
{
	const struct tep_format_field *f = r->event ? tep_find_common_field(r->event, "common_pid") : NULL;
	uint64_t pid;

	if (!field_is_number(f) || !field_number(f, r->tep.data, (size_t)r->tep.size, &pid))
		return -1;
	return (int)(int32_t)pid;
}

static void fill_record(const struct inputs *in, const struct merge_record *m, struct padded *room,
			struct export_record *r)
{
	const struct input *one = &in->v[m->input];

	*r = (struct export_record){ .input = m->input,
				     .in = one,
				     .buffer = &reader_info(one->reader)->buffers[m->buffer],
				     .cpu = m->cpu,
				     .ts = m->ts,
				     .missed = m->missed,
				     .pid = -1 };
	if (m->len)
		padded_record(room, m, &r->tep);
	if (m->len < TYPE_SIZE)
		return;
	r->id = (unsigned int)m->data[0] | (unsigned int)m->data[1] << 8;
	r->event = tep_find_event(one->tep, (int)r->id);
	r->pid = record_pid(r);
}

static int walk(const struct inputs *in, struct merge *m, struct padded *room, export_fn *fn, void *ctx,
		struct export_counts *counts)
{
	struct merge_record rec;
	struct export_record r;
	int ret;

	while ((ret = merge_next(m, &rec)) == 1) {
		fill_record(in, &rec, room, &r);
		if (rec.len) {
			counts->records++;
			counts->unknown += !r.event;
		}
		ret = fn(ctx, &r);
		if (ret)
			return ret;
	}
	return ret;
}

int export_run(const struct inputs *in, export_fn *fn, void *ctx, struct export_counts *counts,
	       const struct log *log)
{
	struct merge_input *v = calloc(in->n + 1, sizeof(*v));
	struct padded room = { 0 };
	struct merge *m = NULL;
	int ret = v ? padded_init(&room) : -ENOMEM;

	*counts = (struct export_counts){ 0 };
	for (size_t i = 0; i < in->n && !ret; i++)
		v[i] = input_for_merge(&in->v[i]);
	if (!ret)
		ret = merge_open(&m, v, in->n, NULL, NULL, log);
	if (!ret)
		ret = walk(in, m, &room, fn, ctx, counts);
	if (m)
		counts->damaged = merge_damaged(m);
	merge_close(m);
	padded_release(&room);
	free(v);
	return ret;
}

const char *export_comm(const struct export_record *r)
{
	if (!r->pid)
		return "<idle>";
	if (r->pid < 0 || !tep_is_pid_registered(r->in->tep, r->pid))
		return NULL;
	return tep_data_comm_from_pid(r->in->tep, r->pid);
}

bool export_number(const struct export_record *r, const char *field, uint64_t *out)
{
	const struct tep_format_field *f = r->event ? tep_find_field(r->event, field) : NULL;

	*out = 0;
	return field_is_number(f) && field_number(f, r->tep.data, (size_t)r->tep.size, out);
}

bool export_is_hyp(const struct export_record *r)
{
	return r->event && (!strcmp(r->event->system, "hypervisor") || !strcmp(r->event->system, "hyp"));
}
