// SPDX-License-Identifier: LGPL-2.1-or-later
/* Finds the chain of causes, with the guest's exits in each; a task's causes: running, waiting, asleep. */
#include "ask/path/path-priv.h"

#define PATH_LINKS 1000

const char *path_state_name(enum path_state state)
{
	static const char *const names[PATH_STATES] = {
		[PATH_RUNS] = "runs",
		[PATH_RUNNABLE] = "runnable",
		[PATH_ASLEEP] = "asleep",
		[PATH_PENDING] = "irq pending",
		[PATH_SOFTIRQ_PENDING] = "softirq",
		[PATH_HANDLES] = "handles",
	};

	return names[state];
}

const char *path_end_name(enum path_end end)
{
	static const char *const names[PATH_ENDS] = {
		[PATH_OPEN] = "open",
		[PATH_INTERRUPT] = "interrupt",
		[PATH_OWN] = "own",
		[PATH_UNDER_WAY] = "under way",
		[PATH_PREEMPTED] = "preempted",
		[PATH_BEGAN] = "began",
		[PATH_IDLE] = "idle",
		[PATH_UNKNOWN] = "unknown",
		[PATH_UNDECIDED] = "undecided",
		[PATH_LONG] = "long",
	};

	return names[end];
}

/* Back to the row with which it came to its CPU; NULL: the chain ended, or continues elsewhere. */
static const struct path_row *path_runs(struct path_search *s)
{
	struct path_span sp = { PATH_RUNS, s->input, s->cpu, s->pid, 0, PATH_NOBODY, 0 };
	const struct path_row *in = path_window_last(s->w, s->pos, s->input, s->cpu, STEP_SWITCH), *lost;
	bool before, own = s->wait >= s->w->from && s->wait;
	struct path_row begin = own ? s->wait_row : path_no_row(s->input, s->w->from);
	uint64_t since;

	/* between sched_switch and the switch itself the kernel still acts as the task that leaves */
	if (in && in->pid == s->pid && (int32_t)in->a != s->pid)
		in = path_window_last(s->w, (size_t)(in - s->w->v), s->input, s->cpu, STEP_SWITCH);
	before = !in || path_before_wait(s, in);
	since = before && s->wait > s->w->from ? s->wait : in ? in->ts : s->w->from;
	lost = path_window_lost(s->w, s->input, s->cpu, since, s->now);
	if (lost) {
		if (lost->ts >= s->now || path_span_take(s, &sp, lost))
			path_stop_lost(s, lost);
		return NULL;
	}
	if (in && (int32_t)in->a != s->pid) {
		path_stop(s, PATH_UNKNOWN, in, "its events contradict each other");
		return NULL;
	}
	if (!before)
		return path_span_take(s, &sp, in) ? in : NULL;
	/* before the first sleep, or as the rows begin: the chain ends there */
	if (!in && !path_window_has(s->w, s->input, STEP_SWITCH))
		path_stop(s, PATH_UNKNOWN, NULL, "it needs sched_switch of %s: record -e sched",
			  s->in->v[s->input].machine);
	else if (!path_span_take(s, &sp, &begin))
		return NULL;
	else if (own)
		path_stop(s, PATH_OWN, &begin, "it was running as the wait began");
	else
		path_stop_begin(s, "where it came to its CPU");
	return NULL;
}

static void path_rested(struct path_search *s, const struct path_row *in)
{
	struct path_rest rest = path_window_rest(s->w, in);
	struct path_span sp = { PATH_RUNNABLE, in->input, in->cpu, s->pid, 0, in->pid, 0 };

	sp.pos = (size_t)(in - s->w->v);
	if (!rest.known && !rest.out) {
		path_stop_begin(s, "what it had waited for");
	} else if (!rest.known && rest.out->pid != s->pid) {
		path_stop(s, PATH_UNKNOWN, rest.out, "its events contradict each other");
	} else if (!rest.known && rest.out->b == STEP_UNKNOWN) {
		path_stop(s, PATH_UNKNOWN, rest.out, "sched_switch does not say prev_state");
	} else if (!rest.known && !path_window_has(s->w, s->input, STEP_WAKING)) {
		path_stop(s, PATH_UNKNOWN, NULL, "it needs sched_waking of %s: record -e sched",
			  s->in->v[s->input].machine);
	} else if (!rest.known) {
		path_stop(s, PATH_UNKNOWN, rest.out, "no event says who woke it");
	} else if (rest.lost) {
		path_stop_lost(s, rest.lost);
	} else if (!rest.waking) {
		if (path_span_take(s, &sp, rest.out))
			path_stop(s, PATH_PREEMPTED, rest.out, "another took its CPU");
	} else if (rest.born) {
		if (path_span_take(s, &sp, rest.waking))
			path_stop(s, PATH_BEGAN, rest.waking, "the task began");
	} else {
		path_sleeps(s, rest.out);
		if (path_span_take(s, &sp, rest.waking))
			path_follow(s, rest.waking);
	}
}

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

/* Counts the exits of a guest during a cause, and the time that it was left. */
static void path_exits(const struct path_search *s, struct path_cause *h)
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

int path_find(struct path *p, const struct path_window *w, const struct inputs *in,
	      const struct path_moment *m)
{
	struct path_search s = { .w = w,
				 .in = in,
				 .path = p,
				 .now = m->ts,
				 .edge = path_no_row(m->input, m->ts),
				 .input = m->input,
				 .cpu = m->cpu,
				 .pid = m->pid,
				 .flags = m->flags,
				 .runs = m->runs,
				 .pos = path_window_after(w, m->nr) };

	s.edge.bound = m->bound;
	s.edge.guest = in->v[m->input].guest;
	if (!s.pid && !s.flags)
		path_stop(&s, PATH_IDLE, NULL, "CPU %u was idle", s.cpu);
	for (size_t links = 0; p->end == PATH_OPEN; links++) {
		const struct path_row *came;
		bool acts = !s.runs && !in->v[s.input].guest;

		if (links > PATH_LINKS) /* foreign times can make a circle */
			path_stop(&s, PATH_UNKNOWN, NULL, "its events contradict each other");
		if (s.flags || !s.pid) {
			path_interrupt(&s);
			continue;
		}
		s.runs = false;
		if (acts && path_vcpu_acts(&s))
			continue;
		came = path_runs(&s);
		if (came)
			path_rested(&s, came);
	}
	for (size_t i = 0; i < p->n; i++)
		path_exits(&s, &p->v[i]);
	return s.bad ? -ENOMEM : 0;
}

void path_release(struct path *p)
{
	free(p->v);
	*p = (struct path){ 0 };
}
