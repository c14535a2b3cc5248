// SPDX-License-Identifier: LGPL-2.1-or-later
/* How often, and for how long, a guest was left during a hop of its. */
#include "path/path-priv.h"

/* A vCPU's thread as its guest is entered and left. */
struct path_exits {
	struct path_thread t;
	bool hyp; /* by the hypervisor's events: KVM's miss what that handles itself */
	bool in;  /* the guest runs */
	uint64_t since;
};

/* 1: the guest is entered, -1: it is left, 0: neither. */
static int path_exits_row(const struct path_exits *e, const struct path_row *r)
{
	if (r->input != e->t.host)
		return 0;
	if (e->hyp && (int64_t)r->b == e->t.tid)
		return (r->kind == STEP_HYP_EXIT) - (r->kind == STEP_HYP_ENTER);
	if (!e->hyp && r->pid == e->t.tid)
		return (r->kind == STEP_KVM_ENTRY) - (r->kind == STEP_KVM_EXIT);
	return 0;
}

/* Whether the hypervisor tells of the thread. */
static bool path_exits_hyp(const struct path_window *w, const struct path_exits *e)
{
	for (size_t i = 0; i < w->n; i++)
		if (w->v[i].input == e->t.host &&
		    (w->v[i].kind == STEP_HYP_EXIT || w->v[i].kind == STEP_HYP_ENTER) &&
		    (int64_t)w->v[i].b == e->t.tid)
			return true;
	return false;
}

/* Of any buffer: entries and exits may be missing. */
static bool path_exits_lost(const struct path_window *w, const struct path_exits *e, const struct path_hop *h)
{
	for (size_t i = 0; i < w->n; i++)
		if (w->v[i].kind == STEP_LOST && w->v[i].input == e->t.host && w->v[i].b < h->to &&
		    w->v[i].ts > h->from)
			return true;
	return false;
}

/* What came last before a row; 0: the rows do not say. */
static int path_exits_before(const struct path_window *w, const struct path_exits *e, size_t i)
{
	while (i-- > 0) {
		int turn = path_exits_row(e, &w->v[i]);

		if (turn)
			return turn;
	}
	return 0;
}

static void path_exits_count(const struct path_window *w, struct path_exits *e, struct path_hop *h)
{
	size_t i = path_window_at(w, h->from);
	int turn = path_exits_before(w, e, i);

	e->in = turn > 0;
	e->since = h->from;
	h->exits = h->outside = 0;
	for (; i < w->n && w->v[i].ts < h->to && turn; i++) {
		int now = path_exits_row(e, &w->v[i]);

		if (now > 0 && !e->in)
			h->outside += w->v[i].ts - e->since;
		if (now < 0 && e->in) {
			h->exits++;
			e->since = w->v[i].ts;
		}
		e->in = now ? now > 0 : e->in;
	}
	if (!turn)
		h->exits = STEP_UNKNOWN;
	else if (!e->in)
		h->outside += h->to - e->since;
}

void path_exits(const struct path_search *s, struct path_hop *h)
{
	struct path_exits e = { .since = h->from };

	h->exits = STEP_UNKNOWN;
	if (!s->in->v[h->input].guest || s->path->blind || !path_thread_of(s, h->input, h->cpu, &e.t))
		return;
	e.hyp = path_exits_hyp(s->w, &e);
	if (!path_exits_lost(s->w, &e, h))
		path_exits_count(s->w, &e, h);
}
