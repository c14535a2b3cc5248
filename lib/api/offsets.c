// SPDX-License-Identifier: LGPL-2.1-or-later
/* Offsets of guests' clocks in hyptrace.h: computed from the events, or as the files have them. */
#include <errno.h>
#include <stdlib.h>

#include "api/handle-priv.h"
#include "sync/evidence.h"

/* The vCPU threads of a guest by the host's GUEST option; NULL: it has none. */
static const struct offset_guest *option_of_guest(const struct input *host, const struct input *guest)
{
	for (size_t i = 0; i < host->n_guests && guest->trace_id; i++)
		if (host->guests[i].trace_id == guest->trace_id)
			return &host->guests[i];
	return NULL;
}

/* How many CPUs a TIME_SHIFT has to have tables for, so that it covers all of the file's. */
static uint32_t shift_cpus(const struct input *in)
{
	const struct reader_info *info = reader_info(in->reader);
	uint32_t n = 1;

	for (size_t b = 0; b < info->n_buffers; b++)
		for (size_t i = 0; i < info->buffers[b].n_cpus; i++)
			if (info->buffers[b].cpus[i].cpu >= n)
				n = info->buffers[b].cpus[i].cpu + 1;
	return n;
}

static int offsets_solve(const struct sync_host *host, const struct sync_source *guest,
			 const struct offset_guest *option, struct sync_result *result, const struct log *log)
{
	struct sync_guest events;
	int ret = sync_guest_read(&events, guest);

	if (ret)
		return ret;
	ret = sync_solve_evidence(host, &events, option ? option->vcpus : NULL, option ? option->n : 0, NULL,
				  result, log);
	sync_guest_release(&events);
	return ret;
}

static int offsets_of_guest(struct hyptrace *h, struct input *in, const struct sync_host *host)
{
	struct sync_result result = { 0 };
	struct offset_shift shift;
	struct sync_source guest;
	int ret = sync_source_reader(&guest, in->reader);

	if (ret)
		return ret;
	ret = offsets_solve(host, &guest, option_of_guest(&h->in.v[0], in), &result, &h->log);
	if (ret)
		goto out;
	ret = sync_time_shift(&result, h->in.v[0].trace_id, shift_cpus(in), &shift);
	if (ret == -ENODATA) { /* there is no offset: what the file has stays */
		ret = 0;
		goto out;
	}
	if (ret)
		goto out;
	offset_shift_release(&in->time.shift);
	in->time.shift = shift;
	in->guest = true;
out:
	sync_result_release(&result);
	sync_source_release(&guest);
	return ret;
}

int hyptrace_sync(struct hyptrace *h)
{
	struct sync_host host;
	struct sync_source source;
	int ret;

	if (h->in.n < 2)
		return -EINVAL;
	handle_rewind(h);
	ret = sync_source_reader(&source, h->in.v[0].reader);
	if (ret)
		return ret;
	ret = sync_host_read(&host, &source, &h->log);
	for (size_t i = 1; i < h->in.n && ret == 0; i++)
		ret = offsets_of_guest(h, &h->in.v[i], &host);
	sync_host_release(&host);
	sync_source_release(&source);
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
