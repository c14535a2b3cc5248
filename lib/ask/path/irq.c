// SPDX-License-Identifier: LGPL-2.1-or-later
/* Causes of an interrupt or a softirq: the task or the device that raised it. */
#include "ask/path/path-priv.h"

/* The last `enter` before, unless a `leave` came after it. */
static const struct path_row *path_inside(const struct path_search *s, uint8_t enter, uint8_t leave)
{
	const struct path_row *in = path_window_last(s->w, s->pos, s->input, s->cpu, enter);
	const struct path_row *out = path_window_last(s->w, s->pos, s->input, s->cpu, leave);

	if (!in || (out && out > in) || path_window_lost(s->w, s->input, s->cpu, in->ts, s->now))
		return NULL;
	return in;
}

/* False: no event shows it. */
static bool path_softirq(struct path_search *s)
{
	const struct path_row *enter = path_inside(s, STEP_SOFTIRQ_ENTER, STEP_SOFTIRQ_EXIT);
	struct path_span sp = { PATH_SOFTIRQ_PENDING, s->input, s->cpu, s->pid, 0, PATH_NOBODY, 0 };
	const struct path_row *raise = NULL;

	/* the first since it last ran raised it */
	for (const struct path_row *r = enter; enter && r-- > s->w->v;) {
		if (r->input != s->input || r->cpu != s->cpu || r->a != enter->a)
			continue;
		if (r->kind == STEP_SOFTIRQ_ENTER)
			break;
		if (r->kind == STEP_SOFTIRQ_RAISE)
			raise = r;
	}
	if (!raise || path_window_lost(s->w, s->input, s->cpu, raise->ts, s->now))
		return false;
	sp.number = raise->a;
	if (path_span_take(s, &sp, raise))
		path_follow(s, raise);
	return true;
}

/* A guest's interrupt, and who may have raised it. */
struct path_raised {
	const struct path_row *handler;
	struct path_thread t;
	uint32_t vcpu;
	const struct path_row *halt; /* where the thread was halted; NULL: it was not */
	const struct path_row *waking;
	uint64_t since, bound;
	const struct path_row *first; /* the first of those that may be it */
	bool several;		      /* ... of different numbers */
	bool near;		      /* ... nearer to `since` than the bound */
};

/* The thread's last halt before the handler. */
static void path_raised_halt(const struct path_search *s, struct path_raised *r)
{
	uint64_t until = r->handler->ts + r->bound;
	size_t pos = path_window_at(s->w, until);
	const struct path_row *in;

	while ((in = path_window_switch(s->w, pos, r->t.host, r->t.tid))) {
		struct path_rest rest;

		pos = (size_t)(in - s->w->v);
		if ((int32_t)in->a != r->t.tid)
			continue;
		rest = path_window_rest(s->w, in);
		if (!rest.known || rest.lost || !rest.waking || !rest.out)
			continue;
		/* until the handler KVM says that the thread had waited for an interrupt */
		for (const struct path_row *o = in; o < s->w->v + s->w->n && o->ts <= until; o++)
			if (o->input == in->input && o->kind == STEP_VCPU_WAKEUP && o->pid == r->t.tid) {
				r->halt = rest.out;
				r->waking = rest.waking;
				return;
			}
	}
}

static bool path_may_raise(const struct path_search *s, const struct path_raised *r,
			   const struct path_row *raise)
{
	bool vtimer = false;

	if (raise->input != r->t.host || raise->a != r->vcpu || raise->kind != STEP_VIRQ)
		return false;
	if (r->handler->irq == PATH_VECTOR || raise->irq == PATH_VECTOR)
		return r->handler->irq == raise->irq && raise->b == r->handler->a;
	for (size_t i = 0; i < s->w->n && !vtimer; i++)
		vtimer = s->w->v[i].kind == STEP_VTIMER && s->w->v[i].input == raise->input &&
			 s->w->v[i].b == raise->b;
	return r->handler->irq != PATH_IPI && vtimer == (r->handler->irq == PATH_TIMER);
}

/* Collects the facts of the interrupt; false: the chain ended. */
static bool path_raised_open(struct path_search *s, struct path_raised *r)
{
	const struct path_row *last = NULL; /* handler before it of the same interrupt */

	r->handler = path_inside(s, STEP_IRQ_ENTER, STEP_IRQ_EXIT);
	if (!r->handler)
		path_stop(s, PATH_UNKNOWN, NULL,
			  "which interrupt that was needs irq events: record -A %s -e irq",
			  s->in->v[s->input].machine);
	else if (!path_thread_of(s, s->input, s->cpu, &r->t))
		path_stop(s, PATH_UNKNOWN, r->handler, "no file says which host's thread CPU %u of %s is",
			  s->cpu, s->in->v[s->input].machine);
	else if (r->handler->bound == UINT32_MAX)
		path_stop(s, PATH_UNDECIDED, r->handler, "the clock of %s has no bound: hyptrace sync",
			  s->in->v[s->input].machine);
	if (s->path->end != PATH_OPEN)
		return false;
	r->vcpu = s->cpu;
	r->bound = r->handler->bound;
	for (const struct path_row *o = r->handler; o-- > s->w->v && !last;)
		if (o->input == r->handler->input && o->cpu == r->handler->cpu && o->kind == STEP_IRQ_ENTER &&
		    o->a == r->handler->a && o->irq == r->handler->irq)
			last = o;
	r->since = last ? last->ts : s->w->from;
	path_raised_halt(s, r);
	if (r->halt && r->halt->ts > r->since)
		r->since = r->halt->ts;
	else if (last) /* which of the two it was for is not certain */
		r->near = true;
	for (const struct path_row *raise = s->w->v; raise < s->w->v + s->w->n; raise++) {
		if (raise->ts > r->handler->ts + r->bound || raise->ts < r->since ||
		    !path_may_raise(s, r, raise))
			continue;
		if (r->first)
			r->several |= raise->b != r->first->b;
		else
			r->first = raise;
	}
	return true;
}

/*
 * No raiser is known: the waker of the vCPU raised it, if that was halted and the guest's CPU took no other
 * interrupt since.
 */
static void path_woken(struct path_search *s, struct path_raised *r, struct path_span *sp)
{
	const struct path_row *lost;
	bool halted = r->halt;

	for (const struct path_row *o = s->w->v; o < r->handler && halted; o++)
		halted = o->input != r->handler->input || o->cpu != r->handler->cpu ||
			 o->kind != STEP_IRQ_ENTER || o->ts + r->bound < r->halt->ts;
	lost = path_window_lost(s->w, r->t.host, PATH_ANY_CPU, halted ? r->halt->ts : r->since, s->now);
	if (lost) {
		path_stop_lost(s, lost);
	} else if (halted) {
		path_sleeps(s, r->halt);
		if (path_span_take(s, sp, r->waking))
			path_follow(s, r->waking);
	} else if (r->handler->irq == PATH_IPI) {
		path_stop(s, PATH_UNKNOWN, r->handler, "the CPU of %s that sent it is not known",
			  s->in->v[s->input].machine);
	} else if (!path_window_has(s->w, r->t.host, STEP_VIRQ)) {
		path_stop(s, PATH_UNKNOWN, r->handler, "who raised it needs kvm events: record -e kvm");
	} else {
		path_stop(s, PATH_UNKNOWN, r->handler, "no event says who raised it");
	}
}

static void path_raiser(struct path_search *s, struct path_raised *r, struct path_span *sp)
{
	const struct path_row *lost =
		path_window_lost(s->w, r->t.host, PATH_ANY_CPU, r->since, r->handler->ts + r->bound);

	if (lost) {
		path_stop_lost(s, lost);
	} else if (r->several) {
		path_stop(s, PATH_UNDECIDED, r->first,
			  "several interrupts were raised, and it is not known which one this was");
	} else if (r->near && r->first->ts <= r->since + r->bound) {
		path_stop(s, PATH_UNDECIDED, r->first,
			  "whether it was handled before is nearer than the bound");
	} else if (s->in->v[r->t.host].n_guests != 1 && r->first->pid != r->t.tid) {
		path_stop(s, PATH_UNDECIDED, r->first, "it is not known for whose vCPU it was raised");
	} else {
		sp->number = r->first->b;
		if (path_span_take(s, sp, r->first))
			path_follow(s, r->first);
	}
}

void path_interrupt(struct path_search *s)
{
	const struct path_row *timer, *irq, *set = NULL;
	struct path_span sp = { PATH_PENDING, s->input, s->cpu, s->pid, 0, PATH_NOBODY, 0 };
	struct path_raised r = { 0 };

	if (!(s->flags & PATH_HARDIRQ) && s->flags & PATH_SOFTIRQ && path_softirq(s))
		return;
	if (!s->in->v[s->input].guest) {
		timer = path_inside(s, STEP_TIMER_ENTER, STEP_TIMER_EXIT);
		irq = path_inside(s, STEP_IRQ_ENTER, STEP_IRQ_EXIT);
		for (const struct path_row *o = timer; timer && o-- > s->w->v && !set;)
			if (o->input == s->input && o->kind == STEP_TIMER_SET && o->a == timer->a)
				set = o;
		if (set)
			path_stop(s, PATH_INTERRUPT, set, "a timer, set on CPU %u at %llu.%09llu", set->cpu,
				  (unsigned long long)(set->ts / 1000000000),
				  (unsigned long long)(set->ts % 1000000000));
		else if (timer)
			path_stop(s, PATH_INTERRUPT, timer, "a timer on CPU %u", s->cpu);
		else if (irq)
			path_stop(s, PATH_INTERRUPT, irq, "interrupt %llu on CPU %u",
				  (unsigned long long)irq->a, s->cpu);
		else if (s->flags == PATH_SOFTIRQ)
			path_stop(
				s, PATH_UNKNOWN, NULL,
				"the softirq on CPU %u was raised by an unknown task; record with: hyptrace "
				"record -e irq",
				s->cpu);
		else if (s->flags)
			path_stop(s, PATH_INTERRUPT, NULL, "an interrupt on CPU %u", s->cpu);
		else
			path_stop(s, PATH_INTERRUPT, NULL, "idle CPU %u, which an interrupt woke", s->cpu);
		return;
	}
	if (!path_raised_open(s, &r))
		return;
	sp.number = r.handler->a;
	if (r.first)
		path_raiser(s, &r, &sp);
	else
		path_woken(s, &r, &sp);
}
