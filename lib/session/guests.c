// SPDX-License-Identifier: LGPL-2.1-or-later
/* The guests of a recording at its two ends: who they are, and what becomes of their pages. */
#include "session/guests.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "record/finish.h"
#include "record/sanitize.h"
#include "session/guests-ask.h"
#include "util/outfile.h"

#define SHARED_MEMORY "/dev/shm" /* a tmpfs */

/* What a guest records by default: who runs, and what wakes it. */
static const char *const default_args[] = { "-i", "-e", "sched", "-e", "irq", "-e", "ipi", "-e", "timer" };

/* ---- who and where ---------------------------------------------------------------------- */

/* "trace.dat" and "vm1" make "trace-vm1.dat", as stock names it. */
static char *guest_output(const char *host, const char *name)
{
	size_t stem = path_stem(host);

	return str_printf("%.*s-%s%s", (int)stem, host, name, host + stem);
}

static int set_args(struct session_guest *g, const struct guest_plan *p)
{
	const char *const *v = p->events ? NULL : default_args;
	size_t n = p->events ? 0 : ARRAY_SIZE(default_args);
	int ret = 0;

	for (size_t i = 0; i < p->args.n && !ret; i++)
		ret = strlist_add(&g->args, p->args.v[i]);
	for (size_t i = 0; i < n && !ret; i++)
		ret = strlist_add(&g->args, v[i]);
	return ret;
}

static int resolve_guest(struct session_guests *all, struct session_guest *g, const struct guest_plan *p)
{
	int ret = guest_spec_parse(&g->spec, p->spec, all->log)
			  ?: guest_spec_resolve(&g->spec, &all->found, &g->vm, all->log);

	if (ret || !p->name)
		return ret;
	free(g->spec.name);
	g->spec.name = strdup(p->name);
	return g->spec.name ? 0 : -ENOMEM;
}

static int check_unique_name(const struct session_guests *all, const struct session_guest *g)
{
	for (const struct session_guest *other = all->v; other < g; other++)
		if (!strcmp(other->spec.name, g->spec.name)) {
			log_err(all->log, "two guests are called '%s': tell them apart with --name",
				g->spec.name);
			return -EEXIST;
		}
	return 0;
}

/* Beside the file; that of a flight recorder in memory, where there is a place for that. */
static char *spool_path(const char *output, const struct record_plan *plan)
{
	const char *slash = strrchr(output, '/');

	if (!plan->flight_ms || access(SHARED_MEMORY, W_OK) < 0)
		return str_printf("%s.spool", output);
	return str_printf(SHARED_MEMORY "/hyptrace-%s.spool", slash ? slash + 1 : output);
}

int session_new_spool(struct spool **out, const char *output, const struct record_plan *plan,
		      const struct log *log)
{
	uint64_t version = plan->file_version ? (uint64_t)plan->file_version : 7;
	char *dir = spool_path(output, plan);
	int ret = dir ? outfile_check(output, log) ?: spool_create(out, dir, log) : -ENOMEM;

	free(dir);
	return ret ?: spool_set_boot_id(*out) ?: spool_set_number(*out, "version", version) ?:
	       spool_set(*out, "compression", plan->compression ? plan->compression : "zstd");
}

static int make_guest(struct session_guests *all, struct session_guest *g, const char *output)
{
	const struct guest_plan *p = &all->plan->guests[g - all->v];
	int ret = resolve_guest(all, g, p) ?: check_unique_name(all, g) ?: set_args(g, p);

	if (ret)
		return ret;
	g->output = guest_output(output, g->spec.name);
	if (!g->output)
		return -ENOMEM;
	return session_new_spool(&g->spool, g->output, all->plan, all->log)
		       ?: spool_set(g->spool, "output", g->output);
}

int session_guests_prepare(struct session_guests *all, const char *output)
{
	struct guest_opts go = { .root = all->o->root, .log = all->log };
	int ret;

	all->v = calloc(all->plan->n_guests, sizeof(*all->v));
	if (!all->v)
		return -ENOMEM;
	ret = guests_ask_open(all) ?: guests_find(&all->found, &go);
	while (!ret && all->n < all->plan->n_guests) {
		all->n++;
		ret = make_guest(all, &all->v[all->n - 1], output);
	}
	return ret;
}

/* ---- the end -------------------------------------------------------------------------------------- */

static int finish_profile(const struct session_guest *g, struct recorder *rec, unsigned int timeout_ms)
{
	struct source *profile = peer_profile(g->peer);

	return profile ? recorder_finish(rec, profile, (unsigned int)peer_patience_ms(g->peer) + timeout_ms)
		       : 0;
}

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
		error = recorder_finish(rec, peer_source(all->v[i].peer),
					(unsigned int)peer_patience_ms(all->v[i].peer) + timeout_ms);
		ret = ret ?: error;
		error = finish_profile(&all->v[i], rec, timeout_ms);
		ret = ret ?: error;
		spool_set(all->v[i].spool, "state", "drained");
		/* waits for the guest's last samples: the host's own last one comes after those of all guests
		 */
		peer_counter(all->v[i].peer);
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

		if (session_guest_takes_part(g) && peer_clock_now(g->peer, &offset, &bound))
			buf_printf(&text, "%s\t%" PRId64 "\t%" PRIu64 "\n", g->spec.name, offset, bound);
	}
	if (text.len && !buf_status(&text))
		spool_put_text(host, SPOOL_CLOCKS, text.data, text.len);
	buf_release(&text);
}

/* Of its events and its samples. */
static uint64_t guest_bytes(const struct session_guest *g, const struct recorder *rec)
{
	const struct source *profile = peer_profile(g->peer);

	return recorder_totals(rec, peer_source(g->peer)).bytes +
	       (profile ? recorder_totals(rec, profile).bytes : 0);
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
		b->bytes = guest_bytes(g, rec);
	}
}

/* ---- what the agents report in the end ------------------------------------------------------------- */

static struct session_buffer *guest_row(const struct session_guest *g, struct session_summary *sum)
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

	for (unsigned int i = 0; i < g->sent->n_cpus; i++) {
		unsigned int cpu = i % source->n_cpus;
		const struct source *of = i < source->n_cpus ? source : peer_profile(g->peer);
		uint64_t came = recorder_stats(rec, of, cpu)->bytes, sent = g->sent->cpus[i].bytes;

		if (came == sent)
			continue;
		log_err(all->log, "guest %s: its agent sent %llu bytes of CPU %u, and %llu came",
			g->spec.name, (unsigned long long)sent, cpu, (unsigned long long)came);
		if (row)
			row->guest_lost = -EIO;
	}
}

static void guest_keep_pauses(const struct session_guests *all, const struct session_guest *g)
{
	const struct buf *p = peer_pauses(g->peer);
	int ret = p->len ? buf_status(p) ?: spool_put_text(g->spool, "pauses", p->data, p->len) : 0;

	if (ret)
		log_warn(all->log, "guest %s: its file does not tell what lies between its regions: %s",
			 g->spec.name, errno_text(ret));
}

/* When it began by the host's clock. Only our agent reports it; of others there is a bound. */
static void find_start(const struct session_guests *all, struct session_guest *g)
{
	if (g->sent && g->sent->started && g->clock.n_knots && !strcmp(all->clock, "boot"))
		g->started = (uint64_t)((int64_t)g->sent->started + sync_offset(&g->clock, g->sent->started));
	/* a boot trace was on before anybody asked, and some clocks cannot be read */
	if (g->started || !all->host_started || (g->sent && !g->sent->started))
		return;
	log_info(all->log, "guest %s: started at most %.1f ms before the host", g->spec.name,
		 ((double)all->host_started - (double)peer_ready(g->peer)) / 1e6);
}

static void log_skew(const struct session_guests *all)
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
		g->sent = peer_finish(g->peer);
		if (g->sent)
			check_sent(all, g, rec, guest_row(g, sum));
		guest_keep_pauses(all, g);
		find_start(all, g);
	}
	log_skew(all);
}

/* ---- writing --------------------------------------------------------------------------------------- */

/*
 * The pages show that events were lost before them, but not always how many; the
 * guest's kernel has counted them, and our agent reports that.
 */
static int sanitize_guest(const struct session_guest *g, struct session_buffer *row, const struct log *log)
{
	struct sanitized m, samples = { 0 };
	int ret = sanitize_buffer(g->spool, 0, &m);
	uint64_t lost = 0;

	if (!ret && peer_profile(g->peer))
		ret = sanitize_buffer(g->spool, 1, &samples);
	m.events += samples.events;
	m.lost += samples.lost;
	m.bad += samples.bad;

	for (uint32_t i = 0; g->sent && i < g->sent->n_cpus; i++)
		lost += g->sent->cpus[i].lost;
	if (row) {
		row->events = m.events;
		row->lost = lost > m.lost ? lost : m.lost;
		row->lost_more = m.unknown && !lost;
		row->bad = m.bad;
	}
	if (ret)
		log_err(log, "guest %s: its pages cannot be gone through: %s", g->spec.name, errno_text(ret));
	return ret;
}

static int finish_guest(struct session_guests *all, struct session_guest *g)
{
	struct dat_from_spool_opts fo = { .log = all->log };
	int ret = sanitize_guest(g, guest_row(g, all->sum), all->log) ?: dat_from_spool(g->spool, &fo);

	if (ret)
		return ret;
	ret = spool_remove(g->spool);
	g->spool = NULL;
	if (ret)
		log_warn(all->log, "cannot remove the spool of guest %s: %s", g->spec.name, errno_text(ret));
	return 0;
}

static void write_or_drop(void *ctx, size_t i)
{
	struct session_guests *all = ctx;
	struct session_guest *g = &all->v[i];

	if (session_guest_takes_part(g)) {
		g->write_error = finish_guest(all, g);
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
	guests_ask_close(all);
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
