// SPDX-License-Identifier: LGPL-2.1-or-later
/* The guests of a recording at its two ends: who they are, and what becomes of their pages. */
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "record/session/guests.h"
#include "base/outfile.h"

/* A guest's default events: tasks that run, and their wake-ups. */
static const char *const default_args[] = { "-i", "-e", "sched", "-e", "irq", "-e", "ipi", "-e", "timer" };

/* Before anything is set up: -m, --rotate and --flight punch holes into the files of pages. */
static int check_punching(const struct spool *spool, const struct log *log)
{
	static const char *const others[] = { "/var/tmp", "/tmp", SESSION_MEMORY };
	int ret = spool_can_forget(spool_dirfd(spool));
	const char *other = NULL;

	if (!ret)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(others) && !other; i++) {
		int fd = open(others[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		other = fd >= 0 && !spool_can_forget(fd) ? others[i] : NULL;
		fd_close(&fd);
	}
	return log_fail(
		log, ret,
		"'%s': the file system cannot give back a part of a file, which -m, --rotate and --flight "
		"need: %s; record into a directory that can: -o %s/trace.dat",
		spool_dir(spool), errno_text(ret), other ?: "DIR");
}

int session_new_spool(struct spool **out, const char *output, const struct record_plan *plan,
		      const struct log *log)
{
	uint64_t version = plan->file_version ? (uint64_t)plan->file_version : 7;
	const char *slash = strrchr(output, '/');
	/* next to the file; a flight recorder's in memory, if there is a place for that */
	bool in_memory = plan->flight_ms && !access(SESSION_MEMORY, W_OK);
	char *dir = in_memory ? str_printf(SESSION_MEMORY "/hyptrace-%s.spool", slash ? slash + 1 : output)
			      : str_printf("%s.spool", output);
	int ret = dir ? outfile_check(output, log) ?: spool_create(out, dir, log) : -ENOMEM;

	free(dir);
	if (!ret && (record_plan_numbered(plan) || plan->max_cpu_kb))
		ret = check_punching(*out, log);
	return ret ?: spool_set_boot_id(*out) ?: spool_set_number(*out, "version", version) ?:
	       spool_set(*out, "compression", plan->compression ? plan->compression : "zstd");
}

static int make_guest(struct session_guests *all, struct session_guest *g, const char *output)
{
	const struct guest_plan *p = &all->plan->guests[g - all->v];
	int ret = guest_spec_parse(&g->spec, p->spec, all->log)
			  ?: guest_spec_resolve(&g->spec, &all->found, &g->vm, all->log);
	size_t stem;

	if (!ret && p->name)
		ret = str_take(&g->spec.name, strdup(p->name));
	for (const struct session_guest *other = all->v; other < g && !ret; other++)
		if (!strcmp(other->spec.name, g->spec.name))
			ret = log_fail(all->log, -EEXIST,
				       "two guests are called '%s': name one of them with --name",
				       g->spec.name);
	for (size_t i = 0; i < p->args.n && !ret; i++)
		ret = strlist_add(&g->args, p->args.v[i]);
	for (size_t i = 0; i < ARRAY_SIZE(default_args) && !p->events && !ret; i++)
		ret = strlist_add(&g->args, default_args[i]);
	if (ret)
		return ret;
	/* "trace.dat" and "vm1" make "trace-vm1.dat", as stock names it. */
	stem = path_stem(output);
	g->output = str_printf("%.*s-%s%s", (int)stem, output, g->spec.name, output + stem);
	if (!g->output)
		return -ENOMEM;
	return session_new_spool(&g->spool, g->output, all->plan, all->log)
		       ?: spool_set(g->spool, "output", g->output) ?: spool_set(g->spool, "guest", g->spec.name) ?:
		       spool_set_number(g->spool, "host_traceid", all->host_trace_id);
}

/* Suppresses errors of guests that were cancelled. */
static void log_unless_given_up(void *ctx, enum log_level level, const char *msg)
{
	struct session_guests *all = ctx;

	if (!all->given_up)
		log_msg(all->log, level, "%s", msg);
}

int session_guests_prepare(struct session_guests *all, const char *output)
{
	struct guest_opts go = { .root = all->o->root, .log = all->log };
	struct epoll_event e = { .events = EPOLLIN };
	int ret;

	all->v = calloc(all->plan->n_guests, sizeof(*all->v));
	if (!all->v)
		return -ENOMEM;
	if (all->plan->ring)
		log_info(all->log, "--ring: guests' pages come all the time, for agents do not keep them");
	all->peer_log = (struct log){ .fn = log_unless_given_up, .ctx = all };
	all->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	all->clocks_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	all->give_up_fd = epoll_create1(EPOLL_CLOEXEC);
	if (all->cancel_fd < 0 || all->clocks_fd < 0 || all->give_up_fd < 0 ||
	    epoll_ctl(all->give_up_fd, EPOLL_CTL_ADD, all->cancel_fd, &e) < 0 ||
	    (all->o->stop_fd >= 0 && epoll_ctl(all->give_up_fd, EPOLL_CTL_ADD, all->o->stop_fd, &e) < 0))
		return -errno;
	ret = guests_find(&all->found, &go);
	while (!ret && all->n < all->plan->n_guests)
		ret = make_guest(all, &all->v[all->n++], output);
	return ret;
}

int session_guests_drain(struct session_guests *all, struct recorder *rec, unsigned int timeout_ms)
{
	int ret = 0;

	for (size_t i = 0; i < all->n; i++)
		if (session_guest_takes_part(&all->v[i]))
			all->v[i].peer->source.ops->stop(&all->v[i].peer->source);
	for (size_t i = 0; i < all->n; i++)
		if (all->v[i].peer)
			peer_clock_end(all->v[i].peer->clock_link);
	for (size_t i = 0; i < all->n; i++) {
		struct peer *p = all->v[i].peer;
		struct source *sources[2] = { p ? &p->source : NULL, p ? peer_profile(p) : NULL };

		for (size_t k = 0; k < 2 && sources[k]; k++) {
			int error = recorder_finish(rec, sources[k],
						    (unsigned int)peer_patience_ms(p) + timeout_ms);

			ret = ret ?: error;
		}
		if (!p)
			continue;
		spool_set(all->v[i].spool, "state", "drained");
		/* waits for the guest's last samples: the host's own last one comes after all guests' */
		peer_clock_log(p->clock_link);
	}
	return ret;
}

void session_guests_refresh_vcpus(struct session_guests *all, bool end)
{
	struct guest_opts go = { .root = all->o->root, .log = all->log };

	for (size_t i = 0; i < all->n; i++) {
		struct session_guest *g = &all->v[i];
		int n;

		if (!g->vm || !session_guest_takes_part(g) || (!end && !guest_threads_changed(g->vm, &go)))
			continue;
		n = guest_update_vcpus(g->vm, &go);
		if (n > 0)
			log_info(all->log, "guest %s: found %d more vCPU thread%s", g->spec.name, n,
				 n == 1 ? "" : "s");
		else if (n < 0)
			log_debug(all->log, "guest %s: its vCPUs cannot be looked at: %s", g->spec.name,
				  errno_text(n));
	}
}

void session_guests_note_clocks(const struct session_guests *all, struct spool *host)
{
	struct buf text = { 0 };

	for (size_t i = 0; i < all->n; i++) {
		const struct session_guest *g = &all->v[i];
		uint64_t bound;
		int64_t offset;

		if (session_guest_takes_part(g) && session_guest_clock_now(all, g, &offset, &bound))
			buf_printf(&text, "%s\t%" PRId64 "\t%" PRIu64 "\n", g->spec.name, offset, bound);
	}
	if (text.len && !buf_status(&text))
		spool_put_text(host, SPOOL_CLOCKS, text.data, text.len);
	buf_release(&text);
}

void session_guests_sum(const struct session_guests *all, const struct recorder *rec,
			struct session_summary *sum)
{
	for (size_t i = 0; i < all->n && sum->n_buffers < SESSION_BUFFERS_MAX; i++) {
		const struct session_guest *g = &all->v[i];
		struct session_buffer *b;
		const struct source *profile;

		if (!session_guest_takes_part(g))
			continue;
		b = &sum->buffers[sum->n_buffers++];
		*b = (struct session_buffer){ .guest = true, .guest_lost = g->peer->lost };
		snprintf(b->name, sizeof(b->name), "%s", g->spec.name);
		/* Of its events and its samples. */
		profile = peer_profile(g->peer);
		b->bytes = recorder_totals(rec, &g->peer->source).bytes +
			   (profile ? recorder_totals(rec, profile).bytes : 0);
	}
}

static struct session_buffer *guest_row(const struct session_guest *g, struct session_summary *sum)
{
	for (size_t i = 0; i < sum->n_buffers; i++)
		if (sum->buffers[i].guest && !strcmp(sum->buffers[i].name, g->spec.name))
			return &sum->buffers[i];
	return NULL;
}

void session_guests_verify_totals(struct session_guests *all, const struct recorder *rec,
				  struct session_summary *sum)
{
	uint64_t first = all->host_started, last = first;
	struct buf text = { 0 };

	for (size_t i = 0; i < all->n; i++) {
		struct session_guest *g = &all->v[i];
		struct session_buffer *row = guest_row(g, sum);
		const struct source *source;
		const struct buf *p;
		int ret;

		if (!session_guest_takes_part(g))
			continue;
		g->sent = peer_finish(g->peer);
		source = &g->peer->source;
		/* less than was sent is a loss, though each stream has come to an end of its own */
		for (unsigned int n = 0; g->sent && n < g->sent->n_cpus; n++) {
			unsigned int cpu = n % source->n_cpus;
			const struct source *of = n < source->n_cpus ? source : peer_profile(g->peer);
			uint64_t came = recorder_stats(rec, of, cpu)->bytes, sent = g->sent->cpus[n].bytes;

			if (came == sent)
				continue;
			log_err(all->log, "guest %s: its agent sent %llu bytes of CPU %u, and %llu came",
				g->spec.name, (unsigned long long)sent, cpu, (unsigned long long)came);
			if (row)
				row->guest_lost = -EIO;
		}
		p = &g->peer->pauses;
		ret = p->len ? buf_status(p) ?: spool_put_text(g->spool, "pauses", p->data, p->len) : 0;
		if (ret)
			log_warn(all->log,
				 "guest %s: its file does not show the pauses between its regions: %s",
				 g->spec.name, errno_text(ret));
		/* The start by the host's clock. Only our agent reports it; of others there is a bound. */
		if (g->sent && g->sent->started && g->clock.n_points && !strcmp(all->clock, "boot"))
			g->started = (uint64_t)((int64_t)g->sent->started +
						sync_offset(&g->clock, g->sent->started));
		/* a boot trace was on before the request, and some clocks cannot be read */
		if (g->started || !all->host_started || (g->sent && !g->sent->started))
			continue;
		log_info(all->log, "guest %s: started at most %.1f ms before the host", g->spec.name,
			 ((double)all->host_started - (double)g->peer->ready) / 1e6);
	}
	for (size_t i = 0; i < all->n && first; i++) {
		uint64_t t = all->v[i].started;

		if (!t)
			continue;
		first = t < first ? t : first;
		last = t > last ? t : last;
		buf_printf(&text, ", %s %+.1f ms", all->v[i].spec.name,
			   ((double)t - (double)all->host_started) / 1e6);
	}
	if (text.len && buf_str(&text))
		log_info(all->log, "started within %.1f ms of each other: host 0%s",
			 (double)(last - first) / 1e6, buf_str(&text));
	buf_release(&text);
}

static void write_or_drop(void *ctx, size_t i)
{
	struct session_guests *all = ctx;
	struct session_guest *g = &all->v[i];
	struct dat_from_spool_opts fo = { .log = all->log };
	struct sanitized m, samples = { 0 };
	struct session_buffer *row;
	uint64_t lost = 0;
	int ret;

	if (!session_guest_takes_part(g)) {
		if (g->spool)
			spool_remove(g->spool);
		g->spool = NULL;
		return;
	}
	row = guest_row(g, all->sum);
	ret = sanitize_buffer(g->spool, 0, &m);
	if (!ret && peer_profile(g->peer))
		ret = sanitize_buffer(g->spool, 1, &samples);
	/*
	 * The pages show that events were lost before them, but not always how many; the guest's kernel has
	 * counted them, and our agent reports that.
	 */
	for (uint32_t n = 0; g->sent && n < g->sent->n_cpus; n++)
		lost += g->sent->cpus[n].lost;
	if (row) {
		row->events = m.events + samples.events;
		row->lost = m.lost + samples.lost;
		row->lost = lost > row->lost ? lost : row->lost;
		row->lost_more = m.unknown && !lost;
		row->bad = m.bad + samples.bad;
	}
	if (ret)
		log_err(all->log, "guest %s: its pages cannot be gone through: %s", g->spec.name,
			errno_text(ret));
	if (!ret && g->peer->lost)
		ret = spool_mark_all_cut(g->spool);
	g->write_error = ret ?: dat_from_spool(g->spool, &fo);
	if (g->write_error)
		return;
	ret = spool_remove(g->spool);
	g->spool = NULL;
	if (ret)
		log_warn(all->log, "cannot remove the spool of guest %s: %s", g->spec.name, errno_text(ret));
}

void session_guests_write(struct session_guests *all, struct session_summary *sum)
{
	all->sum = sum;
	if (all->workers)
		workers_begin(all->workers, write_or_drop, all);
}

int session_guests_written(struct session_guests *all, struct session_summary *sum)
{
	int ret = 0;

	if (all->workers)
		workers_finish(all->workers);
	for (size_t i = 0; i < all->n; i++) {
		const struct session_guest *g = &all->v[i];

		if (!g->write_error)
			continue;
		snprintf(sum->kept, sizeof(sum->kept), "%s", spool_dir(g->spool));
		ret = ret ?: g->write_error;
	}
	return ret;
}

void session_guests_abandon(struct session_guests *all)
{
	for (size_t i = 0; i < all->n; i++) {
		if (all->v[i].spool)
			spool_remove(all->v[i].spool);
		all->v[i].spool = NULL;
	}
}

void session_guests_release(struct session_guests *all)
{
	workers_free(all->workers);
	fd_close(&all->cancel_fd);
	fd_close(&all->clocks_fd);
	fd_close(&all->give_up_fd);
	for (size_t i = 0; i < all->n; i++) {
		struct session_guest *g = &all->v[i];

		peer_free(g->peer);
		sync_result_release(&g->clock);
		spool_close(g->spool);
		guest_spec_release(&g->spec);
		strlist_release(&g->args);
		free(g->output);
	}
	clock_sampler_free(all->clocks);
	free(all->v);
	guests_release(&all->found);
}
