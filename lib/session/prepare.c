// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/utsname.h>
#include <time.h>
#include <tracefs.h>
#include <unistd.h>

#include "record/collect.h"
#include "session/session-priv.h"

char *session_tracing_dir(const struct session_opts *o)
{
	const char *dir = o->tracing_dir;

	if (dir) /* libtracefs is to look there too */
		tracefs_set_tracing_dir((char *)(uintptr_t)dir);
	else
		dir = tracefs_tracing_dir(); /* mounts it when it is not */
	if (!dir || access(dir, F_OK)) {
		log_err(o->log, "tracefs is not mounted and cannot be (mount -t tracefs tracefs "
				"/sys/kernel/tracing as root)");
		return NULL;
	}
	if (access(dir, R_OK | X_OK)) {
		log_err(o->log, "cannot read %s: %s (root is needed)", dir, strerror(errno));
		return NULL;
	}
	return strdup(dir);
}

/* ---- the session file ---------------------------------------------------------------- */

static int set_output(struct session *s)
{
	char cwd[PATH_MAX];
	char *path;
	int ret;

	if (s->plan->output[0] == '/')
		return spool_set(s->spool, "output", s->plan->output);
	if (!getcwd(cwd, sizeof(cwd)))
		return -errno;
	path = str_printf("%s/%s", cwd, s->plan->output);
	ret = path ? spool_set(s->spool, "output", path) : -ENOMEM;
	free(path);
	return ret;
}

static int set_uname(struct session *s)
{
	struct utsname u;
	char text[sizeof(u)];

	if (uname(&u) < 0)
		return -errno;
	snprintf(text, sizeof(text), "%s %s %s %s %s", u.sysname, u.nodename, u.release, u.version,
		 u.machine);
	return spool_set(s->spool, "uname", text);
}

static int make_spool(struct session *s)
{
	char *dir = str_printf("%s.spool", s->plan->output);
	uint64_t traceid = 0;
	int ret = dir ? spool_create(&s->spool, dir, s->log) : -ENOMEM;

	if (ret == -EEXIST)
		log_err(s->log, "'%s' holds an unfinished recording: run `hyptrace recover %s`, or remove it",
			dir, dir);
	else if (ret)
		log_err(s->log, "cannot make the spool '%s': %s", dir ? dir : "", errno_text(ret));
	free(dir);
	if (ret)
		return ret;
	while (!traceid)
		if (getrandom(&traceid, sizeof(traceid), 0) < 0)
			return -errno;
	ret = set_output(s);
	if (!ret)
		ret = set_uname(s);
	if (!ret)
		ret = spool_set_boot_id(s->spool);
	if (!ret)
		ret = spool_set_number(s->spool, "traceid", traceid);
	if (!ret)
		ret = spool_set_number(s->spool, "version",
				       s->plan->file_version ? (uint64_t)s->plan->file_version : 7);
	if (!ret)
		ret = spool_set(s->spool, "compression",
				s->plan->compression ? s->plan->compression : "zstd");
	if (!ret)
		ret = spool_set(s->spool, "tracing_dir", s->tracing_dir);
	return ret;
}

static int make_undo(struct session *s)
{
	char *journal = spool_path(s->spool, "undo");
	int ret = journal ? undo_open(&s->undo, s->tracing_dir, journal, s->log) : -ENOMEM;

	free(journal);
	return ret;
}

/* ---- which buffer records what ------------------------------------------------------------ */

static struct buffer_plan *hyp_plan(struct session *s)
{
	for (size_t i = 0; i < s->plan->n_buffers; i++)
		if (s->plan->buffers[i].is_hyp)
			return &s->plan->buffers[i];
	return NULL;
}

static bool plan_is_empty(const struct buffer_plan *b)
{
	return !b->n_events && !b->tracer;
}

static int move_event(struct buffer_plan *from, size_t i, struct buffer_plan *to)
{
	struct event_plan *v = realloc(to->events, (to->n_events + 1) * sizeof(*v));

	if (!v)
		return -ENOMEM;
	to->events = v;
	v[to->n_events++] = from->events[i];
	memmove(&from->events[i], &from->events[i + 1], (--from->n_events - i) * sizeof(*v));
	return 0;
}

/* Without a hypervisor (--best-effort) what was asked of it may be the host's. */
static int route_all_events(struct session *s, struct buffer_plan *hyp)
{
	int ret = 0;

	while (hyp->n_events && !ret)
		ret = move_event(hyp, 0, &s->plan->buffers[0]);
	return ret;
}

/* DESIGN.md decision 5: what the hypervisor does not have is the host's, and that is said once. */
static int route_events(struct session *s, struct buffer_plan *hyp)
{
	struct buf moved = { 0 };
	int ret = 0;

	for (size_t i = 0; i < hyp->n_events && !ret;) {
		if (remote_has_event(s->remote, hyp->events[i].name)) {
			i++;
			continue;
		}
		buf_printf(&moved, " %s", hyp->events[i].name);
		ret = move_event(hyp, i, &s->plan->buffers[0]);
	}
	if (moved.len)
		log_info(s->log, "not events of the hypervisor, so recorded in the host's buffer:%s",
			 buf_str(&moved));
	buf_release(&moved);
	return ret;
}

/* Its events can only be switched on and off: what they are asked beyond that is not done silently. */
static int check_hyp_events(struct session *s, const struct buffer_plan *hyp)
{
	for (size_t i = 0; i < hyp->n_events; i++) {
		const struct event_plan *e = &hyp->events[i];

		if (!e->filter && !e->triggers.n)
			continue;
		log_err(s->log, "-e %s: the hypervisor's events take no %s", e->name,
			e->filter ? "filter (-f)" : "trigger (-R)");
		return -EINVAL;
	}
	return 0;
}

/* ---- the hypervisor --------------------------------------------------------------------------- */

static int prepare_remote(struct session *s, struct buffer_plan *hyp)
{
	int ret = remote_open(&s->remote, s->undo, s->log);

	if (ret == -ENOENT)
		remote_explain(undo_dirfd(s->undo), "", s->log);
	if (!ret)
		ret = route_events(s, hyp);
	if (!ret)
		ret = check_hyp_events(s, hyp);
	if (!ret)
		ret = remote_setup(s->remote, hyp);
	if (ret && s->plan->best_effort) {
		log_warn(s->log, "going on without the hypervisor (--best-effort)");
		remote_free(s->remote);
		s->remote = NULL;
		return undo_all(s->undo) ? -EIO : route_all_events(s, hyp);
	}
	if (!ret)
		log_info(s->log, "hyp: %s, %zu events, %llu KiB per CPU, %s", remote_source(s->remote)->path,
			 remote_n_events(s->remote), (unsigned long long)remote_size_kb(s->remote),
			 !strcmp(remote_source(s->remote)->ops->kind, "hyp-raw") ? "raw pages" : "text");
	return ret;
}

/* ---- the host's buffers -------------------------------------------------------------------------- */

static int add_track(struct session *s, struct source *source, struct instance *i, struct host *h,
		     uint64_t size_kb)
{
	struct spool_buffer b = {
		.name = source->name,
		.clock = source->clock,
		.path = source->path,
		.kind = source->ops->kind,
		.page_size = source->page_size,
		.n_cpus = source->n_cpus,
	};

	/* the track first: it owns what it was given, also when the spool cannot take it */
	s->tracks[s->n_tracks++] =
		(struct session_track){ .source = source, .instance = i, .host = h, .size_kb = size_kb };
	return spool_add_buffer(s->spool, &b);
}

static int prepare_host(struct session *s, const struct buffer_plan *b)
{
	/* one clock for all: the hypervisor knows no other, and guests need one that runs on */
	const char *clock = s->remote || s->plan->n_guests ? "boot" : NULL;
	struct instance_opts io = { .plan = s->plan, .clock = clock, .log = s->log };
	struct instance *i;
	struct host *h = NULL;
	int ret = instance_open(&i, s->undo, b, &io);

	if (ret)
		return ret;
	ret = instance_setup(i);
	if (!ret)
		ret = host_open(&h, undo_dirfd(s->undo), b->name, instance_path(i), instance_clock(i),
				s->log);
	if (ret) {
		instance_free(i);
		return ret;
	}
	if (s->remote && strcmp(instance_clock(i), "boot"))
		log_warn(s->log,
			 "%s%sthe hypervisor's clock is boot, this buffer's is %s: their times do not "
			 "line up (leave out -C %s)",
			 b->name, *b->name ? ": " : "", instance_clock(i), instance_clock(i));
	if (clock && !b->clock)
		log_info(s->log, "%s: clock boot, as everywhere in this recording (put back afterwards)",
			 *b->name ? b->name : "host");
	return add_track(s, host_source(h), i, h, b->size_kb);
}

static int too_many(struct session *s)
{
	log_err(s->log, "more than %d buffers", SESSION_BUFFERS_MAX);
	return -E2BIG;
}

/* As one of the host's own: a top buffer that nobody asked for is left alone. */
static bool is_recorded(const struct record_plan *plan, size_t i)
{
	const struct buffer_plan *b = &plan->buffers[i];

	return !b->is_hyp && (i || !plan_is_empty(b));
}

static int prepare_hosts(struct session *s)
{
	for (size_t i = 0; i < s->plan->n_buffers; i++) {
		const struct buffer_plan *b = &s->plan->buffers[i];
		int ret;

		if (!is_recorded(s->plan, i))
			continue;
		if (s->n_tracks == SESSION_BUFFERS_MAX - 1)
			return too_many(s);
		ret = prepare_host(s, b);
		if (ret)
			return ret;
	}
	return 0;
}

/* ---- texts and ids ------------------------------------------------------------------------------- */

/* sched_switch tells who ran only when all of it is recorded: no pid filter, no event filter. */
static int note_sched(struct session *s)
{
	if (s->plan->pids.n || s->plan->filter_command)
		return 0;
	for (size_t i = 0; i < s->n_tracks; i++) {
		struct strlist systems = { 0 };
		bool filtered = false, sched;
		int ret;

		if (!s->tracks[i].instance)
			continue;
		ret = instance_systems(s->tracks[i].instance, &systems);
		sched = strlist_has(&systems, "sched");
		strlist_release(&systems);
		if (ret)
			return ret;
		for (size_t b = 0; b < s->plan->n_buffers; b++)
			for (size_t e = 0; e < s->plan->buffers[b].n_events; e++)
				filtered |= s->plan->buffers[b].events[e].filter != NULL;
		if (sched && !filtered)
			return spool_set_number(s->spool, "sched_buffer", i);
	}
	return 0;
}

static int collect_systems(struct session *s, struct strlist *systems)
{
	int ret = 0;

	for (size_t i = 0; i < s->n_tracks && !ret; i++)
		if (s->tracks[i].instance)
			ret = instance_systems(s->tracks[i].instance, systems);
	return ret;
}

static int prepare_texts(struct session *s)
{
	struct strlist systems = { 0 };
	unsigned int max_id;
	int ret = collect_systems(s, &systems);

	if (!ret)
		ret = collect_formats(undo_dirfd(s->undo), &systems, s->spool, &max_id, s->log);
	strlist_release(&systems);
	if (!ret && s->remote) {
		remote_set_spool(s->remote, s->spool);
		ret = remote_number(s->remote, max_id + 1, s->spool);
		if (!ret)
			ret = add_track(s, remote_source(s->remote), NULL, NULL, remote_size_kb(s->remote));
	}
	return ret ? ret : note_sched(s);
}

/* ---- clock and date -------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	clockid_t id;
} clocks[] = {
	{ "boot", CLOCK_BOOTTIME },
	{ "mono", CLOCK_MONOTONIC },
	{ "mono_raw", CLOCK_MONOTONIC_RAW },
	{ "tai", CLOCK_TAI },
};

static int64_t now_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static int note_date(struct session *s, const char *clock)
{
	char text[32];

	for (size_t i = 0; i < ARRAY_SIZE(clocks); i++) {
		if (strcmp(clock, clocks[i].name))
			continue;
		snprintf(text, sizeof(text), "%lld",
			 (long long)(now_ns(CLOCK_REALTIME) - now_ns(clocks[i].id)) / 1000);
		return spool_set(s->spool, "date_offset_us", text);
	}
	log_err(s->log,
		"--date: the wall-clock time of clock %s is not known; use -C mono, boot, mono_raw or tai",
		clock);
	return -EINVAL;
}

static int note_clock(struct session *s)
{
	const char *clock = s->n_tracks ? s->tracks[0].source->clock : "local";
	int ret = spool_set(s->spool, "clock", clock);

	return ret || !s->plan->date ? ret : note_date(s, clock);
}

/* ---- guests --------------------------------------------------------------------------------------- */

/* Of the first buffer that will be recorded; that of a host with guests is boot unless named. */
static const char *first_clock(const struct session *s)
{
	const char *clock = NULL;
	size_t i = 0;

	while (i < s->plan->n_buffers && !is_recorded(s->plan, i))
		i++;
	if (i < s->plan->n_buffers)
		clock = s->plan->buffers[i].clock;
	return clock ? clock : "boot";
}

/* What they make in tracefs is not to be kept. */
static bool want_clocks(const struct session *s)
{
	return s->plan->n_guests && s->plan->tsync != TSYNC_NONE && !s->plan->keep;
}

/* They are asked at once, and are set up while the host is. */
static int prepare_guests(struct session *s)
{
	uint64_t id = 0;
	int ret;

	if (!s->plan->n_guests)
		return 0;
	parse_u64(spool_get(s->spool, "traceid"), &id);
	s->guests.host_trace_id = id;
	s->guests.clock = first_clock(s);
	s->guests.stop_fd = s->o->stop_fd;
	s->guests.timeout_ms = s->o->guest_timeout_ms;
	s->guests.root = s->o->root;
	s->guests.tsync = s->plan->tsync;
	s->guests.tsync_interval_ms = s->plan->tsync_interval_ms;
	s->guests.counter = want_clocks(s) && counter_there();
	s->guests.log = s->log;
	ret = session_guests_prepare(&s->guests, s->plan, spool_get(s->spool, "output"));
	return ret ? ret : session_guests_ask(&s->guests);
}

/* Without them the recording is as good, but for the clocks of its guests. */
static int start_clocks(struct session *s)
{
	enum tsync_method m = s->plan->tsync;
	int ret = 0;

	if (want_clocks(s))
		ret = clock_sampler_start(&s->guests.clocks, s->undo, s->guests.clock,
					  s->plan->tsync_interval_ms, m == TSYNC_AUTO || m == TSYNC_COUNTER,
					  s->log);
	if (ret && ret != -ENOMEM) {
		log_warn(s->log, "the guests' clocks are not tied by counters: %s", errno_text(ret));
		ret = 0;
	}
	session_guests_clocks_run(&s->guests);
	return ret;
}

/* Before there are threads. */
static int fork_command(struct session *s)
{
	int ret;

	if (!s->plan->command)
		return 0;
	ret = command_fork(&s->command, s->plan->command, s->plan->user);
	s->has_command = !ret;
	if (ret)
		log_err(s->log, ret == -ENOENT ? "no such user: '%s'" : "cannot fork for '%s'",
			ret == -ENOENT ? s->plan->user : s->plan->command[0]);
	return ret;
}

int session_prepare(struct session *s)
{
	struct buffer_plan *hyp = hyp_plan(s);
	int ret;

	s->tracing_dir = session_tracing_dir(s->o);
	if (!s->tracing_dir)
		return -ENOENT;
	ret = make_spool(s);
	if (!ret)
		ret = make_undo(s);
	if (!ret)
		ret = fork_command(s);
	if (!ret && hyp)
		ret = prepare_remote(s, hyp);
	if (!ret)
		ret = prepare_guests(s);
	if (!ret)
		ret = start_clocks(s);
	if (!ret)
		ret = prepare_hosts(s);
	if (!ret)
		ret = prepare_texts(s);
	if (!ret && !s->n_tracks && !s->guests.n) {
		log_err(s->log,
			"nothing to record: name events (-e), a tracer (-p) or the hypervisor (-B hyp)");
		ret = -EINVAL;
	}
	return ret ? ret : note_clock(s);
}
