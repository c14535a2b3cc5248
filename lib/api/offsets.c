// SPDX-License-Identifier: LGPL-2.1-or-later
/* Offsets of guests' clocks in hyptrace.h: computed from the events, or as the files have them. */
#include "api/handle-priv.h"

#include "sync/align.h"

/* Checks the causality of the offsets in the file. */
static int check_shift(struct offsets_guest *g, const struct log *log)
{
	const struct reader_option *o = reader_option(g->file->reader, DAT_TIME_SHIFT);
	int ret = o ? offset_shift_decode(o->data.data, o->data.len, &g->shift) : 0;

	if (ret == -ENOMEM)
		return ret;
	if (ret)
		log_warn(log, "%s: its TIME_SHIFT makes no sense", g->file->path);
	g->has_shift = o && !ret;
	return g->has_shift ? sync_check(&g->in, &g->result, NULL, &g->shift, &g->check) : 0;
}

static bool is_another(const struct inputs *all, const struct input *host, const struct input *in)
{
	return in != host;
}

int handle_sync(struct hyptrace *h, struct sync_progress *progress, struct offsets *o)
{
	const struct input *host;
	int ret;

	*o = (struct offsets){ 0 };
	if (h->in.n < 2)
		return -EINVAL;
	handle_rewind(h);
	/* a shell's *.dat names trace-Guest.dat before trace.dat */
	host = inputs_host(&h->in, h->in.v) ?: h->in.v;
	ret = offsets_solve(&h->in, &h->in.v[host - h->in.v], is_another, &h->log, progress, o);
	for (size_t i = 0; i < o->n_guests && !ret; i++)
		ret = check_shift(&o->guests[i], &h->log);
	return ret;
}

int hyptrace_sync(struct hyptrace *h)
{
	struct offsets o;
	int ret = handle_sync(h, NULL, &o);

	offsets_release(&o);
	return ret;
}

int hyptrace_offset(const struct hyptrace *h, unsigned int file, uint64_t time,
		    struct hyptrace_offset *offset)
{
	const struct filetime *t;
	struct hyptrace_offset o;

	if (file >= h->in.n)
		return -EINVAL;
	t = &h->in.v[file].time;
	if (!t->shift.n_cpus || !t->shift.cpus[0].n)
		return -ENODATA;
	o = (struct hyptrace_offset){ .offset = (int64_t)(offset_shift_apply(&t->shift, 0, time) - time),
				      .bound = filetime_bound(t, time),
				      .class_name = t->shift.class,
				      .method = t->shift.method };
	return tagged_write(offset, &o, sizeof(o));
}
