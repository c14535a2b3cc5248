// SPDX-License-Identifier: GPL-2.0-only
/* From a request to a buffer that is ready to start, and back to what tracefs was. */
#include "serving-state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dat/page.h"
#include "tracefs/dir.h"

/* ---- the undo ---------------------------------------------------------------- */

static int serving_open_undo(struct serving *s)
{
	struct agent *a = s->agent;

	/* --early has begun one, which is to be ended with this recording */
	if (s->boot && a->boot.early) {
		s->undo = a->boot.early;
		a->boot.early = NULL;
		return 0;
	}
	/* it switched on what only a recorder of the top buffer can take over */
	if (!s->boot && a->boot.early) {
		log_warn(s->log, "what --early recorded is given up for another buffer");
		boot_end_early(a);
	}
	return agent_undo_open(a, &s->undo);
}

void serving_put_back(struct serving *s)
{
	instance_free(s->inst);
	s->inst = NULL;
	if (s->undo)
		agent_undo_end(s->agent, s->undo);
	s->undo = NULL;
}

/* ---- the buffer ---------------------------------------------------------------- */

/* The instance's own sub-buffer size, where the kernel has one; else header_page's. */
static int serving_find_page_size(struct serving *s)
{
	struct page_layout layout;
	char path[INSTANCE_PATH];
	char *kb = NULL;
	uint64_t n = 0;
	bool own = !undo_read(s->undo, instance_file(s->inst, path, "buffer_subbuf_size_kb"), &kb) &&
		   !parse_u64(kb, &n) && n && n <= 1024;
	int ret = 0;

	free(kb);
	if (own) {
		s->page_size = (uint32_t)n * 1024;
		return 0;
	}
	ret = page_layout_read(undo_dirfd(s->undo), "events/header_page", &layout);
	if (!ret)
		s->page_size = layout.size;
	return ret;
}

static int serving_find_facts(struct serving *s)
{
	char path[INSTANCE_PATH];
	int ret = undo_read(s->undo, instance_file(s->inst, path, "trace_clock"), &s->clock);

	if (ret)
		return ret;
	ret = serving_find_page_size(s);
	if (ret)
		return ret;
	ret = tracefs_cpus(undo_dirfd(s->undo), instance_file(s->inst, path, "per_cpu"), &s->n_cpus);
	if (ret)
		return ret;
	if (s->n_cpus > MSG_CPUS_MAX)
		s->n_cpus = MSG_CPUS_MAX;
	return s->n_cpus ? 0 : -ENODEV;
}

/* ---- a boot trace ---------------------------------------------------------------- */

/* Its buffer stays as it is, with its clock and its size; the request's events come on top. */
static int join_boot(struct serving *s)
{
	log_info(s->log, "the buffer holds a boot trace: it is not cleared");
	return instance_join(s->inst);
}

static int serving_set_pids(struct serving *s)
{
	size_t n = s->plan.pids.n;
	pid_t *pids;
	uint64_t pid;
	int ret;

	if (!n)
		return 0;
	pids = calloc(n, sizeof(*pids));
	if (!pids)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		if (!parse_u64(s->plan.pids.v[i], &pid))
			pids[i] = (pid_t)pid;
	ret = instance_set_pids(s->inst, pids, n);
	free(pids);
	return ret;
}

/* ---- --allow ------------------------------------------------------------------ */

/*
 * A buffer that only the agent writes to has nothing from before the request (but
 * what --early names), no mark and no trace_printk. The recorder sees no name of it.
 */
static int serving_use_own(struct serving *s)
{
	char *name = *s->agent->own ? strdup(basename(s->agent->own)) : NULL;

	if (!name)
		return *s->agent->own ? -ENOMEM : 0;
	free(s->buffer->name);
	s->buffer->name = name;
	return 0;
}

/* ---- samples ------------------------------------------------------------------ */

static uint64_t serving_asked_hz(const struct serving *s)
{
	uint64_t hz = 0;

	for (size_t i = 0; i < s->req.protos.n; i++)
		if (!strncmp(s->req.protos.v[i], MSG_PROFILE, strlen(MSG_PROFILE)) &&
		    parse_u64(s->req.protos.v[i] + strlen(MSG_PROFILE), &hz))
			hz = 0;
	return hz < UINT32_MAX ? hz : 0;
}

/* A recording goes on without: its recorder learns that from the answer. */
static void serving_open_profile(struct serving *s)
{
	struct profile_opts o = {
		.hz = (unsigned int)serving_asked_hz(s), .n_cpus = s->n_cpus, .clock = s->clock, .log = s->log
	};

	s->n_streams = s->n_cpus;
	if (!o.hz)
		return;
	if (!allow_samples(&s->agent->allow)) {
		log_warn(s->log,
			 "--profile is refused: --allow " PROFILE_SYSTEM ":" PROFILE_SAMPLE " would do");
		return;
	}
	if (s->n_cpus > MSG_CPUS_MAX / 2 || profile_open(&s->profile, &o)) {
		log_warn(s->log, "no samples are taken");
		return;
	}
	profile_number(s->profile, MSG_PROFILE_ID);
	s->n_streams = 2 * s->n_cpus;
}

/* ---- regions ------------------------------------------------------------------ */

static void serving_open_watch(struct serving *s)
{
	int ret = s->plan.start_on.event ? watch_open(&s->watch, s->undo, &s->plan, s->clock) : 0;

	if (ret)
		log_warn(s->log, "what lies between regions will not be told: %s", strerror(-ret));
}

/* ---- all of it ---------------------------------------------------------------- */

static int serving_setup(struct serving *s)
{
	struct instance_opts o = { .plan = &s->plan, .log = s->log };
	int ret = instance_make_events(s->undo, s->buffer, s->log)
			  ?: instance_make_region(s->undo, &s->plan, s->log)
			  ?: instance_open(&s->inst, s->undo, s->buffer, &o);

	if (ret)
		return ret;
	ret = s->boot ? join_boot(s) : instance_setup(s->inst);
	if (ret)
		return ret;
	ret = s->boot ? 0 : serving_set_pids(s);
	return ret ? ret : serving_find_facts(s);
}

int serving_prepare(struct serving *s, char **why)
{
	struct agent *a = s->agent;
	int ret = request_parse(&s->plan, &s->req.args, s->log, why);

	if (ret)
		return ret;
	s->buffer = request_buffer(&s->plan);
	if (!s->buffer) {
		*why = strdup("only one buffer of a guest can be recorded");
		return -EINVAL;
	}
	if (!a->probes && request_has_probe(s->buffer)) {
		*why = strdup("a probe reads any memory: only an agent with --probes makes it");
		return -EACCES;
	}
	if (!allow_region(&a->allow, &s->plan)) {
		*why = strdup("--start-on, --stop-on: this event is not allowed here");
		return -EACCES;
	}
	s->boot = boot_take(a, *a->own ? "" : s->buffer->name);
	ret = serving_use_own(s) ?: serving_open_undo(s);
	if (ret)
		goto out;
	ret = allow_apply(&a->allow, undo_dirfd(s->undo), s->buffer, s->log, why);
	if (ret)
		goto out;
	ret = serving_setup(s);
	if (!ret) {
		serving_open_watch(s);
		serving_open_profile(s);
	}
out:
	if (ret && !*why)
		*why = str_printf("cannot set up tracing: %s (the agent's log says more)", strerror(-ret));
	return ret;
}
