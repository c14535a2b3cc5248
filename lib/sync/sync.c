// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sync/sync.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sync/math.h"
#include "sync/problem.h"

#define PART_FIRST   0.01 /* of the events outside, before anything is known */
#define PIECE_EVENTS 1000 /* in a piece that tells what is usual */
#define TRIM	     2	  /* slices at an end that may be another's */
#define MEET	     3	  /* slices that tell where a piece ends or begins */
#define TIME_MAX     (1ull << 62)
#define RATE_MAX     5e-4 /* what a kernel's clock can be slewed by */

const char *sync_class_name(enum sync_class c)
{
	static const char *const names[] = { "none", "ping", "soft", "hard" };

	return names[c];
}

/* ---- setting up ------------------------------------------------------------------------ */

static void problem_release(struct problem *p)
{
	windows_release(p);
	free(p->map);
	free(p->slices);
	sweeper_release(&p->sweeper);
}

static void set_duty(const struct problem *p, struct thread *t)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < t->n; i++) {
		uint64_t a = t->v[i].a, b = t->v[i].b;

		a = a < p->host0 ? p->host0 : a;
		b = b > p->host1 ? p->host1 : b;
		sum += b > a ? b - a : 0;
	}
	t->duty = p->host1 > p->host0 ? (double)sum / (double)(p->host1 - p->host0) : 1;
}

static void set_ranges(struct problem *p)
{
	const struct sync_input *in = p->in;
	size_t spans = 0, events = 0;

	p->host0 = p->guest0 = UINT64_MAX;
	for (size_t i = 0; i < p->n_threads; i++) {
		const struct thread *t = &p->threads[i];

		spans += t->n;
		if (!t->n)
			continue;
		p->host0 = t->v[0].a < p->host0 ? t->v[0].a : p->host0;
		p->host1 = t->v[t->n - 1].b > p->host1 ? t->v[t->n - 1].b : p->host1;
	}
	if (in->end) {
		p->host0 = in->begin;
		p->host1 = in->end;
	}
	for (size_t i = 0; i < p->n_threads; i++)
		set_duty(p, &p->threads[i]);
	for (size_t i = 0; i < in->n_cpus; i++) {
		const struct sync_cpu *c = &in->cpus[i];

		events += c->n;
		if (!c->n)
			continue;
		p->guest0 = c->times[0] < p->guest0 ? c->times[0] : p->guest0;
		p->guest1 = c->times[c->n - 1] > p->guest1 ? c->times[c->n - 1] : p->guest1;
	}
	p->burst = spans ? (double)events / (double)spans : 1;
	p->part = PART_FIRST;
	p->burst = p->burst < 1 ? 1 : p->burst > 50 ? 50 : p->burst;
}

static int thread_index(const struct problem *p, int32_t pid)
{
	for (size_t i = 0; i < p->n_threads; i++)
		if (p->threads[i].pid == pid)
			return (int)i;
	return -1;
}

/* Returns whether anything of it is known. */
static bool map_given(struct problem *p)
{
	bool any = false;

	for (size_t i = 0; i < p->in->n_cpus; i++) {
		p->map[i] = p->in->pids && p->in->pids[i] ? thread_index(p, p->in->pids[i]) : -1;
		any = any || p->map[i] >= 0;
	}
	if (p->in->n_cpus == 1 && p->n_threads == 1) {
		p->map[0] = 0;
		any = true;
	}
	return any;
}

/* Times come from files: what no clock shows is not worth a try. */
static bool ranges_ok(const struct problem *p)
{
	return p->guest0 <= p->guest1 && p->guest1 < TIME_MAX && p->host0 <= p->host1 && p->host1 < TIME_MAX;
}

static int problem_init(struct problem *p, const struct sync_input *in, const struct log *log)
{
	int ret;

	*p = (struct problem){ .in = in, .log = log, .rate = in->max_rate > 0 ? in->max_rate : RATE_MAX };
	p->map = calloc(in->n_cpus, sizeof(*p->map));
	if (!p->map)
		return -ENOMEM;
	ret = windows_threads(p);
	if (ret)
		return ret;
	set_ranges(p);
	return ranges_ok(p) ? drift_slices(p) : 0;
}

/* ---- pieces --------------------------------------------------------------------------- */

static int by_first(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;

	return x->first < y->first ? -1 : x->first > y->first;
}

/* The narrowest of a few slices: in one with a jump in it the offset may be anything. */
static const struct slice *sharpest(const struct problem *p, size_t from, size_t to)
{
	const struct slice *best = &p->slices[from];

	for (size_t i = from; i < to; i++)
		if (p->slices[i].high - p->slices[i].low < best->high - best->low)
			best = &p->slices[i];
	return best;
}

/* Do they meet without a jump? */
static bool meet(const struct problem *p, const struct piece *a, const struct piece *b)
{
	const struct slice *x = sharpest(p, a->last - a->first > MEET ? a->last - MEET : a->first, a->last);
	const struct slice *y = sharpest(p, b->first, b->last - b->first > MEET ? b->first + MEET : b->last);
	int64_t play = (int64_t)(p->rate * (double)(y->mid - x->mid)) + 1000;

	return x->low - play <= y->high && y->low <= x->high + play;
}

/* The least part of the events outside that any piece of some length has, or nearly. */
static double least_part(const struct problem *p, const struct pieces *all)
{
	double least = p->part;

	for (size_t i = 0; i < all->n; i++) {
		size_t a = all->v[i].seen, b = all->v[i].unseen;
		double n = 0, outside = 0;

		/* its ends can be another's */
		if (b - a > 4 * TRIM) {
			a += TRIM;
			b -= TRIM;
		}
		for (size_t k = a; k < b; k++) {
			n += p->slices[k].n;
			outside += p->slices[k].n - p->slices[k].best;
		}
		if (n >= PIECE_EVENTS)
			least = num_min(least, (outside + num_sqrt(2 * p->burst * outside)) / n);
	}
	return least;
}

/*
 * Where a piece ends and no other one was found, its last slices may be another's.
 * Returns whether anything is left.
 */
static bool trim_ends(const struct problem *p, struct piece *v, bool begin, bool end)
{
	size_t first = v->first + (begin && v->first ? TRIM : 0);
	size_t last = v->last - (end && v->last < p->n_slices ? TRIM : 0);

	if (first >= last || last > v->last)
		return false;
	v->first = v->seen = first;
	v->last = v->unseen = last;
	v->t0 = v->from = p->slices[first].t0;
	v->t1 = v->to = p->slices[last - 1].t1;
	return true;
}

static void trim_pieces(const struct problem *p, struct pieces *all)
{
	size_t n = 0;

	for (size_t i = 0; i < all->n; i++)
		if (trim_ends(p, &all->v[i], !i, i + 1 == all->n))
			all->v[n++] = all->v[i];
	all->n = n;
}

static int join_pieces(struct problem *p, struct pieces *all)
{
	size_t n = 0;

	qsort(all->v, all->n, sizeof(*all->v), by_first);
	p->least = least_part(p, all);
	trim_pieces(p, all);
	for (size_t i = 0; i < all->n; i++) {
		struct piece *last = n ? &all->v[n - 1] : NULL;
		int ret;

		if (last && meet(p, last, &all->v[i])) {
			for (size_t k = last->last; k < all->v[i].first; k++)
				p->slices[k].told = false;
			last->last = all->v[i].last;
			last->unseen = all->v[i].unseen;
			last->t1 = last->to = all->v[i].t1;
			continue;
		}
		if (last) {
			ret = drift_cut(p, last, &all->v[i]);
			if (ret)
				return ret;
		}
		all->v[n++] = all->v[i];
	}
	all->n = n;
	return 0;
}

/* ---- the result -------------------------------------------------------------------------------
 */

void sync_result_release(struct sync_result *r)
{
	free(r->knots);
	free(r->cuts);
	free(r->vcpus);
	free(r->bands);
	*r = (struct sync_result){ 0 };
}

static void forget(struct sync_result *r)
{
	r->n_knots = r->n_cuts = r->n_bands = 0;
}

static int count_events(struct problem *p, struct sync_result *r)
{
	free(r->vcpus);
	r->vcpus = calloc(p->in->n_cpus, sizeof(*r->vcpus));
	r->events = r->outside = r->unsure = 0;
	if (!r->vcpus)
		return -ENOMEM;
	r->n_vcpus = p->in->n_cpus;
	for (size_t i = 0; i < r->n_vcpus; i++) {
		const struct sync_cpu *c = &p->in->cpus[i];
		struct sync_vcpu *v = &r->vcpus[i];
		const struct thread *t = p->map[i] < 0 ? NULL : &p->threads[p->map[i]];

		v->cpu = c->cpu;
		v->pid = t && r->n_knots ? t->pid : 0;
		for (size_t k = 0; k < c->n && v->pid; k++) {
			uint64_t at = c->times[k] + (uint64_t)sync_offset(r, c->times[k]);
			uint64_t bound = sync_bound(r, c->times[k]);
			bool unknown;

			if (at < p->host0 || at > p->host1 || bound == UINT64_MAX)
				continue;
			v->events++;
			v->outside += span_distance(t, at, &unknown) > bound;
			r->unsure += unknown;
		}
		r->events += v->events;
		r->outside += v->outside;
	}
	return 0;
}

static int use_prior(const struct problem *p, struct sync_result *r)
{
	const struct sync_prior *prior = &p->in->prior;
	uint64_t far0 = prior->time > p->guest0 ? prior->time - p->guest0 : p->guest0 - prior->time;
	uint64_t far1 = prior->time > p->guest1 ? prior->time - p->guest1 : p->guest1 - prior->time;

	if (!prior->valid || p->guest0 >= p->guest1)
		return 0;
	r->knots = calloc(2, sizeof(*r->knots));
	if (!r->knots)
		return -ENOMEM;
	r->n_knots = 2;
	for (int i = 0; i < 2; i++)
		r->knots[i] = (struct sync_knot){
			.time = i ? p->guest1 : p->guest0,
			.offset = prior->offset,
			.bound = prior->bound + (uint64_t)(p->rate * (double)(far0 > far1 ? far0 : far1)),
			.class = SYNC_PING,
		};
	r->method = "ping";
	r->class = SYNC_PING;
	return 0;
}

static const char *method(const struct problem *p)
{
	for (size_t i = 0; i < p->in->n_cpus; i++)
		if (p->map[i] >= 0 && p->threads[p->map[i]].hyp)
			return "hyp windows";
	return "kvm windows";
}

static int fit_all(struct problem *p, const struct pieces *all, struct sync_result *r)
{
	int ret = 0;

	forget(r);
	for (size_t i = 0; i < all->n && !ret; i++)
		ret = drift_fit(p, &all->v[i], r);
	return ret;
}

static bool any_mapped(const struct problem *p)
{
	for (size_t i = 0; i < p->in->n_cpus; i++)
		if (p->map[i] >= 0)
			return true;
	return false;
}

/* What is in doubt served to check the map, and is vouched for no more. */
static void drop_doubtful(struct sync_result *r)
{
	for (size_t i = 0; i < r->n_knots; i++)
		if (r->knots[i].class == SYNC_NONE)
			r->knots[i].bound = UINT64_MAX;
}

/* ---- solving -------------------------------------------------------------------------- */

static int solve(struct problem *p, struct sync_result *r)
{
	struct pieces all = { 0 };
	bool changed = false, given = map_given(p);
	int ret;

	all.mapped = given;
	for (int round = 0; round < 2; round++) {
		ret = search_pieces(p, &all, 0, p->n_slices);
		if (!ret)
			ret = join_pieces(p, &all);
		if (!ret)
			ret = fit_all(p, &all, r);
		if (!ret && r->n_knots && p->n_threads > 1)
			ret = map_check(p, r, &changed);
		if (ret || !changed)
			break;
		all = (struct pieces){ .mapped = true };
	}
	drop_doubtful(r);
	for (size_t i = 0; i < p->in->n_cpus && p->in->pids; i++)
		r->map_changed = r->map_changed || (p->in->pids[i] && p->map[i] >= 0 &&
						    p->threads[p->map[i]].pid != p->in->pids[i]);
	return ret;
}

static bool any_vouched(const struct sync_result *r)
{
	for (size_t i = 0; i < r->n_knots; i++)
		if (r->knots[i].class != SYNC_NONE)
			return true;
	return false;
}

static enum sync_class worst_class(const struct sync_result *r)
{
	enum sync_class c = SYNC_HARD;

	for (size_t i = 0; i < r->n_knots; i++)
		if (r->knots[i].class != SYNC_NONE && r->knots[i].class < c)
			c = r->knots[i].class;
	return r->outside && c == SYNC_HARD ? SYNC_SOFT : c;
}

int sync_solve(const struct sync_input *in, struct sync_result *out, const struct log *log)
{
	struct problem p;
	int ret;

	*out = (struct sync_result){ .method = "none" };
	if (!in->n_cpus)
		return -EINVAL;
	ret = problem_init(&p, in, log);
	if (!ret && p.n_threads && p.n_slices)
		ret = solve(&p, out);
	if (!ret && !any_mapped(&p))
		forget(out);
	if (!ret && out->n_knots) {
		ret = count_events(&p, out);
		if (!ret && (!any_vouched(out) || (double)out->outside > OUTSIDE_MAX * (double)out->events))
			forget(out);
	}
	if (!ret && out->n_knots) {
		out->method = method(&p);
		out->class = worst_class(out);
		for (size_t i = 0; i < out->n_knots; i++)
			if (out->outside && out->knots[i].class == SYNC_HARD)
				out->knots[i].class = SYNC_SOFT;
	} else if (!ret) {
		forget(out);
		map_unknown(&p);
		ret = count_events(&p, out);
		if (!ret)
			ret = use_prior(&p, out);
	}
	problem_release(&p);
	if (ret)
		sync_result_release(out);
	return ret;
}
