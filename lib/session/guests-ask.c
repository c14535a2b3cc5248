// SPDX-License-Identifier: LGPL-2.1-or-later
/* The guests of a recording up to their start: asked all at once, while the host is set up. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "session/guests.h"

/* How far the asking of a guest is. */
enum {
	ANSWERED = 1, /* its CPUs are known */
	NEARLY,	      /* it may begin to trace at any time, or is waited for with peer_receive() only */
};

/* ---- giving up -------------------------------------------------------------------------- */

/* What goes wrong with guests because they were given up is of no interest. */
static void unless_given_up(void *ctx, enum log_level level, const char *msg)
{
	struct session_guests *all = ctx;

	if (!all->given_up)
		log_msg(all->log, level, "%s", msg);
}

static int watch(struct session_guests *all, int fd)
{
	struct epoll_event e = { .events = EPOLLIN };

	return epoll_ctl(all->give_up_fd, EPOLL_CTL_ADD, fd, &e) < 0 ? -errno : 0;
}

int session_guests_open(struct session_guests *all)
{
	int ret;

	all->peer_log = (struct log){ .fn = unless_given_up, .ctx = all };
	all->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	all->clocks_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	/* one for all that ends the waiting: readable as soon as one of them is */
	all->give_up_fd = epoll_create1(EPOLL_CLOEXEC);
	if (all->cancel_fd < 0 || all->clocks_fd < 0 || all->give_up_fd < 0)
		return -errno;
	ret = watch(all, all->cancel_fd);
	return ret || all->stop_fd < 0 ? ret : watch(all, all->stop_fd);
}

static void shut(int fd)
{
	if (fd >= 0)
		close(fd);
}

void session_guests_close(struct session_guests *all)
{
	workers_free(all->workers);
	if (!all->v) /* never opened */
		return;
	shut(all->cancel_fd);
	shut(all->clocks_fd);
	shut(all->give_up_fd);
}

void session_guests_give_up(struct session_guests *all)
{
	if (!all->workers)
		return;
	all->given_up = true;
	eventfd_write(all->cancel_fd, 1);
	workers_finish(all->workers);
}

/* ---- asking ----------------------------------------------------------------------------- */

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

static int open_peer(struct session_guests *all, struct session_guest *g)
{
	struct peer_opts o = { .name = g->spec.name,
			       .args = &g->args,
			       .clock = all->clock,
			       .trace_id = all->host_trace_id,
			       .stop_fd = all->give_up_fd,
			       .timeout_ms = all->timeout_ms,
			       .log = &all->peer_log,
			       .counter = all->counter,
			       .counter_interval_ms = all->tsync_interval_ms };
	int ret = address(&g->spec, &o.addr, all->log);

	return ret ? ret : peer_open(&g->peer, &o);
}

/* The host looks at its clocks before anybody does at a guest's. */
static int wait_clocks(const struct session_guests *all)
{
	struct pollfd p[2] = { { .fd = all->clocks_fd, .events = POLLIN },
			       { .fd = all->give_up_fd, .events = POLLIN } };

	while (poll(p, 2, -1) < 0)
		if (errno != EINTR)
			return -errno;
	return p[1].revents ? -ECANCELED : 0;
}

static int keep(struct session_guest *g)
{
	int ret = peer_keep(g->peer, g->spool);

	g->kept = !ret;
	return ret;
}

static int prepare_guest(struct session_guests *all, struct session_guest *g, size_t i)
{
	int ret = open_peer(all, g) ?: wait_clocks(all);

	if (ret)
		return ret;
	peer_counter_begin(g->peer);
	workers_reach(all->workers, i, ANSWERED);
	ret = peer_await(g->peer);
	if (ret)
		return ret;
	if (peer_begins_itself(g->peer))
		workers_reach(all->workers, i, NEARLY);
	ret = peer_receive(g->peer);
	/* the host is not to wait for that when the guest traces already: see start() */
	return ret || peer_begins_itself(g->peer) ? ret : keep(g);
}

static void ask(void *ctx, size_t i)
{
	struct session_guests *all = ctx;

	all->v[i].error = prepare_guest(all, &all->v[i], i);
}

int session_guests_ask(struct session_guests *all)
{
	int ret = workers_new(&all->workers, all->n);

	if (!ret)
		workers_begin(all->workers, ask, all);
	return ret;
}

void session_guests_clocks_run(struct session_guests *all)
{
	if (all->workers)
		eventfd_write(all->clocks_fd, 1);
}

/* ---- waiting for them ---------------------------------------------------------------------- */

static int add_source(const struct session_guests *all, struct session_guest *g, struct recorder *rec)
{
	struct source *source = peer_source(g->peer);
	struct spool_buffer b = { .name = "",
				  .clock = source->clock,
				  .path = source->path,
				  .kind = source->ops->kind,
				  .page_size = source->page_size,
				  .n_cpus = source->n_cpus };
	int ret = spool_add_buffer(g->spool, &b);

	if (!ret)
		ret = spool_set_number(g->spool, "traceid", peer_trace_id(g->peer));
	if (!ret)
		ret = spool_set(g->spool, "clock_name", source->clock);
	if (!ret)
		ret = recorder_add(rec, source, g->spool, 0);
	if (ret)
		log_err(all->log, "guest %s: cannot take the data of its %u CPUs: %s", g->spec.name,
			source->n_cpus, errno_text(ret));
	return ret;
}

int session_guests_add(struct session_guests *all, bool best_effort, struct recorder *rec)
{
	int ret = 0;

	if (!all->workers)
		return 0;
	workers_await(all->workers, ANSWERED);
	for (size_t i = 0; i < all->n && !ret; i++) {
		struct session_guest *g = &all->v[i];

		/* its error is its thread's to set, as long as that is at work */
		if (g->peer)
			g->not_added = add_source(all, g, rec);
		ret = best_effort ? 0 : g->not_added;
	}
	return ret;
}

void session_guests_await(struct session_guests *all)
{
	if (all->workers)
		workers_await(all->workers, NEARLY);
}

/* The first error, or what goes wrong with each of them said. */
static int take_errors(struct session_guests *all, bool best_effort)
{
	for (size_t i = 0; i < all->n; i++) {
		struct session_guest *g = &all->v[i];

		if (g->error && !best_effort)
			return g->error;
		if (!g->error || g->dropped)
			continue;
		g->dropped = true;
		log_warn(all->log, "going on without guest %s (--best-effort)", g->spec.name);
	}
	return 0;
}

/* How far apart they answered; trace-cmd's agents trace from then on. */
static void say_answered(const struct session_guests *all)
{
	uint64_t first = UINT64_MAX, last = 0;

	for (size_t i = 0; i < all->n; i++) {
		uint64_t t = session_guest_takes_part(&all->v[i]) ? peer_ready(all->v[i].peer) : 0;

		if (!t)
			continue;
		first = t < first ? t : first;
		last = t > last ? t : last;
	}
	if (all->n > 1 && last)
		log_info(all->log, "guests: answered within %.1f ms of each other",
			 (double)(last - first) / 1e6);
}

int session_guests_ready(struct session_guests *all, bool best_effort)
{
	int ret;

	if (!all->workers)
		return 0;
	workers_finish(all->workers);
	for (size_t i = 0; i < all->n; i++)
		all->v[i].error = all->v[i].error ? all->v[i].error : all->v[i].not_added;
	ret = take_errors(all, best_effort);
	if (!ret)
		say_answered(all);
	return ret;
}

/* ---- starting ----------------------------------------------------------------------------- */

bool session_guests_trace(const struct session_guests *all)
{
	for (size_t i = 0; i < all->n; i++)
		if (session_guest_takes_part(&all->v[i]) && peer_begins_itself(all->v[i].peer))
			return true;
	return false;
}

static void start(void *ctx, size_t i)
{
	struct session_guest *g = &((struct session_guests *)ctx)->v[i];

	if (session_guest_takes_part(g) && !g->kept)
		g->error = keep(g);
	if (session_guest_takes_part(g))
		g->error = peer_source(g->peer)->ops->start(peer_source(g->peer));
}

void session_guests_start(struct session_guests *all)
{
	if (all->workers)
		workers_begin(all->workers, start, all);
}

int session_guests_started(struct session_guests *all, bool best_effort)
{
	int ret = 0;

	if (!all->workers)
		return 0;
	workers_finish(all->workers);
	for (size_t i = 0; i < all->n && !ret; i++)
		if (session_guest_takes_part(&all->v[i]))
			ret = spool_set(all->v[i].spool, "state", "armed");
	return ret ? ret : take_errors(all, best_effort);
}
