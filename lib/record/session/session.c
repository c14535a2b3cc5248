// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The road of a recording once all is prepared: arm (readers, then the hypervisor,
 * the guests, the host), run, stop in reverse, drain, write the files, put tracefs
 * back. Processes: the recorder is hidden, those asked for are traced, their maps kept.
 */
#include <math.h>
#include <poll.h>
#include <sys/eventfd.h>

#include "record/session/session-priv.h"

/*
 * Keeps the recorder's own work out of the trace. All its threads run by now: those that drain, and
 * those that sample clocks.
 */
static int session_hide_recorder(struct session *s)
{
	struct buf list = { 0 };
	int ret;
	struct strlist names = { 0 };

	if (s->plan->no_filter)
		return 0;
	/* A pid a line, for set_event_notrace_pid. */
	ret = read_dir_at(AT_FDCWD, "/proc/self/task", &names);
	for (size_t i = 0; i < names.n; i++)
		buf_printf(&list, "%s\n", names.v[i]);
	strlist_release(&names);
	ret = ret ? ret : buf_str(&list) ? 0 : -ENOMEM;
	if (ret)
		log_err(s->log, "cannot list the recorder's threads: %s", errno_text(ret));
	for (size_t i = 0; i < s->n_tracks && !ret; i++)
		if (s->tracks[i].instance)
			ret = instance_hide_pids(s->tracks[i].instance, buf_str(&list));
	if (!ret && rotate_instance(s))
		ret = instance_hide_pids(rotate_instance(s), buf_str(&list));
	buf_release(&list);
	return ret;
}

/* Writes their present maps into the spool, as long as there are such processes. */
static void session_keep_maps(struct session *s)
{
	static const char *const names[] = { "maps", "comm" };

	for (size_t i = 0; i < 2 * s->procs.n; i++) {
		const char *pid = s->procs.v[i / 2], *name = names[i % 2];
		char path[64], key[64];
		struct buf text = { 0 };

		snprintf(path, sizeof(path), "/proc/%.20s/%s", pid, name);
		snprintf(key, sizeof(key), "proc%s.%.20s", name, pid);
		if (!read_file(path, 16 << 20, &text) && text.len)
			spool_put_text(s->spool, key, text.data, text.len);
		buf_release(&text);
	}
}

/* --proc-map: which processes' maps are to be kept. */
static int session_choose_procs(struct session *s)
{
	struct buf list = { 0 };
	int ret = 0;

	for (size_t i = 0; s->plan->proc_map && i < s->plan->pids.n && !ret; i++)
		ret = strlist_add(&s->procs, s->plan->pids.v[i]);
	if (!ret && s->plan->proc_map && s->has_command)
		ret = strlist_take(&s->procs, str_printf("%d", (int)s->command.pid));
	for (size_t i = 0; i < s->procs.n; i++)
		buf_printf(&list, "%s ", s->procs.v[i]);
	if (!ret && s->procs.n)
		ret = buf_str(&list) ? spool_set(s->spool, "procmaps", buf_str(&list)) : -ENOMEM;
	buf_release(&list);
	return ret;
}

#define TICK_MS		 500
#define FIRST_MAPS_MS	 50 /* a command has its libraries mapped by then */
#define DRAIN_TIMEOUT_MS 60000

void session_sum(struct session *s)
{
	s->summary->n_buffers = s->n_tracks;
	s->summary->seconds = s->started_at > 0 ? session_now() - s->started_at : 0;
	for (size_t i = 0; i < s->n_tracks; i++) {
		const struct session_track *t = &s->tracks[i];
		struct drain_totals totals = recorder_totals(s->recorder, t->source);
		struct session_buffer *b = &s->summary->buffers[i];

		if (!t->source)
			continue;
		*b = (struct session_buffer){
			.bytes = totals.bytes,
			.events = totals.events,
			.lost = totals.lost,
			.lost_more = totals.unknown,
			.taken = totals.taken,
			.bad = totals.bad,
			.size_kb = t->size_kb,
			.profile = !strcmp(t->source->ops->kind, "profile"),
			.joined = t->joined,
			.unread = s->remote && t->source == &s->remote->source && s->remote->unread,
		};
		snprintf(b->name, sizeof(b->name), "%s", t->source->name);
		for (unsigned int cpu = 0; t->source->ops->count && cpu < t->source->n_cpus; cpu++) {
			uint64_t events, lost;

			if (!t->source->ops->count(t->source, cpu, &events, &lost)) {
				b->events += events;
				b->lost += lost;
			}
		}
		/* what a ring overwrites is not lost */
		if (s->plan->ring && !b->profile) {
			b->lost = 0;
			b->lost_more = false;
		}
	}
	session_guests_sum(&s->guests, s->recorder, s->summary);
}

/* A thread that records cannot go on: the main loop ends the recording. */
static void session_fail(void *ctx, int error)
{
	struct session *s = ctx;

	s->failure = error;
	if (eventfd_write(s->fail_fd, 1) < 0)
		log_err(s->log, "eventfd: %s", strerror(errno));
}

static void on_failure(void *ctx, const struct source *source, unsigned int cpu, int error)
{
	const struct session *s = ctx;

	if (error != -ENOSPC)
		log_err(s->log, "%s%scpu %u: %s", source->name, *source->name ? ": " : "", cpu,
			errno_text(error));
	session_fail(ctx, error);
}

static int start_track(struct session *s, size_t i)
{
	struct session_track *t = &s->tracks[i];
	int ret;

	/* also when it fails half-way it must be stopped */
	t->started = true;
	ret = t->instance ? instance_begin_region(t->instance) : 0;
	/* the kernel switches the host's buffers then, and session_region_look() the others */
	return ret || s->plan->start_on.event ? ret : t->source->ops->start(t->source);
}

/* The hypervisor's is the last track. */
static size_t host_tracks(const struct session *s)
{
	return s->n_tracks - (s->remote ? 1 : 0);
}

static int start_hosts(struct session *s)
{
	int ret = 0;

	if (s->n_tracks)
		s->guests.host_started = boot_ns();
	for (size_t i = host_tracks(s); i-- && !ret;)
		ret = start_track(s, i);
	rings_tracing(s->rings, true);
	s->started_at = session_now();
	return ret;
}

/* Readers first: the hypervisor's buffer is only polled while somebody reads it. */
static int arm(struct session *s)
{
	const bool pids = s->plan->filter_command || s->plan->pids.n, best_effort = s->plan->best_effort;
	const pid_t command = s->plan->filter_command && s->has_command ? s->command.pid : 0;
	struct recorder_opts ro = { .sleep_us = s->plan->sleep_us,
				    .rt_prio = s->plan->rt_prio,
				    .ring = s->plan->ring,
				    .failed = on_failure,
				    .ctx = s,
				    .log = s->log };
	int ret = recorder_new(&s->recorder, &ro) ?: spool_set(s->spool, "state", "armed");

	if (!ret && spool_reserve(s->spool, 0) == -ENOSPC)
		ret = -ENOSPC;
	for (size_t i = 0; i < s->n_tracks && !ret; i++)
		ret = recorder_add(s->recorder, s->tracks[i].source, s->spool, i);
	ret = ret ?: guests_ask_add(&s->guests, best_effort, s->recorder);
	ret = ret ?: rotate_begin(s) ?: rings_start(s->rings, session_fail, s) ?: session_hide_recorder(s);
	/* -F and -P: only these are traced in the host's buffers */
	for (size_t i = 0; pids && i < s->n_tracks && !ret; i++)
		if (s->tracks[i].instance)
			ret = instance_set_pids(s->tracks[i].instance, &s->plan->pids, command);
	ret = ret ?: session_region_begin(s);
	if (ret)
		return ret;
	/*
	 * The hypervisor first, for its start blocks >= 100 ms; last the host, which takes no time. But
	 * setting up a guest takes far longer while the hypervisor is traced, and a guest of trace-cmd's
	 * agent begins as soon as it is set up: the hypervisor is started while such are about to, the host
	 * as soon as they have.
	 */
	guests_ask_await(&s->guests);
	if (s->remote) {
		remote_keep_bound(s->remote, false);
		ret = start_track(s, s->n_tracks - 1);
	}
	ret = ret ?: guests_ask_finish(&s->guests, best_effort);
	if (ret)
		return ret;
	guests_ask_start(&s->guests);
	if (guests_ask_tracing(&s->guests))
		ret = start_hosts(s) ?: guests_ask_finish(&s->guests, best_effort);
	else
		ret = guests_ask_finish(&s->guests, best_effort) ?: start_hosts(s);
	return ret ?: rotate_started(s);
}

/* The formats of printk and the names of tasks into the spool. */
static int session_keep_names(struct session *s)
{
	int ret = collect_names(undo_dirfd(s->undo), s->spool, s->log);

	ret = ret || !s->profile ? ret : profile_collect_names(s->profile, s->spool);
	return ret || !s->remote ? ret : remote_collect_pids(s->remote);
}

/*
 * Twice a second: space for the file (a flight recorder's spool is in memory, its file is not), maps of
 * processes, the guests' threads and clocks, progress, --rotate and the like.
 */
static int session_tick(struct session *s)
{
	uint64_t bytes = rotate_bytes(s);
	bool cut;
	int ret;

	/* a repair writes the hypervisor's pages once more; the spool's reserve is a quarter of this */
	if (s->remote && s->remote->early)
		bytes += 4 * (s->rotate ? bytes : recorder_totals(s->recorder, &s->remote->source).bytes);
	ret = s->plan->flight_ms ? 0 : spool_reserve(s->spool, bytes);
	if (!rotate_is_writing(s)) {
		session_keep_maps(s);
		session_guests_refresh_vcpus(&s->guests, false);
	}
	session_guests_note_clocks(&s->guests, s->spool);
	if (s->o->progress) {
		session_sum(s);
		s->o->progress(s->o->ctx, s->summary);
	}
	if (ret == -ENOSPC)
		return ret;
	ret = rotate_tick(s, &cut);
	if (ret || !cut)
		return ret;
	session_sum(s);
	ret = session_keep_names(s);
	if (!ret)
		rotate_cut(s);
	return ret;
}

static int session_run(struct session *s)
{
	struct pollfd p[5] = { { .fd = s->o->stop_fd, .events = POLLIN },
			       { .fd = s->fail_fd, .events = POLLIN },
			       { .fd = s->command.end_fd, .events = POLLIN },
			       { .fd = s->o->dump_fd, .events = POLLIN },
			       { .events = POLLIN } };
	bool region = session_region_is_watched(s),
	     often = region || (s->has_command && s->command.end_fd < 0);
	int timeout = s->procs.n ? FIRST_MAPS_MS : TICK_MS;
	double end = s->plan->duration_ms ? s->started_at + (double)s->plan->duration_ms / 1e3 : INFINITY;
	int ret = 0;

	while (!ret) {
		double now = session_now(), next = now + timeout / 1e3;

		if (now >= end)
			return s->failure;
		if (next > end) {
			next = end;
			timeout = (int)((end - now) * 1e3) + 1;
		}

		p[4].fd = rotate_fd(s);
		/*
		 * without a descriptor for the end of the command it is polled for, so that the end
		 * is not missed
		 */
		while (session_now() < next && !(s->has_command && command_ended(&s->command))) {
			if (poll(p, ARRAY_SIZE(p), often ? SESSION_REGION_MS : timeout) > 0)
				break;
			if (region && session_region_look(s))
				return 0;
		}
		if (p[1].revents)
			return s->failure;
		if (p[0].revents || (s->has_command && command_ended(&s->command)))
			return 0;
		if (s->plan->max_bytes && recorder_bytes(s->recorder) >= s->plan->max_bytes) {
			log_info(s->log, "--max-size is reached: the recording ends here");
			return 0;
		}
		ret = session_tick(s);
		timeout = TICK_MS;
	}
	return ret;
}

static int stop_track(struct session *s, size_t i)
{
	struct session_track *t = &s->tracks[i];
	int ret = t->started ? t->source->ops->stop(t->source) : 0;

	if (!t->started || !t->instance || !s->plan->start_on.event)
		return ret;
	instance_end_region(t->instance);
	return t->source->ops->stop(t->source) ?: ret;
}

/* All is stopped and drained, whatever fails; the first error counts. */
static int first_error(int ret, int error)
{
	return ret ?: error;
}

/*
 * The hypervisor is switched on first and off last. The host is not drained in between: hypervisor
 * events of that time would have no host events.
 */
int session_drain(struct session *s)
{
	size_t hosts = host_tracks(s);
	int error, ret = 0;

	rings_tracing(s->rings, false);
	for (size_t i = 0; i < hosts; i++)
		ret = first_error(ret, stop_track(s, i));
	ret = first_error(ret, rings_stop(s->rings));
	ret = first_error(ret, session_guests_drain(&s->guests, s->recorder, DRAIN_TIMEOUT_MS));
	clock_sampler_stop(s->guests.clocks);
	if (s->remote) {
		error = stop_track(s, hosts);
		if (!error)
			remote_keep_bound(s->remote, true);
		ret = first_error(ret, error);
	}
	for (size_t i = 0; i < s->n_tracks; i++) {
		struct source *source = s->tracks[i].source;

		error = recorder_finish(s->recorder, source, DRAIN_TIMEOUT_MS);
		if (error == -ETIMEDOUT)
			log_err(s->log, "%s: the buffer does not run empty; the rest is lost", source->path);
		ret = ret ?: error;
	}
	return first_error(ret, collect_wall(s->spool));
}

void session_keep_texts(struct session *s)
{
	int ret = 0;

	for (size_t i = 0; i < s->n_tracks; i++) {
		struct source *source = s->tracks[i].source;

		for (unsigned int cpu = 0; source && cpu < source->n_cpus && !ret; cpu++) {
			const struct drain_stats *stats = recorder_stats(s->recorder, source, cpu);
			struct buf text = { 0 };
			char name[48];

			snprintf(name, sizeof(name), "stat.%zu.%u", i, cpu);
			/* else it could not be drained */
			if (stats && !source->ops->stat(source, cpu, stats, &text))
				ret = spool_put_text(s->spool, name, text.data, text.len);
			buf_release(&text);
		}
	}
	ret = ret ?: session_keep_names(s);
	if (ret)
		log_warn(s->log, "names and statistics are incomplete: %s", errno_text(ret));
}

int session_restore(struct session *s)
{
	int ret = s->undo ? undo_all(s->undo) : 0;

	s->summary->not_restored = ret;
	if (ret)
		log_err(s->log,
			"tracefs could not be put back as it was: fix the errors above and run `hyptrace "
			"recover %s`, or remove that",
			spool_dir(s->spool));
	return ret;
}

int session_write(struct session *s, const char *output)
{
	struct dat_from_spool_opts fo = { .output = output,
					  .progress = s->o->writing,
					  .ctx = s->o->ctx,
					  .symbols = &s->symbols,
					  .log = s->log };
	char *path = output ? strdup(output) : spool_output(s->spool);
	struct stat st;
	int ret;

	snprintf(s->summary->output, sizeof(s->summary->output), "%s", path ?: "");
	spool_free_reserve(s->spool);
	ret = marks_join(s->spool, s->log) ?: spool_repair(s->spool, s->log) ?: dat_from_spool(s->spool, &fo);
	if (ret)
		snprintf(s->summary->kept, sizeof(s->summary->kept), "%s", spool_dir(s->spool));
	else
		s->summary->file_bytes = !path || stat(path, &st) ? 0 : (uint64_t)st.st_size;
	free(path);
	return ret;
}

void session_remove_spool(struct session *s)
{
	int ret;

	if (s->summary->not_restored) /* undone by its journal */
		return;
	ret = spool_remove(s->spool);
	s->spool = NULL;
	if (ret)
		log_warn(s->log, "cannot remove the spool: %s", errno_text(ret));
}

struct session session_new(const struct record_plan *plan, const struct session_opts *o,
			   struct session_summary *summary)
{
	*summary = (struct session_summary){ 0 };
	return (struct session){ .plan = plan,
				 .o = o,
				 .log = o->log,
				 .summary = summary,
				 .fail_fd = -1,
				 .command = command_none,
				 .symbols = { .root = o->root },
				 .guests = { .plan = plan,
					     .o = o,
					     .log = o->log,
					     .cancel_fd = -1,
					     .clocks_fd = -1,
					     .give_up_fd = -1 } };
}

void session_release(struct session *s)
{
	command_release(&s->command);
	rings_close(s->rings);
	rotate_free(s->rotate);
	recorder_free(s->recorder);
	session_guests_release(&s->guests);
	for (size_t i = 0; i < s->n_tracks; i++) {
		struct source *source = s->tracks[i].source;

		instance_free(s->tracks[i].instance);
		if (source && source->ops->close)
			source->ops->close(source);
	}
	remote_free(s->remote);
	profile_close(s->profile);
	undo_free(s->undo);
	spool_close(s->spool);
	strlist_release(&s->procs);
	kernel_symbols_release(&s->symbols);
	free(s->tracing_dir);
	fd_close(&s->fail_fd);
}

static void restore_job(void *session, size_t i)
{
	session_restore(session);
}

/* Putting tracefs back waits for the kernel most of the time, the rest does not wait for that. */
static int finish_files(struct session *s)
{
	struct workers *restorer = s->plan->keep ? NULL : workers_beside(restore_job, s);
	int ret = 0, error;

	if (s->plan->keep) /* else a later recording's journal of that name would be taken for this one's */
		undo_drop(s->undo, 0);
	kernel_symbols_read(&s->symbols, s->spool);
	rotate_keep_last(s); /* guests' spools go with their files */
	/* if this fails, session_write tries it again and keeps the spool */
	spool_repair(s->spool, s->log);
	error = session_guests_align_clocks(&s->guests, s->spool);
	if (error)
		log_warn(s->log, "the guests' vCPUs are left out: %s", errno_text(error));
	session_guests_verify_totals(&s->guests, s->recorder, s->summary);
	session_guests_write(&s->guests, s->summary);
	if (s->n_tracks) /* else only guests were recorded: the host has no file */
		ret = session_write(s, NULL);
	kernel_symbols_keep(&s->symbols, s->log);
	error = session_guests_written(&s->guests, s->summary);
	workers_free(restorer);
	if (!ret)
		session_remove_spool(s);
	return error ?: ret;
}

int session_record(const struct record_plan *plan, const struct session_opts *o,
		   struct session_summary *summary)
{
	struct session s = session_new(plan, o, summary);
	int ret;

	s.fail_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ret = s.fail_fd < 0 ? -errno : session_prepare_all(&s);
	ret = ret ?: session_choose_procs(&s) ?: arm(&s);
	if (!ret && s.has_command) {
		ret = command_go(&s.command);
		if (ret)
			log_err(s.log, "cannot run '%s': %s", plan->command[0], errno_text(ret));
	}
	if (ret) {
		/* Nothing was recorded: leaves no trace of the attempt. */
		if (ret == -ENOSPC)
			log_err(s.log, "no space left for a recording next to '%s'", s.plan->output);
		guests_ask_give_up(&s.guests);
		rotate_end(&s);
		if (s.recorder)
			session_drain(&s);
		clock_sampler_stop(s.guests.clocks); /* they run before there is a recorder */
		session_restore(&s);
		session_guests_abandon(&s.guests);
		if (s.spool)
			session_remove_spool(&s);
	} else {
		int ran = session_run(&s), drained;

		rotate_end(&s);
		drained = session_drain(&s);
		session_region_report(&s);
		session_region_keep(&s);
		session_guests_refresh_vcpus(&s.guests, true);
		s.summary->disk_full = ran == -ENOSPC || drained == -ENOSPC;
		session_sum(&s);
		spool_free_reserve(s.spool);
		if (s.summary->disk_full)
			log_err(s.log, "the disk is full: the recording ends here");
		session_keep_texts(&s);
		ret = spool_set(s.spool, "state", "drained");
		if (ret)
			log_warn(s.log, "%s/session: %s", spool_dir(s.spool), errno_text(ret));
		s.summary->has_command_status = s.has_command && command_ended(&s.command);
		s.summary->command_status = s.command.status;
		ret = finish_files(&s) ?: ran ?: drained;
	}
	session_release(&s);
	return ret;
}
