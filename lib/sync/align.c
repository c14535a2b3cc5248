// SPDX-License-Identifier: LGPL-2.1-or-later
/* Computes offsets of the guests of a host among opened files, and makes their times by them. */
#include "sync/align.h"

#include <sys/stat.h>

#include "base/answer.h"

/* Above it files are not aligned without being asked: memory and time grow with the events. */
#define ALIGN_BYTES_MAX (512ll << 20)

static int solve_guest(const struct offsets *o, struct offsets_guest *g, struct sync_progress *progress,
		       const struct log *log)
{
	const struct offset_guest *option = input_guest(o->host, g->file);
	struct sync_evidence e = { .host = &o->windows, .guest = &g->events };
	struct sync_source source;
	int ret;

	g->name = strdup(option ? option->name : g->file->machine);
	if (!g->name)
		return -ENOMEM;
	if (strcmp(o->host->time.clock, g->file->time.clock))
		log_warn(log, "%s is in the clock '%s' and %s in '%s'", o->host->path, o->host->time.clock,
			 g->file->path, g->file->time.clock);
	ret = sync_source_reader(&source, g->file->reader);
	if (ret)
		return ret;
	source.progress = progress;
	ret = sync_guest_read(&g->events, &source);
	sync_source_release(&source);
	if (option) {
		e.vcpus = option->vcpus;
		e.n_vcpus = option->n;
	}
	ret = ret ?: sync_input_make(&g->in, &e, &g->pids);
	if (!ret && g->events.n_cpus)
		ret = sync_solve(&g->in, &g->result);
	if (!ret && g->result.map_changed)
		log_warn(log, "%s: the vCPU threads that its host's file names belong to another VM",
			 g->file->path);
	return ret;
}

/* Gives the guest's file its offsets, and the host's threads their vCPUs, if the result has any. */
static int use_result(const struct offsets_guest *g, struct input *host, struct input *in)
{
	const struct reader_info *info = reader_info(in->reader);
	struct offset_vcpu *vcpus;
	size_t n_vcpus = 0;
	struct offset_shift shift;
	uint32_t n = 1; /* CPUs that need tables to cover the whole file */
	int ret;

	for (size_t b = 0; b < info->n_buffers; b++)
		for (size_t i = 0; i < info->buffers[b].n_cpus; i++)
			if (info->buffers[b].cpus[i].cpu >= n)
				n = info->buffers[b].cpus[i].cpu + 1;
	ret = sync_time_shift(&g->result, host->trace_id, n, &shift);
	if (ret)
		return ret == -ENODATA ? 0 : ret;
	offset_shift_release(&in->time.shift);
	in->time.shift = shift;
	if (clock_in_ticks(host->time.clock))
		filetime_take_rate(&in->time, &host->time);
	in->guest = true;
	vcpus = calloc(g->result.n_vcpus + 1, sizeof(*vcpus));
	if (!vcpus)
		return -ENOMEM;
	for (size_t i = 0; i < g->result.n_vcpus; i++)
		if (g->result.vcpus[i].pid)
			vcpus[n_vcpus++] = (struct offset_vcpu){ g->result.vcpus[i].cpu,
								 (uint32_t)g->result.vcpus[i].pid };
	ret = input_set_vcpus(host, in, vcpus, n_vcpus);
	free(vcpus);
	return ret;
}

int offsets_solve(struct inputs *all, struct input *host, offsets_want *wanted, const struct log *log,
		  struct sync_progress *progress, struct offsets *o)
{
	struct sync_source source;
	struct stat st;
	int ret;

	*o = (struct offsets){ .host = host, .guests = calloc(all->n, sizeof(*o->guests)) };
	if (!o->guests)
		return -ENOMEM;
	ret = sync_source_reader(&source, host->reader);
	if (ret)
		return ret;
	source.progress = progress;
	for (const struct input *in = all->v; progress && in < all->v + all->n; in++)
		if ((in == host || wanted(all, host, in)) && !fstat(in->fd, &st))
			progress->total += (uint64_t)st.st_size;
	ret = sync_host_read(&o->windows, &source, log);
	sync_source_release(&source);
	if (ret)
		return ret;
	if (!o->windows.windows.n)
		log_warn(log, "%s has no kvm_entry and kvm_exit events: record with -e kvm", host->path);
	for (size_t i = 0; i < all->n; i++) {
		struct offsets_guest *g = &o->guests[o->n_guests];

		if (!wanted(all, host, &all->v[i]))
			continue;
		o->n_guests++;
		g->file = &all->v[i];
		g->result.method = "none";
		ret = solve_guest(o, g, progress, log) ?: use_result(g, host, &all->v[i]);
		if (ret)
			return ret;
	}
	return 0;
}

/* A guest of that host whose file has no bounds. */
static bool has_no_bounds(const struct inputs *all, const struct input *host, const struct input *in)
{
	return !in->time.shift.bounds && inputs_host(all, in) == host;
}

/* One line for a guest, whose times are by the result if it has any. */
static void align_report(const struct offsets *o, const struct offsets_guest *g, const struct log *log)
{
	const struct filetime *t = &g->file->time;
	uint64_t widest = 0;
	bool partly = false;
	char text[32];

	if (!o->windows.windows.n)
		log_warn(log,
			 "%s's clock is not aligned: %s has no kvm_entry and kvm_exit events (record -e kvm)",
			 g->name, o->host->path);
	else if (!g->result.n_points)
		log_warn(
			log,
			"%s's clock is not aligned: too few of its events lie between kvm_entry and kvm_exit",
			g->name);
	if (!g->result.n_points)
		return;
	for (size_t i = 0; i < g->result.n_points; i++) {
		uint64_t bound = filetime_bound(t, g->result.points[i].time);

		partly |= bound == UINT64_MAX;
		widest = bound != UINT64_MAX && bound > widest ? bound : widest;
	}
	if (filetime_in_ticks(t))
		snprintf(text, sizeof(text), "%" PRIu64 " ticks", widest);
	else
		duration_text(widest, text);
	log_info(log, "%s's clock aligned: within %s%s (hyptrace sync --write keeps it)", g->name, text,
		 partly ? " where it is known" : "");
}

int inputs_align(struct inputs *all, const struct log *log)
{
	int ret = 0;

	for (size_t i = 0; i < all->n && ret != -ENOMEM; i++) {
		struct input *host = &all->v[i];
		struct offsets o;
		struct stat st;
		off_t bytes = 0; /* of the host's file and its guests' */
		size_t guests = 0;

		for (size_t g = 0; g < all->n; g++)
			guests += has_no_bounds(all, host, &all->v[g]);
		if (!guests)
			continue;
		for (size_t g = 0; g < all->n; g++) {
			if (g != i && !has_no_bounds(all, host, &all->v[g]))
				continue;
			if (fstat(all->v[g].fd, &st))
				return log_fail_errno(log, -errno, "cannot read '%s'", all->v[g].path);
			bytes += st.st_size;
		}
		if (bytes > ALIGN_BYTES_MAX) {
			log_warn(log,
				 "clocks of guests are not aligned with %s: files above 512 MiB are left to "
				 "hyptrace sync --write",
				 host->path);
			continue;
		}
		ret = offsets_solve(all, host, has_no_bounds, NULL, NULL, &o);
		if (ret)
			log_warn(log, "clocks of guests are not aligned with %s: %s", host->path,
				 errno_text(ret));
		for (size_t g = 0; g < o.n_guests && !ret; g++)
			align_report(&o, &o.guests[g], log);
		offsets_release(&o);
	}
	return ret == -ENOMEM ? ret : 0;
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
