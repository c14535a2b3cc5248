// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Place of a CPU when a sample came due: its guest, the hypervisor, or the host. arm64's EL2 takes no
 * interrupt: a sample is taken once the host has the CPU again, and perf books it to the guest while its vCPU
 * is loaded. The times at which a timer is due lie a period apart, whatever the CPU does then.
 */
#include "ask/flame/flame-priv.h"

#define VISITS_KEPT 256	 /* more than a sample is late by */
#define TICKS	    256u /* parts of a period */
#define EDGE_NS	    1000 /* mainline's times of visits are whole microseconds, rounded down */

struct flame_places {
	struct span visits[VISITS_KEPT];
	size_t n;
	bool forgot;	       /* there were others, or events were lost */
	uint32_t ticks[TICKS]; /* samples by the part of the period in which the CPU first saw them */
};

void flame_visits_forget(struct flame_task *t)
{
	t->places->n = 0;
	t->places->forgot = true;
}

int flame_places_open(struct flame_task *t)
{
	if (!t->places)
		t->places = calloc(1, sizeof(*t->places));
	return t->places ? 0 : -ENOMEM;
}

int flame_visit_keep(struct flame_task *t, const struct span *visit)
{
	if (flame_places_open(t))
		return -ENOMEM;
	if (visit->end != SPAN_PAIRED)
		flame_visits_forget(t);
	if (visit->end != SPAN_LOST)
		t->places->visits[t->places->n++ % VISITS_KEPT] = *visit;
	return 0;
}

static bool place_near(uint64_t due, uint64_t edge)
{
	return due >= edge && due - edge < EDGE_NS;
}

enum flame_place flame_place(const struct flame *f, const struct flame_item *i, struct flame_task *t,
			     const struct span **visit)
{
	struct flame_places *p = t->places;
	const struct span *v = p->n ? &p->visits[(p->n - 1) % VISITS_KEPT] : NULL;
	const char *why = v ? steps_reason(f->steps, i->input, STEP_HYP_ENTER, v->why) : NULL;
	bool guest = i->number >= SAMPLE_GUEST_KERNEL;
	uint64_t due, seen, before = 0, fewest = UINT64_MAX, phase = 0;

	/* a visit without a reason may be any */
	if (!i->ns || i->ts < i->ns || (guest && !why))
		return PLACE_UNKNOWN;
	/* an interrupt ends the guest's run at once */
	seen = guest && !strcmp(why, "guest_exit") ? v->from : i->ts;
	p->ticks[seen % i->ns * TICKS / i->ns]++;
	/*
	 * Samples come due where a period begins to have many of them: after the quarter that has the
	 * fewest. Some are late by more than a period.
	 */
	for (size_t k = TICKS - TICKS / 4; k < TICKS; k++)
		before += p->ticks[k];
	for (size_t k = 0; k < TICKS; k++) {
		if (p->ticks[k] && before <= fewest) {
			fewest = before;
			phase = k * i->ns / TICKS;
		}
		before += p->ticks[k];
		before -= p->ticks[(k + TICKS - TICKS / 4) % TICKS];
	}
	due = i->ts - (i->ts + i->ns - phase) % i->ns;
	*visit = &t->visit.span;
	if (t->visit.open && due >= (*visit)->from)
		return place_near(due, (*visit)->from) ? PLACE_UNDECIDED : PLACE_HYP;
	for (size_t k = 0; k < p->n && k < VISITS_KEPT; k++) {
		v = *visit = &p->visits[(p->n - 1 - k) % VISITS_KEPT];
		if (place_near(due, v->to) || place_near(due, v->from))
			return PLACE_UNDECIDED;
		if (due > v->to) { /* the reason of its end states who has the CPU until the next one */
			why = steps_reason(f->steps, i->input, STEP_HYP_EXIT, v->left);
			return !why ? PLACE_UNKNOWN : !strcmp(why, "eret_guest") ? PLACE_GUEST : PLACE_HOST;
		}
		if (due > v->from)
			return PLACE_HYP;
	}
	return p->forgot || p->n > VISITS_KEPT ? PLACE_UNDECIDED : PLACE_UNKNOWN;
}
