// SPDX-License-Identifier: LGPL-2.1-or-later
/* Instances: reads the states meanwhile, and cuts each into stretches. */

#include "ask/why/why-priv.h"

int why_open(struct why **out, const struct inputs *in, const struct latency_preset *preset)
{
	static const unsigned int kinds[] = { WHY_OTHERS, STATE_UNKNOWN, WHY_UNDECIDED, WHY_LOST };
	struct why *w = *out = calloc(1, sizeof(*w));
	int ret = 0;

	if (!w)
		return -ENOMEM;
	*w = (struct why){ .in = in, .preset = preset, .stride = 1 };
	for (uint32_t i = CAUSE_OTHERS; i <= CAUSE_LOST && !ret; i++) {
		struct why_cause cause;

		why_cause_plain(&cause, kinds[i]);
		ret = why_cause_of(w, &cause) == i ? 0 : -ENOMEM;
	}
	return ret;
}

void why_close(struct why *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < w->n; i++) {
		free(w->v[i].v);
		free(w->v[i].tasks);
	}
	free(w->v);
	free(w->causes);
	free(w->widest);
	map_release(&w->by_cause);
	why_lanes_release(w);
	reading_close(&w->own);
	free(w);
}

/* Stretches in the making. */
struct why_cutting {
	struct why_stretch *v;
	size_t n;
	int ret;
};

/* Adds what comes next; a border between two causes has the greater bound of both. */
static void why_cutting_add(struct why_cutting *c, struct why_stretch piece)
{
	struct why_stretch *last = c->n ? &c->v[c->n - 1] : NULL;

	if (piece.from >= piece.to || c->ret)
		return;
	if (last && last->cause == piece.cause) {
		last->to = piece.to;
		last->to_bound = piece.to_bound;
		return;
	}
	if (last && last->to_bound > piece.from_bound)
		piece.from_bound = last->to_bound;
	if (last)
		last->to_bound = piece.from_bound;
	c->ret = array_push(&c->v, &c->n, &piece, sizeof(piece));
}

/* Adds over, sorted stretches, where they lie in `under`, and what is left of that around them. */
static void why_cutting_over(struct why_cutting *c, struct why_stretch under, const struct why_stretch *over,
			     size_t n, size_t *next)
{
	while (*next < n && over[*next].to <= under.from)
		++*next;
	for (size_t i = *next; i < n && over[i].from < under.to; i++) {
		struct why_stretch piece = over[i], before = under;

		if (piece.to <= under.from)
			continue;
		before.to = piece.from;
		before.to_bound = piece.from_bound;
		why_cutting_add(c, before);
		if (piece.from < under.from) {
			piece.from = under.from;
			piece.from_bound = under.from_bound;
		}
		if (piece.to > under.to) {
			piece.to = under.to;
			piece.to_bound = under.to_bound;
		}
		why_cutting_add(c, piece);
		under.from = piece.to;
		under.from_bound = piece.to_bound;
	}
	why_cutting_add(c, under);
}

static int why_stretch_order(const void *a, const void *b)
{
	const struct why_stretch *x = a, *y = b;

	return ORDER(x->from, y->from) ?: ORDER(x->to, y->to);
}

/*
 * The last form: what lies within the bound of a border between two causes, or of the instance's ends, is
 * undecided. doubt: room for a time by stretch.
 */
static void why_cutting_doubt(struct why_cutting *c, const struct why_cutting *of, uint64_t *doubt)
{
	uint64_t since = UINT64_MAX, until = 0;

	/* since when a later border leaves it open, and until when an earlier one does */
	for (size_t i = of->n; i-- > 0;) {
		const struct why_stretch *s = &of->v[i];
		uint64_t at = s->to_bound > s->to ? 0 : s->to - s->to_bound;

		doubt[i] = since = at < since ? at : since;
	}
	for (size_t i = 0; i < of->n; i++) {
		const struct why_stretch *s = &of->v[i];
		uint64_t at = s->from_bound > UINT64_MAX - s->from ? UINT64_MAX : s->from + s->from_bound;
		uint64_t from, to;

		until = at > until ? at : until;
		from = until < s->to ? until : s->to;
		from = from > s->from ? from : s->from;
		to = doubt[i] < s->to ? doubt[i] : s->to;
		to = to > from ? to : from;
		why_cutting_add(c, (struct why_stretch){ s->from, from, 0, 0, CAUSE_UNDECIDED });
		why_cutting_add(c, (struct why_stretch){ from, to, 0, 0, s->cause });
		why_cutting_add(c, (struct why_stretch){ to, s->to, 0, 0, CAUSE_UNDECIDED });
	}
}

/* Cuts by the subjects' spans, the guest's part of these by its tasks, and both by the bounds. */
static int why_settle(struct why *w, struct why_instance *one)
{
	const struct why_stretch whole = { .from = one->from, .to = one->to, .cause = CAUSE_UNKNOWN };
	struct why_cutting all = { 0 }, tasks = { 0 }, last = { 0 };
	uint64_t *doubt = NULL;
	size_t next = 0;

	array_sort(one->v, one->n, sizeof(*one->v), why_stretch_order);
	array_sort(one->tasks, one->n_tasks, sizeof(*one->tasks), why_stretch_order);
	why_cutting_over(&all, whole, one->v, one->n, &next);
	next = 0;
	for (size_t i = 0; i < all.n; i++)
		why_cutting_over(&tasks, all.v[i], one->tasks,
				 w->causes[all.v[i].cause].kind == STATE_GUEST ? one->n_tasks : 0, &next);
	doubt = calloc(tasks.n + 1, sizeof(*doubt));
	if (doubt)
		why_cutting_doubt(&last, &tasks, doubt);
	else
		last.ret = -ENOMEM;
	free(doubt);
	free(all.v);
	free(tasks.v);
	free(one->v);
	free(one->tasks);
	one->v = last.v;
	one->n = last.n;
	one->tasks = NULL;
	one->n_tasks = 0;
	return all.ret ?: tasks.ret ?: last.ret;
}

int why_states(struct why *w, unsigned int owners, state_listener *span, void *ctx)
{
	int ret = reading_open(&w->own, w->in, NULL, NULL);

	w->steps = w->own.steps;
	return ret ?: reading_states(&w->own, owners, span, ctx) ?: reading_run(&w->own);
}

struct why_marking {
	struct why *why;
	const char *name;
	bool any;
};

static int why_mark(void *ctx, const struct markers_span *s)
{
	/* no key of a vCPU: by its row a thread would be one that no file names as such */
	static const struct latency_key row = { UINT64_MAX, 0 };
	struct why_marking *m = ctx;
	struct chain_event end = { .ts = s->to, .input = (uint32_t)s->input, .cpu = s->cpu, .pid = s->pid };
	struct latency_worst chain = { .took = s->to - s->from, .v = { end, end } };

	if (strcmp(s->names[s->n - 1], m->name) != 0)
		return 0;
	m->any = true;
	chain.v[0].ts = s->from;
	return why_chain(m->why, &chain, &row, 2);
}

int why_marks(struct why *w, const char *name, const struct mark_desc *desc, const struct log *log,
	      uint64_t *damaged)
{
	struct why_marking m = { .why = w, .name = name };
	struct reading r;
	int ret = reading_open(&r, w->in, desc, log) ?: reading_markers(&r);

	if (!ret) {
		markers_listen(r.markers, why_mark, &m);
		ret = reading_run(&r);
	}
	*damaged = reading_damaged(&r);
	reading_close(&r);
	return ret || m.any ? ret : -ENOENT;
}

static int why_shorter(const void *a, const void *b)
{
	const struct why_instance *x = a, *y = b;

	return ORDER(x->to - x->from, y->to - y->from) ?: ORDER(x->from, y->from);
}

int why_cut(struct why *w, const struct vcpu_map *vcpus)
{
	int ret = 0;

	w->vcpus = vcpus;
	w->widest = calloc(w->in->n + 1, sizeof(*w->widest));
	if (!w->widest)
		return -ENOMEM;
	for (size_t i = 0; i < w->in->n; i++) {
		const struct filetime *t = &w->in->v[i].time;

		w->widest[i] = t->shift.bounds ? filetime_widest_bound(t) : UINT64_MAX;
	}
	array_sort(w->v, w->n, sizeof(*w->v), why_shorter);
	for (size_t i = 0; i < w->n && !ret; i++)
		ret = why_stages_place(w, (uint32_t)i);
	for (size_t i = 0; i < w->keys.n; i++)
		qsort(w->lanes[i].v, w->lanes[i].n, sizeof(*w->lanes[i].v), compare_u64);
	if (w->n && !ret)
		ret = why_states(w, STATES_VCPUS | STATES_GUEST_TASKS | STATES_TASKS, why_stages_span, w);
	for (size_t i = 0; i < w->n && !ret; i++)
		ret = why_settle(w, &w->v[i]);
	why_lanes_release(w);
	return ret;
}
