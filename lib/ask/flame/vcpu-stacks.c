// SPDX-License-Identifier: LGPL-2.1-or-later
/* The time of vCPUs as stacks: machine, vCPU, state, reason. */
#include "ask/flame/flame-priv.h"

/* *frame: of the vCPU, below its guest or, where nothing names that, its host; 0: it is not wanted. */
static int vcpu_frame(struct flame *f, const struct state_owner *o, uint32_t *frame)
{
	const struct flame_input *host = &f->v[o->input];
	uint32_t machine = host->skip ? 0 : host->frame;
	char name[32];
	int ret = 0;

	if (o->guest_name) {
		f->text.len = 0;
		buf_printf(&f->text, FLAME_GUEST "%s", o->guest_name);
		machine = 0;
		if (!buf_str(&f->text))
			ret = -ENOMEM;
		else if (flame_listed(&f->opts.machines, o->guest_name) ||
			 flame_listed(&f->opts.machines, buf_str(&f->text)))
			ret = flame_tree_named(f->tree, FLAME_ROOT, buf_str(&f->text), &machine);
	}
	snprintf(name, sizeof(name), o->vcpu == STATE_NO_CPU ? "thread %d" : "vCPU %u",
		 o->vcpu == STATE_NO_CPU ? (unsigned int)o->pid : o->vcpu);
	*frame = 0;
	return ret || !machine ? ret : flame_tree_named(f->tree, machine, name, frame);
}

static int vcpu_cause(struct flame *f, const struct state_owner *o, uint32_t frame,
		      const struct state_cause *cause)
{
	const struct state_span like = { .owner = o, .why = cause->why, .reason = cause->reason };
	const char *reason = states_reason(f->states, &like);
	int ret = flame_tree_named(f->tree, frame, state_name(cause->state), &frame);

	if (!ret && reason)
		ret = flame_tree_named(f->tree, frame, reason, &frame);
	if (ret)
		return ret;
	flame_tree_add(f->tree, frame, f->v[o->input].side, FLAME_NS, cause->sum.ns);
	flame_tree_add(f->tree, frame, f->v[o->input].side, FLAME_CALLS, cause->sum.n);
	return 0;
}

int flame_states_end(struct flame *f)
{
	int ret = states_end(f->states);

	for (size_t i = 0; i < f->totals.n && !ret; i++) {
		const struct state_total *t = &f->totals.v[i];
		uint32_t frame = 0;

		ret = t->owner ? vcpu_frame(f, t->owner, &frame) : 0;
		for (size_t k = 0; frame && k < t->n_causes && !ret; k++)
			ret = vcpu_cause(f, t->owner, frame, &t->causes[k]);
	}
	f->counts.others = states_left_out(f->states);
	return ret;
}
