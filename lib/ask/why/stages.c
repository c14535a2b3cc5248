// SPDX-License-Identifier: LGPL-2.1-or-later
/* Stages of an instance: who waits in each of them, and the spans of that one's states. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ask/why/why-priv.h"
#include "base/array.h"

/* ---- of presets ------------------------------------------------------------------------------- */

/* The one that waits from a point to the next. */
enum why_subject {
	WHY_OF_ROW,	/* the vCPU that the chain's row is of */
	WHY_OF_BEGIN,	/* the guest's CPU of the event that begins the stage */
	WHY_OF_END,	/* ... that ends it */
	WHY_OF_EITHER,	/* ... that ends it; of a host's, that begins it; else of the row, else on the CPU */
	WHY_ON_CPU,	/* the vCPU whose thread has the CPU of the event that begins the stage */
	WHY_TASK_ON_CPU, /* the task that has it */
	WHY_CPU		/* a worker that gets the CPU of the event that ends the stage */
};

struct why_part {
	uint8_t subject, role; /* enum why_subject, why_role */
};

static const struct why_parts {
	const char *preset;
	size_t first; /* the point at which instances begin */
	struct why_part v[CHAIN_POINTS_MAX - 1];
} why_presets[] = {
	{ "wakeup",
	  0,
	  { { WHY_OF_BEGIN, WHY_PENDING },
	    { WHY_OF_ROW, WHY_PENDING },
	    { WHY_OF_ROW, WHY_PENDING },
	    { WHY_OF_END, WHY_PLAIN },
	    { WHY_OF_END, WHY_PLAIN } } },
	{ "irq", 0, { { WHY_OF_ROW, WHY_PENDING }, { WHY_OF_END, WHY_PLAIN } } },
	{ "virtio",
	  0,
	  { { WHY_ON_CPU, WHY_PLAIN },
	    { WHY_CPU, WHY_WAITS },
	    { WHY_TASK_ON_CPU, WHY_WORKS },
	    { WHY_OF_END, WHY_PENDING } } },
	/* until it fires a timer waits for the time that it was set to */
	{ "timer",
	  1,
	  { { WHY_OF_ROW, WHY_PLAIN }, { WHY_OF_ROW, WHY_PENDING }, { WHY_OF_END, WHY_PLAIN } } },
	{ "hypercall", 0, { { WHY_OF_ROW, WHY_PLAIN } } },
	{ "abort", 0, { { WHY_OF_ROW, WHY_PLAIN }, { WHY_OF_ROW, WHY_PLAIN } } },
	{ NULL, 0, { { WHY_OF_EITHER, WHY_PLAIN } } }, /* --from and --to */
};

static const struct why_parts *why_parts_of(const struct why *w)
{
	const struct why_parts *p = why_presets;

	while (p->preset && (!w->preset || strcmp(p->preset, w->preset->name) != 0))
		p++;
	return p;
}

/* ---- of an instance ----------------------------------------------------------------------------- */

/* Bound of an event's time: its own, or the widest that its file has; a chain of one machine has none. */
static uint64_t why_bound(const struct why *w, const struct chain_event *e)
{
	const struct input *in = &w->in->v[e->input];
	const struct offset_shift *s = &in->time.shift;
	uint64_t widest = s->bounds ? 0 : UINT64_MAX;

	if (!in->guest || e->bound)
		return in->guest ? e->bound : 0;
	for (uint32_t i = 0; s->bounds && i < s->n_bounds; i++)
		widest = s->bounds[i] > widest && s->bounds[i] != UINT64_MAX ? s->bounds[i] : widest;
	return widest;
}

size_t why_first_point(const struct why *w)
{
	return why_parts_of(w)->first;
}

size_t why_stages(const struct why *w, uint32_t instance, struct why_stage out[CHAIN_POINTS_MAX])
{
	const struct why_parts *parts = why_parts_of(w);
	const struct why_instance *one = &w->v[instance];
	uint64_t from = one->from;
	size_t n = 0;

	for (size_t k = parts->first; k + 1 < one->n_points; k++) {
		const struct chain_event *a = &one->chain.v[k], *b = a + 1;

		if (b->ts <= from)
			continue;
		out[n++] = (struct why_stage){ .from = from,
					       .to = b->ts,
					       .from_bound = why_bound(w, a),
					       .to_bound = why_bound(w, b),
					       .instance = instance,
					       .point = (uint16_t)k,
					       .role = parts->v[k].role };
		from = b->ts;
	}
	return n;
}

/* ---- lanes ---------------------------------------------------------------------------------------- */

/* Kinds of lanes, as scopes of their keys beyond those of latency's. */
enum { LANE_VCPU_ON_CPU = 16, LANE_TASK_ON_CPU, LANE_CPU, LANE_OWNER, LANE_GUEST_CPU };
#define LANE_KEY(kind, number, value_)                                                                       \
	((struct latency_key){ (uint64_t)(kind) << 32 | (uint32_t)(number), (value_) })

static struct why_lane *why_lane_find(const struct why *w, const struct latency_key *key)
{
	size_t i = MAP_NONE;

	if (w->kinds & 1u << (key->scope >> 32))
		i = latency_keys_find(&w->keys, key);
	return i == MAP_NONE ? NULL : &w->lanes[i];
}

static struct why_lane *why_lane_of(struct why *w, const struct latency_key *key)
{
	static const struct why_lane empty;
	struct why_lane *lane = why_lane_find(w, key);

	if (lane)
		return lane;
	if (array_push(&w->lanes, &w->n_lanes, &empty, sizeof(empty)) || latency_keys_add(&w->keys, key))
		return NULL;
	w->kinds |= 1u << (key->scope >> 32);
	return &w->lanes[w->n_lanes - 1];
}

static int why_lane_add(struct why *w, const struct latency_key *key, const struct why_stage *stage)
{
	struct why_lane *lane = why_lane_of(w, key);

	return lane ? array_push(&lane->v, &lane->n, stage, sizeof(*stage)) : -ENOMEM;
}

static struct latency_key why_guest_cpu(const struct why *w, const struct chain_event *e)
{
	return (struct latency_key){ latency_scope(SCOPE_VCPU, vcpu_map_of_input(w->vcpus, e->input)), e->cpu };
}

/* The key of a stage's lane; a key of no vCPU finds no spans. */
static struct latency_key why_subject(const struct why *w, enum why_subject of, const struct chain_event *a,
				      const struct latency_key *row)
{
	const struct chain_event *b = a + 1;

	switch (of) {
	case WHY_OF_BEGIN:
		return why_guest_cpu(w, a);
	case WHY_OF_END:
		return why_guest_cpu(w, b);
	case WHY_OF_EITHER:
		if (w->in->v[b->input].guest)
			return why_guest_cpu(w, b);
		if (w->in->v[a->input].guest)
			return why_guest_cpu(w, a);
		if (row->scope >> 32 == SCOPE_VCPU || row->scope >> 32 == SCOPE_THREAD)
			return *row;
		return LANE_KEY(LANE_VCPU_ON_CPU, a->input, a->cpu);
	case WHY_ON_CPU:
		return LANE_KEY(LANE_VCPU_ON_CPU, a->input, a->cpu);
	case WHY_TASK_ON_CPU:
		return LANE_KEY(LANE_TASK_ON_CPU, a->input, a->cpu);
	case WHY_CPU:
		return LANE_KEY(LANE_CPU, b->input, b->cpu);
	case WHY_OF_ROW:
		break;
	}
	return (struct latency_key){ row->scope, (uint32_t)row->value };
}

int why_stages_place(struct why *w, uint32_t instance)
{
	const struct why_parts *parts = why_parts_of(w);
	const struct why_instance *one = &w->v[instance];
	struct why_stage stages[CHAIN_POINTS_MAX];
	size_t n = why_stages(w, instance, stages);
	int ret = 0;

	for (size_t i = 0; i < n && !ret; i++) {
		const struct why_stage *s = &stages[i];
		enum why_subject of = (enum why_subject)parts->v[s->point].subject;
		struct latency_key key = why_subject(w, of, &one->chain.v[s->point], &one->row);

		ret = why_lane_add(w, &key, s);
		for (size_t in = 0; in < w->in->n && key.scope >> 32 == SCOPE_VCPU && !ret; in++) {
			struct latency_key guest = LANE_KEY(LANE_GUEST_CPU, in, key.value);

			if (w->in->v[in].guest && vcpu_map_of_input(w->vcpus, in) == (uint32_t)key.scope)
				ret = why_lane_add(w, &guest, s);
		}
	}
	return ret;
}

static int why_stage_order(const void *a, const void *b)
{
	const struct why_stage *x = a, *y = b;

	return x->from < y->from ? -1 : x->from > y->from;
}

void why_lanes_sort(struct why *w)
{
	for (size_t i = 0; i < w->n_lanes; i++)
		qsort(w->lanes[i].v, w->lanes[i].n, sizeof(*w->lanes[i].v), why_stage_order);
}

void why_lanes_release(struct why *w)
{
	for (size_t i = 0; i < w->n_lanes; i++) {
		free(w->lanes[i].v);
		free(w->lanes[i].active);
	}
	free(w->lanes);
	w->lanes = NULL;
	w->n_lanes = 0;
	latency_keys_release(&w->keys);
}

/* ---- spans ------------------------------------------------------------------------------------------ */

#define WHY_STRETCHES_MAX (1u << 22)

/* Adds the span's part of the stage to its instance. -ENOMEM. */
static int why_stretch_add(struct why *w, const struct why_stage *stage, const struct state_span *s, bool task)
{
	struct why_instance *one = &w->v[stage->instance];
	struct why_stretch piece = { .from = s->from, .to = s->to, .from_bound = s->from_bound, .to_bound = s->to_bound };
	struct why_cause cause = why_cause_span(s, stage->role);

	if (s->from >= stage->to || s->to <= stage->from)
		return 0;
	if (piece.from <= stage->from) {
		piece.from = stage->from;
		piece.from_bound = stage->from_bound;
	}
	if (piece.to >= stage->to) {
		piece.to = stage->to;
		piece.to_bound = stage->to_bound;
	}
	if (task)
		cause = (struct why_cause){
			WHY_GUEST, s->owner->input, 0, STATE_NO_CPU, s->owner->pid, 0, 0
		};
	piece.cause = why_cause_of(w, &cause);
	if (piece.cause == UINT32_MAX)
		return -ENOMEM;
	if (++w->n_stretches > WHY_STRETCHES_MAX) {
		one->overfull = true;
		return 0;
	}
	return task ? array_push(&one->tasks, &one->n_tasks, &piece, sizeof(piece))
		    : array_push(&one->v, &one->n, &piece, sizeof(piece));
}

/* The lane's stages that begin before the span's end are active; those that end by then are done. */
static int why_lane_take(struct why *w, struct why_lane *lane, const struct state_span *s, bool task)
{
	int ret = 0;

	for (; lane->next < lane->n && lane->v[lane->next].from < s->to && !ret; lane->next++)
		ret = array_push(&lane->active, &lane->n_active, &lane->v[lane->next], sizeof(*lane->v));
	for (size_t i = 0; i < lane->n_active && !ret;) {
		ret = why_stretch_add(w, &lane->active[i], s, task);
		if (lane->active[i].to <= s->to)
			lane->active[i] = lane->active[--lane->n_active];
		else
			i++;
	}
	return ret;
}

/* Stages that begin in the span are its owner's, whatever comes next of it. */
static int why_lane_follow(struct why *w, const struct latency_key *key, const struct state_span *s)
{
	const struct latency_key owner = LANE_KEY(LANE_OWNER, 0, s->owner->index);
	struct why_lane *lane = why_lane_find(w, key);
	int ret = 0;

	for (; lane && lane->next < lane->n && lane->v[lane->next].from < s->to && !ret; lane->next++) {
		const struct why_stage stage = lane->v[lane->next];
		struct why_lane *to;

		if (stage.from < s->from)
			continue;
		ret = why_stretch_add(w, &stage, s, false);
		to = stage.to > s->to && !ret ? why_lane_of(w, &owner) : NULL;
		if (to)
			ret = array_push(&to->active, &to->n_active, &stage, sizeof(stage));
		lane = why_lane_find(w, key); /* they may have moved */
	}
	return ret;
}

static int why_lane_span(struct why *w, const struct latency_key *key, const struct state_span *s, bool task)
{
	struct why_lane *lane = why_lane_find(w, key);

	return lane ? why_lane_take(w, lane, s, task) : 0;
}

int why_stages_span(void *ctx, const struct state_span *s)
{
	const struct state_owner *o = s->owner;
	struct why *w = ctx;
	const struct latency_key owner = LANE_KEY(LANE_OWNER, 0, o->index), cpu = LANE_KEY(LANE_CPU, o->input, s->cpu);
	struct latency_key key;
	uint32_t guest, vcpu = 0;
	int ret;

	if (o->kind == STATE_OF_GUEST_TASK) {
		key = LANE_KEY(LANE_GUEST_CPU, o->input, s->cpu);
		return s->state == STATE_RUNNING ? why_lane_span(w, &key, s, true) : 0;
	}
	ret = why_lane_span(w, &owner, s, false);
	if (o->kind == STATE_OF_TASK) {
		key = LANE_KEY(LANE_TASK_ON_CPU, o->input, s->cpu);
		if (s->state == STATE_RUNNING && !ret)
			ret = why_lane_span(w, &cpu, s, false) ?: why_lane_follow(w, &key, s);
		return ret;
	}
	guest = vcpu_map_vcpu(w->vcpus, o->input, o->pid, &vcpu);
	if (guest == VCPU_MAP_NOBODY)
		key = (struct latency_key){ latency_scope(SCOPE_THREAD, o->input), (uint64_t)o->pid };
	else
		key = (struct latency_key){ latency_scope(SCOPE_VCPU, guest), vcpu };
	ret = ret ?: why_lane_span(w, &key, s, false);
	key = LANE_KEY(LANE_VCPU_ON_CPU, o->input, s->cpu);
	if (!ret && s->state >= STATE_GUEST && s->state <= STATE_VMM)
		ret = why_lane_follow(w, &key, s);
	return ret;
}
