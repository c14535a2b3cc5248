// SPDX-License-Identifier: LGPL-2.1-or-later
#include "session/guests.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "record/sanitize.h"
#include "record/finish.h"
#include "dat/writer.h"

/* What a guest records when nobody says what: who runs, and what wakes it. */
static const char *const default_args[] = { "-i", "-e", "sched", "-e", "irq", "-e", "ipi", "-e", "timer" };

/* ---- who and where ---------------------------------------------------------------------- */

/* "trace.dat" and "vm1" make "trace-vm1.dat", as stock names it. */
static char *output_of(const char *host, const char *name)
{
	const char *slash = strrchr(host, '/'), *dot = strrchr(host, '.');
	size_t stem = dot && (!slash || dot > slash) ? (size_t)(dot - host) : strlen(host);

	return str_printf("%.*s-%s%s", (int)stem, host, name, host + stem);
}

static int copy_args(struct session_guest *g, const struct guest_plan *p)
{
	int ret = 0;

	for (size_t i = 0; i < p->args.n && !ret; i++)
		ret = strlist_add(&g->args, p->args.v[i]);
	for (size_t i = 0; i < ARRAY_SIZE(default_args) && !p->events && !ret; i++)
		ret = strlist_add(&g->args, default_args[i]);
	return ret;
}

static int resolve(struct session_guests *all, struct session_guest *g, const struct guest_plan *p)
{
	int ret = guest_spec_parse(&g->spec, p->spec, all->log);

	if (!ret)
		ret = guest_spec_resolve(&g->spec, &all->found, &g->vm, all->log);
	if (!ret && p->name) {
		free(g->spec.name);
		g->spec.name = strdup(p->name);
		ret = g->spec.name ? 0 : -ENOMEM;
	}
	return ret;
}

static int unique(const struct session_guests *all, const struct session_guest *g)
{
	for (const struct session_guest *other = all->v; other < g; other++)
		if (!strcmp(other->spec.name, g->spec.name)) {
			log_err(all->log, "two guests are called '%s': tell them apart with --name",
				g->spec.name);
			return -EEXIST;
		}
	return 0;
}

static int make_spool(struct session_guests *all, struct session_guest *g, const struct record_plan *plan)
{
	char *dir = str_printf("%s.spool", g->output);
	int ret = dir ? spool_create(&g->spool, dir, all->log) : -ENOMEM;

	if (ret)
		log_err(all->log,
			ret == -EEXIST ? "'%s' holds an unfinished recording: hyptrace recover it"
				       : "cannot make the spool '%s'",
			dir ? dir : "");
	free(dir);
	if (!ret)
		ret = spool_set(g->spool, "output", g->output);
	if (!ret)
		ret = spool_set_boot_id(g->spool); /* recover goes by it */
	if (!ret)
		ret = spool_set_number(g->spool, "version",
				       plan->file_version ? (uint64_t)plan->file_version : 7);
	if (!ret)
		ret = spool_set(g->spool, "compression", plan->compression ? plan->compression : "zstd");
	return ret;
}

int session_guests_prepare(struct session_guests *all, const struct record_plan *plan, const char *output)
{
	struct guest_opts go = { .root = all->root, .log = all->log };
	int ret;

	all->v = calloc(plan->n_guests ? plan->n_guests : 1, sizeof(*all->v));
	if (!all->v)
		return -ENOMEM;
	ret = session_guests_open(all);
	if (ret)
		return ret;
	ret = guests_find(&all->found, &go);
	for (size_t i = 0; i < plan->n_guests && !ret; i++) {
		struct session_guest *g = &all->v[all->n++];

		ret = resolve(all, g, &plan->guests[i]);
		if (!ret)
			ret = unique(all, g);
		if (!ret)
			ret = copy_args(g, &plan->guests[i]);
		g->output = ret ? NULL : output_of(output, g->spec.name);
		if (!ret)
			ret = g->output ? make_spool(all, g, plan) : -ENOMEM;
	}
	return ret;
}

/* ---- the end -------------------------------------------------------------------------------------- */

int session_guests_drain(struct session_guests *all, struct recorder *rec, unsigned int timeout_ms)
{
	int ret = 0;

	for (size_t i = 0; i < all->n; i++)
		if (session_guest_takes_part(&all->v[i]))
			peer_source(all->v[i].peer)->ops->stop(peer_source(all->v[i].peer));
	for (size_t i = 0; i < all->n; i++)
		if (all->v[i].peer)
			peer_counter_end(all->v[i].peer);
	for (size_t i = 0; i < all->n; i++) {
		int error;

		if (!all->v[i].peer)
			continue;
		error = recorder_finish(rec, peer_source(all->v[i].peer), timeout_ms);
		if (error && !ret)
			ret = error;
		spool_set(all->v[i].spool, "state", "drained");
		/* the host's own last look comes after that of all guests */
		peer_counter(all->v[i].peer);
	}
	return ret;
}

void session_guests_refresh_vcpus(struct session_guests *all, bool end)
{
	struct guest_opts go = { .root = all->root, .log = all->log };

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

void session_guests_sum(const struct session_guests *all, const struct recorder *rec,
			struct session_summary *sum)
{
	for (size_t i = 0; i < all->n && sum->n_buffers < SESSION_BUFFERS_MAX; i++) {
		const struct session_guest *g = &all->v[i];
		struct session_buffer *b;

		if (!session_guest_takes_part(g))
			continue;
		b = &sum->buffers[sum->n_buffers++];
		*b = (struct session_buffer){ .guest = true, .guest_lost = peer_lost(g->peer) };
		snprintf(b->name, sizeof(b->name), "%s", g->spec.name);
		b->bytes = recorder_totals(rec, peer_source(g->peer)).bytes;
	}
}

/* ---- what its agent says in the end ------------------------------------------------------------- */

static struct session_buffer *row_of(const struct session_guest *g, struct session_summary *sum)
{
	for (size_t i = 0; i < sum->n_buffers; i++)
		if (sum->buffers[i].guest && !strcmp(sum->buffers[i].name, g->spec.name))
			return &sum->buffers[i];
	return NULL;
}

/* Less than was sent is a loss, though each stream has come to an end of its own. */
static void check_sent(const struct session_guests *all, const struct session_guest *g,
		       const struct recorder *rec, struct session_buffer *row)
{
	const struct source *source = peer_source(g->peer);

	for (unsigned int cpu = 0; cpu < source->n_cpus; cpu++) {
		uint64_t came = recorder_stats(rec, source, cpu)->bytes, sent = g->told->cpus[cpu].bytes;

		if (came == sent)
			continue;
		log_err(all->log, "guest %s: its agent sent %llu bytes of CPU %u, and %llu came",
			g->spec.name, (unsigned long long)sent, cpu, (unsigned long long)came);
		if (row)
			row->guest_lost = -EIO;
	}
}

/* When it began by the host's clock; before that: no agent but ours tells. */
static void say_started(const struct session_guests *all, struct session_guest *g)
{
	if (g->told && g->told->started && g->clock.n_knots && !strcmp(all->clock, "boot"))
		g->started = (uint64_t)((int64_t)g->told->started + sync_offset(&g->clock, g->told->started));
	/* a boot trace was on before anybody asked, and some clocks cannot be read */
	if (g->started || !all->host_started || (g->told && !g->told->started))
		return;
	log_info(all->log, "guest %s: started at most %.1f ms before the host", g->spec.name,
		 ((double)all->host_started - (double)peer_ready(g->peer)) / 1e6);
}

static void say_skew(const struct session_guests *all)
{
	uint64_t first = all->host_started, last = first;
	struct buf text = { 0 };

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

void session_guests_verify_totals(struct session_guests *all, const struct recorder *rec,
				  struct session_summary *sum)
{
	for (size_t i = 0; i < all->n; i++) {
		struct session_guest *g = &all->v[i];

		if (!session_guest_takes_part(g))
			continue;
		g->told = peer_finish(g->peer);
		if (g->told)
			check_sent(all, g, rec, row_of(g, sum));
		say_started(all, g);
	}
	say_skew(all);
}

/* ---- writing --------------------------------------------------------------------------------------- */

/*
 * The pages say what was lost before them, but not always how much; the guest's
 * kernel has counted it, if its agent tells.
 */
static int sanitize_guest(const struct session_guest *g, struct session_buffer *row, const struct log *log)
{
	struct sanitized m;
	int ret = sanitize_buffer(g->spool, 0, &m);
	uint64_t lost = 0;

	for (uint32_t i = 0; g->told && i < g->told->n_cpus; i++)
		lost += g->told->cpus[i].lost;
	if (row) {
		row->events = m.events;
		row->lost = lost > m.lost ? lost : m.lost;
		row->bad = m.bad;
	}
	if (ret)
		log_err(log, "guest %s: its pages cannot be gone through: %s", g->spec.name, errno_text(ret));
	return ret;
}

static int write_guest(struct session_guests *all, struct session_guest *g)
{
	struct dat_from_spool_opts fo = { .log = all->log };
	int ret = sanitize_guest(g, row_of(g, all->sum), all->log) ?: dat_from_spool(g->spool, &fo);

	if (ret)
		return ret;
	ret = spool_remove(g->spool);
	g->spool = NULL;
	if (ret)
		log_warn(all->log, "cannot remove the spool of guest %s: %s", g->spec.name, errno_text(ret));
	return 0;
}

static void write_one(void *ctx, size_t i)
{
	struct session_guests *all = ctx;
	struct session_guest *g = &all->v[i];

	if (session_guest_takes_part(g)) {
		g->write_error = write_guest(all, g);
		return;
	}
	if (g->spool)
		spool_remove(g->spool);
	g->spool = NULL;
}

void session_guests_write(struct session_guests *all, struct session_summary *sum)
{
	all->sum = sum;
	if (all->workers)
		workers_begin(all->workers, write_one, all);
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
		ret = ret ? ret : g->write_error;
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
	session_guests_close(all);
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
