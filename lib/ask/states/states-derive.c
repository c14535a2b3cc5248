// SPDX-License-Identifier: LGPL-2.1-or-later
/* The tasks, vCPUs and CPUs that are known, the states that follow from that, and their spans. */
#include "ask/states/states-priv.h"

static const struct state_span unknown_view = { .cpu = STATE_NO_CPU,
						.other = STATE_NO_TASK,
						.other_input = STATE_NO_INPUT };

/*
 * Spans of a guest's task are held for as long as its clock's bound, or until the next one: an event of the
 * guest soon after a border, whose time the host knows exactly, may have come before it.
 */
static void track_doubt_held(const struct states *st, struct state_track *t)
{
	struct state_span *held = &t->held;
	uint64_t bound, since, overlap;

	if (!held->owner || held->state == STATE_UNKNOWN)
		return;
	bound = t->in->bound;
	since = st->now - held->to;
	overlap = bound == UINT64_MAX ? bound : bound > since ? bound - since : 0;
	if (held->to_bound < overlap)
		held->to_bound = overlap;
}

#define HOLDING_ROOM 1024

static void input_covered(const struct states *st, const struct state_input *in, uint64_t *from, uint64_t *to)
{
	*from = in->covered_from;
	*to = in->covered_to < st->now ? in->covered_to : st->now;
}

void states_covered(const struct states *st, size_t input, uint64_t *from, uint64_t *to)
{
	input_covered(st, &st->in[input], from, to);
}

void states_cover(struct states *st)
{
	for (struct state_input *to = st->in; to < st->in + st->n; to++) {
		to->covered_from = st->from;
		to->covered_to = UINT64_MAX;
		for (const struct state_input *in = to; in; in = in->host) {
			to->covered_from = in->begun > to->covered_from ? in->begun : to->covered_from;
			to->covered_to = in->over_at < to->covered_to ? in->over_at : to->covered_to;
		}
	}
}

int states_tell(const struct states *st, const struct state_span *span)
{
	const struct state_listening *l = st->listeners, *end = l + st->n_listeners;
	int ret = 0;

	for (; l < end && !ret; l++)
		if (l->want & 1u << span->owner->kind)
			ret = l->span(l->ctx, span);
	return ret;
}

/* span: one of the track's. */
static void track_give(struct states *st, const struct state_track *t, struct state_span *span)
{
	if (st->error)
		return;
	input_covered(st, t->in, &span->covered_from, &span->covered_to);
	if (st->spans)
		buf_add(st->spans, span, sizeof(*span));
	else
		st->error = states_tell(st, span);
}

static void track_give_held(struct states *st, struct state_track *t)
{
	if (t->held.owner)
		track_give(st, t, &t->held);
	t->held.owner = NULL;
}

/* Emits the open span, which ends at `to`; bound: how wrong that can be, ns. */
static void track_emit(struct states *st, struct state_track *t, uint64_t to, uint64_t bound)
{
	uint64_t lost = t->in->lost;
	struct state_span *span = &t->open;

	if (!t->on || span->from >= to)
		return;
	span->to = to;
	span->to_bound = bound;
	span->lost = span->state == STATE_UNKNOWN && lost && lost >= span->from;
	if (t->owner->kind != STATE_OF_GUEST_TASK) {
		track_give(st, t, span);
		return;
	}
	track_give_held(st, t);
	t->held = *span;
	if (t->in->widest != UINT64_MAX) {
		const struct state_holding holding = { t, to };

		if (st->given > HOLDING_ROOM && st->given > st->n_holding / 2) { /* room in front */
			st->n_holding -= st->given;
			memmove(st->holding, st->holding + st->given, st->n_holding * sizeof(holding));
			st->given = 0;
		}
		if (array_push(&st->holding, &st->n_holding, &holding, sizeof(holding)))
			st->error = -ENOMEM;
	}
}

void state_tracks_give(struct states *st)
{
	for (; st->given < st->n_holding; st->given++) {
		const struct state_holding *h = &st->holding[st->given];

		if (st->now - h->to <= h->track->in->widest)
			return;
		if (h->track->held.to == h->to)
			track_give_held(st, h->track);
	}
}

static bool view_same(const struct state_span *a, const struct state_span *b)
{
	const uint64_t *v = a->view.v, *w = b->view.v;

	/* mostly the state differs, and words wait until their fields are stored */
	return a->state == b->state && !((v[0] ^ w[0]) | (v[1] ^ w[1]) | (v[2] ^ w[2]) | (v[3] ^ w[3]));
}

void state_track_cut(struct states *st, struct state_track *t, uint64_t at, const struct state_span *v)
{
	struct state_span *s = &t->open;

	track_doubt_held(st, t);
	track_emit(st, t, at, st->cause_bound);
	s->from = at > s->from ? at : s->from;
	s->from_bound = t->sure > s->from ? t->sure - s->from : 0;
	if (s->from_bound < st->cause_bound)
		s->from_bound = st->cause_bound;
	s->view = v->view;
}

static void track_show(struct states *st, struct state_track *t, const struct state_span *v)
{
	if (st->amend && t->open.from >= st->amend_from)
		t->open.view = v->view;
	else if (!view_same(&t->open, v))
		state_track_cut(st, t, st->now, v);
	else if (st->cause_input == t->owner->input)
		track_doubt_held(st, t);
}

void state_track_woken(struct state_track *t, int32_t pid, uint16_t input, bool coarse)
{
	uint8_t state = t->open.state;

	if (state != STATE_SLEEPING && state != STATE_HALTED && state != STATE_BLOCKED)
		return;
	t->open.coarse = coarse;
	t->open.other = pid;
	t->open.other_input = input;
}

/* A track that begins with the recording, unknown. -ENOMEM. */
static int state_track_begin(struct states *st, struct state_track *t, enum state_kind kind, uint16_t input,
			     int32_t pid)
{
	struct state_owner *owner = arena_alloc(&st->owners, sizeof(*owner));

	if (!owner)
		return -ENOMEM;
	*owner = (struct state_owner){ .kind = kind,
				       .index = (uint32_t)st->n_tracks,
				       .input = input,
				       .pid = pid,
				       .guest = STATE_NO_INPUT,
				       .vcpu = STATE_NO_CPU };
	*t = (struct state_track){
		.owner = owner, .in = &st->in[input], .on = st->want & 1u << kind, .open = unknown_view
	};
	t->open.owner = owner;
	t->open.from = st->from;
	return array_push(&st->tracks, &st->n_tracks, &t, sizeof(struct state_track *));
}

static void *table_new(struct states *st, size_t size)
{
	void *p = arena_alloc(&st->arena, size);

	if (!p)
		st->error = -ENOMEM;
	return p;
}

struct task_key {
	uint16_t input;
	int32_t pid;
};

static uint32_t task_hash(const struct task_key *k)
{
	return map_hash((uint64_t)k->input << 32 | (uint32_t)k->pid);
}

static bool task_same(const void *tasks, size_t index, const void *wanted)
{
	const struct state_task *t = ((struct state_task *const *)tasks)[index];
	const struct task_key *k = wanted;

	return t->pid == k->pid && t->input == k->input;
}

static struct state_task *state_task_find(const struct states *st, const struct state_input *in, int32_t pid)
{
	const struct task_key k = { in->index, pid };
	size_t i = pid > 0 ? map_find(&st->by_task, task_hash(&k), task_same, st->tasks, &k) : MAP_NONE;

	return i == MAP_NONE ? NULL : st->tasks[i];
}

static struct state_task *task_new(struct states *st, const struct state_input *in, int32_t pid, bool track)
{
	const struct task_key k = { in->index, pid };
	struct state_task *t;

	if (st->n_tasks == STATES_TASKS_MAX) {
		st->left_out++;
		return NULL;
	}
	t = table_new(st, sizeof(*t));
	if (!t)
		return NULL;
	t->pid = pid;
	t->input = in->index;
	t->preempter = STATE_NO_TASK;
	if (track) {
		t->track = table_new(st, sizeof(*t->track));
		if (!t->track ||
		    state_track_begin(st, t->track, in->in->guest ? STATE_OF_GUEST_TASK : STATE_OF_TASK,
				      in->index, pid))
			goto fail;
	}
	if (!map_push(&st->by_task, task_hash(&k), &st->tasks, &st->n_tasks, &t, sizeof(struct state_task *)))
		return t;
fail:
	st->error = -ENOMEM;
	return NULL;
}

static bool tasks_wanted(const struct states *st, const struct state_input *in)
{
	return st->want & (in->in->guest ? STATES_GUEST_TASKS : STATES_TASKS);
}

struct state_task *state_task_of(struct states *st, struct state_input *in, int32_t pid)
{
	struct state_task *t = state_task_find(st, in, pid);

	return t || pid <= 0 || !tasks_wanted(st, in) ? t : task_new(st, in, pid, true);
}

struct state_vcpu *state_vcpu_of(struct states *st, struct state_input *in, int32_t pid)
{
	struct state_task *t = state_task_find(st, in, pid);
	struct state_vcpu *v;

	if (!t && pid > 0)
		t = task_new(st, in, pid, tasks_wanted(st, in));
	if (!t || t->vcpu)
		return t ? t->vcpu : NULL;
	if (st->n_vcpus == STATES_VCPUS_MAX) {
		st->left_out++;
		return NULL;
	}
	v = table_new(st, sizeof(*v));
	if (!v)
		return NULL;
	v->in = in;
	v->task = t;
	if (state_track_begin(st, &v->track, STATE_OF_VCPU, in->index, t->pid)) {
		st->error = -ENOMEM;
		return NULL;
	}
	v->next = in->vcpus;
	in->vcpus = v;
	st->n_vcpus++;
	return t->vcpu = v;
}

struct state_cpu *state_cpu_new(struct states *st, struct state_input *in, uint64_t number)
{
	struct state_cpu *c;

	if (number >= STATE_CPUS_MAX) {
		st->left_out++;
		return NULL;
	}
	c = table_new(st, sizeof(*c));
	if (c && array_reach(&in->cpus, &in->n_cpus, number + 1, sizeof(struct state_cpu *)))
		st->error = -ENOMEM;
	if (st->error)
		return NULL;
	c->number = (uint32_t)number;
	c->in = in;
	c->pid = STATE_NO_TASK;
	return in->cpus[number] = c;
}

static void view_why(struct state_span *view, uint8_t why, uint64_t reason, uint64_t class)
{
	view->why = why;
	view->reason = reason;
	view->class = class;
}

/* The reason of the last exit, where the guest is left. */
static void view_exit(struct state_span *view, const struct state_vcpu *v)
{
	if (v->kvm == KVM_OUT || v->kvm == KVM_USER)
		view_why(view, v->why, v->reason, v->class);
}

static void derive_host(const struct state_vcpu *v, struct state_span *view)
{
	const struct state_input *in = v->in;
	bool known = v->kvm != KVM_UNKNOWN;

	if (!known && !state_seen_hyp(in)) /* it may be in the guest */
		return;
	view->state = v->kvm == KVM_USER ? STATE_VMM : STATE_HOST;
	view->coarse = !known || !state_seen(in, STEP_USER_EXIT) || in->without_reasons ||
		       (!in->x86 && !state_seen_hyp(in));
	view_exit(view, v);
}

/* The thread has the CPU c. */
static void derive_on_cpu(struct state_vcpu *v, const struct state_cpu *c, struct state_span *view)
{
	if (!state_seen_hyp(v->in)) {
		if (v->kvm != KVM_IN) {
			derive_host(v, view);
			return;
		}
		view->state = STATE_GUEST;
		view->coarse = !v->in->x86;
		return;
	}
	v->track.sure = c->hyp_sure;
	switch (c->hyp) {
	case HYP_HOST:
		derive_host(v, view);
		return;
	case HYP_EL2:
	case HYP_EL3:
		view->state = c->hyp == HYP_EL2 ? STATE_HYP : STATE_FIRMWARE;
		view_why(view, c->hyp_why, c->hyp_reason, 0);
		return;
	case HYP_GUEST:
		if (!c->inside || c->inside == v)
			view->state = STATE_GUEST;
		return;
	}
}

bool state_halt_coarse(const struct state_vcpu *v)
{
	return v->why == STEP_NONE || (v->halts && !state_seen(v->in, STEP_USER_EXIT));
}

static bool wakings_seen(const struct state_input *in)
{
	return state_seen(in, STEP_WAKING) || state_seen(in, STEP_WAKEUP);
}

void state_vcpu_settle(struct states *st, struct state_vcpu *v)
{
	const struct state_task *t = v->task;
	const struct state_cpu *c = v->kvm == KVM_IN ? v->cpu : t->cpu, *on = v->inside_on;
	bool inside =
		on && on->inside == v && 1u << on->hyp & (1u << HYP_GUEST | 1u << HYP_EL2 | 1u << HYP_EL3);
	struct state_span view;

	/* nobody wants its states, and no guest's tasks have them */
	if (!v->track.on && !st->n_streams)
		return;
	view.view = unknown_view.view;
	if (inside) /* the hypervisor's events outweigh all others */
		c = on;
	v->track.sure = 0;
	view.cpu = c ? c->number : STATE_NO_CPU;
	if (inside || v->kvm == KVM_IN || t->run == RUN_ON) {
		if (c)
			derive_on_cpu(v, c, &view);
	} else if (t->run == RUN_ENDED) {
		view.state = STATE_ENDED;
	} else if (t->run == RUN_WAITS) {
		view.state = STATE_PREEMPTED;
		view.other = t->cpu ? t->cpu->pid : STATE_NO_TASK;
		view.other_input = t->input;
		view.coarse = view.other == STATE_NO_TASK;
		if (!view.other) { /* nobody has the CPU */
			view.state = STATE_WAKING;
			view.other = STATE_NO_TASK;
			view.other_input = STATE_NO_INPUT;
		}
		view_exit(&view, v);
	} else if (t->run == RUN_SLEEPS && v->kvm != KVM_UNKNOWN) {
		view.state = v->halts ? STATE_HALTED : STATE_BLOCKED;
		view.coarse = !wakings_seen(v->in) || state_halt_coarse(v);
		view_exit(&view, v);
	} else if (t->run == RUN_UNKNOWN && !state_seen(v->in, STEP_SWITCH) && v->kvm != KVM_UNKNOWN) {
		view.state = STATE_OUTSIDE;
		view.cpu = v->cpu->number;
		view_exit(&view, v);
	}
	track_show(st, &v->track, view.state == STATE_UNKNOWN ? &unknown_view : &view);
	if (v->guest && v->guest->task)
		state_task_settle(st, v->guest->task);
}

void state_task_settle(struct states *st, struct state_task *t)
{
	const struct state_input *in = &st->in[t->input];
	const struct state_vcpu *v = in->in->guest && t->run == RUN_ON ? t->cpu->vcpu : NULL;
	struct state_span view;

	if (t->track) {
		view.view = v ? v->track.open.view : unknown_view.view;
		t->track->sure = v && t->sure < v->track.sure ? v->track.sure : t->sure;
		view.cpu = t->cpu ? t->cpu->number : STATE_NO_CPU;
		switch (t->run) {
		case RUN_ON:
			if (!v || view.state == STATE_GUEST) {
				view.state = STATE_RUNNING;
			} else if (view.state != STATE_UNKNOWN) {
				view.by = view.state;
				view.state = STATE_STOLEN;
			}
			view.coarse = v ? view.coarse : in->in->guest;
			break;
		case RUN_WAITS:
			view.state = STATE_RUNNABLE;
			view.other = t->preempter;
			view.other_input = t->input;
			break;
		case RUN_SLEEPS:
			view.state = STATE_SLEEPING;
			view.coarse = !wakings_seen(in);
			break;
		case RUN_ENDED:
			view.state = STATE_ENDED;
			break;
		}
		track_show(st, t->track, view.state == STATE_UNKNOWN ? &unknown_view : &view);
	}
	if (t->vcpu)
		state_vcpu_settle(st, t->vcpu);
}

void state_vcpu_doubt(struct state_vcpu *v)
{
	struct state_task *t = v->guest ? v->guest->task : NULL;

	v->track.open.view = unknown_view.view;
	if (t && t->track && t->run == RUN_ON)
		t->track->open.view = unknown_view.view;
}

void state_task_doubt(struct state_task *t)
{
	if (t->track)
		t->track->open.view = unknown_view.view;
	if (t->vcpu)
		state_vcpu_doubt(t->vcpu);
}

/* A recorded kind is complete up to the last step of its buffer. */
static uint64_t family_proven(const struct state_input *in, uint64_t kinds)
{
	uint64_t until = UINT64_MAX;

	kinds &= in->kinds;
	for (unsigned int kind = 0; kind < STEP_KINDS; kind++)
		if (kinds & STEP_SET(kind) && in->live[in->buffer[kind]] < until)
			until = in->live[in->buffer[kind]];
	return until;
}

#define KVM_PAIR (STEP_SET(STEP_KVM_ENTRY) | STEP_SET(STEP_KVM_EXIT))

static uint64_t proven_vcpu(const struct state_vcpu *v)
{
	switch (v->track.open.state) {
	case STATE_PREEMPTED:
	case STATE_WAKING:
	case STATE_HALTED:
	case STATE_BLOCKED:
	case STATE_ENDED:
		return family_proven(v->in, STATE_SCHED_KINDS);
	case STATE_GUEST:
	case STATE_HYP:
	case STATE_FIRMWARE:
		if (state_seen_hyp(v->in))
			return family_proven(v->in, STATE_HYP_KINDS);
		return state_kvm_paired(v->in) ? family_proven(v->in, KVM_PAIR) : 0;
	default:
		if (!state_kvm_paired(v->in))
			return 0;
		return family_proven(v->in, STATE_SCHED_KINDS | KVM_PAIR | STATE_HYP_KINDS);
	}
}

void state_track_end(struct states *st, struct state_track *t)
{
	const struct state_input *in = t->in;
	const struct state_task *task = state_task_find(st, in, t->owner->pid);
	bool is_vcpu = t->owner->kind == STATE_OF_VCPU;
	const struct state_vcpu *v = is_vcpu				    ? task->vcpu
				     : in->in->guest && task->run == RUN_ON ? task->cpu->vcpu
									    : NULL;
	uint64_t vcpu = v ? proven_vcpu(v) : UINT64_MAX;
	uint64_t until = is_vcpu ? vcpu : family_proven(in, STATE_SCHED_KINDS);

	/* what the track shows is proven up to then, if nothing follows */
	until = vcpu < until ? vcpu : until;
	if (until < t->open.from || t->open.state == STATE_UNKNOWN)
		until = t->open.from;
	if (until > st->now)
		until = st->now;
	track_doubt_held(st, t);
	track_emit(st, t, until, 0);
	track_doubt_held(st, t);
	t->open.view = unknown_view.view;
	if (until > t->open.from) {
		t->open.from = until;
		t->open.from_bound = 0;
	}
	track_emit(st, t, st->now, 0);
	track_give_held(st, t);
}
