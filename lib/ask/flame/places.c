// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Place of a CPU when a sample came due: its guest, the hypervisor, or the host. arm64's EL2 takes no
 * interrupt: a sample is taken once the host has the CPU again, and perf books it to the guest while its vCPU
 * is loaded. The times at which a timer is due lie a period apart, whatever the CPU does then.
 */
#include "ask/flame/flame-priv.h"
#include "ask/states/samples.h"

#define VISITS_KEPT 256	 /* of a CPU: more than a sample is late by */
#define EDGE_NS	    1000 /* mainline's times of visits are whole microseconds, rounded down */

int flame_ticks_add(struct flame_ticks *t, uint64_t ts, uint64_t hz)
{
	t->period = 1000000000 / hz;
	return array_push(&t->v, &t->n, &ts, sizeof(ts));
}

static int tick_cmp(const void *a, const void *b)
{
	return ORDER(*(const uint64_t *)a, *(const uint64_t *)b);
}

static uint64_t tick_at(const struct flame_ticks *t, size_t i)
{
	return t->v[i % t->n] + i / t->n * t->period;
}

/*
 * Samples come due where a period begins to have many of them: after the quarter that has the fewest. Some
 * are late by more than a period.
 */
void flame_ticks_end(struct flame_ticks *t)
{
	size_t fewest = SIZE_MAX;

	for (size_t i = 0; i < t->n; i++)
		t->v[i] %= t->period;
	array_sort(t->v, t->n, sizeof(*t->v), tick_cmp);
	for (size_t i = t->n, from = 0; i < 2 * t->n; i++) {
		while (tick_at(t, from) + t->period / 4 < tick_at(t, i))
			from++;
		if (i - from <= fewest) {
			fewest = i - from;
			t->phase = t->v[i - t->n];
		}
	}
	free(t->v);
	t->v = NULL;
}

void flame_visits_forget(struct flame_task *t)
{
	t->n_visits = 0;
	t->forgot = true;
}

int flame_visit_keep(struct flame_task *t, const struct span *visit)
{
	if (visit->end != SPAN_PAIRED)
		flame_visits_forget(t);
	if (visit->end == SPAN_LOST)
		return 0;
	if (!t->visits)
		t->visits = calloc(VISITS_KEPT, sizeof(*t->visits));
	if (!t->visits)
		return -ENOMEM;
	t->visits[t->n_visits++ % VISITS_KEPT] = *visit;
	return 0;
}

static bool place_near(uint64_t due, uint64_t edge)
{
	return due >= edge && due - edge < EDGE_NS;
}

/* Between two visits the reason of the first one's end states who has the CPU. */
static enum flame_place place_after(const struct flame *f, uint32_t input, const struct span *visit)
{
	const char *left = steps_reason(f->steps, input, STEP_HYP_EXIT, visit->left);

	return !left ? PLACE_UNKNOWN : !strcmp(left, "eret_guest") ? PLACE_GUEST : PLACE_HOST;
}

/*
 * The shortest way from a guest to its sample so far: no sample of a guest came due later than that before
 * it. False: none is known, for a visit without reasons may be any.
 */
static bool place_way(const struct flame *f, const struct flame_item *i, struct flame_task *t)
{
	const struct span *last = t->n_visits ? &t->visits[(t->n_visits - 1) % VISITS_KEPT] : NULL;
	const char *why = last ? steps_reason(f->steps, i->input, STEP_HYP_ENTER, last->why) : NULL;

	if (i->number >= SAMPLE_GUEST_KERNEL && why && !strcmp(why, "guest_exit") && i->ts > last->from &&
	    (!t->way || i->ts - last->from < t->way))
		t->way = i->ts - last->from;
	return t->way || i->number < SAMPLE_GUEST_KERNEL;
}

enum flame_place flame_place(const struct flame *f, const struct flame_item *i, struct flame_task *t,
			     const struct span **visit)
{
	const struct flame_maps *m = f->v[i->input].maps;
	const struct flame_ticks *ticks = i->cpu < m->n_ticks ? &m->ticks[i->cpu] : NULL;
	bool all = !t->forgot && t->n_visits <= VISITS_KEPT;
	uint64_t due, way;

	if (!ticks || !ticks->period || !place_way(f, i, t) || i->ts < ticks->period ||
	    !(t->n_visits || t->visit.open || t->forgot))
		return PLACE_UNKNOWN;
	way = t->way < ticks->period / 2 ? t->way : ticks->period / 2;
	due = i->ts - (i->ts + way + ticks->period - ticks->phase) % ticks->period;
	*visit = &t->visit.span;
	if (t->visit.open && due >= (*visit)->from)
		return place_near(due, (*visit)->from) ? PLACE_UNDECIDED : PLACE_HYP;
	for (size_t k = 0; k < t->n_visits && k < VISITS_KEPT; k++) {
		const struct span *v = *visit = &t->visits[(t->n_visits - 1 - k) % VISITS_KEPT];

		if (place_near(due, v->to) || place_near(due, v->from))
			return PLACE_UNDECIDED;
		if (due > v->to)
			return place_after(f, i->input, v);
		if (due > v->from)
			return PLACE_HYP;
	}
	return all ? PLACE_UNKNOWN : PLACE_UNDECIDED;
}
