// SPDX-License-Identifier: LGPL-2.1-or-later
#include "session-guests.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "mend.h"
#include "finish.h"
#include "session-sync.h"
#include "writer.h"

#define VCPUS_MAX 1024

/* What a guest records when nobody says what: who runs, and what wakes it. */
static const char *const default_args[] = { "-i", "-e", "sched", "-e", "irq", "-e", "ipi", "-e", "timer" };

/* ---- who and where ---------------------------------------------------------------------- */

/* "trace.dat" and "vm1" make "trace-vm1.dat", as stock names it. */
static char *output_of(const char *host, const char *name)
{
	const char *slash = strrchr(host, '/'), *dot = strrchr(host, '.');
	size_t stem = dot && (!slash || dot > slash) ? (size_t)(dot - host) : strlen(host);

	return strf("%.*s-%s%s", (int)stem, host, name, host + stem);
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

static int set_number(struct spool *spool, const char *key, uint64_t n)
{
	char text[24];

	snprintf(text, sizeof(text), "%llu", (unsigned long long)n);
	return spool_set(spool, key, text);
}

/* recover goes by it: the same machine needs no word about a reboot. */
static int set_boot_id(struct spool *spool)
{
	struct buf id = { 0 };
	int ret = read_file("/proc/sys/kernel/random/boot_id", 128, &id);

	if (!ret && buf_str(&id)) {
		id.data[strcspn((char *)id.data, "\n")] = 0;
		ret = spool_set(spool, "boot_id", (char *)id.data);
	}
	buf_release(&id);
	return ret;
}

static int make_spool(struct session_guests *all, struct session_guest *g, const struct record_plan *plan)
{
	char *dir = strf("%s.spool", g->output);
	int ret = dir ? spool_create(&g->spool, dir, all->log) : -ENOMEM;

	if (ret)
		log_err(all->log, ret == -EEXIST ? "'%s' holds an unfinished recording: hyptrace recover it" :
						   "cannot make the spool '%s'", dir ? dir : "");
	free(dir);
	if (!ret)
		ret = spool_set(g->spool, "output", g->output);
	if (!ret)
		ret = set_boot_id(g->spool);
	if (!ret)
		ret = set_number(g->spool, "version", plan->file_version ? (uint64_t)plan->file_version : 7);
	if (!ret)
		ret = spool_set(g->spool, "compression", plan->compression ? plan->compression : "zstd");
	return ret;
}

int session_guests_prepare(struct session_guests *all, const struct record_plan *plan, const char *output)
{
	struct guest_opts go = { .log = all->log };
	int ret;

	all->v = calloc(plan->n_guests ? plan->n_guests : 1, sizeof(*all->v));
	if (!all->v)
		return -ENOMEM;
	ret = plan->n_guests ? guests_find(&all->found, &go) : 0;
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

/* ---- asking ---------------------------------------------------------------------------------- */

static int address(const struct guest_spec *s, struct transport_addr *a, const struct log *log)
{
	*a = (struct transport_addr){ .port = s->port };
	if (s->kind == GUEST_VSOCK) {
		a->kind = TRANSPORT_VSOCK;
		a->cid = s->cid;
		return 0;
	}
	a->kind = s->kind == GUEST_TCP ? TRANSPORT_TCP : TRANSPORT_UNIX;
	if (strlen(s->addr) >= sizeof(a->host)) {
		log_err(log, "guest %s: its address is too long", s->name);
		return -ENAMETOOLONG;
	}
	if (s->kind == GUEST_TCP && !transport_is_ip(s->addr)) {
		log_err(log, "guest %s: '%s' is no numeric address", s->name, s->addr);
		return -EINVAL;
	}
	strcpy(a->host, s->addr);
	return 0;
}

struct asking {
	struct session_guests *all;
	struct session_guest *g;
	pthread_t thread;
	bool running;
};

static void *ask(void *arg)
{
	struct asking *a = arg;
	struct peer_opts o = { .name = a->g->spec.name, .args = &a->g->args, .clock = a->all->clock,
			       .trace_id = a->all->host_trace_id, .stop_fd = a->all->stop_fd,
			       .timeout_ms = a->all->timeout_ms, .log = a->all->log };

	a->g->error = address(&a->g->spec, &o.addr, a->all->log);
	if (!a->g->error)
		a->g->error = peer_open(&a->g->peer, a->g->spool, &o);
	return NULL;
}

/* They start within the time that the slowest of them takes to answer. */
static int ask_all(struct session_guests *all)
{
	struct asking *v = calloc(all->n ? all->n : 1, sizeof(*v));
	int ret = 0;

	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < all->n; i++) {
		v[i] = (struct asking){ .all = all, .g = &all->v[i] };
		v[i].running = !pthread_create(&v[i].thread, NULL, ask, &v[i]);
		if (!v[i].running)
			all->v[i].error = -EAGAIN;
	}
	for (size_t i = 0; i < all->n; i++) {
		if (v[i].running)
			pthread_join(v[i].thread, NULL);
		if (all->v[i].error && !ret)
			ret = all->v[i].error;
	}
	free(v);
	return ret;
}

static int add_source(struct session_guest *g, struct recorder *rec)
{
	struct source *source = peer_source(g->peer);
	struct spool_buffer b = { .name = "", .clock = source->clock, .path = source->path,
				  .kind = source->ops->kind, .page_size = source->page_size,
				  .n_cpus = source->n_cpus };
	int ret = spool_add_buffer(g->spool, &b);

	if (!ret)
		ret = set_number(g->spool, "traceid", peer_trace_id(g->peer));
	if (!ret)
		ret = spool_set(g->spool, "clock_name", source->clock);
	if (!ret)
		ret = spool_set(g->spool, "state", "armed");
	return ret ? ret : recorder_add(rec, source, g->spool, 0);
}

int session_guests_arm(struct session_guests *all, bool best_effort, struct recorder *rec)
{
	uint64_t first = UINT64_MAX, last = 0, sent, answered;
	int ret = ask_all(all);

	if (ret && !best_effort)
		return ret;
	ret = 0;
	for (size_t i = 0; i < all->n && !ret; i++) {
		if (!all->v[i].peer) {
			log_warn(all->log, "going on without guest %s (--best-effort)", all->v[i].spec.name);
			continue;
		}
		peer_asked(all->v[i].peer, &sent, &answered);
		first = answered < first ? answered : first;
		last = answered > last ? answered : last;
		ret = add_source(&all->v[i], rec);
	}
	if (all->n > 1 && last)
		log_info(all->log, "guests: answered within %.1f ms of each other",
			 (double)(last - first) / 1e6);
	return ret;
}

/* ---- the end -------------------------------------------------------------------------------------- */

int session_guests_drain(struct session_guests *all, struct recorder *rec, unsigned int timeout_ms)
{
	int ret = 0;

	for (size_t i = 0; i < all->n; i++)
		if (all->v[i].peer)
			peer_source(all->v[i].peer)->ops->stop(peer_source(all->v[i].peer));
	for (size_t i = 0; i < all->n; i++) {
		int error;

		if (!all->v[i].peer)
			continue;
		error = recorder_finish(rec, peer_source(all->v[i].peer), timeout_ms);
		if (error && !ret)
			ret = error;
		spool_set(all->v[i].spool, "state", "drained");
	}
	return ret;
}

void session_guests_sum(const struct session_guests *all, const struct recorder *rec,
			struct session_summary *sum)
{
	for (size_t i = 0; i < all->n && sum->n_buffers < SESSION_BUFFERS_MAX; i++) {
		const struct session_guest *g = &all->v[i];
		struct session_buffer *b;

		if (!g->peer)
			continue;
		b = &sum->buffers[sum->n_buffers++];
		*b = (struct session_buffer){ .guest = true, .guest_lost = peer_lost(g->peer) };
		snprintf(b->name, sizeof(b->name), "%s", g->spec.name);
		b->bytes = recorder_totals(rec, peer_source(g->peer)).bytes;
	}
}

/* u16 id, u32 length, bytes: how texts/options keeps them (finish.h) */
static int put_option(struct spool *spool, uint16_t id, const struct buf *body)
{
	struct buf out = { 0 };
	uint32_t len = (uint32_t)body->len;
	int ret;

	buf_add(&out, &id, sizeof(id));
	buf_add(&out, &len, sizeof(len));
	buf_add(&out, body->data, body->len);
	ret = body->bad ? -ENOMEM : buf_status(&out);
	if (!ret)
		ret = spool_append_text(spool, "options", out.data, out.len);
	buf_release(&out);
	return ret;
}

/* The threads that are known before the trace is looked at. */
static size_t known_vcpus(const struct session_guest *g, struct offset_vcpu *out, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; g->vm && i < g->vm->n_vcpus && n < max; i++)
		if (g->vm->vcpus[i].tid)
			out[n++] = (struct offset_vcpu){ g->vm->vcpus[i].cpu, (uint32_t)g->vm->vcpus[i].tid };
	return n;
}

/* For the host's file: whose vCPUs its threads are. What the trace showed goes before what was known. */
static int note_guest(struct session_guest *g, const struct sync_result *r, struct offset_vcpu *known,
		      size_t n_known, struct spool *host)
{
	struct offset_guest found = { 0 };
	struct buf body = { 0 };
	int ret = r ? sync_guest_option(r, g->spec.name, peer_trace_id(g->peer), &found) : -ENODATA;

	if (!ret && found.n) {
		offset_guest_encode(&found, &body);
	} else {
		struct offset_guest plain = { .name = g->spec.name, .trace_id = peer_trace_id(g->peer),
					      .n = (uint32_t)n_known, .vcpus = known };

		offset_guest_encode(&plain, &body);
	}
	offset_guest_release(&found);
	ret = put_option(host, DAT_GUEST, &body);
	buf_release(&body);
	return ret;
}

static int note_shift(struct session_guests *all, struct session_guest *g, const struct sync_result *r)
{
	struct offset_shift shift = { 0 };
	struct buf body = { 0 };
	int ret = sync_time_shift(r, all->host_trace_id, peer_source(g->peer)->n_cpus, &shift);

	if (ret == -ENODATA) {
		log_warn(all->log, "guest %s: its clock could not be tied to the host's: record -e kvm (or -B hyp) "
				   "with it", g->spec.name);
		return 0;
	}
	if (ret)
		return ret;
	offset_shift_encode(&shift, &body);
	offset_shift_release(&shift);
	ret = put_option(g->spool, DAT_TIME_SHIFT, &body);
	buf_release(&body);
	log_info(all->log, "guest %s: clock offset known to +- %.1f us (%s, %s; %llu of %llu events outside)",
		 g->spec.name, (double)sync_median_bound(r) / 1e3, sync_class_name(r->class), r->method,
		 (unsigned long long)r->outside, (unsigned long long)r->events);
	return ret;
}

static int sync_guest(struct session_guests *all, struct session_guest *g, const struct session_sync *host,
		      struct spool *host_spool)
{
	struct offset_vcpu known[VCPUS_MAX];
	size_t n_known = known_vcpus(g, known, VCPUS_MAX);
	struct sync_result r = { 0 };
	struct session_sync guest;
	int ret = session_sync_open(&guest, g->spool);

	if (!ret)
		ret = sync_files(&host->source, &guest.source, n_known ? known : NULL, n_known, NULL, &r,
				 all->log);
	session_sync_close(&guest);
	if (!ret)
		ret = note_shift(all, g, &r);
	else
		log_warn(all->log, "guest %s: its clock could not be tied to the host's: %s", g->spec.name,
			 error_text(ret));
	ret = note_guest(g, ret ? NULL : &r, known, n_known, host_spool);
	sync_result_release(&r);
	return ret;
}

int session_guests_note(struct session_guests *all, struct spool *host)
{
	struct session_sync sync;
	int ret = all->n && spool_n_buffers(host) ? session_sync_open(&sync, host) : -ENODATA;

	if (ret)
		return ret == -ENODATA ? 0 : ret;
	for (size_t i = 0; i < all->n && !ret; i++)
		if (all->v[i].peer)
			ret = sync_guest(all, &all->v[i], &sync, host);
	session_sync_close(&sync);
	return ret;
}

/* The agent does not tell what was lost: the pages do. */
static int mend_guest(const struct session_guest *g, struct session_summary *sum, const struct log *log)
{
	struct mended m;
	int ret = mend_buffer(g->spool, 0, &m);

	for (size_t i = 0; i < sum->n_buffers; i++) {
		struct session_buffer *b = &sum->buffers[i];

		if (!b->guest || strcmp(b->name, g->spec.name))
			continue;
		b->events = m.events;
		b->lost = m.lost;
		b->bad = m.bad;
	}
	if (ret)
		log_err(log, "guest %s: its pages cannot be gone through: %s", g->spec.name, error_text(ret));
	return ret;
}

static int write_guest(struct session_guests *all, struct session_guest *g, struct session_summary *sum,
		       const struct finish_opts *fo)
{
	int ret = mend_guest(g, sum, all->log);

	if (!ret)
		ret = finish(g->spool, fo);
	if (ret) {
		snprintf(sum->kept, sizeof(sum->kept), "%s", spool_dir(g->spool));
		return ret;
	}
	ret = spool_remove(g->spool);
	g->spool = NULL;
	if (ret)
		log_warn(all->log, "cannot remove the spool of guest %s: %s", g->spec.name, error_text(ret));
	return 0;
}

int session_guests_write(struct session_guests *all, struct session_summary *sum,
			 void (*writing)(void *ctx, uint64_t done, uint64_t total), void *ctx)
{
	struct finish_opts fo = { .progress = writing, .ctx = ctx, .log = all->log };
	int ret = 0;

	for (size_t i = 0; i < all->n; i++) {
		struct session_guest *g = &all->v[i];
		int error;

		if (!g->peer) {
			if (g->spool)
				spool_remove(g->spool);
			g->spool = NULL;
			continue;
		}
		error = write_guest(all, g, sum, &fo);
		if (error && !ret)
			ret = error;
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
	for (size_t i = 0; i < all->n; i++) {
		struct session_guest *g = &all->v[i];

		peer_free(g->peer);
		spool_close(g->spool);
		guest_spec_release(&g->spec);
		strlist_release(&g->args);
		free(g->output);
	}
	free(all->v);
	guests_release(&all->found);
}
