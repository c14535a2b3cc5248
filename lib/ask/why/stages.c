// SPDX-License-Identifier: LGPL-2.1-or-later
/* Stages of an instance: who waits in each of them, and the spans of that one's states. */

#include "ask/why/why-priv.h"

/* The one that waits from a point to the next: a vCPU by a guest's event, a thread by a host's. */
enum why_subject {
	WHY_OF_ROW = 1, /* the vCPU that the chain's row is of */
	WHY_OF_BEGIN,	/* by the event that begins the stage */
	WHY_OF_END,	/* ... that ends it */
};

static const struct why_parts {
	const char *preset;
	size_t first; /* the point at which instances begin */
	uint8_t subject[CHAIN_POINTS_MAX - 1];
	uint8_t pending; /* a bit for each stage, as in struct why_stage */
} why_presets[] = {
	{ "wakeup", 0, { WHY_OF_BEGIN, WHY_OF_ROW, WHY_OF_ROW, WHY_OF_END, WHY_OF_END }, 7 },
	{ "irq", 0, { WHY_OF_ROW, WHY_OF_END }, 1 },
	{ "virtio", 0, { WHY_OF_BEGIN, WHY_OF_END, WHY_OF_BEGIN, WHY_OF_END }, 8 },
	/* until it fires a timer waits for the time that it was set to */
	{ "timer", 1, { WHY_OF_ROW, WHY_OF_ROW, WHY_OF_END }, 2 },
	{ "kick", 1, { 0, WHY_OF_END, WHY_OF_END }, 2 }, /* from the injection on */
	{ "hypercall", 0, { WHY_OF_ROW }, 0 },
	{ "abort", 0, { WHY_OF_ROW, WHY_OF_ROW }, 0 },
	{ NULL, 0, { WHY_OF_END }, 0 }, /* --from and --to */
};

static const struct why_parts *why_parts_of(const struct why *w)
{
	const struct why_parts *p = why_presets;

	while (p->preset && (!w->preset || strcmp(p->preset, w->preset->name) != 0))
		p++;
	return p;
}

#define WHY_KEPT_MAX (1u << 15) /* beyond these every second goes, again and again */

/* Keeps every stride-th chain; the stride doubles when there are too many, so that memory is bounded. */
int why_chain(void *ctx, const struct latency_worst *chain, const struct latency_key *row, size_t n_points)
{
	struct why *w = ctx;
	struct why_instance one = { .chain = *chain,
				    .n_points = n_points,
				    .row = *row,
				    .from = chain->v[why_parts_of(w)->first].ts,
				    .to = chain->v[n_points - 1].ts };

	if (one.to <= one.from || w->seen++ % w->stride)
		return 0;
	if (w->n == WHY_KEPT_MAX) {
		for (size_t i = 0; i < w->n / 2; i++)
			w->v[i] = w->v[2 * i];
		w->n /= 2;
		w->stride *= 2;
	}
	return array_push(&w->v, &w->n, &one, sizeof(one));
}

/* Bound of an event's time: its own, or the widest that its file has, as a chain of one machine has none. */
static uint64_t why_bound(const struct why *w, const struct chain_event *e)
{
	return w->in->v[e->input].guest ? e->bound ?: w->widest[e->input] : 0;
}

/* Scopes of lanes' keys beyond latency's, whose SCOPE_VCPU and SCOPE_THREAD are vCPUs. */
enum { LANE_TASK = 16, LANE_GUEST_CPU };

static int why_lane_add(struct why *w, const struct latency_key *key, const struct why_stage *stage)
{
	size_t i;

	if (latency_keys_reach(&w->keys, key, &i) ||
	    array_reach(&w->lanes, &w->n_lanes, i + 1, sizeof(*w->lanes)))
		return -ENOMEM;
	w->scopes |= 1u << (key->scope >> 32);
	return array_push(&w->lanes[i].v, &w->lanes[i].n, stage, sizeof(*stage));
}

/* The vCPU that a host's thread is. */
static struct latency_key why_thread(const struct why *w, size_t input, int32_t pid)
{
	uint32_t vcpu = 0, guest = vcpu_map_vcpu(w->vcpus, input, pid, &vcpu);

	if (guest != VCPU_MAP_NOBODY)
		return (struct latency_key){ latency_scope(SCOPE_VCPU, guest), vcpu };
	return (struct latency_key){ latency_scope(SCOPE_THREAD, input), (uint32_t)pid };
}

static struct latency_key why_task(size_t input, int32_t pid)
{
	return (struct latency_key){ (uint64_t)LANE_TASK << 32 | input, (uint32_t)pid };
}

static struct latency_key why_subject(const struct why *w, const struct chain_event *e,
				      const struct latency_key *row)
{
	struct latency_key key;

	if (!e)
		return (struct latency_key){ row->scope, (uint32_t)row->value };
	if (w->in->v[e->input].guest)
		return (struct latency_key){ latency_scope(SCOPE_VCPU, vcpu_map_of_input(w->vcpus, e->input)),
					     e->cpu };
	key = why_thread(w, e->input, e->pid);
	/* a thread that no file names is a vCPU if the chains are by vCPU */
	if (key.scope >> 32 == SCOPE_VCPU || (key.scope == row->scope && key.value == row->value))
		return key;
	return why_task(e->input, e->pid);
}

int why_stages_place(struct why *w, uint32_t instance)
{
	const struct why_parts *parts = why_parts_of(w);
	const struct why_instance *one = &w->v[instance];
	struct why_stage stage = { .from = one->from, .instance = instance };
	int ret = 0;

	for (size_t k = parts->first; k + 1 < one->n_points && !ret; k++) {
		size_t last = w->preset ? k + 1 : one->n_points - 1;
		const struct chain_event *a = &one->chain.v[k], *b = &one->chain.v[last];
		uint8_t of = parts->subject[w->preset ? k : 0];
		struct latency_key key;

		if (b->ts <= stage.from)
			continue;
		key = why_subject(w, of == WHY_OF_ROW ? NULL : of == WHY_OF_BEGIN ? a : b, &one->row);
		stage.to = b->ts;
		stage.from_bound = why_bound(w, a);
		stage.to_bound = why_bound(w, b);
		stage.pending = parts->pending & 1u << k;
		/* into the lane of the subject, and where that is a guest's CPU into that of its tasks */
		ret = why_lane_add(w, &key, &stage);
		for (size_t i = 0; i < w->in->n && key.scope >> 32 == SCOPE_VCPU && !ret; i++) {
			const struct latency_key guest = { (uint64_t)LANE_GUEST_CPU << 32 | i, key.value };

			if (w->in->v[i].guest && vcpu_map_of_input(w->vcpus, i) == (uint32_t)key.scope)
				ret = why_lane_add(w, &guest, &stage);
		}
		stage.from = b->ts;
	}
	return ret;
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

#define WHY_STRETCHES_MAX (1u << 22)

/* Adds the span's part of the stage to its instance. -ENOMEM. */
static int why_stretch_add(struct why *w, const struct why_stage *stage, const struct state_span *s)
{
	struct why_instance *one = &w->v[stage->instance];
	struct why_stretch piece = { s->from, s->to, s->from_bound, s->to_bound, 0 };
	struct why_cause cause;

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
	why_cause_span(w, s, stage->pending, &cause);
	piece.cause = why_cause_of(w, &cause);
	if (piece.cause == UINT32_MAX)
		return -ENOMEM;
	if (++w->n_stretches > WHY_STRETCHES_MAX)
		return -E2BIG;
	return s->owner->kind == STATE_OF_GUEST_TASK
		       ? array_push(&one->tasks, &one->n_tasks, &piece, sizeof(piece))
		       : array_push(&one->v, &one->n, &piece, sizeof(piece));
}

int why_stages_span(void *ctx, const struct state_span *s)
{
	const struct state_owner *o = s->owner;
	struct why *w = ctx;
	struct latency_key key = why_task(o->input, o->pid);
	size_t at = MAP_NONE;
	struct why_lane *lane;
	int ret = 0;

	if (o->kind == STATE_OF_GUEST_TASK) {
		if (s->state != STATE_RUNNING)
			return 0;
		key = (struct latency_key){ (uint64_t)LANE_GUEST_CPU << 32 | o->input, s->cpu };
	} else if (o->kind == STATE_OF_VCPU) {
		key = why_thread(w, o->input, o->pid);
	}
	if (w->scopes & 1u << (key.scope >> 32))
		at = latency_keys_find(&w->keys, &key);
	lane = at == MAP_NONE ? NULL : &w->lanes[at];
	for (; lane && lane->next < lane->n && lane->v[lane->next].from < s->to && !ret; lane->next++)
		ret = array_push(&lane->active, &lane->n_active, &lane->v[lane->next], sizeof(*lane->v));
	for (size_t i = 0; lane && i < lane->n_active && !ret;) {
		ret = why_stretch_add(w, &lane->active[i], s);
		if (lane->active[i].to <= s->to)
			lane->active[i] = lane->active[--lane->n_active];
		else
			i++;
	}
	return ret;
}
