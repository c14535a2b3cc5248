// SPDX-License-Identifier: LGPL-2.1-or-later
/* A profile of all CPUs: opened, switched and closed. What a recorder and an agent have in common. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "clock/marks.h"
#include "profile/perf-ring.h"
#include "profile/profile-priv.h"

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
	p->source = (struct source){ .name = SOURCE_PROFILE,
				     .path = SOURCE_PROFILE,
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

int profile_fd(const struct profile *p, unsigned int cpu)
{
	return cpu < p->n_rings && p->rings[cpu] ? perf_ring_fd(p->rings[cpu]) : -1;
}
