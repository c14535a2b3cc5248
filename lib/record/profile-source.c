// SPDX-License-Identifier: LGPL-2.1-or-later
/* A profile as a source for the recorder: what opens, switches and drains it. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "clock/marks.h"
#include "record/perf-ring.h"
#include "record/profile-priv.h"
#include "record/rawpipe.h"

static struct profile *profile_of(struct source *s)
{
	return (struct profile *)s; /* its first member */
}

/* ---- switching ---------------------------------------------------------------------------- */

int profile_switch(struct profile *p, bool on)
{
	int ret = 0;

	for (unsigned int i = 0; i < p->n_rings; i++) {
		int error = p->rings[i] ? perf_ring_switch(p->rings[i], on) : 0;

		ret = ret ?: error;
	}
	if (ret)
		log_err(p->log, "--profile: cannot be switched %s: %s", on ? "on" : "off", errno_text(ret));
	return ret;
}

static int profile_start(struct source *s)
{
	return profile_switch(profile_of(s), true);
}

static int profile_stop(struct source *s)
{
	return profile_switch(profile_of(s), false);
}

/* ---- draining ------------------------------------------------------------------------------ */

struct profile_out {
	struct drain *d;
	uint64_t at; /* in the spool's file, of the page that is filled */
};

static int profile_emit(void *ctx, const void *page, size_t size)
{
	struct profile_out *o = ctx;
	int ret = pwrite_all(o->d->out, page, size, o->at);

	if (ret)
		return ret;
	o->at += size;
	o->d->stats->bytes += size;
	return 0;
}

/* Also the page that is being filled: a kill -9 then costs nothing that was read. */
static int profile_pass(struct profile *p, unsigned int cpu, struct page_writer *w, struct profile_out *o)
{
	uint64_t events = o->d->stats->events;
	int ret = profile_read(p, cpu, w, o->d->stats);
	const void *page = ret || events == o->d->stats->events ? NULL : page_writer_peek(w);

	return page ? pwrite_all(o->d->out, page, w->size, o->at) : ret;
}

static int profile_drain(struct source *s, unsigned int cpu, struct drain *d)
{
	struct profile *p = profile_of(s);
	int fd = profile_fd(p, cpu), ret;
	off_t end = lseek(d->out, 0, SEEK_CUR);
	struct profile_out o = { .d = d, .at = (uint64_t)end };
	struct page_writer w;
	bool last;

	if (fd < 0)
		return 0;
	ret = end < 0 ? -errno : page_writer_init(&w, s->page_size, profile_emit, &o);
	if (ret)
		return ret;
	do {
		last = atomic_load(d->stopping);
		ret = profile_pass(p, cpu, &w, &o);
		if (!ret && !last)
			ret = rawpipe_wait(fd, d);
	} while (!ret && !last);
	ret = ret ?: page_flush(&w, true);
	page_writer_release(&w);
	return ret;
}

static int profile_stat(struct source *s, unsigned int cpu, const struct drain_stats *st, struct buf *out)
{
	buf_printf(out,
		   "CPU: %u\nentries: 0\noverrun: %llu\ncommit overrun: 0\nbytes: 0\n"
		   "dropped events: 0\nread events: %llu\n",
		   cpu, (unsigned long long)st->lost, (unsigned long long)st->events);
	return buf_status(out);
}

static const struct source_ops profile_ops = {
	.kind = "profile",
	.start = profile_start,
	.stop = profile_stop,
	.drain = profile_drain,
	.stat = profile_stat,
};

/* ---- opening ------------------------------------------------------------------------------- */

/* A number of /proc/sys/kernel; otherwise: it has none. */
static long long profile_sysctl(const char *name, long long otherwise)
{
	struct buf text = { 0 };
	char path[64];
	long long n = otherwise;

	snprintf(path, sizeof(path), "/proc/sys/kernel/%s", name);
	if (!read_file(path, 64, &text) && text.len)
		n = strtoll(buf_str(&text), NULL, 10);
	buf_release(&text);
	return n;
}

static int profile_explain(const struct log *log, unsigned int hz, int error)
{
	long long most = profile_sysctl("perf_event_max_sample_rate", -1);

	if (error == -ENOSYS || most < 0)
		log_err(log, "--profile: this kernel has no perf events (CONFIG_PERF_EVENTS)");
	else if (error == -EACCES || error == -EPERM)
		log_err(log,
			"--profile: perf events of all CPUs are refused: %s; kernel.perf_event_paranoid is "
			"%lld "
			"(root or CAP_PERFMON is needed, and a kernel that is not locked down)",
			errno_text(error), profile_sysctl("perf_event_paranoid", 2));
	else if (error == -EINVAL && hz > most)
		log_err(log,
			"--profile %u: this kernel takes at most %lld (kernel.perf_event_max_sample_rate)",
			hz, most);
	else
		log_err(log, "--profile: no perf events: %s", errno_text(error));
	return error;
}

static int profile_open_rings(struct profile *p, const struct profile_opts *o, int clockid)
{
	const char *by = NULL;
	int ret;

	p->rings = calloc(o->n_cpus + 1, sizeof(*p->rings));
	if (!p->rings)
		return -ENOMEM;
	for (; p->n_rings < o->n_cpus; p->n_rings++) {
		ret = perf_ring_open(&p->rings[p->n_rings], p->n_rings, o->hz, clockid);
		if (ret == -EINVAL && by) /* what one CPU takes another does, if it can be there at all */
			ret = -ENODEV;
		if (ret && ret != -ENODEV)
			return ret == -ENOMEM ? ret : profile_explain(p->log, o->hz, ret);
		if (!ret && !by)
			by = perf_ring_by(p->rings[p->n_rings]);
	}
	if (!by)
		return profile_explain(p->log, o->hz, -ENODEV);
	log_info(p->log, "profile: %u samples a second of each CPU, by %s", o->hz, by);
	return 0;
}

static struct profile *profile_new(unsigned int n_cpus, uint32_t page_size, const char *clock)
{
	struct profile *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->source = (struct source){ .ops = &profile_ops,
				     .name = PROFILE_BUFFER,
				     .path = PROFILE_BUFFER,
				     .clock = clock,
				     .page_size = page_size,
				     .n_cpus = n_cpus };
	p->tasks = profile_tasks_new();
	if (p->tasks)
		return p;
	free(p);
	return NULL;
}

int profile_open(struct profile **out, const struct profile_opts *o)
{
	int clockid = clock_marks_system(o->clock), ret;
	struct profile *p;

	if (clockid < 0) {
		log_err(o->log, "--profile: samples have no clock '%s': use -C boot, mono, mono_raw or tai",
			o->clock);
		return -EINVAL;
	}
	p = profile_new(o->n_cpus, page_layout_default.size, o->clock);
	if (!p)
		return -ENOMEM;
	p->log = o->log;
	ret = profile_open_rings(p, o, clockid);
	if (ret)
		profile_close(p);
	else
		*out = p;
	return ret;
}

int profile_reopen(struct profile **out, unsigned int n_cpus, uint32_t page_size)
{
	*out = profile_new(n_cpus, page_size, "");
	return *out ? 0 : -ENOMEM;
}

void profile_close(struct profile *p)
{
	if (!p)
		return;
	for (unsigned int i = 0; i < p->n_rings; i++)
		perf_ring_close(p->rings[i]);
	profile_tasks_free(p->tasks);
	free(p->rings);
	free(p);
}

void profile_number(struct profile *p, unsigned int first_id)
{
	p->first_id = first_id;
}

int profile_keep_formats(unsigned int first_id, struct spool *spool)
{
	struct buf formats = { 0 }, one = { 0 };
	int ret;

	for (size_t i = 0; i < PROFILE_EVENTS; i++) {
		one.len = 0;
		profile_format(i, first_id, &one);
		buf_printf(&formats, "%s %zu\n", PROFILE_SYSTEM, one.len);
		buf_add(&formats, one.data, one.len);
		formats.bad |= one.bad;
	}
	ret = buf_status(&formats) ?: spool_append_text(spool, "formats", formats.data, formats.len);
	buf_release(&formats);
	buf_release(&one);
	return ret;
}

int profile_collect_names(const struct profile *p, struct spool *spool)
{
	struct buf names = { 0 };
	int ret;

	profile_tasks_list(p->tasks, &names);
	ret = buf_status(&names);
	if (!ret && names.len)
		ret = spool_append_text(spool, "saved_cmdlines", names.data, names.len);
	buf_release(&names);
	return ret;
}

int profile_fd(const struct profile *p, unsigned int cpu)
{
	return cpu < p->n_rings && p->rings[cpu] ? perf_ring_fd(p->rings[cpu]) : -1;
}

struct source *profile_source(struct profile *p)
{
	return &p->source;
}
