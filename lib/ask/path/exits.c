// SPDX-License-Identifier: LGPL-2.1-or-later
/* Counts the exits of a guest during a hop, and the time that it was left. */
#include "ask/path/path-priv.h"

/*
 * False: the row neither leaves nor enters the thread's guest. hyp: by the hypervisor's events: KVM's miss
 * the exits that the hypervisor handles itself.
 */
static bool path_exits_point(const struct path_thread *t, bool hyp, const struct path_row *r,
			     struct span_point *p)
{
	if (r->input != t->host || (hyp ? (int64_t)r->b : r->pid) != t->tid)
		return false;
	*p = (struct span_point){ .ts = r->ts };
	if (r->kind == (hyp ? STEP_HYP_EXIT : STEP_KVM_ENTRY))
		p->kind = POINT_KVM_ENTRY;
	else if (r->kind == (hyp ? STEP_HYP_ENTER : STEP_KVM_EXIT))
		p->kind = POINT_KVM_EXIT;
	return p->kind != POINT_NONE;
}

/* first: the cause's first row. An exit counts after an entry. */
static void path_exits_add(struct path_cause *h, const struct span *v, size_t first, uint64_t to)
{
	h->exits += v->first >= first && v->before != SPAN_UNKNOWN;
	h->outside += to - (v->from > h->from ? v->from : h->from);
}

void path_exits(const struct path_search *s, struct path_cause *h)
{
	const struct path_window *w = s->w;
	size_t first = path_window_at(w, h->from), i = 0;
	struct exit_side side = { 0 };
	struct span_point p;
	struct path_thread t;
	struct span v;
	bool hyp, lost = false;

	h->exits = STEP_UNKNOWN;
	if (!s->in->v[h->input].guest || s->path->vcpu_unknown || !path_thread_of(s, h->input, h->cpu, &t))
		return;
	while (i < w->n && !path_exits_point(&t, true, &w->v[i], &p))
		i++;
	hyp = i < w->n;
	for (i = first; i && !path_exits_point(&t, hyp, &w->v[i - 1], &p);)
		i--;
	for (size_t k = 0; k < w->n; k++) /* of any buffer: entries and exits may be missing */
		lost |= w->v[k].kind == STEP_LOST && w->v[k].input == t.host && w->v[k].b < h->to &&
			w->v[k].ts > h->from;
	if (!i || lost) /* else the side at the cause's begin is not known */
		return;
	h->exits = h->outside = 0;
	for (i--; i < w->n && w->v[i].ts < h->to; i++) {
		if (!path_exits_point(&t, hyp, &w->v[i], &p))
			continue;
		p.row = i;
		if (exit_take(&side, &p, &v))
			path_exits_add(h, &v, first, p.ts);
	}
	if (exit_finish(&side, &v))
		path_exits_add(h, &v, first, h->to);
}
