// SPDX-License-Identifier: LGPL-2.1-or-later
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "record/collect.h"
#include "record/finish.h"
#include "record/repair.h"
#include "session/session-priv.h"

#define TICK_MS		 500
#define FIRST_MAPS_MS	 50 /* a command has its libraries mapped by then */
#define DRAIN_TIMEOUT_MS 60000

static double now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

/* ---- summary ---------------------------------------------------------------------------- */

static void sum_track(struct session *s, size_t i)
{
	struct session_track *t = &s->tracks[i];
	struct session_buffer *b = &s->summary->buffers[i];
	struct recorder_totals totals = recorder_totals(s->recorder, t->source);

	snprintf(b->name, sizeof(b->name), "%s", t->source->name);
	b->bytes = totals.bytes;
	b->events = totals.events;
	b->bad = totals.bad;
	b->size_kb = t->size_kb;
	b->lost = totals.lost;
	for (unsigned int cpu = 0; t->source->ops->count && cpu < t->source->n_cpus; cpu++) {
		uint64_t events, lost;

		if (!t->source->ops->count(t->source, cpu, &events, &lost)) {
			b->events += events;
			b->lost += lost;
		}
	}
}

void session_sum(struct session *s)
{
	s->summary->n_buffers = s->n_tracks;
	s->summary->seconds = s->started_at > 0 ? now() - s->started_at : 0;
	for (size_t i = 0; i < s->n_tracks; i++)
		sum_track(s, i);
	session_guests_sum(&s->guests, s->recorder, s->summary);
}

/* ---- arming ------------------------------------------------------------------------------- */

/* A recorder thread cannot go on: the main loop ends the recording. */
static void on_failure(void *ctx, const struct source *source, unsigned int cpu, int error)
{
	struct session *s = ctx;

	s->failure = error;
	if (error != -ENOSPC)
		log_err(s->log, "%s%scpu %u: %s", source->name, *source->name ? ": " : "", cpu,
			errno_text(error));
	if (write(s->fail_fd, &(uint64_t){ 1 }, sizeof(uint64_t)) < 0)
		log_err(s->log, "eventfd: %s", strerror(errno));
}

/* A pid a line, for set_event_notrace_pid. */
static int own_threads(struct buf *list)
{
	DIR *d = opendir("/proc/self/task");
	struct dirent *e;

	if (!d)
		return -errno;
	while ((e = readdir(d)))
		if (e->d_name[0] != '.')
			buf_printf(list, "%s\n", e->d_name);
	closedir(d);
	return buf_str(list) ? 0 : -ENOMEM;
}

/*
 * The recorder's own work is not what anybody wants to see in the trace. All its
 * threads run by now: those that drain, and those that ask for clocks.
 */
static int hide_recorder(struct session *s)
{
	struct buf list = { 0 };
	int ret;

	if (s->plan->no_filter)
		return 0;
	ret = own_threads(&list);
	if (ret)
		log_err(s->log, "cannot list the recorder's threads: %s", errno_text(ret));
	for (size_t i = 0; i < s->n_tracks && !ret; i++)
		if (s->tracks[i].instance)
			ret = instance_hide_pids(s->tracks[i].instance, buf_str(&list));
	buf_release(&list);
	return ret;
}

static int set_pids(struct session *s)
{
	size_t n = 0;
	pid_t *pids;
	int ret = 0;

	if (!s->plan->filter_command && !s->plan->pids.n)
		return 0;
	pids = calloc(s->plan->pids.n + 1, sizeof(*pids));
	if (!pids)
		return -ENOMEM;
	for (size_t i = 0; i < s->plan->pids.n; i++)
		pids[n++] = atoi(s->plan->pids.v[i]);
	if (s->plan->filter_command && s->has_command)
		pids[n++] = s->command.pid;
	for (size_t i = 0; i < s->n_tracks && !ret; i++)
		if (s->tracks[i].instance)
			ret = instance_set_pids(s->tracks[i].instance, pids, n);
	free(pids);
	return ret;
}

static int start_track(struct session *s, size_t i)
{
	struct session_track *t = &s->tracks[i];
	int ret;

	/* also when it fails half-way it must be stopped */
	t->started = true;
	ret = t->source->ops->start(t->source);
	return ret;
}

static int start_hosts(struct session *s)
{
	int ret = 0;

	if (s->n_tracks)
		s->guests.host_started = boot_ns();
	for (size_t i = s->n_tracks - (s->remote ? 1 : 0); i-- && !ret;)
		ret = start_track(s, i);
	s->started_at = now();
	return ret;
}

/*
 * The hypervisor first, for its start blocks >= 100 ms; last the host, which takes
 * no time. But setting up a guest takes far longer while the hypervisor is traced,
 * and a guest of trace-cmd's agent begins as soon as it is set up: the hypervisor
 * is started while such are about to, the host as soon as they have.
 */
static int start_all(struct session *s)
{
	bool best_effort = s->plan->best_effort, late;
	int ret = 0;

	session_guests_await(&s->guests);
	/* it is the last track */
	if (s->remote)
		ret = start_track(s, s->n_tracks - 1);
	if (!ret)
		ret = session_guests_ready(&s->guests, best_effort);
	if (ret)
		return ret;
	session_guests_start(&s->guests);
	late = session_guests_trace(&s->guests);
	if (!late)
		ret = session_guests_started(&s->guests, best_effort);
	if (!ret)
		ret = start_hosts(s);
	return ret || !late ? ret : session_guests_started(&s->guests, best_effort);
}

/* Readers first: the hypervisor's buffer is only polled while somebody reads it. */
static int arm(struct session *s)
{
	struct recorder_opts ro = { .sleep_us = s->plan->sleep_us,
				    .rt_prio = s->plan->rt_prio,
				    .failed = on_failure,
				    .ctx = s,
				    .log = s->log };
	int ret = recorder_new(&s->recorder, &ro);

	if (!ret)
		ret = spool_set(s->spool, "state", "armed");
	if (!ret && spool_reserve(s->spool, 0) == -ENOSPC) {
		log_err(s->log, "no space left for a recording beside '%s'", spool_get(s->spool, "output"));
		ret = -ENOSPC;
	}
	for (size_t i = 0; i < s->n_tracks && !ret; i++)
		ret = recorder_add(s->recorder, s->tracks[i].source, s->spool, i);
	if (!ret)
		ret = session_guests_add(&s->guests, s->plan->best_effort, s->recorder);
	if (!ret)
		ret = hide_recorder(s);
	if (!ret)
		ret = set_pids(s);
	return ret ? ret : start_all(s);
}

/* ---- running ---------------------------------------------------------------------------------- */

static void keep_maps_of(struct session *s, const char *pid)
{
	char path[64], key[64];
	struct buf text = { 0 };

	snprintf(path, sizeof(path), "/proc/%.20s/maps", pid);
	snprintf(key, sizeof(key), "procmaps.%.20s", pid);
	if (!read_file(path, 16 << 20, &text) && text.len)
		spool_put_text(s->spool, key, text.data, text.len);
	buf_release(&text);
	snprintf(path, sizeof(path), "/proc/%.20s/comm", pid);
	snprintf(key, sizeof(key), "proccomm.%.20s", pid);
	if (!read_file(path, 4096, &text) && text.len)
		spool_put_text(s->spool, key, text.data, text.len);
	buf_release(&text);
}

static void keep_maps(struct session *s)
{
	for (size_t i = 0; i < s->procs.n; i++)
		keep_maps_of(s, s->procs.v[i]);
}

static int choose_procs(struct session *s)
{
	struct buf list = { 0 };
	char pid[24];
	int ret = 0;

	if (!s->plan->proc_map)
		return 0;
	for (size_t i = 0; i < s->plan->pids.n && !ret; i++)
		ret = strlist_add(&s->procs, s->plan->pids.v[i]);
	snprintf(pid, sizeof(pid), "%d", (int)s->command.pid);
	if (!ret && s->has_command)
		ret = strlist_add(&s->procs, pid);
	for (size_t i = 0; i < s->procs.n; i++)
		buf_printf(&list, "%s ", s->procs.v[i]);
	if (!ret && list.len)
		ret = buf_str(&list) ? spool_set(s->spool, "procmaps", buf_str(&list)) : -ENOMEM;
	buf_release(&list);
	return ret;
}

static int start_command(struct session *s)
{
	int ret;

	if (!s->has_command)
		return 0;
	ret = command_go(&s->command);
	if (ret)
		log_err(s->log, "cannot run '%s': %s", s->plan->command[0], errno_text(ret));
	return ret;
}

/* A repair of the hypervisor's times writes its pages once more before the file is written: spool_reserve
 * keeps a quarter. */
static uint64_t reserve_for(struct session *s)
{
	uint64_t bytes = recorder_bytes(s->recorder);

	if (s->remote && remote_is_early(s->remote))
		bytes += 4 * recorder_totals(s->recorder, remote_source(s->remote)).bytes;
	return bytes;
}

/* Each tick: room for the file, maps of the command, the guests' threads, progress. -ENOSPC ends the
 * recording. */
static int tick(struct session *s)
{
	int ret = spool_reserve(s->spool, reserve_for(s));

	keep_maps(s);
	session_guests_refresh_vcpus(&s->guests, false);
	if (s->o->progress) {
		session_sum(s);
		s->o->progress(s->o->ctx, s->summary);
	}
	return ret == -ENOSPC ? ret : 0;
}

static int run(struct session *s)
{
	struct pollfd p[3] = { { .fd = s->o->stop_fd, .events = POLLIN },
			       { .fd = s->fail_fd, .events = POLLIN },
			       { .fd = s->command.end_fd, .events = POLLIN } };
	bool look = s->has_command && s->command.end_fd < 0;
	int timeout = s->procs.n ? FIRST_MAPS_MS : TICK_MS;
	int ret = 0;

	while (!ret) {
		double next = now() + timeout / 1e3;

		/* the end of a command is looked for often, if need be: nobody likes to wait for it */
		while (now() < next && !(s->has_command && command_ended(&s->command)))
			if (poll(p, 3, look ? 10 : timeout) > 0)
				break;
		if (p[1].revents)
			return s->failure;
		if (p[0].revents || (s->has_command && command_ended(&s->command)))
			return 0;
		ret = tick(s);
		timeout = TICK_MS;
	}
	return ret;
}

/* ---- stopping ------------------------------------------------------------------------------------ */

static int stop_track(struct session *s, size_t i)
{
	struct session_track *t = &s->tracks[i];

	return t->started ? t->source->ops->stop(t->source) : 0;
}

static int finish_track(struct session *s, size_t i)
{
	struct source *source = s->tracks[i].source;
	int ret = recorder_finish(s->recorder, source, DRAIN_TIMEOUT_MS);

	if (ret == -ETIMEDOUT)
		log_err(s->log, "%s: the buffer does not run empty; the rest is given up", source->path);
	return ret;
}

/*
 * The hypervisor was first on and is last off; between that no time is spent on
 * draining the host, for what the hypervisor did meanwhile has no host events beside it.
 */
int session_drain(struct session *s)
{
	size_t hosts = s->n_tracks - (s->remote ? 1 : 0);
	int ret = 0, error;

	for (size_t i = 0; i < hosts; i++) {
		error = stop_track(s, i);
		ret = ret ? ret : error;
	}
	error = session_guests_drain(&s->guests, s->recorder, DRAIN_TIMEOUT_MS);
	ret = ret ? ret : error;
	clock_sampler_stop(s->guests.clocks);
	for (size_t i = hosts; i < s->n_tracks; i++) {
		error = stop_track(s, i);
		ret = ret ? ret : error;
	}
	for (size_t i = 0; i < s->n_tracks; i++) {
		error = finish_track(s, i);
		ret = ret ? ret : error;
	}
	return ret;
}

int session_keep_stats(struct session *s)
{
	int ret = 0;

	for (size_t i = 0; i < s->n_tracks; i++) {
		struct source *source = s->tracks[i].source;

		for (unsigned int cpu = 0; cpu < source->n_cpus && !ret; cpu++) {
			struct buf text = { 0 };
			char name[48];

			snprintf(name, sizeof(name), "stat.%zu.%u", i, cpu);
			if (!source->ops->stat(source, cpu, recorder_stats(s->recorder, source, cpu), &text))
				ret = spool_put_text(s->spool, name, text.data, text.len);
			buf_release(&text);
		}
	}
	return ret;
}

int session_keep_names(struct session *s)
{
	int dirfd = open(s->tracing_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int ret = dirfd < 0 ? -errno : collect_names(dirfd, s->spool, s->log);

	if (dirfd >= 0)
		close(dirfd);
	if (!ret && s->remote)
		ret = remote_collect_pids(s->remote);
	return ret;
}

int session_restore(struct session *s)
{
	int ret = s->undo ? undo_all(s->undo) : 0;

	s->summary->not_restored = ret < 0 ? 1 : ret;
	if (ret)
		log_err(s->log, "tracefs could not be put back as it was: see above");
	return ret;
}

int session_write(struct session *s, const char *output)
{
	struct dat_from_spool_opts fo = {
		.output = output, .progress = s->o->writing, .ctx = s->o->ctx, .log = s->log
	};
	const char *path = output ? output : spool_get(s->spool, "output");
	struct stat st;
	int ret;

	snprintf(s->summary->output, sizeof(s->summary->output), "%s", path);
	spool_free_reserve(s->spool);
	ret = dat_from_spool(s->spool, &fo);
	if (ret) {
		snprintf(s->summary->kept, sizeof(s->summary->kept), "%s", spool_dir(s->spool));
		return ret;
	}
	s->summary->file_bytes = stat(path, &st) ? 0 : (uint64_t)st.st_size;
	return 0;
}

int session_remove_spool(struct session *s)
{
	int ret = spool_remove(s->spool);

	s->spool = NULL;
	if (ret)
		log_warn(s->log, "cannot remove the spool: %s", errno_text(ret));
	return 0;
}

void session_release(struct session *s)
{
	command_release(&s->command);
	recorder_free(s->recorder);
	session_guests_release(&s->guests);
	for (size_t i = 0; i < s->n_tracks; i++) {
		instance_free(s->tracks[i].instance);
		host_free(s->tracks[i].host);
	}
	remote_free(s->remote);
	undo_free(s->undo);
	spool_close(s->spool);
	strlist_release(&s->procs);
	free(s->tracing_dir);
	if (s->fail_fd >= 0)
		close(s->fail_fd);
}

/* Nothing was recorded: as if nothing had been. */
static void abandon(struct session *s)
{
	session_guests_give_up(&s->guests);
	if (s->recorder)
		session_drain(s);
	clock_sampler_stop(s->guests.clocks); /* they run before there is a recorder */
	session_restore(s);
	session_guests_abandon(&s->guests);
	if (s->spool)
		spool_remove(s->spool);
	s->spool = NULL;
}

/* ---- the end -------------------------------------------------------------------------------------- */

static void put_back(void *session, size_t i)
{
	session_restore(session);
}

static void keep_symbols(void *session, size_t i)
{
	struct session *s = session;

	s->symbols_error = collect_symbols(s->spool, s->log);
}

/* Beside what its caller goes on with, if there is a thread to be had. workers_free() waits for it. */
static struct workers *beside(workers_job *job, struct session *s)
{
	struct workers *c = NULL;

	if (workers_new(&c, 1))
		job(s, 0);
	else
		workers_begin(c, job, s);
	return c;
}

static void note_guests(struct session *s)
{
	int ret = session_guests_align_clocks(&s->guests, s->spool);

	if (ret)
		log_warn(s->log, "the guests' vCPUs are not noted: %s", errno_text(ret));
	session_guests_verify_totals(&s->guests, s->recorder, s->summary);
}

/* Putting tracefs back waits for the kernel most of the time, the rest does not wait for that. */
static int finish_files(struct session *s)
{
	struct workers *restorer = s->plan->keep ? NULL : beside(put_back, s);
	struct workers *symbols = beside(keep_symbols, s);
	int ret = 0, error;

	/* if it fails it is tried again, and said, as the file is written */
	spool_repair(s->spool, s->log);
	note_guests(s);
	workers_free(symbols);
	if (s->symbols_error)
		log_warn(s->log, "the kernel's symbols are left out: %s", errno_text(s->symbols_error));
	session_guests_write(&s->guests, s->summary);
	if (s->n_tracks) /* else of guests alone: nothing of the host's is to be written */
		ret = session_write(s, NULL);
	error = session_guests_written(&s->guests, s->summary);
	workers_free(restorer);
	if (!ret)
		session_remove_spool(s);
	return error ? error : ret;
}

static int end(struct session *s, int ran)
{
	int ret = session_drain(s), error;

	session_guests_refresh_vcpus(&s->guests, true);
	s->summary->disk_full = ran == -ENOSPC || ret == -ENOSPC;
	session_sum(s);
	spool_free_reserve(s->spool);
	if (s->summary->disk_full)
		log_err(s->log, "the disk is full: the recording ends here");
	error = session_keep_stats(s);
	if (!error)
		error = session_keep_names(s);
	if (error)
		log_warn(s->log, "names and statistics are incomplete: %s", errno_text(error));
	error = spool_set(s->spool, "state", "drained");
	if (error)
		log_warn(s->log, "%s/session: %s", spool_dir(s->spool), errno_text(error));
	s->summary->has_command_status = s->has_command && command_ended(&s->command);
	s->summary->command_status = s->command.status;
	error = finish_files(s);
	if (error)
		return error;
	return ran ? ran : ret;
}

int session_record(const struct record_plan *plan, const struct session_opts *o,
		   struct session_summary *summary)
{
	struct session s = { .plan = plan,
			     .o = o,
			     .log = o->log,
			     .summary = summary,
			     .fail_fd = -1,
			     .command = command_none };
	int ret;

	*summary = (struct session_summary){ 0 };
	s.fail_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	ret = s.fail_fd < 0 ? -errno : session_prepare(&s);
	if (!ret)
		ret = choose_procs(&s);
	if (!ret)
		ret = arm(&s);
	if (!ret)
		ret = start_command(&s);
	if (ret)
		abandon(&s);
	else
		ret = end(&s, run(&s));
	session_release(&s);
	return ret;
}
