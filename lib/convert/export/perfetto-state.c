// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * States of vCPUs and stolen time of guests' tasks, by the model of ask/states/states.h: a track of slices
 * for each vCPU, and for each CPU of a guest one of its tasks' stolen time. Unknown time has no slice.
 */
#include "convert/export/perfetto-priv.h"

/* Details of a vCPU's last exit that its state does not have. */
struct pf_exit {
	uint64_t ts, pc, esr, address;
	bool has_pc, has_fault;
};

static uint64_t vcpu_track(struct perfetto *pf, const struct state_span *s)
{
	const struct state_owner *o = s->owner;
	const struct input *in = &pf->job->in->v[o->input];
	const struct offset_guest *guest = NULL;
	uint64_t parent;
	const char *comm, *name;

	input_vcpu(in, o->pid, &guest);
	name = arena_printf(&pf->arena, "Guest %s", o->guest_name ?: "");
	/* the last number is that of guests without a name */
	parent = pf_parent(pf, o->input, (unsigned int)(guest ? (size_t)(guest - in->guests) : in->n_guests),
			   PF_GUEST, guest ? name : "Guests");
	comm = steps_comm(pf->meanings, o->input, o->pid, s->to);
	/* "CPU 0/KVM", "crosvm_vcpu0": the next best */
	name = o->vcpu != STATE_NO_CPU ? arena_printf(&pf->arena, "vCPU %u", o->vcpu)
				       : arena_printf(&pf->arena, "%s %d", comm ?: "vCPU thread", o->pid);
	return pf_track(pf, o->input, parent, name, o->vcpu != STATE_NO_CPU ? (int)o->vcpu : o->pid);
}

static uint64_t state_track(struct perfetto *pf, const struct state_span *s)
{
	const struct state_owner *o = s->owner;
	bool vcpu = o->kind == STATE_OF_VCPU;
	unsigned int number = vcpu ? o->index : s->cpu;
	enum pf_kept_kind kind = vcpu ? PF_VCPU : PF_GUEST_CPU;
	uint64_t track = pf_kept(pf, o->input, number, kind);

	if (track)
		return track;
	track = vcpu ? vcpu_track(pf, s)
		     : pf_track(pf, o->input, pf_parent(pf, o->input, 0, PF_STOLEN, "Stolen from tasks"),
				arena_printf(&pf->arena, "CPU %u", s->cpu), (int)s->cpu);
	return pf_keep(pf, o->input, number, kind, track);
}

/* NULL: nothing is known of an exit of that thread. */
static struct pf_exit *exit_of(const struct perfetto *pf, size_t input, int pid)
{
	uint64_t number = pf_kept(pf, input, (uint32_t)pid, PF_EXIT);

	return number ? &pf->exits[number - 1] : NULL;
}

void pf_exit_record(struct perfetto *pf, const struct pf_record *r)
{
	static const struct pf_exit new;
	struct pf_exit *d;

	if (r->pid <= 0)
		return;
	d = exit_of(pf, r->input, r->pid);
	if (!d) {
		if (pf->n_exits == STATES_VCPUS_MAX)
			return;
		if (array_push(&pf->exits, &pf->n_exits, &new, sizeof(new))) {
			pf->bad = true;
			return;
		}
		d = &pf->exits[pf_keep(pf, r->input, (uint32_t)r->pid, PF_EXIT, pf->n_exits) - 1];
	}
	if (r->event->role == PF_KVM_EXIT) {
		d->ts = r->ts;
		d->has_fault = false;
		d->has_pc = pf_number(&r->event->pc, r, &d->pc);
	} else {
		d->has_fault =
			pf_number(&r->event->esr, r, &d->esr) & pf_number(&r->event->address, r, &d->address);
	}
}

/* "QEMU 123" */
static struct pf_label task_label(struct perfetto *pf, const struct state_span *s)
{
	const char *comm = steps_comm(pf->meanings, s->other_input, s->other, s->to);

	pf->name.len = 0;
	buf_addstr(&pf->name, !s->other ? "idle" : comm ?: "task");
	if (s->other) {
		buf_add(&pf->name, " ", 1);
		buf_add_i64(&pf->name, s->other);
	}
	return pf_label(pf, s->owner->input, PF_LABEL_VALUE, buf_str(&pf->name) ?: "");
}

static struct pf_args *state_args(struct perfetto *pf, const struct state_span *s)
{
	size_t input = s->owner->input;
	const struct pf_exit *d = s->state == STATE_HOST || s->state == STATE_OUTSIDE
					  ? exit_of(pf, input, s->owner->pid)
					  : NULL;
	struct pf_args *args = pf_args(pf);
	const char *reason = s->state == STATE_STOLEN ? states_reason(pf->states, s) : NULL;

	if (reason) /* of its host's input */
		pf_arg_label(args, PF_WORD(REASON), pf_label(pf, input, PF_LABEL_VALUE, reason));
	else if (s->why != STEP_NONE && s->state != STATE_STOLEN)
		pf_arg_label(args, PF_WORD(REASON),
			     pf_named(pf, input, PF_REASON, pf_reason(s->why, s->reason)));
	if (steps_class(s->why, s->reason, s->class))
		pf_arg_label(args, PF_WORD(CLASS), pf_named(pf, input, PF_CLASS, s->class));
	if (s->state == STATE_STOLEN)
		pf_arg_label(args, PF_WORD(BY), pf_label(pf, input, PF_LABEL_VALUE, state_name(s->by)));
	if (s->other != STATE_NO_TASK && (s->state == STATE_HALTED || s->state == STATE_BLOCKED))
		pf_arg_label(args, PF_WORD(WOKEN_BY), task_label(pf, s));
	else if (s->other != STATE_NO_TASK)
		pf_arg_label(args, PF_WORD(TASK), task_label(pf, s));
	if (d && (d->ts < s->from || d->ts > s->to))
		d = NULL;
	if (d && d->has_pc)
		pf_arg_number(args, PF_WORD(PC), PF_ARG_HEX, d->pc);
	if (d && d->has_fault) {
		pf_arg_number(args, PF_WORD(ESR), PF_ARG_HEX, d->esr);
		pf_arg_number(args, PF_WORD(ADDR), PF_ARG_HEX, d->address);
		pf_arg_label(args, PF_WORD(SYNDROME), pf_named(pf, input, PF_ESR, d->esr));
	}
	if (s->from_bound || s->to_bound) {
		uint64_t bound = s->from_bound > s->to_bound ? s->from_bound : s->to_bound;

		if (bound == UINT64_MAX)
			pf_arg_text(args, PF_WORD(BOUND), "unknown", 7);
		else
			pf_arg_number(args, PF_WORD(BOUND), PF_ARG_UINT, bound);
	}
	if (s->coarse)
		pf_arg_text(args, PF_WORD(COARSE), "true", 4);
	return args;
}

int pf_state_span(void *perfetto, const struct state_span *s)
{
	struct perfetto *pf = perfetto;
	bool stolen = s->state == STATE_STOLEN;
	size_t input = s->owner->input;
	struct pf_label name;
	const char *comm;
	uint64_t track;

	if (s->state == STATE_UNKNOWN || (s->owner->kind == STATE_OF_GUEST_TASK && !stolen))
		return 0;
	track = state_track(pf, s);
	if (stolen) {
		comm = steps_comm(pf->meanings, input, s->owner->pid, s->to)
			       ?: arena_printf(&pf->arena, "task %d", s->owner->pid);
		name = pf_label(pf, input, PF_LABEL_NAME, comm);
	} else {
		name = pf_named(pf, input, PF_STATE, pf_state(s));
	}
	pf_put(pf, input, track, s->from, PF_BEGIN, stolen ? PF_WORD_STOLEN : PF_WORD_VCPUS, name,
	       state_args(pf, s));
	pf_put_end(pf, input, track, s->to);
	pf->bad |= pf->arena.bad || pf->args.bytes.bad || pf->name.bad;
	return 0;
}
