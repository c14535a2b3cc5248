// SPDX-License-Identifier: LGPL-2.1-or-later
/* What a guest does, by its vCPUs' threads on the host, and the other way round. */
#include "path/path-priv.h"

/* ---- whose ---------------------------------------------------------------------------------- */

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

static const struct offset_vcpu *path_vcpu_in(const struct offset_guest *g, int32_t tid)
{
	for (size_t i = 0; i < g->n; i++)
		if ((int32_t)g->vcpus[i].pid == tid)
			return &g->vcpus[i];
	return NULL;
}

bool path_vcpu_of(const struct path_search *s, uint16_t host, int32_t tid, uint16_t *guest, uint32_t *cpu)
{
	const struct input *in = &s->in->v[host];

	for (size_t g = 0; g < in->n_guests; g++) {
		const struct offset_vcpu *vcpu = path_vcpu_in(&in->guests[g], tid);

		for (size_t i = 0; vcpu && in->guests[g].trace_id && i < s->in->n; i++)
			if (s->in->v[i].guest && s->in->v[i].trace_id == in->guests[g].trace_id) {
				*guest = (uint16_t)i;
				*cpu = vcpu->cpu;
				return true;
			}
	}
	return false;
}

/* ---- a guest's time --------------------------------------------------------------------------- */

/* A guest's span, and the thread under it. */
struct path_under {
	struct path_span *sp;
	const struct path_row *from;
	struct path_thread t;
	uint64_t at_now, at_from; /* bounds there, ns */
	uint32_t cpu;		  /* that the thread came to */
	size_t pos;		  /* of the thread's switches, those before are of interest */
};

static bool path_under_open(struct path_search *s, struct path_under *u)
{
	const struct path_row *from = u->from;

	u->at_now = s->edge.guest ? s->edge.bound : 0;
	u->at_from = from->guest ? from->bound : 0;
	if (!path_thread_of(s, u->sp->input, u->sp->cpu, &u->t) || u->at_now == UINT32_MAX ||
	    u->at_from == UINT32_MAX || !path_window_has(s->w, u->t.host, STEP_SWITCH))
		return false;
	u->pos = path_window_at(s->w, s->now + u->at_now);
	return true;
}

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
	if (r && r->pid == u->t.tid)
		path_stop(s, PATH_UNKNOWN, r, "by the times of both %s did not run then",
			  "the guest and its vCPU");
	return r;
}

/* Asleep on the way: whoever woke it acts, unless it slept before the guest had something to do. */
static bool path_under_slept(struct path_search *s, struct path_under *u, const struct path_rest *rest)
{
	uint32_t left = rest->out ? rest->out->cpu : u->cpu;
	struct path_span asleep = { PATH_ASLEEP, u->t.host, left, u->t.tid, 0, rest->waking->pid, 0 };
	uint64_t since = rest->out ? rest->out->ts : s->w->from;

	if (since <= u->from->ts + u->at_from && since + u->at_from >= u->from->ts && u->at_from) {
		path_stop(s, PATH_UNDECIDED, rest->out,
			  "whether it slept first is nearer than the bound of %llu ns",
			  (unsigned long long)u->at_from);
		return false;
	}
	if (since >= u->from->ts) {
		path_sleeps(s, rest->out);
		path_follow(s, rest->waking);
		return false;
	}
	path_hop_add(s, &asleep, u->from, 0);
	return s->path->end == PATH_OPEN;
}

/* The thread's time before it came to a CPU. True, and *done: back to the span's begin. */
static bool path_under_rest(struct path_search *s, struct path_under *u, const struct path_row *in,
			    bool *done)
{
	struct path_rest rest = path_window_rest(s->w, in);
	const struct path_row *since = rest.waking ? rest.waking : rest.out;
	struct path_span sp = { PATH_RUNNABLE, u->t.host, in->cpu, u->t.tid, 0, in->pid, 0 };

	sp.pos = (size_t)(in - s->w->v);
	if (!rest.told || rest.born) {
		path_stop(s, PATH_UNKNOWN, in, "why its vCPU's thread had not been running is not told");
		return false;
	}
	u->cpu = in->cpu;
	*done = since->ts <= u->from->ts;
	path_span_add(s, &sp, *done ? u->from : since, 0);
	if (s->path->end != PATH_OPEN)
		return false;
	if (rest.waking && !*done) {
		*done = true;
		return path_under_slept(s, u, &rest);
	}
	u->pos = rest.out ? (size_t)(rest.out - s->w->v) : 0;
	return true;
}

bool path_vcpu_span(struct path_search *s, struct path_span *sp, const struct path_row *from)
{
	struct path_under u = { .sp = sp, .from = from };
	const struct path_row *lost;
	bool done = false;

	if (!path_under_open(s, &u)) {
		s->path->blind = true;
		path_span_add(s, sp, from, 0);
		return s->path->end == PATH_OPEN;
	}
	lost = path_window_lost(s->w, u.t.host, PATH_ANY_CPU, from->ts, s->now);
	if (lost) {
		path_stop_lost(s, lost);
		return false;
	}
	for (bool first = true; !done; first = false) {
		const struct path_row *in = path_under_in(s, &u, first);

		if (s->path->end != PATH_OPEN)
			return false;
		if (!in || in->ts <= from->ts + u.at_from) {
			/* nearer than the bound it ran all the time, as far as that can be told */
			path_span_add(s, sp, from, in && in->ts > from->ts ? u.at_from : 0);
			return s->path->end == PATH_OPEN;
		}
		path_span_add(s, sp, in, 0);
		if (s->path->end != PATH_OPEN || !path_under_rest(s, &u, in, &done))
			return false;
	}
	return true;
}

/* ---- a host's thread ---------------------------------------------------------------------------- */

/* What the thread did last on its CPU: came to it, left or entered its guest. NULL: the rows do not say. */
static const struct path_row *path_thread_did(const struct path_search *s)
{
	for (size_t i = s->pos; i-- > 0;) {
		const struct path_row *r = &s->w->v[i];

		if (r->input != s->input)
			continue;
		if (r->kind == STEP_SWITCH && (int32_t)r->a == s->pid)
			return r;
		if ((r->kind == STEP_KVM_EXIT || r->kind == STEP_KVM_ENTRY) && r->pid == s->pid)
			return r;
	}
	return NULL;
}

/* The exit that ends what began with the entry; NULL: the rows do not say. */
static const struct path_row *path_exit_behind(const struct path_search *s, const struct path_row *entry)
{
	for (size_t i = (size_t)(entry - s->w->v) + 1; i < s->w->n; i++) {
		const struct path_row *r = &s->w->v[i];

		if (r->input == entry->input && r->pid == entry->pid &&
		    (r->kind == STEP_KVM_EXIT || r->kind == STEP_KVM_ENTRY))
			return r->kind == STEP_KVM_EXIT ? r : NULL;
	}
	return NULL;
}

/* Whether the guest left for a reason of its own: kvm_exit's ret on arm64, exit_reason on x86. */
static bool path_exit_traps(const struct path_row *exit)
{
	uint32_t isa = (uint32_t)(exit->a >> 32), reason = (uint32_t)exit->a;

	if (exit->a == STEP_UNKNOWN)
		return false;
	if (isa == 1) /* arch/x86/include/uapi/asm/vmx.h: NMI, interrupts and windows for them, the timer */
		return reason != 0 && reason != 1 && reason != 7 && reason != 8 && reason != 52;
	if (isa == 2) /* .../svm.h: INTR, NMI, VINTR */
		return reason != 0x60 && reason != 0x61 && reason != 0x64;
	return reason == 2; /* arch/arm64/include/asm/kvm_asm.h, ARM_EXCEPTION_TRAP */
}

/* An event of that CPU of the guest nearer to a time than the bound, that would change who acts. */
static const struct path_row *path_guest_near(const struct path_search *s, uint16_t guest, uint32_t cpu,
					      uint64_t ts)
{
	for (size_t i = 0; i < s->w->n; i++) {
		const struct path_row *r = &s->w->v[i];
		uint64_t apart = r->ts > ts ? r->ts - ts : ts - r->ts;

		if (r->input == guest && r->cpu == cpu && apart <= r->bound &&
		    (r->kind == STEP_SWITCH || r->kind == STEP_IRQ_ENTER || r->kind == STEP_IRQ_EXIT ||
		     r->kind == STEP_SOFTIRQ_ENTER || r->kind == STEP_SOFTIRQ_EXIT))
			return r;
	}
	return NULL;
}

/* Whether an interrupt or a softirq was at work behind the row. */
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
	const struct path_row *near = path_guest_near(s, guest, cpu, exit->ts), *lost;

	if (!last) {
		path_stop(s, PATH_UNKNOWN, exit, "the guest that had it do so has no events before");
		return;
	}
	if (near || last->bound == UINT32_MAX) {
		path_stop(s, PATH_UNDECIDED, near ? near : last,
			  "which task of %s that was is nearer than the bound", path_machine(s, guest));
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
 * Where the guest left for what kvm_exit tells, which comes after the host's interrupts: the hypervisor tells
 * when that was. NULL: it does not.
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

/* It acts between its guest's leaving and what it does about that. */
static void path_left_guest(struct path_search *s, const struct path_row *did)
{
	const struct path_row *exit = did->kind == STEP_KVM_ENTRY ? path_exit_behind(s, did) : did;

	if (exit && !path_exit_traps(exit))
		path_stop(s, PATH_INTERRUPT, exit, "an interrupt on CPU %u made the guest leave", exit->cpu);
	else
		path_stop(s, PATH_UNKNOWN, did, "what made the guest leave is not told");
}

bool path_vcpu_acts(struct path_search *s)
{
	const struct path_row *did = path_thread_did(s), *lost;
	struct path_span sp = { PATH_HANDLES, s->input, s->cpu, s->pid, 0, PATH_NOBODY, 0 };
	uint16_t guest;
	uint32_t cpu;

	if (!path_vcpu_of(s, s->input, s->pid, &guest, &cpu))
		return false;
	if (!path_window_has(s->w, s->input, STEP_KVM_EXIT)) {
		path_stop(s, PATH_UNKNOWN, NULL,
			  "what the vCPU's thread did needs kvm events: record -e kvm");
		return true;
	}
	if (!did || did->kind == STEP_SWITCH)
		return false;
	if (did->kind == STEP_KVM_ENTRY || !path_exit_traps(did)) {
		path_left_guest(s, did);
		return true;
	}
	lost = path_window_lost(s->w, s->input, s->cpu, did->ts, s->now);
	if (lost) {
		path_stop_lost(s, lost);
		return true;
	}
	sp.number = did->a;
	path_hop_add(s, &sp, did, 0);
	did = path_left_at(s, did) ?: did;
	path_hop_add(s, &sp, did, 0);
	if (path_before_wait(s, did))
		path_stop(s, PATH_UNDER_WAY, did, "it was under way as the wait began");
	else if (s->path->end == PATH_OPEN)
		path_enter_guest(s, guest, cpu, did);
	return true;
}
