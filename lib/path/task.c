// SPDX-License-Identifier: LGPL-2.1-or-later
/* Why a task ran when it acted: what it had waited for. */
#include <string.h>

#include "path/path-priv.h"

static bool path_span_told(struct path_search *s, struct path_span *sp, const struct path_row *from)
{
	if (s->in->v[sp->input].guest)
		return path_vcpu_span(s, sp, from);
	path_span_add(s, sp, from, 0);
	return s->path->end == PATH_OPEN;
}

/* ---- running -------------------------------------------------------------------------------- */

/* It ran before the first sleep, or the rows begin: how far back is told. */
static void path_runs_before(struct path_search *s, struct path_span *sp)
{
	bool own = s->wait >= s->w->from && s->wait;
	struct path_row begin = own ? s->wait_row : path_no_row(s->input, s->w->from);

	if (!path_span_told(s, sp, &begin))
		return;
	if (own)
		path_stop(s, PATH_OWN, &begin, "it was running as the wait began");
	else
		path_stop_begin(s, "where it came to its CPU");
}

/* To where it came to its CPU; NULL: the chain ended, or goes on elsewhere. */
static const struct path_row *path_runs(struct path_search *s)
{
	struct path_span sp = { PATH_RUNS, s->input, s->cpu, s->pid, 0, PATH_NOBODY, 0 };
	const struct path_row *in = path_window_last(s->w, s->pos, s->input, s->cpu, STEP_SWITCH);
	bool before = !in || path_before_wait(s, in);
	uint64_t since = before && s->wait > s->w->from ? s->wait : in ? in->ts : s->w->from;
	const struct path_row *lost;

	lost = path_window_lost(s->w, s->input, s->cpu, since, s->now);
	if (lost) {
		if (path_span_told(s, &sp, lost))
			path_stop_lost(s, lost);
		return NULL;
	}
	if (in && (int32_t)in->a != s->pid) {
		path_stop(s, PATH_UNKNOWN, in, "its events contradict each other");
		return NULL;
	}
	if (before) {
		if (!in && !path_window_has(s->w, s->input, STEP_SWITCH))
			path_stop(s, PATH_UNKNOWN, NULL, "it needs sched_switch of %s: record -e sched",
				  path_machine(s, s->input));
		else
			path_runs_before(s, &sp);
		return NULL;
	}
	return path_span_told(s, &sp, in) ? in : NULL;
}

/* ---- waiting -------------------------------------------------------------------------------- */

static void path_rest_untold(struct path_search *s, const struct path_rest *rest)
{
	if (rest->out && rest->out->pid == s->pid && rest->out->b == STEP_UNKNOWN)
		path_stop(s, PATH_UNKNOWN, rest->out, "sched_switch does not say prev_state");
	else if (rest->out && rest->out->pid != s->pid)
		path_stop(s, PATH_UNKNOWN, rest->out, "its events contradict each other");
	else if (rest->out && !path_window_has(s->w, s->input, STEP_WAKING))
		path_stop(s, PATH_UNKNOWN, NULL, "it needs sched_waking of %s: record -e sched",
			  path_machine(s, s->input));
	else if (rest->out)
		path_stop(s, PATH_UNKNOWN, rest->out, "no event says who woke it");
	else
		path_stop_begin(s, "what it had waited for");
}

static void path_rested(struct path_search *s, const struct path_row *in)
{
	struct path_rest rest = path_window_rest(s->w, in);
	struct path_span sp = { PATH_RUNNABLE, in->input, in->cpu, s->pid, 0, in->pid, 0 };

	sp.pos = (size_t)(in - s->w->v);
	if (!rest.told) {
		path_rest_untold(s, &rest);
	} else if (rest.lost) {
		path_stop_lost(s, rest.lost);
	} else if (!rest.waking) {
		if (path_span_told(s, &sp, rest.out))
			path_stop(s, PATH_PREEMPTED, rest.out, "another took its CPU");
	} else if (rest.born) {
		if (path_span_told(s, &sp, rest.waking))
			path_stop(s, PATH_BEGAN, rest.waking, "the task began");
	} else {
		path_sleeps(s, rest.out);
		if (path_span_told(s, &sp, rest.waking))
			path_follow(s, rest.waking);
	}
}

void path_task(struct path_search *s)
{
	bool acts = !s->runs && !s->in->v[s->input].guest;
	const struct path_row *in;

	s->runs = false;
	if (acts && path_vcpu_acts(s))
		return;
	in = path_runs(s);
	if (in)
		path_rested(s, in);
}
