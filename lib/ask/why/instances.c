// SPDX-License-Identifier: LGPL-2.1-or-later
/* Instances: collects the chains, reads the states meanwhile, and cuts each into stretches. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ask/why/why-priv.h"
#include "base/array.h"

#define WHY_KEPT_MAX (1u << 15) /* beyond these every second goes, again and again */

/* ---- open and close ------------------------------------------------------------------------------ */

int why_open(struct why **out, const struct inputs *in, const struct latency_preset *preset)
{
	struct why *w = calloc(1, sizeof(*w));
	struct why_cause others;
	int ret;

	if (!w)
		return -ENOMEM;
	*w = (struct why){ .in = in, .preset = preset, .stride = 1 };
	others = why_cause_plain(WHY_OTHERS, 0);
	ret = steps_open(&w->steps, in) ?: why_cause_of(w, &others) ? -ENOMEM : 0;
	if (ret)
		why_close(w);
	else
		*out = w;
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
	map_release(&w->by_cause);
	why_lanes_release(w);
	steps_close(w->steps);
	free(w);
}

/* ---- collecting ---------------------------------------------------------------------------------- */

/* Keeps every stride-th chain; the stride doubles when there are too many, so that memory is bounded. */
static int why_chain(void *ctx, const struct latency_worst *chain, const struct latency_key *row, size_t n_points)
{
	struct why *w = ctx;
	size_t first = why_first_point(w);
	struct why_instance one = { .chain = *chain,
				    .n_points = n_points,
				    .row = *row,
				    .from = chain->v[first].ts,
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

void why_listen(struct why *w, struct latency_plan *plan)
{
	plan->each = why_chain;
	plan->ctx = w;
}

static int why_shorter(const void *a, const void *b)
{
	const struct why_instance *x = a, *y = b;
	uint64_t p = x->to - x->from, q = y->to - y->from;

	if (p != q)
		return p < q ? -1 : 1;
	return x->from < y->from ? -1 : x->from > y->from;
}

/* ---- cutting --------------------------------------------------------------------------------------- */

/* Stretches in the making. */
struct why_cutting {
	struct why_stretch *v;
	size_t n;
	int ret;
};

static void why_cutting_add(struct why_cutting *c, struct why_stretch piece)
{
	if (piece.from < piece.to && !c->ret)
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
		if (piece.from > under.from) {
			before.to = piece.from;
			before.to_bound = piece.from_bound;
			why_cutting_add(c, before);
		} else {
			piece.from = under.from;
			piece.from_bound = under.from_bound > piece.from_bound ? under.from_bound : piece.from_bound;
		}
		if (piece.to >= under.to) {
			piece.to = under.to;
			piece.to_bound = under.to_bound > piece.to_bound ? under.to_bound : piece.to_bound;
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

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return x->to < y->to ? -1 : x->to > y->to;
}

static void why_cutting_join(struct why_cutting *c, uint64_t from, uint64_t to, uint32_t cause)
{
	struct why_stretch *last = c->n ? &c->v[c->n - 1] : NULL;

	if (last && last->cause == cause && from < to)
		last->to = to;
	else
		why_cutting_add(c, (struct why_stretch){ .from = from, .to = to, .cause = cause });
}

static uint64_t why_later(uint64_t at, uint64_t bound)
{
	return bound > UINT64_MAX - at ? UINT64_MAX : at + bound;
}

static uint64_t why_earlier(uint64_t at, uint64_t bound)
{
	return bound > at ? 0 : at - bound;
}

/*
 * The last form: what lies within the bound of a border between two causes, or of the instance's ends, is
 * undecided. doubt: room for a time by stretch.
 */
static void why_cutting_doubt(struct why_cutting *c, const struct why_stretch *v, size_t n, uint32_t undecided,
			      uint64_t *doubt)
{
	uint64_t since = UINT64_MAX, until = 0;

	/* since when a later border leaves it open, and until when an earlier one does */
	for (size_t i = n; i-- > 0;) {
		bool last = i + 1 == n;
		uint64_t bound = last || v[i].to_bound > v[i + 1].from_bound ? v[i].to_bound : v[i + 1].from_bound;
		uint64_t at = last || v[i].cause != v[i + 1].cause ? why_earlier(v[i].to, bound) : UINT64_MAX;

		doubt[i] = since = at < since ? at : since;
	}
	for (size_t i = 0; i < n; i++) {
		uint64_t from = v[i].from, to = v[i].to;
		uint64_t bound = !i || v[i].from_bound > v[i - 1].to_bound ? v[i].from_bound : v[i - 1].to_bound;
		uint64_t at = !i || v[i].cause != v[i - 1].cause ? why_later(from, bound) : 0;

		until = at > until ? at : until;
		from = until < from ? from : until < to ? until : to;
		to = doubt[i] > to ? to : doubt[i] < from ? from : doubt[i];
		why_cutting_join(c, v[i].from, from, undecided);
		why_cutting_join(c, from, to, v[i].cause);
		why_cutting_join(c, to, v[i].to, undecided);
	}
}

/* Cuts by the subjects' spans, the guest's part of these by its tasks, and both by the bounds. */
static int why_settle(struct why *w, struct why_instance *one)
{
	const struct why_cause gap = why_cause_plain(WHY_UNKNOWN, 0), open = why_cause_plain(WHY_UNDECIDED, 0);
	const struct why_stretch whole = { .from = one->from, .to = one->to, .cause = why_cause_of(w, &gap) };
	uint32_t undecided = why_cause_of(w, &open);
	struct why_cutting all = { 0 }, tasks = { 0 }, last = { 0 };
	uint64_t *doubt = NULL;
	size_t next = 0;

	if (one->n)
		qsort(one->v, one->n, sizeof(*one->v), why_stretch_order);
	if (one->n_tasks)
		qsort(one->tasks, one->n_tasks, sizeof(*one->tasks), why_stretch_order);
	why_cutting_over(&all, whole, one->v, one->n, &next);
	next = 0;
	for (size_t i = 0; i < all.n; i++) {
		bool guest = w->causes[all.v[i].cause].kind == WHY_GUEST;

		why_cutting_over(&tasks, all.v[i], one->tasks, guest ? one->n_tasks : 0, &next);
	}
	doubt = calloc(tasks.n + 1, sizeof(*doubt));
	if (doubt)
		why_cutting_doubt(&last, tasks.v, tasks.n, undecided, doubt);
	if (!doubt || undecided == UINT32_MAX || whole.cause == UINT32_MAX)
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

/* ---- reading -------------------------------------------------------------------------------------- */

static int why_read(struct why *w)
{
	struct timeline *t = NULL;
	struct states *st = NULL;
	struct pass_part part;
	const unsigned int want = STATES_VCPUS | STATES_GUEST_TASKS | STATES_TASKS;
	int ret;

	ret = timeline_open(&t, w->in, NULL, NULL, NULL);
	ret = ret ?: states_open(&st, w->in, t, w->steps, want, why_stages_span, w);
	if (!ret) {
		part = states_part(st);
		ret = pass_read(t, w->steps, &part, 1) ?: states_end(st);
	}
	states_close(st);
	timeline_close(t);
	return ret;
}

int why_cut(struct why *w, const struct latency *l)
{
	size_t kept = 0;
	int ret = 0;

	w->vcpus = latency_vcpu_map(l);
	if (!w->n)
		return 0;
	qsort(w->v, w->n, sizeof(*w->v), why_shorter);
	for (size_t i = 0; i < w->n && !ret; i++)
		ret = why_stages_place(w, (uint32_t)i);
	why_lanes_sort(w);
	ret = ret ?: why_read(w);
	for (size_t i = 0; i < w->n && !ret; i++)
		ret = why_settle(w, &w->v[i]);
	for (size_t i = 0; i < w->n; i++) {
		if (!w->v[i].overfull)
			w->v[kept++] = w->v[i];
		else
			free(w->v[i].v);
	}
	w->left_out = w->n - kept;
	w->n = kept;
	why_lanes_release(w);
	return ret;
}

const struct why_instance *why_instances(const struct why *w, size_t *n)
{
	*n = w->n;
	return w->v;
}

const struct why_cause *why_causes(const struct why *w, size_t *n)
{
	*n = w->n_causes;
	return w->causes;
}
