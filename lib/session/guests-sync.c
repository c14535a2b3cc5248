// SPDX-License-Identifier: LGPL-2.1-or-later
/* The clocks of a recording's guests: which method, and what the files say of it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "session/guests.h"
#include "session/spool-source.h"
#include "dat/writer.h"

#define VCPUS_MAX   1024
#define DOUBT_PARTS 100 /* one event of so many outside: the counters tell something else than the events */

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

/*
 * For the host's file: whose vCPUs its threads are. What the trace showed goes
 * before what was known. Readers index the list by CPU: none is left out, 0 is
 * for those that nobody knows.
 */
static int note_guest(struct session_guest *g, const struct offset_vcpu *known, size_t n_known,
		      struct spool *host)
{
	unsigned int n = peer_source(g->peer)->n_cpus;
	struct offset_guest guest = { .name = g->spec.name, .trace_id = peer_trace_id(g->peer), .n = n };
	struct buf body = { 0 };
	int ret;

	guest.vcpus = calloc(n, sizeof(*guest.vcpus));
	if (!guest.vcpus)
		return -ENOMEM;
	for (unsigned int i = 0; i < n; i++)
		guest.vcpus[i].cpu = i;
	for (size_t i = 0; i < n_known; i++)
		if (known[i].cpu < n)
			guest.vcpus[known[i].cpu].pid = known[i].pid;
	for (size_t i = 0; i < g->clock.n_vcpus; i++)
		if (g->clock.vcpus[i].cpu < n && g->clock.vcpus[i].pid)
			guest.vcpus[g->clock.vcpus[i].cpu].pid = (uint32_t)g->clock.vcpus[i].pid;
	offset_guest_encode(&guest, &body);
	free(guest.vcpus);
	ret = put_option(host, DAT_GUEST, &body);
	buf_release(&body);
	return ret;
}

static int note_shift(struct session_guests *all, struct session_guest *g, const struct sync_result *r)
{
	bool ticks = clock_in_ticks(peer_source(g->peer)->clock);
	double median = (double)sync_median_bound(r);
	struct offset_shift shift;
	struct buf body = { 0 };
	int ret = sync_time_shift(r, all->host_trace_id, peer_source(g->peer)->n_cpus, &shift);

	if (!ret) {
		offset_shift_encode(&shift, &body);
		ret = put_option(g->spool, DAT_TIME_SHIFT, &body);
		offset_shift_release(&shift);
	}
	buf_release(&body);
	if (!ret)
		log_info(all->log,
			 "guest %s: clock offset known to +- %.*f %s (%s, %s; %llu of %llu events outside)",
			 g->spec.name, ticks ? 0 : 1, ticks ? median : median / 1e3, ticks ? "ticks" : "us",
			 sync_class_name(r->class), r->method, (unsigned long long)r->outside,
			 (unsigned long long)r->events);
	return ret == -ENODATA ? 0 : ret;
}

/* ---- counters -------------------------------------------------------------------------- */

/* One guest's clock. */
struct job {
	const struct session_guests *all;
	const struct session_guest *g;
	const struct sync_source *host; /* NULL: no buffer of the host's was recorded */
	const struct sync_source *guest;
	bool hyp; /* the host's last buffer is the hypervisor's */
	struct offset_vcpu known[VCPUS_MAX];
	size_t n_known;
};

/* Threads that the probe did not see. */
static int add_vcpus(struct sync_result *r, const struct sync_input *in)
{
	struct sync_vcpu *v = realloc(r->vcpus, (r->n_vcpus + in->n_cpus + 1) * sizeof(*v));

	if (!v)
		return -ENOMEM;
	r->vcpus = v;
	for (size_t i = 0; i < in->n_cpus; i++) {
		bool there = false;

		for (size_t k = 0; k < r->n_vcpus && !there; k++)
			there = v[k].cpu == in->cpus[i].cpu;
		if (!there && in->pids[i])
			v[r->n_vcpus++] = (struct sync_vcpu){ .cpu = in->cpus[i].cpu, .pid = in->pids[i] };
	}
	return 0;
}

/* What the events say of an offset that does not come from them. */
static int check(const struct job *j, struct sync_result *r)
{
	struct offset_shift shift = { 0 };
	struct sync_check found = { 0 };
	struct sync_host h = { 0 };
	struct sync_guest g = { 0 };
	struct sync_input in;
	int32_t *pids = NULL;
	int ret = sync_host_read(&h, j->host, j->all->log);

	if (!ret)
		ret = sync_guest_read(&g, j->guest, j->all->log);
	if (!ret && h.windows.n && g.n_cpus) {
		ret = sync_input_make(&in, &h, &g, j->known, j->n_known, &pids) ?: add_vcpus(r, &in) ?:
		      sync_time_shift(r, 0, g.cpus[g.n_cpus - 1].cpu + 1, &shift);
		if (!ret)
			ret = sync_check(&in, r, &shift, &found);
	}
	r->events = found.events;
	r->outside = found.outside;
	offset_shift_release(&shift);
	free(pids);
	sync_guest_release(&g);
	sync_host_release(&h);
	return ret;
}

static int by_exact(const struct job *j, struct sync_result *out, const char **why)
{
	const struct clock_sampler *clocks = j->all->clocks;
	const struct counter_log *log = peer_counter(j->g->peer);
	const struct counter_threads threads = { j->known, j->n_known };
	int ret;

	*why = !clocks ? "this machine's counter cannot be read" : "its agent does not tell its counter";
	if (!clocks || !log)
		return -ENODATA;
	ret = counter_solve(clock_sampler_host(clocks), log, clock_sampler_cntvoff(clocks), &threads, out,
			    why);
	if (!ret && j->host)
		ret = check(j, out);
	if (!ret && out->outside > out->events / DOUBT_PARTS) {
		log_warn(j->all->log,
			 "guest %s: by the counters %llu of %llu events are where it did not run",
			 j->g->spec.name, (unsigned long long)out->outside, (unsigned long long)out->events);
		*why = "the counters contradict the events";
		ret = -ENODATA;
	}
	if (ret)
		sync_result_release(out);
	return ret;
}

static int by_ping(const struct job *j, struct sync_result *out, const char **why)
{
	const struct clock_sampler *clocks = j->all->clocks;
	const struct counter_log *log = peer_counter(j->g->peer);

	*why = "its agent does not tell its counter";
	return clocks && log ? counter_solve_pings(clock_sampler_host(clocks), log, out, why) : -ENODATA;
}

/* The windows with the counters' help; -ENODATA: without. */
static int by_both(const struct job *j, const struct sync_source *host, struct sync_result *out)
{
	const struct clock_sampler *clocks = j->all->clocks;
	const struct counter_log *log = peer_counter(j->g->peer);
	struct sync_host h = { 0 };
	struct sync_guest g = { 0 };
	struct counter_events e = { &h, &g, j->known, j->n_known };
	int ret = clocks && log ? sync_host_read(&h, host, j->all->log) : -ENODATA;

	if (!ret)
		ret = sync_guest_read(&g, j->guest, j->all->log);
	if (!ret)
		ret = counter_solve_windows(clock_sampler_host(clocks), log, &e, out, j->all->log);
	if (ret == -ENODATA && log)
		log_debug(j->all->log, "guest %s: the windows without the counters", j->g->spec.name);
	sync_guest_release(&g);
	sync_host_release(&h);
	return ret;
}

/* ---- which method ------------------------------------------------------------------------- */

static int by_windows(const struct job *j, const struct sync_prior *prior, struct sync_result *out,
		      const char **why)
{
	struct sync_source host;
	int ret;

	*why = "record -e kvm (or -B hyp) with it";
	if (!j->host)
		return -ENODATA;
	if (j->all->tsync == TSYNC_HYP && !j->hyp) {
		*why = "the hypervisor was not recorded";
		return -ENODATA;
	}
	host = *j->host;
	if (j->all->tsync == TSYNC_KVM && j->hyp)
		host.n_buffers--;
	ret = by_both(j, &host, out);
	if (ret != -ENODATA)
		return ret;
	return sync_files(&host, j->guest, j->known, j->n_known, prior, out, j->all->log);
}

/* A ping's offset in mid-recording, unless it jumped. */
static struct sync_prior prior_of(const struct sync_result *ping)
{
	const struct sync_knot *k = ping->n_knots ? &ping->knots[ping->n_knots / 2] : NULL;

	if (!k || ping->n_cuts)
		return (struct sync_prior){ 0 };
	return (struct sync_prior){ .valid = true, .time = k->time, .offset = k->offset, .bound = k->bound };
}

/* The exact method, then the events, then the answers alone. */
static int by_best(const struct job *j, struct sync_result *out, const char **why)
{
	struct sync_result ping = { 0 };
	struct sync_prior prior;
	int ret = by_exact(j, out, why);

	if (ret != -ENODATA)
		return ret;
	log_debug(j->all->log, "guest %s: not exactly: %s", j->g->spec.name, *why);
	ret = by_ping(j, &ping, why);
	prior = prior_of(&ping);
	if (!ret || ret == -ENODATA)
		ret = by_windows(j, &prior, out, why);
	if ((!ret && out->class == SYNC_NONE) || ret == -ENODATA) {
		sync_result_release(out);
		*out = ping;
		return ping.n_knots ? 0 : -ENODATA;
	}
	sync_result_release(&ping);
	return ret;
}

/* -ENODATA with *why: there is no offset. */
static int solve(const struct job *j, struct sync_result *out, const char **why)
{
	int ret = -ENODATA;

	switch (j->all->tsync) {
	case TSYNC_AUTO:
		ret = by_best(j, out, why);
		break;
	case TSYNC_COUNTER:
		ret = by_exact(j, out, why);
		break;
	case TSYNC_PING:
		ret = by_ping(j, out, why);
		break;
	case TSYNC_HYP:
	case TSYNC_KVM:
		ret = by_windows(j, NULL, out, why);
		break;
	case TSYNC_NONE:
		break;
	}
	return ret ? ret : out->n_knots ? 0 : -ENODATA;
}

/* All guests beside one host. */
struct tying {
	struct session_guests *all;
	const struct sync_source *host;
	bool hyp;
};

static void tie(void *ctx, size_t i)
{
	const struct tying *t = ctx;
	struct session_guest *g = &t->all->v[i];
	struct job j = { .all = t->all, .g = g, .host = t->host, .hyp = t->hyp };
	struct spool_source guest;

	if (!session_guest_takes_part(g))
		return;
	g->clock_why = "";
	g->clock_error = spool_source_open(&guest, g->spool);
	j.guest = &guest.source;
	j.n_known = known_vcpus(g, j.known, VCPUS_MAX);
	if (!g->clock_error)
		g->clock_error = solve(&j, &g->clock, &g->clock_why);
	spool_source_close(&guest);
}

/* The options of both files. */
static int note(struct session_guests *all, struct session_guest *g, struct spool *host)
{
	struct offset_vcpu known[VCPUS_MAX];

	if (!g->clock_error)
		note_shift(all, g, &g->clock);
	else if (all->tsync != TSYNC_NONE)
		log_warn(all->log, "guest %s: its clock could not be tied to the host's: %s", g->spec.name,
			 g->clock_error == -ENODATA ? g->clock_why : errno_text(g->clock_error));
	return host ? note_guest(g, known, known_vcpus(g, known, VCPUS_MAX), host) : 0;
}

int session_guests_align_clocks(struct session_guests *all, struct spool *host)
{
	size_t n = spool_n_buffers(host);
	struct spool_source sync = { 0 };
	struct tying t = { .all = all };
	int ret = all->n && n ? spool_source_open(&sync, host) : 0;

	if (n && !ret) {
		t.host = &sync.source;
		t.hyp = !strncmp(spool_buffer(host, n - 1)->kind, "hyp-", 4);
	}
	if (all->n && !ret) {
		workers_begin(all->workers, tie, &t);
		workers_finish(all->workers);
	}
	for (size_t i = 0; i < all->n && !ret; i++)
		if (session_guest_takes_part(&all->v[i]))
			ret = note(all, &all->v[i], n ? host : NULL);
	if (all->n && n)
		spool_source_close(&sync);
	return ret;
}
