// SPDX-License-Identifier: LGPL-2.1-or-later
/* The solver: from a guest's events and its host's windows to offsets with bounds. */
#include "sync/sync.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "sync/solver.h"

/* Documentation/clock-sync.md has the reason for each number. */
#define PART_FIRST   0.01 /* of the events outside, before any were looked at */
#define BURST_MAX    50	  /* events in a window, for deviations */
#define PIECE_EVENTS 1000 /* in a piece that shows what is usual */
#define TRIM	     2	  /* slices at an end that may be another's */
#define MEET	     3	  /* slices that show where a piece ends or begins */
#define TIME_MAX     (1ull << 62)
#define RATE_MAX     5e-4 /* what a kernel's clock can be slewed by */
#define STEADY_RATE  1e-6 /* the two kernels may round the counter's rate differently */
#define STEADY_BEND  1e-7

/* ---- setting up ------------------------------------------------------------------------ */

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

static void set_host_range(struct problem *p)
{
	p->host0 = UINT64_MAX;
	for (size_t i = 0; i < p->n_threads; i++) {
		const struct thread *t = &p->threads[i];

		if (!t->n)
			continue;
		p->host0 = t->v[0].a < p->host0 ? t->v[0].a : p->host0;
		p->host1 = t->v[t->n - 1].b > p->host1 ? t->v[t->n - 1].b : p->host1;
	}
	if (p->in->end) {
		p->host0 = p->in->begin;
		p->host1 = p->in->end;
	}
	for (size_t i = 0; i < p->n_threads; i++)
		set_duty(p, &p->threads[i]);
}

static void set_guest_range(struct problem *p)
{
	size_t spans = 0, events = 0;

	p->guest0 = UINT64_MAX;
	for (size_t i = 0; i < p->in->n_cpus; i++) {
		const struct sync_cpu *c = &p->in->cpus[i];

		events += c->n;
		if (!c->n)
			continue;
		p->guest0 = c->times[0] < p->guest0 ? c->times[0] : p->guest0;
		p->guest1 = c->times[c->n - 1] > p->guest1 ? c->times[c->n - 1] : p->guest1;
	}
	for (size_t i = 0; i < p->n_threads; i++)
		spans += p->threads[i].n;
	p->burst = spans ? (double)events / (double)spans : 1;
	p->burst = fmin(fmax(p->burst, 1), BURST_MAX);
}

/* Times come from files: what no clock shows is not worth a try. */
static bool ranges_ok(const struct problem *p)
{
	return p->guest0 <= p->guest1 && p->guest1 < TIME_MAX && p->host0 <= p->host1 && p->host1 < TIME_MAX;
}

static int problem_init(struct problem *p, const struct sync_input *in, const struct log *log)
{
	int ret;

	*p = (struct problem){
		.in = in, .log = log, .rate = in->max_rate > 0 ? in->max_rate : RATE_MAX, .part = PART_FIRST
	};
	p->map = calloc(in->n_cpus, sizeof(*p->map));
	if (!p->map)
		return -ENOMEM;
	ret = windows_threads(p);
	if (ret)
		return ret;
	set_host_range(p);
	set_guest_range(p);
	return ranges_ok(p) ? tracks_slices(p) : 0;
}

/* The input's map. Returns whether there is one. */
static bool map_given(struct problem *p)
{
	bool any = false;

	for (size_t i = 0; i < p->in->n_cpus; i++) {
		const struct thread *t = p->in->pids ? windows_thread(p, p->in->pids[i]) : NULL;

		p->map[i] = t ? (int)(t - p->threads) : -1;
		any = any || t;
	}
	if (p->in->n_cpus == 1 && p->n_threads == 1) {
		p->map[0] = 0;
		any = true;
	}
	return any;
}

/* ---- pieces --------------------------------------------------------------------------- */

static int compare_pieces(const void *a, const void *b)
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

/* Whether they meet without a jump. */
static bool pieces_meet(const struct problem *p, const struct piece *a, const struct piece *b)
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
			least = fmin(least, (outside + sqrt(2 * p->burst * outside)) / n);
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

	qsort(all->v, all->n, sizeof(*all->v), compare_pieces);
	p->least = least_part(p, all);
	trim_pieces(p, all);
	for (size_t i = 0; i < all->n; i++) {
		struct piece *last = n ? &all->v[n - 1] : NULL;

		if (last && pieces_meet(p, last, &all->v[i])) {
			for (size_t k = last->last; k < all->v[i].first; k++)
				p->slices[k].valid = false;
			last->last = all->v[i].last;
			last->unseen = all->v[i].unseen;
			last->t1 = last->to = all->v[i].t1;
			continue;
		}
		if (last && cut_pieces(p, last, &all->v[i]))
			return -ENOMEM;
		all->v[n++] = all->v[i];
	}
	all->n = n;
	return 0;
}

/* ---- the result ----------------------------------------------------------------------- */

static void forget_knots(struct sync_result *r)
{
	r->n_knots = r->n_cuts = r->n_bands = 0;
}

static void count_cpu(const struct problem *p, const struct sync_cpu *c, const struct thread *t,
		      struct sync_result *r)
{
	for (size_t k = 0; k < c->n; k++) {
		uint64_t at = c->times[k] + (uint64_t)sync_offset(r, c->times[k]);
		uint64_t bound = sync_bound(r, c->times[k]);

		if (at < p->host0 || at > p->host1 || bound == UINT64_MAX)
			continue;
		r->events++;
		r->outside += thread_distance(t, at) > bound;
	}
}

/* Of what is inside and outside with the result; without one the vCPUs are named alone. */
static int count_inside(struct problem *p, struct sync_result *r)
{
	free(r->vcpus);
	r->n_vcpus = 0;
	r->vcpus = calloc(p->in->n_cpus, sizeof(*r->vcpus));
	if (!r->vcpus)
		return -ENOMEM;
	r->n_vcpus = p->in->n_cpus;
	r->events = r->outside = 0;
	for (size_t i = 0; i < r->n_vcpus; i++) {
		const struct thread *t = p->map[i] < 0 || !r->n_knots ? NULL : &p->threads[p->map[i]];

		r->vcpus[i] = (struct sync_vcpu){ .cpu = p->in->cpus[i].cpu, .pid = t ? t->pid : 0 };
		if (t)
			count_cpu(p, &p->in->cpus[i], t, r);
	}
	return 0;
}

static const char *windows_method(const struct problem *p)
{
	for (size_t i = 0; i < p->in->n_cpus; i++)
		if (p->map[i] >= 0 && p->threads[p->map[i]].hyp)
			return "hyp windows";
	return "kvm windows";
}

/* Doubtful knots served to check the map; from here on they have no bound. */
static void drop_doubtful(struct sync_result *r)
{
	for (size_t i = 0; i < r->n_knots; i++)
		if (r->knots[i].class == SYNC_NONE)
			r->knots[i].bound = UINT64_MAX;
}

static bool any_bounded(const struct sync_result *r)
{
	for (size_t i = 0; i < r->n_knots; i++)
		if (r->knots[i].class != SYNC_NONE)
			return true;
	return false;
}

/* With one event outside no knot is hard. */
static void set_classes(struct sync_result *r)
{
	r->class = r->outside ? SYNC_SOFT : SYNC_HARD;
	for (size_t i = 0; i < r->n_knots; i++) {
		enum sync_class *c = &r->knots[i].class;

		*c = r->outside && *c == SYNC_HARD ? SYNC_SOFT : *c;
		r->class = *c != SYNC_NONE && *c < r->class ? *c : r->class;
	}
}

/* ---- solving -------------------------------------------------------------------------- */

static int fit_all(struct problem *p, const struct pieces *all, struct sync_result *r)
{
	forget_knots(r);
	for (size_t i = 0; i < all->n; i++) {
		int ret = drift_fit(p, &all->v[i], r);

		if (ret)
			return ret;
	}
	return 0;
}

/* Twice where the first result shows that the map was wrong. */
static int solve_pieces(struct problem *p, struct sync_result *r)
{
	struct pieces all = { .mapped = map_given(p) };
	int ret;

	for (int round = 0; round < 2; round++) {
		ret = search_pieces(p, &all, 0, p->n_slices);
		if (ret)
			return ret;
		ret = join_pieces(p, &all);
		if (ret)
			return ret;
		ret = fit_all(p, &all, r);
		if (ret)
			return ret;
		if (!r->n_knots || p->n_threads < 2 || !map_check(p, r))
			break;
		all = (struct pieces){ .mapped = true };
	}
	drop_doubtful(r);
	for (size_t i = 0; i < p->in->n_cpus && p->in->pids; i++)
		r->map_changed = r->map_changed || (p->in->pids[i] && p->map[i] >= 0 &&
						    p->threads[p->map[i]].pid != p->in->pids[i]);
	return 0;
}

/* Whether the windows gave a result; with too many events outside it is none. */
static int solve_windows(struct problem *p, struct sync_result *r)
{
	int ret;

	if (!p->n_threads || !p->n_slices)
		return 0;
	ret = solve_pieces(p, r);
	if (ret)
		return ret;
	if (!map_any(p))
		forget_knots(r);
	if (!r->n_knots)
		return 0;
	ret = count_inside(p, r);
	if (ret)
		return ret;
	if (!any_bounded(r) || (double)r->outside > OUTSIDE_MAX * (double)r->events)
		forget_knots(r);
	return 0;
}

static int solve_once(const struct sync_input *in, struct sync_result *out, const struct log *log)
{
	struct problem p;
	int ret;

	*out = (struct sync_result){ .method = "none" };
	ret = problem_init(&p, in, log);
	if (ret)
		goto out;
	ret = solve_windows(&p, out);
	if (ret)
		goto out;
	if (out->n_knots) {
		out->method = windows_method(&p);
		set_classes(out);
		goto out;
	}
	map_clear(&p);
	ret = count_inside(&p, out);
out:
	windows_release(&p);
	free(p.map);
	free(p.slices);
	sweeper_release(&p.sweeper);
	if (ret)
		sync_result_release(out);
	return ret;
}

int sync_solve(const struct sync_input *in, struct sync_result *out, const struct log *log)
{
	struct sync_input steady = *in;
	struct sync_result other;
	int ret;

	*out = (struct sync_result){ .method = "none" };
	if (!in->n_cpus)
		return -EINVAL;
	if (!in->steady)
		return solve_once(in, out, log);
	steady.max_rate = STEADY_RATE;
	steady.max_bend = STEADY_BEND;
	ret = solve_once(&steady, out, log);
	if (ret || out->class == SYNC_HARD)
		return ret;
	/* not that steady after all? */
	ret = solve_once(in, &other, log);
	if (ret || other.class > out->class) {
		sync_result_release(out);
		*out = other;
	} else {
		sync_result_release(&other);
	}
	return ret;
}

/* ---- checking other offsets ---------------------------------------------------------- */

static void check_cpu(const struct problem *p, const struct sync_cpu *c, const struct thread *t,
		      const struct offset_shift *shift, struct sync_check *out)
{
	for (size_t k = 0; k < c->n; k++) {
		uint64_t at = offset_shift_apply(shift, c->cpu, c->times[k]), far;

		if (at < p->host0 || at > p->host1)
			continue;
		far = thread_distance(t, at);
		out->events++;
		out->outside += far > 0;
		out->worst = far > out->worst ? far : out->worst;
	}
}

int sync_check(const struct sync_input *in, const struct sync_result *map, const struct offset_shift *shift,
	       struct sync_check *out)
{
	struct problem p = { .in = in, .host0 = in->begin, .host1 = in->end ? in->end : UINT64_MAX };
	int ret = windows_threads(&p);

	*out = (struct sync_check){ 0 };
	if (ret)
		goto out;
	for (size_t i = 0; i < in->n_cpus; i++) {
		const struct thread *t = windows_thread(&p, sync_pid(map, in->cpus[i].cpu));

		if (t)
			check_cpu(&p, &in->cpus[i], t, shift, out);
	}
out:
	windows_release(&p);
	return ret;
}
