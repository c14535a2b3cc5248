// SPDX-License-Identifier: LGPL-2.1-or-later
#include "sync.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sync-math.h"
#include "sync-priv.h"

#define RATE_MAX      5e-4 /* what a kernel's clock can be slewed by */
#define CHUNK_NS      1000000000ull
#define CHUNK_MAX     16000000000ull
#define CHUNK_EVENTS  1000
#define CANDIDATES    64
#define CLOSE	      6 /* of them looked at closely */
#define REACH_FIRST   10
#define REACH_CLOSE   200
#define SEARCHES_MAX  24
#define EVENTS_MIN    30
#define OUTSIDE_MAX   0.25
#define OUTSIDE_USUAL 0.15
#define OUTSIDE_COSTS 4
#define SLACK_MAX     40000000 /* ns */
#define SLACK_PART    64 /* of the host's capture at most: its ends are no windows */
#define PLACES	      5 /* to begin at, when the first has a jump in it, say */

const char *sync_class_name(enum sync_class c)
{
	static const char *const names[] = { "none", "ping", "soft", "hard" };

	return names[c];
}

/* ---- setting up ------------------------------------------------------------------------ */

static void problem_release(struct problem *p)
{
	for (size_t i = 0; i < p->n_threads; i++)
		free(p->threads[i].v);
	free(p->threads);
	free(p->map);
	free(p->slices);
	sweeper_release(&p->sweeper);
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
	for (size_t i = 0; i < in->n_cpus; i++) {
		const struct sync_cpu *c = &in->cpus[i];

		events += c->n;
		if (!c->n)
			continue;
		p->guest0 = c->times[0] < p->guest0 ? c->times[0] : p->guest0;
		p->guest1 = c->times[c->n - 1] > p->guest1 ? c->times[c->n - 1] : p->guest1;
	}
	p->burst = spans ? (double)events / (double)spans : 1;
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

static void map_unknown(struct problem *p)
{
	for (size_t i = 0; i < p->in->n_cpus; i++)
		p->map[i] = -1;
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
	return p->guest0 <= p->guest1 ? drift_slices(p) : 0;
}

/* ---- finding where to begin -------------------------------------------------------------- */

struct hit {
	int64_t low, high; /* at slice k */
	struct piece piece;
	uint64_t events, outside;
	double rank;
	int *map;
};

struct search {
	struct problem *p;
	size_t from, to, k; /* slices; k is where it begins */
	bool mapped;
	struct candidate cand[CANDIDATES];
	struct hit hits[CANDIDATES];
	int n;
};

/* Slices about the middle of [from, to) with events enough. */
static void chunk(const struct search *s, uint64_t *t0, uint64_t *t1)
{
	const struct slice *v = s->p->slices;
	size_t a = s->k, b = s->k + 1;

	for (;;) {
		uint64_t len = v[b - 1].t1 - v[a].t0;

		if (len >= CHUNK_MAX || (a == s->from && b == s->to))
			break;
		if (len >= CHUNK_NS && slice_events(s->p, v[a].t0, v[b - 1].t1) >= CHUNK_EVENTS)
			break;
		a -= a > s->from;
		b += b < s->to;
	}
	*t0 = v[a].t0;
	*t1 = v[b - 1].t1;
}

static int look(struct search *s, struct hit *h, int64_t low, int64_t high, size_t reach)
{
	struct problem *p = s->p;
	int ret = drift_track(p, s->from, s->to, s->k, low, high, reach, &h->piece, &h->events,
			      &h->outside);

	h->low = p->slices[s->k].low;
	h->high = p->slices[s->k].high;
	h->rank = (double)h->events - (1.0 + OUTSIDE_COSTS) * (double)h->outside;
	return ret;
}

/*
 * Near one candidate: what could be must end inside of what was looked at, or
 * there is more of it; a place without an end tells nothing.
 */
static int look_near(struct search *s, struct hit *h, int64_t offset, int64_t slack)
{
	int64_t most = (int64_t)((s->p->host1 - s->p->host0) / SLACK_PART);
	int ret = 0;

	most = most > SLACK_MAX ? SLACK_MAX : most;
	for (; slack <= most; slack *= 2) {
		ret = look(s, h, offset - slack, offset + slack, REACH_FIRST);
		if (ret || (h->low > offset - slack && h->high < offset + slack))
			return ret;
	}
	h->events = h->outside = 0;
	h->rank = 0;
	return 0;
}

static int first_look(struct search *s, uint64_t mid)
{
	struct problem *p = s->p;
	size_t bytes = p->in->n_cpus * sizeof(int);
	uint64_t away = (uint64_t)(p->rate * num_abs((double)(int64_t)(p->slices[s->k].mid - mid)));
	int ret = 0;

	for (int i = 0; i < s->n && !ret; i++) {
		int64_t slack = (int64_t)(s->cand[i].slack + away), at = s->cand[i].offset;
		struct hit *h = &s->hits[i];
		uint64_t covered;

		h->map = malloc(bytes);
		if (!h->map)
			return -ENOMEM;
		if (!s->mapped)
			ret = map_solve(p, s->k, at - slack, at + slack, p->map, &covered);
		memcpy(h->map, p->map, bytes);
		if (!ret)
			ret = look_near(s, h, at, slack);
	}
	return ret;
}

static int by_rank(const void *a, const void *b)
{
	const struct hit *x = a, *y = b;

	return x->rank > y->rank ? -1 : x->rank < y->rank;
}

static int close_look(struct search *s)
{
	struct problem *p = s->p;
	int ret = 0;

	qsort(s->hits, (size_t)s->n, sizeof(*s->hits), by_rank);
	for (int i = 0; i < s->n && i < CLOSE && !ret; i++) {
		struct hit *h = &s->hits[i];

		if (!h->events) /* it told nothing */
			continue;
		memcpy(p->map, h->map, p->in->n_cpus * sizeof(int));
		ret = look(s, h, h->low - 1000, h->high + 1000, REACH_CLOSE);
	}
	qsort(s->hits, (size_t)(s->n < CLOSE ? s->n : CLOSE), sizeof(*s->hits), by_rank);
	return ret;
}

static bool same_place(const struct hit *a, const struct hit *b)
{
	return a->low <= b->high && b->low <= a->high;
}

/* Is the best one good, and clearly better than any other place? */
static bool is_clear(const struct search *s)
{
	const struct hit *best = &s->hits[0];
	double margin = 8 + 6 * num_sqrt((double)best->outside * s->p->burst);
	double part = (double)best->outside / (double)(best->events + 1);

	if (!s->n || best->events < EVENTS_MIN || part > OUTSIDE_MAX)
		return false;
	/* so many outside can be chance, unless anywhere else there are far more */
	if (part > OUTSIDE_USUAL)
		margin += (double)best->outside / 2;
	for (int i = 1; i < s->n && i < CLOSE; i++)
		if (!same_place(best, &s->hits[i]))
			return best->rank - s->hits[i].rank >= (1 + OUTSIDE_COSTS) * margin;
	return true;
}

/* 1: found, with the map in p->map; 0: not; -errno. *rank tells how well. */
static int search_once(struct search *s, double *rank)
{
	uint64_t t0, t1;
	int ret;

	chunk(s, &t0, &t1);
	s->n = find_candidates(s->p, t0, t1, s->cand, CANDIDATES);
	ret = s->n < 0 ? s->n : first_look(s, t0 + (t1 - t0) / 2);
	if (!ret)
		ret = close_look(s);
	if (!ret && is_clear(s)) {
		memcpy(s->p->map, s->hits[0].map, s->p->in->n_cpus * sizeof(int));
		*rank = s->hits[0].rank;
		ret = 1;
	}
	for (int i = 0; i < s->n; i++)
		free(s->hits[i].map);
	return ret;
}

/* ---- pieces --------------------------------------------------------------------------------- */

struct pieces {
	struct piece v[SEARCHES_MAX];
	size_t n;
	int searches;
	bool mapped; /* the map is known or was found */
};

/* With the map that is given, and where that does badly without it. */
static int search(struct problem *p, struct pieces *all, struct search *s)
{
	double rank = 0, other = 0;
	struct hit first;
	int found = 0, ret;
	int *map;

	s->mapped = all->mapped;
	if (s->mapped)
		found = search_once(s, &rank);
	if (found < 0 || all->n || p->n_threads < 2 ||
	    (found && s->hits[0].outside * 20 < s->hits[0].events))
		return found;
	first = s->hits[0];
	map = malloc(p->in->n_cpus * sizeof(*map));
	if (!map)
		return -ENOMEM;
	memcpy(map, p->map, p->in->n_cpus * sizeof(*map));
	map_unknown(p);
	s->mapped = false;
	ret = search_once(s, &other);
	if (ret == 1 && (!found || other > rank * 1.02 + 50)) {
		found = 1;
	} else {
		memcpy(p->map, map, p->in->n_cpus * sizeof(*map));
		s->hits[0] = first;
	}
	free(map);
	return ret < 0 ? ret : found;
}

static int search_places(struct problem *p, struct pieces *all, struct search *s, size_t from,
			 size_t to)
{
	static const unsigned int eighths[PLACES] = { 4, 2, 6, 1, 7 };
	int ret = 0;

	for (int i = 0; i < PLACES && !ret; i++) {
		size_t k = from + (to - from) * eighths[i] / 8;

		if (i && (to - from < 6 || all->searches++ >= SEARCHES_MAX))
			break;
		*s = (struct search){ .p = p, .from = from, .to = to, .k = k };
		ret = search(p, all, s);
	}
	return ret;
}

static int solve_range(struct problem *p, struct pieces *all, size_t from, size_t to)
{
	struct search *s;
	struct piece *piece;
	struct hit hit;
	int ret;

	if (to - from < 1 || all->n == SEARCHES_MAX || all->searches++ >= SEARCHES_MAX)
		return 0;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	ret = search_places(p, all, s, from, to);
	piece = &all->v[all->n];
	if (ret == 1) {
		all->mapped = true;
		ret = look(s, &s->hits[0], s->hits[0].low - 1000, s->hits[0].high + 1000, SIZE_MAX);
		hit = s->hits[0];
		*piece = hit.piece;
		all->n++;
		if (!ret && hit.piece.first - from >= 2)
			ret = solve_range(p, all, from, hit.piece.first);
		if (!ret && to - hit.piece.last >= 2)
			ret = solve_range(p, all, hit.piece.last, to);
	}
	free(s);
	return ret;
}

static int by_first(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;

	return x->first < y->first ? -1 : x->first > y->first;
}

/* Do they meet without a jump? */
static bool meet(const struct problem *p, const struct piece *a, const struct piece *b)
{
	const struct slice *x = &p->slices[a->last - 1], *y = &p->slices[b->first];
	int64_t play = (int64_t)(p->rate * (double)(y->mid - x->mid)) + 1000;

	return x->low - play <= y->high && y->low <= x->high + play;
}

static int join_pieces(struct problem *p, struct pieces *all)
{
	size_t n = 0;

	qsort(all->v, all->n, sizeof(*all->v), by_first);
	for (size_t i = 0; i < all->n; i++) {
		struct piece *last = n ? &all->v[n - 1] : NULL;
		int ret;

		if (last && meet(p, last, &all->v[i])) {
			for (size_t k = last->last; k < all->v[i].first; k++)
				p->slices[k].told = false;
			last->last = all->v[i].last;
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

/* ---- the result ------------------------------------------------------------------------------- */

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
			.bound = prior->bound +
				 (uint64_t)(p->rate * (double)(far0 > far1 ? far0 : far1)),
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

static int solve(struct problem *p, struct sync_result *r)
{
	struct pieces all = { 0 };
	bool changed = false, given = map_given(p);
	int ret;

	all.mapped = given;
	for (int round = 0; round < 2; round++) {
		ret = solve_range(p, &all, 0, p->n_slices);
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
	for (size_t i = 0; i < p->in->n_cpus && p->in->pids; i++)
		r->map_changed = r->map_changed ||
				 (p->in->pids[i] && p->map[i] >= 0 &&
				  p->threads[p->map[i]].pid != p->in->pids[i]);
	return ret;
}

static bool any_mapped(const struct problem *p)
{
	for (size_t i = 0; i < p->in->n_cpus; i++)
		if (p->map[i] >= 0)
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
		if (!ret && (double)out->outside > OUTSIDE_MAX * (double)out->events)
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
