// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * All of a recording up to, but not including, switching anything on: the spool,
 * the hypervisor's and the host's buffers, and the guests, which set up meanwhile.
 */
#include <ftw.h>
#include <limits.h>
#include <sys/random.h>
#include <sys/utsname.h>

#include "base/escape.h"
#include "record/session/session-priv.h"

#define PERF_MS	 60000 /* it copies the program */
#define PERF_MAX (64u << 10)

/*
 * The static probes (USDT) of the QEMUs that run (--preset qemu): perf reads the notes that describe
 * them, and gives lines for dynamic_events.
 */

/* By the path that the process runs, once each: a probe is of a file. */
static int find_qemus(const struct session *s, struct strlist *exes)
{
	struct guest_opts o = { .root = s->o->root,
				.skip = GUEST_FROM_LIBVIRT | GUEST_FROM_VM_LIST,
				.log = s->log };
	struct guests all;
	int ret = guests_find(&all, &o);

	for (size_t i = 0; i < all.n && !ret; i++) {
		const int pid = all.v[i].pid;
		char *link, exe[PATH_MAX];
		const char *why = NULL;
		struct stat runs, there;
		ssize_t len;

		if (strcmp(guest_vmm_name(all.v[i].vmm), "QEMU"))
			continue;
		link = str_printf("%s/proc/%d/exe", o.root ? o.root : "", pid);
		len = link ? readlink(link, exe, sizeof(exe) - 1) : -1;
		exe[len < 0 ? 0 : len] = 0;
		if (!*exe || stat(link, &runs) < 0 || stat(exe, &there) < 0 || !same_file(&runs, &there))
			why = "its file is not to be seen, or is another by now";
		else if (strpbrk(exe, " \t\n\v\f\r"))
			why = "a probe takes no path with blanks";
		if (!link)
			ret = -ENOMEM;
		else if (why)
			log_warn(s->log, "--preset qemu: process %d ('%s') is left out: %s", pid,
				 ESCAPED(exe), why);
		else if (!strlist_has(exes, exe))
			ret = strlist_add(exes, exe);
		free(link);
	}
	guests_release(&all);
	return ret;
}

static bool name_is_made(const struct buffer_plan *b, const char *name)
{
	for (size_t i = 0; i < b->n_events; i++)
		if (b->events[i].define && !strcmp(b->events[i].name, name))
			return true;
	return false;
}

/*
 * "p:sdt_qemu/NAME PATH:OFFSET(SEMAPHORE) arg1=...", a line for each place. Another place in the code, or in
 * another QEMU, is NAME_1 ...: an event of its own. Returns their number, or -errno.
 */
static int add_places(struct buffer_plan *b, size_t i, const struct buf *lines)
{
	struct strlist l = { 0 };
	int n = 0, ret = strlist_add_lines(&l, lines->data, lines->len);

	for (size_t k = 0; k < l.n && !ret; k++) {
		const char *place = strchr(l.v[k], ' '), *event;
		struct event_plan *e = &b->events[i];
		char name[128];

		if (strncmp(l.v[k], "p:", 2) || !place)
			continue;
		snprintf(name, sizeof(name), "%s", e->name);
		for (unsigned int more = 1; name_is_made(b, name); more++)
			snprintf(name, sizeof(name), "%s_%u", b->events[i].name, more);
		if (e->define) {
			e = buffer_plan_add_event(b, name, false);
			if (e)
				e->optional = true;
		}
		event = strchr(name, ':') + 1;
		if (e)
			e->define = str_printf("p:%.*s/%s%s", (int)(event - 1 - name), name, event, place);
		ret = e && e->define ? 0 : -ENOMEM;
		n++;
	}
	strlist_release(&l);
	return ret ?: n;
}

static int ask_perf(const struct log *log, const char *const *argv, struct buf *out)
{
	int ret = program_output(argv, out, PERF_MAX, PERF_MS);

	if (ret == -ENOENT)
		log_err(log,
			"--preset qemu: perf, which finds the probes, is not installed (Debian: linux-perf)");
	else if (ret < 0)
		log_err(log, "--preset qemu: perf: %s", errno_text(ret));
	return ret;
}

/* Adds the probes that an executable has, by perf's cache in dir. Whether there are any, or -errno. */
static int probe_exe(const struct session *s, const char *dir, const char *exe)
{
	const char *cache[] = { "perf", "--buildid-dir", dir, "buildid-cache", "--add", exe, NULL };
	struct buf found = { 0 }, out = { 0 };
	bool any;
	int ret = ask_perf(s->log, cache, &out);

	buf_release(&out); /* perf lists its whole cache */
	if (ret > 0)
		ret = log_fail(s->log, -EIO,
			       "--preset qemu: 'perf buildid-cache --add %s' fails, and says why",
			       ESCAPED(exe));
	for (size_t i = 0; i < s->plan->n_buffers; i++) {
		struct buffer_plan *b = &s->plan->buffers[i];

		for (size_t n = 0; n < b->n_events && ret >= 0; n++) {
			const char *argv[] = { "perf", "--buildid-dir",	  dir, "probe", "-x", exe,
					       "-D",   b->events[n].name, NULL };
			struct buf lines = { 0 };

			if (!b->events[n].sdt)
				continue;
			ret = ask_perf(s->log, argv, &lines);
			if (ret >= 0) /* above 0: it has none, and printed none */
				ret = add_places(b, n, &lines);
			if (ret > 0)
				buf_printf(&found, " %s", b->events[n].name);
			buf_release(&lines);
		}
	}
	any = found.len;
	if (any && ret >= 0)
		log_info(s->log, "--preset qemu: %s:%s", ESCAPED(exe), buf_str(&found) ?: "");
	else if (ret >= 0)
		log_warn(s->log,
			 "--preset qemu: %s has none of the probes: it was built without the trace back end "
			 "dtrace; hyptrace import --qemu-log takes its log",
			 ESCAPED(exe));
	buf_release(&found);
	return ret < 0 ? ret : any;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	return remove(path);
}

/* The lines of the plan's static probes, of all running QEMUs. -ENOENT: none runs. */
static int session_find_sdt(struct session *s)
{
	const char *tmp = getenv("TMPDIR");
	struct strlist exes = { 0 };
	bool wanted = false, any = false;
	char *cache; /* perf's, outside any home directory */
	int ret;

	for (size_t i = 0; i < s->plan->n_buffers; i++)
		for (size_t n = 0; n < s->plan->buffers[i].n_events; n++)
			wanted |= s->plan->buffers[i].events[n].sdt;
	if (!wanted)
		return 0;
	cache = str_printf("%s/hyptrace-perf-XXXXXX", tmp ? tmp : "/tmp");
	if (!cache)
		return -ENOMEM;
	if (!mkdtemp(cache)) {
		ret = log_fail_errno(s->log, -errno, "cannot make '%s'", cache);
		goto out;
	}
	ret = find_qemus(s, &exes);
	for (size_t i = 0; i < exes.n && ret >= 0; i++) {
		ret = probe_exe(s, cache, exes.v[i]);
		any |= ret > 0;
	}
	if (ret >= 0 && !any)
		log_err(s->log, "--preset qemu: %s",
			exes.n ? "no QEMU that runs here has them" : "no QEMU runs here that can be probed");
	/* a second recording by this plan uses the same lines */
	for (size_t i = 0; i < s->plan->n_buffers && ret >= 0 && any; i++)
		for (size_t n = 0; n < s->plan->buffers[i].n_events; n++)
			s->plan->buffers[i].events[n].sdt = false;
	ret = ret < 0 ? ret : any ? 0 : -ENOENT;
	nftw(cache, remove_one, 8, FTW_DEPTH | FTW_PHYS);
out:
	strlist_release(&exes);
	free(cache);
	return ret;
}

static int prepare_spool(struct session *s)
{
	const char *output = s->plan->output;
	char text[sizeof(struct utsname)], cwd[PATH_MAX] = "", *path;
	struct utsname u;
	uint64_t traceid = 0;
	int ret;
	if (strchr(output, '\n'))
		return log_fail(s->log, -EINVAL, "cannot write '%s': its name has more than one line",
				output);
	ret = session_new_spool(&s->spool, output, s->plan, s->log);
	if (ret)
		return ret;
	while (!traceid)
		if (getrandom(&traceid, sizeof(traceid), 0) < 0)
			return -errno;
	if (uname(&u) < 0 || (*output != '/' && !getcwd(cwd, sizeof(cwd))))
		return -errno;
	snprintf(text, sizeof(text), "%s %s %s %s %s", u.sysname, u.nodename, u.release, u.version,
		 u.machine);
	path = str_printf("%s%s%s", cwd, *cwd ? "/" : "", output);
	ret = path ? spool_set(s->spool, "output", path) ?: spool_set(s->spool, "uname", text) ?:
			     spool_set_number(s->spool, "traceid", traceid) ?:
			     (s->plan->line ? spool_set(s->spool, "line", s->plan->line) : 0)
		   : -ENOMEM;
	if (!ret && s->plan->flight_ms)
		ret = spool_set_number(s->spool, SPOOL_FLIGHT, (uint64_t)getpid());
	free(path);
	return ret;
}

/*
 * Events that the hypervisor does not have are the host's; one message names them. So
 * may be all of them when there is no hypervisor (--best-effort).
 */
static int route_events(struct session *s, struct buffer_plan *hyp)
{
	struct buf moved = { 0 };
	int ret = 0;

	for (size_t i = 0; i < hyp->n_events && !ret;) {
		if (s->remote && remote_has_event(s->remote, hyp->events[i].name)) {
			i++;
			continue;
		}
		buf_printf(&moved, " %s", hyp->events[i].name);
		ret = buffer_plan_move_event(hyp, i, &s->plan->buffers[0]);
	}
	if (s->remote && moved.len)
		log_info(s->log, "not events of the hypervisor, so recorded in the host's buffer:%s",
			 buf_str(&moved));
	buf_release(&moved);
	return ret;
}

/*
 * --take-over: which host buffers run, with the clock that they have: another one would clear them.
 */
static int find_running(struct session *s)
{
	for (size_t i = 0; s->plan->take_over && i < s->plan->n_buffers; i++) {
		struct buffer_plan *b = &s->plan->buffers[i];
		char path[INSTANCE_PATH], *clock;
		int ret;

		if (b->is_hyp)
			continue;
		snprintf(path, sizeof(path), "%s%s", *b->name ? "instances/" : ".", b->name);
		b->joined = instance_runs(undo_dirfd(s->undo), path);
		if (!b->joined)
			continue;
		snprintf(path, sizeof(path), "%s%s/trace_clock", *b->name ? "instances/" : ".", b->name);
		ret = undo_read(s->undo, path, &clock);
		if (ret)
			return ret;
		if (b->clock && strcmp(b->clock, clock))
			log_warn(s->log, "-C %s: the buffer runs already, by the clock %s", b->clock, clock);
		free(b->clock);
		b->clock = clock;
	}
	return 0;
}

static int prepare_remote(struct session *s, struct buffer_plan *hyp)
{
	int ret = remote_open(&s->remote, s->undo, hyp->name, s->log);

	if (ret == -ENOENT && strcmp(hyp->name, REMOTE_HYP))
		remote_explain_named(undo_dirfd(s->undo), hyp->name, s->log);
	else if (ret == -ENOENT)
		remote_explain(undo_dirfd(s->undo), "", s->log);
	ret = ret ?: route_events(s, hyp);
	for (size_t i = 0; i < hyp->n_events && !ret; i++) {
		const struct event_plan *e = &hyp->events[i];

		/* its events can only be switched on and off */
		if (e->filter || e->triggers.n)
			ret = log_fail(s->log, -EINVAL, "-e %s: the hypervisor's events take no %s", e->name,
				       e->filter ? "filter (-f)" : "trigger (-R)");
	}
	ret = ret ?: remote_setup(s->remote, hyp, s->plan->take_over);
	if (ret && s->plan->best_effort) {
		log_warn(s->log, "going on without the hypervisor (--best-effort)");
		remote_free(s->remote);
		s->remote = NULL;
		return undo_all(s->undo) ? -EIO : route_events(s, hyp);
	}
	return ret;
}

static int add_track(struct session *s, struct session_track t)
{
	/* the track first: it owns what it was given, also when the spool cannot take it */
	s->tracks[s->n_tracks++] = t;
	return recorder_describe(s->spool, t.source);
}

static int prepare_host(struct session *s, const struct buffer_plan *b)
{
	/*
	 * one clock for all: the hypervisor has no other, guests need one that does not stop in
	 * suspend, and samples have no "local"
	 */
	bool boot = s->remote || s->plan->n_guests || s->plan->profile_hz || s->plan->marks;
	const char *clock = boot ? "boot" : NULL;
	struct instance_opts io = {
		.plan = s->plan, .clock = clock, .log = s->log, .match = instance_match_functions
	};
	struct instance *i;
	struct source *h = NULL;
	int ret = instance_open(&i, s->undo, b, &io);

	if (ret)
		return ret;
	ret = b->joined ? instance_join(i) : instance_setup(i);
	ret = ret ?: host_open(&h, undo_dirfd(s->undo), b->name, i->path, i->clock, s->log);
	if (ret) {
		instance_free(i);
		return ret;
	}
	if (s->remote && strcmp(i->clock, "boot"))
		log_warn(s->log,
			 "%s%sthe hypervisor's clock is boot, this buffer's is %s: their times do not "
			 "line up (%s)",
			 b->name, *b->name ? ": " : "", i->clock,
			 b->joined ? "trace_clock=boot on the kernel's command line" : "leave out -C");
	if (clock && !b->clock)
		log_info(s->log, "%s: clock boot, as everywhere in this recording (put back afterwards)",
			 *b->name ? b->name : "host");
	return add_track(s, (struct session_track){ .source = h,
						    .instance = i,
						    .joined = b->joined,
						    .size_kb = b->joined ? 0 : b->size_kb });
}

/*
 * True if buffer i of the plan is a host's to record; a top buffer without events and tracer is not,
 * unless it runs and is taken over, or has a region's triggers.
 */
static bool is_recorded(const struct record_plan *plan, size_t i)
{
	const struct buffer_plan *b = &plan->buffers[i];

	return !b->is_hyp && (i || b->n_events || b->tracer || b->joined ||
			      (region_asked(plan) && !region_has_buffer(plan)));
}

static int prepare_hosts(struct session *s)
{
	int ret = 0;

	for (size_t i = 0; i < s->plan->n_buffers && !ret; i++)
		ret = instance_make_events(s->undo, &s->plan->buffers[i], s->log);
	ret = ret ?: instance_make_region(s->undo, s->plan, s->log);
	if (ret)
		return ret;
	for (size_t i = 0; i < s->plan->n_buffers; i++) {
		const struct buffer_plan *b = &s->plan->buffers[i];

		if (!is_recorded(s->plan, i))
			continue;
		/* the profile and the hypervisor are still to come */
		if (s->n_tracks == SESSION_BUFFERS_MAX - 2)
			return log_fail(s->log, -E2BIG, "more than %d buffers", SESSION_BUFFERS_MAX);
		ret = prepare_host(s, b);
		if (ret)
			return ret;
	}
	session_region_watch(s);
	return 0;
}

/* sched_switch shows who ran only when all of it is recorded: no pid filter, no event filter, no regions. */
static int set_sched_buffer(struct session *s)
{
	for (size_t b = 0; b < s->plan->n_buffers; b++)
		for (size_t e = 0; e < s->plan->buffers[b].n_events; e++)
			if (s->plan->buffers[b].events[e].filter)
				return 0;
	if (s->plan->pids.n || s->plan->filter_command || region_asked(s->plan))
		return 0;
	for (size_t i = 0; i < s->n_tracks; i++) {
		struct strlist systems = { 0 };
		bool sched;
		int ret;

		if (!s->tracks[i].instance)
			continue;
		ret = instance_systems(s->tracks[i].instance, &systems);
		sched = strlist_has(&systems, "sched");
		strlist_release(&systems);
		if (ret)
			return ret;
		if (sched)
			return spool_set_number(s->spool, "sched_buffer", i);
	}
	return 0;
}

/* The clock of the first buffer that will be recorded: with guests, or samples, it is boot unless named. */
static const char *first_clock(const struct session *s)
{
	const char *clock = NULL;
	size_t i = 0;

	while (i < s->plan->n_buffers && !is_recorded(s->plan, i))
		i++;
	if (i < s->plan->n_buffers)
		clock = s->plan->buffers[i].clock;
	else if (s->plan->profile_hz)
		clock = s->plan->buffers[0].clock;
	return clock ? clock : "boot";
}

/* By the clock of the host's buffers, which have the tracer's own events and are there by now. */
static int prepare_profile(struct session *s, unsigned int first_id)
{
	struct profile_opts o = { .hz = (unsigned int)s->plan->profile_hz,
				  .clock = s->n_tracks ? s->tracks[0].source->clock : first_clock(s),
				  .by_clock = s->remote,
				  .first_id = first_id,
				  .log = s->log };
	int ret = tracefs_cpus(undo_dirfd(s->undo), "per_cpu", &o.n_cpus) ?: profile_open(&s->profile, &o);

	if (ret && s->plan->best_effort && ret != -ENOMEM) {
		log_warn(s->log, "going on without --profile (--best-effort)");
		return 0;
	}
	return ret ?: profile_keep_formats(first_id, s->spool) ?:
		      add_track(s, (struct session_track){ .source = profile_source(s->profile) });
}

static int prepare_texts(struct session *s)
{
	unsigned int max_id;
	struct strlist systems = { 0 };
	int ret = 0;

	for (size_t i = 0; i < s->n_tracks && !ret; i++)
		if (s->tracks[i].instance)
			ret = instance_systems(s->tracks[i].instance, &systems);
	ret = ret ?: collect_formats(undo_dirfd(s->undo), &systems, s->spool, &max_id, s->log);
	strlist_release(&systems);
	if (!ret && s->plan->profile_hz) {
		ret = prepare_profile(s, max_id + 1);
		max_id += PROFILE_EVENTS;
	}
	if (!ret && s->plan->marks) {
		struct rings_opts o = { .named = &s->plan->rings,
					.root = s->o->root,
					.spool = s->spool,
					.undo = s->undo,
					.log = s->log };

		/* the doorbells of the guests' rings are a host's buffer of the plan */
		ret = mark_keep_format(s->spool, ++max_id) ?: rings_open(&s->rings, &o);
	}
	/* the hypervisor's events get ids above all others */
	if (!ret && s->remote)
		ret = remote_number(s->remote, max_id + 1, s->spool)
			      ?: add_track(s, (struct session_track){ .source = &s->remote->source,
								      .joined = s->remote->joined,
								      .size_kb = s->remote->size_kb });
	return ret ?: set_sched_buffer(s);
}

static int set_file_clock(struct session *s)
{
	const char *clock = s->n_tracks ? s->tracks[0].source->clock : "local";
	int ret = spool_set(s->spool, "clock", clock) ?: collect_wall(s->spool),
	    id = clock_marker_system(clock);
	char text[32];

	if (ret || !s->plan->date)
		return ret;
	if (id < 0)
		return log_fail(
			s->log, -EINVAL,
			"--date: the wall-clock time of clock %s is not known; use -C mono, boot, mono_raw "
			"or tai",
			clock);
	snprintf(text, sizeof(text), "%lld", (long long)(clock_now(CLOCK_REALTIME) - clock_now(id)) / 1000);
	return spool_set(s->spool, "date_offset_us", text);
}

/* Refuses a clock that the kernel has not before guests are asked to set up by it. */
static int check_clock(struct session *s, const char *clock)
{
	char line[1024], in_use[64];

	snprintf(in_use, sizeof(in_use), "[%s]", clock);
	if (!strcmp(clock, "boot") || read_line_at(undo_dirfd(s->undo), line, sizeof(line), "trace_clock") ||
	    words_have(line, clock) || words_have(line, in_use) || !strchr(line, '['))
		return 0;
	return log_fail(s->log, -EINVAL, "-C %s: no clock of this kernel (there are: %s)", clock, line);
}

/* Asks all guests at once; they set up while the host does. */
static int prepare_guests(struct session *s)
{
	const struct record_plan *plan = s->plan;
	struct session_guests *g = &s->guests;
	enum tsync_method m = plan->tsync;
	/* not with --keep: what the clocks make in tracefs would stay */
	bool clocks = plan->n_guests && m != TSYNC_NONE && !plan->keep;
	int ret = 0;

	if (plan->n_guests) {
		g->host_trace_id = spool_get_number(s->spool, "traceid", 0);
		g->clock = first_clock(s);
		g->tsync = m;
		g->counter = clocks && counter_there();
		ret = check_clock(s, g->clock) ?: session_guests_prepare(g, spool_get(s->spool, "output"))
			      ?: guests_ask_begin(g);
	}
	if (ret)
		return ret;
	if (clocks)
		ret = clock_sampler_start(&g->clocks, s->undo, g->clock, plan->tsync_interval_ms,
					  m == TSYNC_AUTO || m == TSYNC_COUNTER, s->log);
	/* without them the recording is as good, but for the clocks of its guests */
	if (ret && ret != -ENOMEM)
		log_warn(s->log, "the guests' clocks are not tied by counters: %s", errno_text(ret));
	guests_ask_clocks(g);
	return ret == -ENOMEM ? ret : 0;
}

int session_prepare_all(struct session *s)
{
	struct buffer_plan *hyp = NULL;
	int ret;

	for (size_t i = 0; i < s->plan->n_buffers && !hyp; i++)
		if (s->plan->buffers[i].is_hyp)
			hyp = &s->plan->buffers[i];
	s->tracing_dir = tracefs_dir(s->o->tracing_dir, s->log);
	if (!s->tracing_dir)
		return -ENOENT;
	ret = session_find_sdt(s);
	if (ret)
		return ret;
	/* before there are threads, and locks, which it would hold for a moment when this was killed */
	if (s->plan->command) {
		ret = command_fork(&s->command, s->plan->command, s->plan->user);
		s->has_command = !ret;
	}
	if (ret)
		return log_fail(s->log, ret, ret == -ENOENT ? "no such user: '%s'" : "cannot fork for '%s'",
				ret == -ENOENT ? s->plan->user : s->plan->command[0]);
	ret = prepare_spool(s) ?: undo_open(&s->undo, s->tracing_dir, spool_dirfd(s->spool), "undo", s->log);
	if (!ret && hyp)
		ret = prepare_remote(s, hyp);
	ret = ret ?: find_running(s) ?: prepare_guests(s) ?: prepare_hosts(s) ?: prepare_texts(s);
	if (!ret && !s->n_tracks && !s->guests.n)
		return log_fail(s->log, -EINVAL,
				"nothing to record: name events (-e), a tracer (-p), the hypervisor (-B hyp) "
				"or --profile");
	return ret ?: set_file_clock(s) ?: rotate_prepare(s);
}
