// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Asks the guests of a recording, all at once and while the host is set up, and
 * starts them: a thread for each.
 */
#include <poll.h>
#include <sys/eventfd.h>

#include "record/profile/profile.h"
#include "record/session/guests.h"

/* Stages of the worker that asks a guest. */
enum {
	ANSWERED = 1, /* its CPUs are known */
	NEARLY,	      /* it may begin to trace at any time (peer_begins_itself()) */
};

void guests_ask_give_up(struct session_guests *all)
{
	if (!all->workers)
		return;
	all->given_up = true;
	eventfd_write(all->cancel_fd, 1);
	workers_finish(all->workers);
}

static int agent_address(const struct guest_spec *s, struct transport_addr *a, const struct log *log)
{
	*a = (struct transport_addr){ .port = s->port };
	if (s->kind == GUEST_VSOCK) {
		a->kind = TRANSPORT_VSOCK;
		a->cid = s->cid;
		return 0;
	}
	a->kind = s->kind == GUEST_TCP ? TRANSPORT_TCP : TRANSPORT_UNIX;
	if (strlen(s->addr) >= sizeof(a->host))
		return log_fail(log, -ENAMETOOLONG, "guest %s: its address is too long", s->name);
	if (s->kind == GUEST_TCP && !transport_is_ip(s->addr))
		return log_fail(log, -EINVAL, "guest %s: '%s' is no numeric address", s->name, s->addr);
	strcpy(a->host, s->addr);
	return 0;
}

static int keep_metadata(struct session_guest *g)
{
	int ret = peer_keep(g->peer, g->spool);

	if (!ret && peer_profile(g->peer))
		ret = profile_keep_formats(MSG_PROFILE_ID, g->spool);
	g->kept = !ret;
	return ret;
}

static void ask_guest(void *ctx, size_t i)
{
	struct session_guests *all = ctx;
	struct session_guest *g = &all->v[i];
	struct peer_opts o = { .name = g->spec.name,
			       .args = &g->args,
			       .clock = all->clock,
			       .trace_id = all->host_trace_id,
			       .stop_fd = all->give_up_fd,
			       .timeout_ms = all->plan->guest_timeout_ms,
			       .log = &all->peer_log,
			       .counter = all->counter,
			       .profile_hz = all->plan->guests[i].profile_hz,
			       .counter_interval_ms = all->plan->tsync_interval_ms };
	struct pollfd fds[2] = { { .fd = all->clocks_fd, .events = POLLIN },
				 { .fd = all->give_up_fd, .events = POLLIN } };
	int ret = agent_address(&g->spec, &o.addr, all->log) ?: peer_open(&g->peer, &o);

	/* the host samples its clock before any guest is asked for its own */
	while (!ret && poll(fds, 2, -1) < 0)
		ret = errno == EINTR ? 0 : -errno;
	if (!ret && fds[1].revents)
		ret = -ECANCELED;
	if (ret)
		goto out;
	peer_counter_begin(g->peer);
	workers_reach(all->workers, i, ANSWERED);
	ret = peer_await(g->peer);
	if (ret)
		goto out;
	if (peer_begins_itself(g->peer))
		workers_reach(all->workers, i, NEARLY);
	ret = peer_receive(g->peer);
	/* the host does not wait here for a guest that already traces: start_guest() does */
	if (!ret && !peer_begins_itself(g->peer))
		ret = keep_metadata(g);
out:
	g->error = ret;
}

int guests_ask_begin(struct session_guests *all)
{
	int ret = workers_new(&all->workers, all->n);

	if (!ret)
		workers_begin(all->workers, ask_guest, all);
	return ret;
}

void guests_ask_clocks(struct session_guests *all)
{
	if (all->workers)
		eventfd_write(all->clocks_fd, 1);
}

int guests_ask_add(struct session_guests *all, bool best_effort, struct recorder *rec)
{
	if (!all->workers)
		return 0;
	workers_await(all->workers, ANSWERED);
	for (size_t i = 0; i < all->n; i++) {
		struct session_guest *g = &all->v[i];
		struct source *source, *samples;
		int ret;

		/* g->error is its thread's to set, as long as that is at work */
		if (!g->peer)
			continue;
		source = &g->peer->source;
		samples = peer_profile(g->peer);
		ret = recorder_describe(g->spool, source) ?:
		      spool_set_number(g->spool, "traceid", g->peer->trace_id) ?:
		      spool_set(g->spool, "clock_name", source->clock) ?:
		      /* its agent may send before the host begins */
		      spool_set(g->spool, "state", "armed") ?:
		      recorder_add(rec, source, g->spool, 0);
		if (!ret && samples) /* they are buffer 1 */
			ret = recorder_describe(g->spool, samples) ?: recorder_add(rec, samples, g->spool, 1);
		if (ret)
			log_err(all->log, "guest %s: cannot take the data of its %u CPUs: %s", g->spec.name,
				source->n_cpus, errno_text(ret));
		g->not_added = ret;
		if (ret && !best_effort)
			return ret;
	}
	return 0;
}

void guests_ask_await(struct session_guests *all)
{
	if (all->workers)
		workers_await(all->workers, NEARLY);
}

int guests_ask_finish(struct session_guests *all, bool best_effort)
{
	if (!all->workers)
		return 0;
	workers_finish(all->workers);
	for (size_t i = 0; i < all->n; i++) {
		struct session_guest *g = &all->v[i];

		g->error = g->error ?: g->not_added;
		if (g->error && !best_effort)
			return g->error;
		if (!g->error || g->dropped)
			continue;
		g->dropped = true;
		log_warn(all->log, "going on without guest %s (--best-effort)", g->spec.name);
	}
	return 0;
}

bool guests_ask_tracing(const struct session_guests *all)
{
	for (size_t i = 0; i < all->n; i++)
		if (session_guest_takes_part(&all->v[i]) && peer_begins_itself(all->v[i].peer))
			return true;
	return false;
}

static void start_guest(void *ctx, size_t i)
{
	struct session_guest *g = &((struct session_guests *)ctx)->v[i];

	if (session_guest_takes_part(g) && !g->kept)
		g->error = keep_metadata(g);
	if (session_guest_takes_part(g))
		g->error = g->peer->source.ops->start(&g->peer->source);
}

void guests_ask_start(struct session_guests *all)
{
	if (all->workers)
		workers_begin(all->workers, start_guest, all);
}
