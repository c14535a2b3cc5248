// SPDX-License-Identifier: LGPL-2.1-or-later
/* The time of vCPUs as stacks: machine, vCPU, state, reason. */
#include "ask/states/states.h"
#include "ask/flame/flame-priv.h"

struct flame_vcpu {
	bool skip;
	uint32_t frame; /* 0: it is not made yet */
	size_t side;
	uint64_t from; /* what came before does not count */
	struct vcpu_time {
		uint32_t frame;
		uint64_t ns, n;
	} * times;
	size_t n;
};

static int vcpu_frame(struct flame *f, const struct state_owner *o, struct flame_vcpu *v)
{
	const struct flame_input *host = &f->v[o->input];
	uint32_t machine = host->frame;
	char name[32];
	int ret = 0;

	v->side = host->side;
	v->skip = host->skip;
	if (o->guest_name) {
		f->text.len = 0;
		buf_printf(&f->text, FLAME_GUEST "%s", o->guest_name);
		if (!buf_str(&f->text))
			return -ENOMEM;
		v->skip = !flame_listed(&f->opts.machines, o->guest_name) &&
			  !flame_listed(&f->opts.machines, buf_str(&f->text));
		ret = flame_tree_named(f->tree, FLAME_ROOT, buf_str(&f->text), &machine);
	}
	if (o->vcpu == STATE_NO_CPU)
		snprintf(name, sizeof(name), "thread %d", o->pid);
	else
		snprintf(name, sizeof(name), "vCPU %u", o->vcpu);
	return ret ?: flame_tree_named(f->tree, machine, name, &v->frame);
}

static int vcpu_span(void *flame, const struct state_span *span)
{
	struct state_span s = *span;
	struct flame *f = flame;
	struct flame_vcpu *v;
	const char *reason;
	uint32_t frame;
	uint64_t from;
	bool left = states_cut(f->states, &s, &from);
	size_t i = 0;
	int ret = 0;

	while (f->n_vcpus <= s.owner->index)
		if (array_push(&f->vcpus, &f->n_vcpus, &(struct flame_vcpu){ 0 }, sizeof(*v)))
			return -ENOMEM;
	v = &f->vcpus[s.owner->index];
	if (v->from < from) { /* a buffer began since */
		v->from = from;
		v->n = 0;
	}
	if (!v->frame)
		ret = vcpu_frame(f, s.owner, v);
	if (ret || v->skip || !left)
		return ret;
	reason = states_reason(f->states, &s);
	ret = flame_tree_named(f->tree, v->frame, state_name(s.state), &frame);
	if (!ret && reason)
		ret = flame_tree_named(f->tree, frame, reason, &frame);
	while (i < v->n && v->times[i].frame != frame)
		i++;
	if (!ret && i == v->n)
		ret = array_push(&v->times, &v->n, &(struct vcpu_time){ .frame = frame }, sizeof(*v->times));
	if (ret)
		return ret;
	v->times[i].ns += s.to - s.from;
	v->times[i].n++;
	return 0;
}

int flame_states_open(struct flame *f, const struct inputs *in)
{
	return f->opts.states ? states_open(&f->states, in, f->t, f->steps, STATES_VCPUS, vcpu_span, f) : 0;
}

int flame_states_end(struct flame *f)
{
	int ret = states_end(f->states);

	for (size_t i = 0; i < f->n_vcpus && !ret; i++) {
		const struct flame_vcpu *v = &f->vcpus[i];

		for (size_t k = 0; k < v->n; k++) {
			flame_tree_add(f->tree, v->times[k].frame, v->side, FLAME_NS, v->times[k].ns);
			flame_tree_add(f->tree, v->times[k].frame, v->side, FLAME_CALLS, v->times[k].n);
		}
	}
	f->counts.others = states_left_out(f->states);
	return ret;
}

void flame_states_close(struct flame *f)
{
	states_close(f->states);
	for (size_t i = 0; i < f->n_vcpus; i++)
		free(f->vcpus[i].times);
	free(f->vcpus);
}
