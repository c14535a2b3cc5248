// SPDX-License-Identifier: LGPL-2.1-or-later
/* A guest's causes by its vCPUs' threads on the host, and the other way round. */
#include "ask/path/path-priv.h"
#include "base/decode/esr.h"

bool path_thread_of(const struct path_search *s, uint16_t guest, uint32_t cpu, struct path_thread *t)
{
	uint64_t id = s->in->v[guest].trace_id;

	for (size_t h = 0; id && h < s->in->n; h++) {
		const struct input *in = &s->in->v[h];

		for (size_t g = 0; !in->guest && g < in->n_guests; g++)
			for (size_t i = 0; in->guests[g].trace_id == id && i < in->guests[g].n; i++)
				if (in->guests[g].vcpus[i].cpu == cpu) {
					*t = (struct path_thread){ (uint16_t)h,
								   (int32_t)in->guests[g].vcpus[i].pid };
					return true;
				}
	}
	return false;
}

/* The thread under a guest's span. */
struct path_under {
	const struct path_row *from;
	const struct path_row *lost; /* then `from`: before it the thread's events are missing */
	struct path_thread t;
	uint64_t at_now, at_from; /* bounds there, ns */
	size_t pos;		  /* of the thread's switches, those before are of interest */
};

/* By which the thread came to a CPU for what it did until now; it may have left it within the bound. */
static const struct path_row *path_under_in(struct path_search *s, struct path_under *u, bool first)
{
	const struct path_row *r = path_window_switch(s->w, u->pos, u->t.host, u->t.tid);

	if (first && r && (int32_t)r->a == u->t.tid && r->ts + u->at_now >= s->now) {
		const struct path_row *out =
			path_window_switch(s->w, (size_t)(r - s->w->v), u->t.host, u->t.tid);

		if (out && out->ts + u->at_now >= s->now)
			path_stop(s, PATH_UNDECIDED, r,
				  "whether its vCPU had paused already is nearer than the bound of %llu ns",
				  (unsigned long long)u->at_now);
	}
	if (r && r->pid == u->t.tid && first && r->ts + u->at_now >= s->now) {
		u->pos = (size_t)(r - s->w->v);
		r = path_window_switch(s->w, u->pos, u->t.host, u->t.tid);
	}
	if (u->lost && r && r->ts <= u->lost->ts)
		return NULL; /* it ran at now, and did not come to a CPU since the loss */
	if (r && r->pid == u->t.tid)
		path_stop(s, PATH_UNKNOWN, r, "by the times of both %s did not run then",
			  "the guest and its vCPU");
	return r;
}

/* The thread's time before it came to a CPU. True, and *done: back to the span's begin. */
static bool path_under_rest(struct path_search *s, struct path_under *u, const struct path_row *in,
			    bool *done)
{
	struct path_rest rest = path_window_rest(s->w, in);
	const struct path_row *since = rest.waking ? rest.waking : rest.out;
	struct path_span sp = { PATH_RUNNABLE, u->t.host, in->cpu, u->t.tid, 0, in->pid, 0 };
	uint64_t from = u->from->ts, slept = rest.out ? rest.out->ts : s->w->from;

	sp.pos = (size_t)(in - s->w->v);
	if (rest.lost || (!rest.known && u->lost)) {
		path_stop_lost(s, rest.lost ?: u->lost);
		return false;
	}
	if (!rest.known || rest.born) {
		path_stop(s, PATH_UNKNOWN, in, "it is not known why its vCPU's thread had not been running");
		return false;
	}
	*done = since->ts <= from;
	path_span_add(s, &sp, *done ? u->from : since, 0);
	if (s->path->end != PATH_OPEN)
		return false;
	if (*done || !rest.waking) {
		u->pos = rest.out ? (size_t)(rest.out - s->w->v) : 0;
		return true;
	}
	/* asleep on the way: its waker acts, unless it slept before the guest had something to do */
	*done = true;
	if (slept <= from + u->at_from && slept + u->at_from >= from && u->at_from) {
		path_stop(s, PATH_UNDECIDED, rest.out,
			  "whether it slept first is nearer than the bound of %llu ns",
			  (unsigned long long)u->at_from);
	} else if (slept >= from) {
		path_sleeps(s, rest.out);
		path_follow(s, rest.waking);
	} else {
		sp = (struct path_span){
			PATH_ASLEEP,	  u->t.host, rest.out ? rest.out->cpu : in->cpu, u->t.tid, 0,
			rest.waking->pid, 0
		};
		path_cause_add(s, &sp, u->from, 0);
		return s->path->end == PATH_OPEN;
	}
	return false;
}

/* At a time when the thread has no CPU the guest's task waits for that. False: as path_span_take. */
static bool path_under_out(struct path_search *s, struct path_under *u)
{
	const struct path_row *out = path_window_switch(s->w, u->pos, u->t.host, u->t.tid), *waking = NULL;
	struct path_span sp = { PATH_RUNNABLE, u->t.host, 0, u->t.tid, 0, PATH_NOBODY, 0 };

	if (!out || out->pid != u->t.tid || out->ts <= u->from->ts + u->at_from ||
	    (u->lost && out->ts <= u->lost->ts))
		return true;
	sp.cpu = out->cpu;
	for (const struct path_row *r = out; r < s->w->v + u->pos && !waking; r++)
		if (r->input == u->t.host && r->kind == STEP_WAKING && (int32_t)r->a == u->t.tid)
			waking = r;
	if (out->b == STEP_UNKNOWN) {
		path_stop(s, PATH_UNKNOWN, out, "sched_switch does not say prev_state");
	} else if (!(out->b & 0xff)) {
		path_cause_add(s, &sp, out, 0);
		u->pos = (size_t)(out - s->w->v);
	} else if (waking) {
		path_cause_add(s, &sp, waking, 0);
		path_sleeps(s, out);
		path_follow(s, waking);
		return false;
	} else if (!path_window_has(s->w, u->t.host, STEP_WAKING)) {
		path_stop(s, PATH_UNKNOWN, out, "it needs sched_waking of %s: record -e sched",
			  s->in->v[u->t.host].machine);
	} else {
		sp.state = PATH_ASLEEP;
		path_cause_add(s, &sp, out, 0);
		path_stop(s, PATH_UNKNOWN, out, "its vCPU's thread still slept");
	}
	return s->path->end == PATH_OPEN;
}

bool path_span_take(struct path_search *s, struct path_span *sp, const struct path_row *from)
{
	struct path_under u = { .from = from,
				.at_now = s->edge.guest ? s->edge.bound : 0,
				.at_from = from->guest ? from->bound : 0 };
	bool guest = s->in->v[sp->input].guest, done = false;

	if (!guest || !path_thread_of(s, sp->input, sp->cpu, &u.t) || u.at_now == UINT32_MAX ||
	    u.at_from == UINT32_MAX || !path_window_has(s->w, u.t.host, STEP_SWITCH)) {
		s->path->vcpu_unknown |= guest;
		path_span_add(s, sp, from, 0);
		return s->path->end == PATH_OPEN;
	}
	u.pos = path_window_at(s->w, s->now + u.at_now);
	u.lost = path_window_lost(s->w, u.t.host, PATH_ANY_CPU, from->ts, s->now);
	if (u.lost) {
		u.from = u.lost;
		u.at_from = 0;
		done = u.lost->ts >= s->now;
	}
	if (!done && s->edge.kind == STEP_NONE && !u.at_now && !path_under_out(s, &u))
		return false;
	for (bool first = true; !done; first = false) {
		const struct path_row *in = path_under_in(s, &u, first);

		if (s->path->end == PATH_OPEN && !in && s->edge.kind == STEP_NONE &&
		    (u.lost || u.from->kind == STEP_NONE)) { /* no event shows whether the thread had a CPU */
			if (u.lost)
				path_stop_lost(s, u.lost);
			else
				path_stop_begin(s, "whether its vCPU had a CPU");
		}
		if (s->path->end != PATH_OPEN)
			return false;
		if (!in || in->ts <= u.from->ts + u.at_from) {
			/* nearer than the bound it ran all the time, as far as is known */
			path_span_add(s, sp, u.from, in && in->ts > u.from->ts ? u.at_from : 0);
			break;
		}
		path_span_add(s, sp, in, 0);
		if (s->path->end != PATH_OPEN || !path_under_rest(s, &u, in, &done))
			return false;
	}
	if (u.lost)
		path_stop_lost(s, u.lost);
	return s->path->end == PATH_OPEN;
}

/* The exit that ends what began with the entry; NULL: the rows do not say. */
static const struct path_row *path_exit_after(const struct path_search *s, const struct path_row *entry)
{
	for (const struct path_row *r = entry + 1; r < s->w->v + s->w->n; r++)
		if (r->input == entry->input && r->pid == entry->pid &&
		    (r->kind == STEP_KVM_EXIT || r->kind == STEP_KVM_ENTRY))
			return r->kind == STEP_KVM_EXIT ? r : NULL;
	return NULL;
}

/* True if the guest left for a reason of its own: kvm_exit's ret on arm64, exit_reason on x86. */
static bool path_exit_traps(const struct path_row *exit)
{
	uint32_t isa = (uint32_t)(exit->a >> 32), reason = (uint32_t)exit->a;

	if (exit->a == STEP_UNKNOWN)
		return false;
	if (isa == 1) /* arch/x86/include/uapi/asm/vmx.h: NMI, interrupts and windows for them, the timer */
		return reason != 0 && reason != 1 && reason != 7 && reason != 8 && reason != 52;
	if (isa == 2) /* .../svm.h: INTR, NMI, VINTR */
		return reason != 0x60 && reason != 0x61 && reason != 0x64;
	return reason == KVM_EXIT_ARM_TRAP;
}

/* True if an interrupt or a softirq was at work after the row. */
static uint8_t path_guest_flags(const struct path_search *s, const struct path_row *last)
{
	size_t pos = (size_t)(last - s->w->v) + 1;
	const struct path_row *irq, *out;

	irq = path_window_last(s->w, pos, last->input, last->cpu, STEP_IRQ_ENTER);
	out = path_window_last(s->w, pos, last->input, last->cpu, STEP_IRQ_EXIT);
	if (irq && (!out || out < irq))
		return PATH_HARDIRQ;
	irq = path_window_last(s->w, pos, last->input, last->cpu, STEP_SOFTIRQ_ENTER);
	out = path_window_last(s->w, pos, last->input, last->cpu, STEP_SOFTIRQ_EXIT);
	return irq && (!out || out < irq) ? PATH_SOFTIRQ : 0;
}

/* The guest's task that ran as its vCPU left the guest acts. */
static void path_enter_guest(struct path_search *s, uint16_t guest, uint32_t cpu, const struct path_row *exit)
{
	const struct path_row *last =
		path_window_last(s->w, path_window_at(s->w, exit->ts), guest, cpu, STEP_NONE);
	const struct path_row *near = NULL,
			      *lost; /* near: to the exit, by the bound: another may have acted */

	for (const struct path_row *r = s->w->v; r < s->w->v + s->w->n && !near; r++) {
		uint64_t apart = r->ts > exit->ts ? r->ts - exit->ts : exit->ts - r->ts;

		if (r->input == guest && r->cpu == cpu && apart <= r->bound &&
		    (r->kind == STEP_SWITCH || r->kind == STEP_IRQ_ENTER || r->kind == STEP_IRQ_EXIT ||
		     r->kind == STEP_SOFTIRQ_ENTER || r->kind == STEP_SOFTIRQ_EXIT))
			near = r;
	}
	if (!last) {
		path_stop(s, PATH_UNKNOWN, exit, "the guest that had it do so has no events before");
		return;
	}
	if (near || last->bound == UINT32_MAX) {
		path_stop(s, PATH_UNDECIDED, near ? near : last,
			  "which task of %s that was is nearer than the bound", s->in->v[guest].machine);
		return;
	}
	lost = path_window_lost(s->w, guest, cpu, last->ts, exit->ts + last->bound);
	if (lost) {
		path_stop_lost(s, lost);
		return;
	}
	s->input = guest;
	s->cpu = cpu;
	s->pid = last->kind == STEP_SWITCH ? (int32_t)last->a : last->pid;
	s->flags = path_guest_flags(s, last);
	s->pos = (size_t)(last - s->w->v) + 1;
}

/*
 * The row with which the guest left: kvm_exit comes only after the host's interrupts, hyp_enter before them.
 * NULL: the hypervisor's events do not show it.
 */
static const struct path_row *path_left_at(const struct path_search *s, const struct path_row *exit)
{
	for (const struct path_row *r = exit; r-- > s->w->v;) {
		if (r->input != exit->input || r->cpu != exit->cpu)
			continue;
		if (r->kind == STEP_LOST || r->kind == STEP_KVM_ENTRY || r->kind == STEP_KVM_EXIT)
			return NULL;
		if ((r->kind == STEP_HYP_ENTER || r->kind == STEP_HYP_EXIT) && (int64_t)r->b == exit->pid)
			return r->kind == STEP_HYP_ENTER ? r : NULL;
	}
	return NULL;
}

bool path_vcpu_acts(struct path_search *s)
{
	const struct path_row *did = NULL, *exit, *lost;
	struct path_span sp = { PATH_HANDLES, s->input, s->cpu, s->pid, 0, PATH_NOBODY, 0 };
	const struct offset_vcpu *vcpu;
	const struct input *guest = inputs_guest(s->in, &s->in->v[s->input], s->pid, &vcpu);

	if (!guest)
		return false;
	if (!path_window_has(s->w, s->input, STEP_KVM_EXIT)) {
		path_stop(s, PATH_UNKNOWN, NULL,
			  "what the vCPU's thread did needs kvm events: record -e kvm");
		return true;
	}
	/* the last row of the thread on its CPU: it came there, left or entered its guest */
	for (size_t i = s->pos; i-- > 0 && !did;) {
		const struct path_row *r = &s->w->v[i];
		bool came = r->kind == STEP_SWITCH && (int32_t)r->a == s->pid;
		bool kvm = r->kind == STEP_KVM_EXIT || r->kind == STEP_KVM_ENTRY;

		if (r->input == s->input && (came || (kvm && r->pid == s->pid)))
			did = r;
	}
	if (!did || did->kind == STEP_SWITCH)
		return false;
	exit = did->kind == STEP_KVM_ENTRY ? path_exit_after(s, did) : did;
	if (exit && !path_exit_traps(exit)) {
		path_stop(s, PATH_INTERRUPT, exit, "an interrupt on CPU %u made the guest leave", exit->cpu);
		return true;
	}
	if (did->kind == STEP_KVM_ENTRY) { /* between the guest's leaving and its kvm_exit */
		path_stop(s, PATH_UNKNOWN, did, "it is not known why the guest was left");
		return true;
	}
	lost = path_window_lost(s->w, s->input, s->cpu, did->ts, s->now);
	if (lost) {
		path_stop_lost(s, lost);
		return true;
	}
	sp.number = did->a;
	path_cause_add(s, &sp, did, 0);
	did = path_left_at(s, did) ?: did;
	path_cause_add(s, &sp, did, 0);
	if (path_before_wait(s, did))
		path_stop(s, PATH_UNDER_WAY, did, "it was under way as the wait began");
	else if (s->path->end == PATH_OPEN)
		path_enter_guest(s, (uint16_t)(guest - s->in->v), vcpu->cpu, did);
	return true;
}
