// SPDX-License-Identifier: LGPL-2.1-or-later
/* The spans of an owner, one behind the other from the recording's begin to its end. */
#include <errno.h>

#include "analysis/states-priv.h"
#include "util/array.h"

/*
 * Guests' spans wait for the next one: an event of the guest that shows soon after a border, which the host
 * knows exactly, may have come before it.
 */
static void track_doubt_held(const struct states *st, struct state_track *t)
{
	struct state_span *held = &t->held;
	uint64_t bound, since, overlap;

	if (!held->owner || held->state == STATE_UNKNOWN)
		return;
	bound = st->in[t->owner.input].bound;
	since = st->now - held->to;
	overlap = bound == UINT64_MAX ? bound : bound > since ? bound - since : 0;
	if (held->to_bound < overlap)
		held->to_bound = overlap;
}

static void track_give(struct states *st, struct state_span *span)
{
	if (span->owner && !st->error)
		st->error = st->span(st->ctx, span);
	span->owner = NULL;
}

/* The open span, which ends there. */
static void track_emit(struct states *st, struct state_track *t, uint64_t to, const struct state_event *last)
{
	struct state_span span;

	if (!t->on || t->from >= to)
		return;
	span = (struct state_span){ .owner = &t->owner,
				    .state = t->view.state,
				    .by = t->view.by,
				    .coarse = t->view.coarse,
				    .cpu = t->view.cpu,
				    .from = t->from,
				    .to = to,
				    .from_bound = t->from_bound,
				    .to_bound = last->kind ? st->cause_bound : 0,
				    .why = t->view.why,
				    .reason = t->view.reason,
				    .class = t->view.class,
				    .other = t->view.other,
				    .other_input = t->view.other_input,
				    .first = t->first,
				    .last = *last };
	if (t->owner.kind != STATE_OF_GUEST_TASK) {
		track_give(st, &span);
		return;
	}
	track_give(st, &t->held);
	t->held = span;
}

static bool view_same(const struct state_view *a, const struct state_view *b)
{
	return a->state == b->state && a->by == b->by && a->why == b->why && a->coarse == b->coarse &&
	       a->cpu == b->cpu && a->other == b->other && a->other_input == b->other_input &&
	       a->reason == b->reason && a->class == b->class;
}

void state_track_cut(struct states *st, struct state_track *t, uint64_t at, const struct state_view *v)
{
	track_doubt_held(st, t);
	track_emit(st, t, at, &st->cause);
	t->from = at > t->from ? at : t->from;
	t->from_bound = t->sure > t->from ? t->sure - t->from : 0;
	if (t->from_bound < st->cause_bound)
		t->from_bound = st->cause_bound;
	t->first = st->cause;
	t->view = *v;
}

void state_track_show(struct states *st, struct state_track *t, const struct state_view *v)
{
	if (st->amend && t->from >= st->amend_from)
		t->view = *v;
	else if (!view_same(&t->view, v))
		state_track_cut(st, t, st->now, v);
	else if (st->cause.input == t->owner.input)
		track_doubt_held(st, t);
}

void state_track_woken(struct state_track *t, int32_t pid, uint16_t input, bool coarse)
{
	uint8_t state = t->view.state;

	if (state != STATE_SLEEPING && state != STATE_HALTED && state != STATE_BLOCKED)
		return;
	t->view.coarse = coarse;
	t->view.other = pid;
	t->view.other_input = input;
}

void state_track_end(struct states *st, struct state_track *t, uint64_t until, uint64_t end)
{
	static const struct state_view unknown = { .cpu = STATE_NO_CPU,
						   .other = STATE_NO_TASK,
						   .other_input = STATE_NO_INPUT };
	static const struct state_event none;

	if (until < t->from || t->view.state == STATE_UNKNOWN)
		until = t->from;
	if (until > end)
		until = end;
	track_doubt_held(st, t);
	track_emit(st, t, until, &none);
	track_doubt_held(st, t);
	t->view = unknown;
	if (until > t->from) {
		t->from = until;
		t->from_bound = 0;
		t->first = none;
	}
	track_emit(st, t, end, &none);
	track_give(st, &t->held);
}

int state_track_begin(struct states *st, struct state_track *t, enum state_kind kind, uint16_t input,
		      int32_t pid)
{
	*t = (struct state_track){
		.owner = { .kind = kind,
			   .index = (uint32_t)st->n_tracks,
			   .input = input,
			   .pid = pid,
			   .guest = STATE_NO_INPUT,
			   .vcpu = STATE_NO_CPU },
		.on = st->want & (kind == STATE_OF_VCPU	  ? STATES_VCPUS
				  : kind == STATE_OF_TASK ? STATES_TASKS
							  : STATES_GUEST_TASKS),
		.view = { .cpu = STATE_NO_CPU, .other = STATE_NO_TASK, .other_input = STATE_NO_INPUT },
		.from = st->from
	};
	return array_push(&st->tracks, &st->n_tracks, &t, sizeof(struct state_track *));
}
