// SPDX-License-Identifier: LGPL-2.1-or-later
/* The causes of a chain, its actor and its end. */
#include <stdarg.h>

#include "ask/path/path-priv.h"

#define PATH_CAUSES 50

struct path_row path_no_row(uint16_t input, uint64_t ts)
{
	return (struct path_row){ .ts = ts, .input = input, .kind = STEP_NONE, .pid = PATH_NOBODY };
}

void path_stop(struct path_search *s, enum path_end end, const struct path_row *event, const char *fmt, ...)
{
	va_list ap;

	if (s->path->end != PATH_OPEN)
		return;
	s->path->end = end;
	s->path->event = event ? *event : path_no_row(s->input, s->now);
	va_start(ap, fmt);
	vsnprintf(s->path->why, sizeof(s->path->why), fmt, ap);
	va_end(ap);
}

void path_stop_lost(struct path_search *s, const struct path_row *lost)
{
	const struct path_machine *m = &s->w->machines[lost->input];
	const char *machine = s->in->v[lost->input].machine;
	char n[32] = "some", from[32], to[32];

	if (lost->a != STEP_UNKNOWN)
		snprintf(n, sizeof(n), "%llu", (unsigned long long)lost->a);
	if (lost == &m->before)
		path_stop(s, PATH_UNKNOWN, lost, "%s is recorded from %s on, not before", machine,
			  seconds_text(m->before.ts, from));
	else if (lost == &m->after)
		path_stop(s, PATH_UNKNOWN, NULL, "%s is recorded from %s to %s, not after", machine,
			  seconds_text(m->before.ts, from), seconds_text(m->after.b, to));
	else if (!lost->a)
		path_stop(s, PATH_UNKNOWN, lost, "between two regions nothing was recorded of %s", machine);
	else
		path_stop(s, PATH_UNKNOWN, lost, "%s events lost on CPU %u of %s", n, lost->cpu, machine);
}

void path_stop_begin(struct path_search *s, const char *wanted)
{
	path_stop(s, PATH_UNKNOWN, NULL, "%s lies %s", wanted,
		  s->w->full  ? "further back than there is room for"
		  : s->w->cut ? "further back than --within"
			      : "before the recording's begin");
}

static uint64_t path_bound_of(const struct path_row *a, const struct path_row *b)
{
	uint32_t bound = a->bound > b->bound ? a->bound : b->bound;

	return a->input == b->input ? 0 : bound == UINT32_MAX ? UINT64_MAX : bound;
}

void path_cause_add(struct path_search *s, const struct path_span *sp, const struct path_row *from,
		    uint64_t bound)
{
	struct path *p = s->path;
	uint64_t between = path_bound_of(from, &s->edge);
	struct path_cause cause = { .state = sp->state,
				    .input = sp->input,
				    .cpu = sp->cpu,
				    .pid = sp->pid,
				    .from = from->ts,
				    .to = s->now,
				    .bound = between > bound ? between : bound,
				    .by = sp->by,
				    .number = sp->number,
				    .event = *from };

	if (p->end != PATH_OPEN)
		return;
	if (from->ts < s->now) {
		s->bad |= array_push(&p->v, &p->n, &cause, sizeof(cause)) != 0;
		s->now = from->ts;
	}
	s->edge = *from;
	if (s->bad || p->n >= (p->max ? p->max : PATH_CAUSES))
		path_stop(s, PATH_LONG, NULL, "that are %zu hops, --hops has more", p->n);
}

void path_span_add(struct path_search *s, struct path_span *sp, const struct path_row *from, uint64_t bound)
{
	while (sp->state == PATH_RUNNABLE && s->path->end == PATH_OPEN) {
		const struct path_row *r = path_window_last(s->w, sp->pos, sp->input, sp->cpu, STEP_SWITCH);

		if (!r || r->ts <= from->ts)
			break;
		path_cause_add(s, sp, r, 0);
		sp->by = r->pid;
		sp->pos = (size_t)(r - s->w->v);
	}
	path_cause_add(s, sp, from, bound);
}

void path_follow(struct path_search *s, const struct path_row *row)
{
	s->input = row->input;
	s->cpu = row->cpu;
	s->pid = row->pid;
	s->flags = row->flags;
	s->pos = (size_t)(row - s->w->v);
	if (row->ts < s->now) /* what is nearer than a bound may seem later */
		s->now = row->ts;
	s->edge = *row;
	if (path_before_wait(s, row))
		path_stop(s, PATH_UNDER_WAY, row, "it was under way as the wait began");
}

void path_sleeps(struct path_search *s, const struct path_row *row)
{
	if (s->wait)
		return;
	s->wait = row ? row->ts : 1;
	s->wait_row = row ? *row : path_no_row(s->input, 1);
}

bool path_before_wait(const struct path_search *s, const struct path_row *row)
{
	uint64_t bound = path_bound_of(row, &s->wait_row);

	return s->wait && bound <= s->wait && row->ts <= s->wait - bound;
}
