// SPDX-License-Identifier: LGPL-2.1-or-later
/* What raised an interrupt or a softirq. */
#include "path/path-priv.h"

/* The last of that kind before, unless one of the other kind came behind it. */
static const struct path_row *path_inside(const struct path_search *s, uint8_t enter, uint8_t leave)
{
	const struct path_row *in = path_window_last(s->w, s->pos, s->input, s->cpu, enter);
	const struct path_row *out = path_window_last(s->w, s->pos, s->input, s->cpu, leave);

	if (!in || (out && out > in) || path_window_lost(s->w, s->input, s->cpu, in->ts, s->now))
		return NULL;
	return in;
}

/* ---- softirqs -------------------------------------------------------------------------------- */

/* Where it was raised: the first time since it last ran. */
static const struct path_row *path_softirq_raise(const struct path_search *s, const struct path_row *enter)
{
	const struct path_row *found = NULL;

	for (size_t i = (size_t)(enter - s->w->v); i-- > 0;) {
		const struct path_row *r = &s->w->v[i];

		if (r->input != s->input || r->cpu != s->cpu || r->a != enter->a)
			continue;
		if (r->kind == STEP_SOFTIRQ_ENTER)
			break;
		if (r->kind == STEP_SOFTIRQ_RAISE)
			found = r;
	}
	return found;
}

/* False: it is not told. */
static bool path_softirq(struct path_search *s)
{
	const struct path_row *enter = path_inside(s, STEP_SOFTIRQ_ENTER, STEP_SOFTIRQ_EXIT);
	const struct path_row *raise = enter ? path_softirq_raise(s, enter) : NULL;
	struct path_span sp = { PATH_SOFTIRQ_PENDING, s->input, s->cpu, s->pid, 0, PATH_NOBODY, 0 };

	if (!raise || path_window_lost(s->w, s->input, s->cpu, raise->ts, s->now))
		return false;
	sp.number = raise->a;
	if (s->in->v[s->input].guest ? path_vcpu_span(s, &sp, raise)
				     : (path_span_add(s, &sp, raise, 0), true))
		path_follow(s, raise);
	return true;
}

/* ---- of a host --------------------------------------------------------------------------------- */

static const struct path_row *path_timer_set(const struct path_search *s, const struct path_row *expires)
{
	for (size_t i = (size_t)(expires - s->w->v); i-- > 0;) {
		const struct path_row *r = &s->w->v[i];

		if (r->input == s->input && r->kind == STEP_TIMER_SET && r->a == expires->a)
			return r;
	}
	return NULL;
}

static void path_host_interrupt(struct path_search *s)
{
	const struct path_row *timer = path_inside(s, STEP_TIMER_ENTER, STEP_TIMER_EXIT);
	const struct path_row *irq = path_inside(s, STEP_IRQ_ENTER, STEP_IRQ_EXIT);
	const struct path_row *set = timer ? path_timer_set(s, timer) : NULL;

	if (set)
		path_stop(s, PATH_INTERRUPT, set, "a timer, set on CPU %u at %llu.%09llu", set->cpu,
			  (unsigned long long)(set->ts / 1000000000),
			  (unsigned long long)(set->ts % 1000000000));
	else if (timer)
		path_stop(s, PATH_INTERRUPT, timer, "a timer on CPU %u", s->cpu);
	else if (irq)
		path_stop(s, PATH_INTERRUPT, irq, "interrupt %llu on CPU %u", (unsigned long long)irq->a,
			  s->cpu);
	else if (s->flags == PATH_SOFTIRQ)
		path_stop(s, PATH_UNKNOWN, NULL,
			  "who raised the softirq on CPU %u is not told: record -e irq", s->cpu);
	else if (s->flags)
		path_stop(s, PATH_INTERRUPT, NULL, "an interrupt on CPU %u", s->cpu);
	else
		path_stop(s, PATH_INTERRUPT, NULL, "idle CPU %u, which an interrupt woke", s->cpu);
}

/* ---- of a guest -------------------------------------------------------------------------------- */

/* A guest's interrupt, and who may have raised it. */
struct path_raised {
	const struct path_row *handler;
	struct path_thread t;
	uint32_t vcpu;
	const struct path_row *in, *halt; /* the thread came to its CPU, after it had been halted */
	const struct path_row *waking;
	uint64_t since, bound;
	const struct path_row *first; /* the first of those that may be it */
	bool several;		      /* ... of different numbers */
	bool near;		      /* ... nearer to `since` than the bound */
};

/* The handler before it of the same interrupt. */
static const struct path_row *path_handled(const struct path_search *s, const struct path_row *handler)
{
	for (size_t i = (size_t)(handler - s->w->v); i-- > 0;) {
		const struct path_row *r = &s->w->v[i];

		if (r->input == handler->input && r->cpu == handler->cpu && r->kind == STEP_IRQ_ENTER &&
		    r->a == handler->a && r->irq == handler->irq)
			return r;
	}
	return NULL;
}

/* Between the two KVM says that the thread had waited for an interrupt. */
static bool path_halted(const struct path_search *s, const struct path_row *in, uint64_t until)
{
	for (size_t i = (size_t)(in - s->w->v); i < s->w->n && s->w->v[i].ts <= until; i++)
		if (s->w->v[i].input == in->input && s->w->v[i].kind == STEP_VCPU_WAKEUP &&
		    s->w->v[i].pid == (int32_t)in->a)
			return true;
	return false;
}

/* The thread's last halt before the handler. */
static void path_raised_halt(const struct path_search *s, struct path_raised *r)
{
	size_t pos = path_window_at(s->w, r->handler->ts + r->bound);

	for (;;) {
		const struct path_row *in = path_window_switch(s->w, pos, r->t.host, r->t.tid);
		struct path_rest rest;

		if (!in)
			return;
		pos = (size_t)(in - s->w->v);
		if ((int32_t)in->a != r->t.tid)
			continue;
		rest = path_window_rest(s->w, in);
		if (rest.told && !rest.lost && rest.waking && rest.out &&
		    path_halted(s, in, r->handler->ts + r->bound)) {
			r->in = in;
			r->halt = rest.out;
			r->waking = rest.waking;
			return;
		}
	}
}

static bool path_is_vtimer(const struct path_search *s, const struct path_row *raise)
{
	for (size_t i = 0; i < s->w->n; i++)
		if (s->w->v[i].kind == STEP_VTIMER && s->w->v[i].input == raise->input &&
		    s->w->v[i].b == raise->b)
			return true;
	return false;
}

static bool path_may_raise(const struct path_search *s, const struct path_raised *r,
			   const struct path_row *raise)
{
	if (raise->input != r->t.host || raise->a != r->vcpu || raise->kind != STEP_VIRQ)
		return false;
	if (r->handler->irq == PATH_VECTOR || raise->irq == PATH_VECTOR)
		return r->handler->irq == raise->irq && raise->b == r->handler->a;
	return r->handler->irq != PATH_IPI && path_is_vtimer(s, raise) == (r->handler->irq == PATH_TIMER);
}

static void path_raised_search(const struct path_search *s, struct path_raised *r)
{
	uint64_t until = r->handler->ts + r->bound;

	for (size_t i = 0; i < s->w->n; i++) {
		const struct path_row *raise = &s->w->v[i];

		if (raise->ts > until || raise->ts < r->since || !path_may_raise(s, r, raise))
			continue;
		if (r->first)
			r->several |= raise->b != r->first->b;
		else
			r->first = raise;
	}
}

/* What is to be known of it; false: the chain ended. */
static bool path_raised_open(struct path_search *s, struct path_raised *r)
{
	const struct path_row *last;

	r->handler = path_inside(s, STEP_IRQ_ENTER, STEP_IRQ_EXIT);
	if (!r->handler)
		path_stop(s, PATH_UNKNOWN, NULL,
			  "which interrupt that was needs irq events: record -A %s -e irq",
			  path_machine(s, s->input));
	else if (!path_thread_of(s, s->input, s->cpu, &r->t))
		path_stop(s, PATH_UNKNOWN, r->handler, "no file says which host's thread CPU %u of %s is",
			  s->cpu, path_machine(s, s->input));
	else if (r->handler->bound == UINT32_MAX)
		path_stop(s, PATH_UNDECIDED, r->handler, "the clock of %s has no bound: hyptrace sync",
			  path_machine(s, s->input));
	if (s->path->end != PATH_OPEN)
		return false;
	r->vcpu = s->cpu;
	r->bound = r->handler->bound;
	last = path_handled(s, r->handler);
	r->since = last ? last->ts : s->w->from;
	path_raised_halt(s, r);
	if (r->halt && r->halt->ts > r->since)
		r->since = r->halt->ts;
	else if (last) /* which of the two it was for is not certain */
		r->near = true;
	path_raised_search(s, r);
	return true;
}

/* The guest's CPU took no other interrupt since its thread had been halted. */
static bool path_first_since(const struct path_search *s, const struct path_raised *r)
{
	for (size_t i = 0; i < s->w->n; i++) {
		const struct path_row *o = &s->w->v[i];

		if (o->input == r->handler->input && o->cpu == r->handler->cpu && o < r->handler &&
		    o->kind == STEP_IRQ_ENTER && o->ts + r->bound >= r->halt->ts)
			return false;
	}
	return true;
}

/* Nobody is known to have raised it: whoever woke the vCPU did, if it was halted. */
static void path_woken(struct path_search *s, struct path_raised *r, struct path_span *sp)
{
	bool halted = r->halt && path_first_since(s, r);
	const struct path_row *lost =
		path_window_lost(s->w, r->t.host, PATH_ANY_CPU, halted ? r->halt->ts : r->since, s->now);

	if (lost) {
		path_stop_lost(s, lost);
	} else if (halted) {
		path_sleeps(s, r->halt);
		if (path_vcpu_span(s, sp, r->waking))
			path_follow(s, r->waking);
	} else if (r->handler->irq == PATH_IPI) {
		path_stop(s, PATH_UNKNOWN, r->handler, "which CPU of %s sent it is not told",
			  path_machine(s, s->input));
	} else if (!path_window_has(s->w, r->t.host, STEP_VIRQ)) {
		path_stop(s, PATH_UNKNOWN, r->handler, "who raised it needs kvm events: record -e kvm");
	} else {
		path_stop(s, PATH_UNKNOWN, r->handler, "no event says who raised it");
	}
}

/* Several guests have such a vCPU: is it this one's? */
static bool path_raised_ours(const struct path_search *s, const struct path_raised *r)
{
	return s->in->v[r->t.host].n_guests == 1 || r->first->pid == r->t.tid;
}

static void path_raiser(struct path_search *s, struct path_raised *r, struct path_span *sp)
{
	const struct path_row *lost =
		path_window_lost(s->w, r->t.host, PATH_ANY_CPU, r->since, r->handler->ts + r->bound);

	if (lost) {
		path_stop_lost(s, lost);
	} else if (r->several) {
		path_stop(s, PATH_UNDECIDED, r->first,
			  "several interrupts were raised, which one it was is not told");
	} else if (r->near && r->first->ts <= r->since + r->bound) {
		path_stop(s, PATH_UNDECIDED, r->first,
			  "whether it was handled before is nearer than the bound");
	} else if (!path_raised_ours(s, r)) {
		path_stop(s, PATH_UNDECIDED, r->first, "whose vCPU it was raised for is not told");
	} else {
		sp->number = r->first->b;
		if (path_vcpu_span(s, sp, r->first))
			path_follow(s, r->first);
	}
}

static void path_guest_interrupt(struct path_search *s)
{
	struct path_span sp = { PATH_PENDING, s->input, s->cpu, s->pid, 0, PATH_NOBODY, 0 };
	struct path_raised r = { 0 };

	if (!path_raised_open(s, &r))
		return;
	sp.number = r.handler->a;
	if (r.first)
		path_raiser(s, &r, &sp);
	else
		path_woken(s, &r, &sp);
}

void path_interrupt(struct path_search *s)
{
	bool guest = s->in->v[s->input].guest;

	if (!(s->flags & PATH_HARDIRQ) && s->flags & PATH_SOFTIRQ && path_softirq(s))
		return;
	if (guest)
		path_guest_interrupt(s);
	else
		path_host_interrupt(s);
}
