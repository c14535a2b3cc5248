// SPDX-License-Identifier: LGPL-2.1-or-later
/* Records of several files in the order of time, with their events, tasks and fields. */
#include "read/timeline.h"

const struct known_event *timeline_event(const struct timeline *t, const struct merge_record *m,
					 unsigned int *id)
{
	*id = timeline_id(m);
	return m->len < 2 ? NULL : input_event(&t->in->v[merge_stream(t->merge, m)->input], *id);
}

int timeline_pid(const struct field_load *pid, const struct merge_record *m)
{
	uint64_t v;

	return pid->kind == FIELD_NUMBER && field_load_number(pid, m->data, m->len, &v) ? (int)(int32_t)v
											: -1;
}

void timeline_fill(const struct timeline *t, const struct merge_record *m, struct padded *room,
		   struct timeline_record *r)
{
	const struct merge_stream *s = merge_stream(t->merge, m);
	const struct input *in = &t->in->v[s->input];
	const struct known_event *e;

	*r = (struct timeline_record){ .m = m,
				       .input = s->input,
				       .in = in,
				       .buffer = &reader_info(in->reader)->buffers[s->buffer],
				       .index = s->index,
				       .cpu = s->cpu,
				       .ts = m->ts,
				       .raw = m->raw,
				       .missed = m->missed };
	e = timeline_event(t, m, &r->id);
	r->pid = e ? timeline_pid(&e->pid, m) : -1;
	if (m->len) {
		r->tep = padded_record(room, m->data, m->len);
		r->tep.ts = m->ts;
		r->tep.missed_events = m->missed;
		r->tep.cpu = (int)s->cpu;
	}
	if (!e)
		return;
	r->event = e->event;
	r->hyp = e->hyp;
	if (r->tep.size < e->least)
		r->tep.size = e->least;
}

int timeline_next(struct timeline *t, struct timeline_record *r)
{
	if (t->next == t->run.n) {
		int ret = merge_take(t->merge, &t->run);

		t->next = 0;
		if (ret != 1)
			return ret;
	}
	timeline_fill(t, &t->run.v[t->next++], &t->room, r);
	return 1;
}

int timeline_ahead(const struct timeline *t, const struct merge_run *run, size_t i, struct merge_record *next)
{
	const struct merge_stream *s = merge_stream(t->merge, &run->v[i]);

	while (++i < run->n) {
		const struct merge_stream *other = merge_stream(t->merge, &run->v[i]);

		if (other->input == s->input && other->buffer == s->buffer) {
			*next = run->v[i];
			return 1;
		}
	}
	return merge_ahead(t->merge, s->input, s->buffer, next);
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
	if (!t->v || padded_init(&t->room))
		goto fail;
	for (size_t i = 0; i < in->n; i++)
		t->v[i] = (struct merge_input){ in->v[i].path, in->v[i].reader, in->v[i].time, in->from,
						in->to };
	ret = merge_open(&t->merge, t->v, in->n, want, ctx, log);
	if (ret)
		goto fail;
	merge_damage_known(t->merge, in->damaged);
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
	merge_run_release(&t->run);
	merge_close(t->merge);
	padded_release(&t->room);
	free(t->v);
	free(t);
}
