// SPDX-License-Identifier: LGPL-2.1-or-later
/* Offsets of guests' clocks in hyptrace.h: computed from the events, or as the files have them. */
#include "api/offsets.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/handle-priv.h"
#include "dat/options.h"

/* The guest's GUEST option in the host's file; NULL: there is none. */
static const struct offset_guest *option_of_guest(const struct input *host, const struct input *guest)
{
	for (size_t i = 0; i < host->n_guests && guest->trace_id; i++)
		if (host->guests[i].trace_id == guest->trace_id)
			return &host->guests[i];
	return NULL;
}

/* "dir/trace-NAME.dat": NAME */
static char *name_of_file(const char *path)
{
	const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	size_t len = strlen(base);

	if (len > 4 && !strcmp(base + len - 4, ".dat"))
		len -= 4;
	if (len > 6 && !strncmp(base, "trace-", 6)) {
		base += 6;
		len -= 6;
	}
	return strndup(base, len);
}

/* ---- one guest ------------------------------------------------------------------------- */

/* What the offsets that the file has would do. */
static int check_shift(struct offsets_guest *g, const struct log *log)
{
	const struct reader_option *o = reader_option(g->file->reader, DAT_TIME_SHIFT);
	int ret = o ? offset_shift_decode(o->data.data, o->data.len, &g->shift) : 0;

	if (ret == -ENOMEM)
		return ret;
	if (ret)
		log_warn(log, "%s: its TIME_SHIFT makes no sense", g->file->path);
	g->has_shift = o && !ret;
	return g->has_shift ? sync_check(&g->in, &g->result, &g->shift, &g->check) : 0;
}

static int solve_guest(const struct offsets *o, struct offsets_guest *g, const struct log *log)
{
	const struct offset_guest *option = option_of_guest(o->host, g->file);
	struct sync_evidence e = { .host = &o->windows, .guest = &g->events };
	struct sync_source source;
	int ret;

	g->name = option ? strdup(option->name) : name_of_file(g->file->path);
	if (!g->name)
		return -ENOMEM;
	if (strcmp(o->host->time.clock, g->file->time.clock))
		log_warn(log, "%s is in the clock '%s' and %s in '%s'", o->host->path, o->host->time.clock,
			 g->file->path, g->file->time.clock);
	ret = sync_source_reader(&source, g->file->reader);
	if (ret)
		return ret;
	ret = sync_guest_read(&g->events, &source);
	sync_source_release(&source);
	if (ret)
		return ret;
	if (option) {
		e.vcpus = option->vcpus;
		e.n_vcpus = option->n;
	}
	ret = sync_input_make(&g->in, &e, &g->pids);
	if (ret)
		return ret;
	ret = g->events.n_cpus ? sync_solve(&g->in, &g->result, log) : 0;
	if (ret)
		return ret;
	if (g->result.map_changed)
		log_warn(log, "%s: the vCPU threads given for it are others'", g->file->path);
	return check_shift(g, log);
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

/* Times of the file's records are by the result from here on, when it has an offset. */
static int use_result(const struct offsets_guest *g, const struct input *host, struct input *in)
{
	struct offset_shift shift;
	int ret = sync_time_shift(&g->result, host->trace_id, shift_cpus(in), &shift);

	if (ret)
		return ret == -ENODATA ? 0 : ret;
	offset_shift_release(&in->time.shift);
	in->time.shift = shift;
	in->guest = true;
	return 0;
}

/* ---- all of them ----------------------------------------------------------------------- */

static int offsets_read_host(struct offsets *o, const struct log *log)
{
	struct sync_source source;
	int ret = sync_source_reader(&source, o->host->reader);

	if (ret)
		return ret;
	ret = sync_host_read(&o->windows, &source, log);
	sync_source_release(&source);
	if (ret == 0 && !o->windows.windows.n)
		log_warn(log, "%s has no kvm_entry and kvm_exit events: record with -e kvm", o->host->path);
	return ret;
}

int handle_sync(struct hyptrace *h, struct offsets *o)
{
	int ret;

	*o = (struct offsets){ .host = h->in.v };
	if (h->in.n < 2)
		return -EINVAL;
	handle_rewind(h);
	ret = offsets_read_host(o, &h->log);
	if (ret)
		return ret;
	o->guests = calloc(h->in.n - 1, sizeof(*o->guests));
	if (!o->guests)
		return -ENOMEM;
	for (size_t i = 1; i < h->in.n; i++) {
		struct offsets_guest *g = &o->guests[o->n_guests++];

		g->file = &h->in.v[i];
		g->result.method = "none";
		ret = solve_guest(o, g, &h->log);
		if (ret)
			return ret;
		ret = use_result(g, o->host, &h->in.v[i]);
		if (ret)
			return ret;
	}
	return 0;
}

void offsets_release(struct offsets *o)
{
	for (size_t i = 0; i < o->n_guests; i++) {
		struct offsets_guest *g = &o->guests[i];

		free(g->name);
		free(g->pids);
		sync_guest_release(&g->events);
		sync_result_release(&g->result);
		offset_shift_release(&g->shift);
	}
	free(o->guests);
	sync_host_release(&o->windows);
}

int hyptrace_sync(struct hyptrace *h)
{
	struct offsets o;
	int ret = handle_sync(h, &o);

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
