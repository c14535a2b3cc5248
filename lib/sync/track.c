// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sync/math.h"
#include "sync/problem.h"

/* Slices of the guest's time, and the offset followed from one to the next. */

#define STEP_MAX     20000000ull /* ns; a slice is one step or more */
#define STEP_MIN     1000000ull
#define STEPS	     50000
#define SLICE_EVENTS 500
#define BENT_EVENTS  120  /* ... where the rate may change much */
#define BENT_PLAY    2000 /* ns that it may change the offset by in a step */
#define SLICE_STEPS  25
#define PRIOR_MAX    100000000ll /* a wider one is no longer a track */
#define GROW	     1000	 /* ns besides the rate's */
#define BACK_OFF     2		 /* slices */
#define USUAL	     5000	 /* events that the beginning counts for */
#define CUT_TAU	     3		 /* events */
#define CUT_BURSTS   6		 /* windows' full of them, where that many can be missing */
#define PART_BURSTS  24		 /* ... where a third piece lies between two */
#define CUT_PART     0.01	 /* of the events outside: then they can */
#define CUT_BACK     3		 /* slices */
#define CUT_FAR	     10
#define CUT_GAP	     6 /* slices between two pieces: more is a third one's */

int drift_slices(struct problem *p)
{
	uint64_t range = p->guest1 - p->guest0 + 1, step = range / 50;
	bool bent = p->in->max_bend * STEP_MAX > BENT_PLAY;
	uint64_t least = bent ? BENT_EVENTS : SLICE_EVENTS;

	step = step < STEP_MIN ? STEP_MIN : step > STEP_MAX ? STEP_MAX : step;
	if (bent && p->in->max_bend * (double)step > BENT_PLAY)
		step = (uint64_t)(BENT_PLAY / p->in->max_bend) + STEP_MIN;
	if (range / step > STEPS)
		step = range / STEPS;
	p->slices = calloc(range / step + 2, sizeof(*p->slices));
	if (!p->slices)
		return -ENOMEM;
	for (uint64_t t = p->guest0, n = 0, len = 0; t <= p->guest1; t += step) {
		struct slice *s = &p->slices[p->n_slices];

		if (!len++)
			s->t0 = t;
		n += slice_events(p, t, t + step);
		s->t1 = t + step > p->guest1 ? p->guest1 + 1 : t + step;
		if (n < least && len < SLICE_STEPS && s->t1 <= p->guest1)
			continue;
		s->mid = s->t0 + (s->t1 - s->t0) / 2;
		s->rate = p->rate;
		p->n_slices++;
		n = len = 0;
	}
	return 0;
}

/* What is usual for the events outside. */
struct usual {
	double n, outside;
};

/*
 * More outside than usual adds up, less takes away: a sum that grows too high
 * means that something changed where it began to.
 */
static double excess(const struct usual *u, const struct slice *s, double sum)
{
	double out = s->n - s->best, expect = u->n > 0 ? u->outside / u->n * s->n : 0;

	sum += out - 1.3 * expect - 2;
	return sum > 0 ? sum : 0;
}

static double too_much(const struct problem *p, const struct usual *u, const struct slice *s)
{
	double expect = u->n > 0 ? u->outside / u->n * s->n : 0;

	return 8 + 6 * num_sqrt(p->burst * expect);
}

static void add_usual(struct usual *u, const struct slice *s)
{
	u->n = u->n * 0.95 + s->n;
	u->outside = u->outside * 0.95 + (s->n - s->best);
}

struct walk {
	struct problem *p;
	struct usual usual;
	uint64_t events, outside;
};

/* The slice after `prev`, swept where the offset can have got to. 1: too wide to follow. */
static int walk_step(struct walk *w, struct slice *s, const struct slice *prev)
{
	double dt = num_abs((double)(int64_t)(s->mid - prev->mid));
	int64_t grow = (int64_t)(w->p->rate * dt) + GROW;
	int64_t low = prev->low - grow, high = prev->high + grow;
	int ret;

	if (high - low > PRIOR_MAX)
		return 1;
	s->offset = low + (high - low) / 2;
	s->slope = 0;
	s->rate = w->p->rate;
	ret = sweep_slice(w->p, s, low, high);
	if (ret)
		return ret;
	w->events += s->n;
	w->outside += s->n - s->best;
	if (!s->n) {
		s->told = false;
		s->low = low;
		s->high = high;
	}
	return 0;
}

/* From slice k to `to` (exclusive; -1 = down to the first). *end: where it ends. */
static int walk_on(struct walk *w, ptrdiff_t k, ptrdiff_t to, ptrdiff_t *end)
{
	struct slice *all = w->p->slices;
	ptrdiff_t dir = to > k ? 1 : -1, i, since = k + dir;
	double sum = 0;

	for (i = k + dir; i != to; i += dir) {
		struct slice *s = &all[i];
		int ret = walk_step(w, s, &all[i - dir]);

		if (ret < 0)
			return ret;
		if (ret)
			break;
		sum = excess(&w->usual, s, sum);
		if (sum > too_much(w->p, &w->usual, s) && (i != since || sum > s->n / 2.0)) {
			/* it may have begun before it could be told */
			for (i = since; i != k + dir && since - i != dir * BACK_OFF;)
				i -= dir;
			break;
		}
		if (sum > 0)
			continue;
		since = i + dir;
		add_usual(&w->usual, s);
	}
	*end = i;
	return 0;
}

int drift_track(struct problem *p, size_t from, size_t to, size_t k, int64_t low, int64_t high, size_t reach,
		struct piece *out, uint64_t *events, uint64_t *outside)
{
	struct slice *s = &p->slices[k];
	struct walk w = { .p = p, .usual = { USUAL, USUAL * p->part } };
	ptrdiff_t begin = 0, end = 0;
	size_t a = k - from > reach ? k - reach : from, b = to - k > reach ? k + reach : to;
	int ret;

	s->offset = low + (high - low) / 2;
	s->slope = 0;
	s->rate = p->rate;
	ret = sweep_slice(p, s, low, high);
	if (ret)
		return ret;
	add_usual(&w.usual, s);
	w.events = s->n;
	w.outside = s->n - s->best;
	ret = walk_on(&w, (ptrdiff_t)k, (ptrdiff_t)b, &end);
	if (!ret)
		ret = walk_on(&w, (ptrdiff_t)k, (ptrdiff_t)a - 1, &begin);
	out->first = (size_t)(begin + 1);
	out->last = (size_t)end;
	out->seen = out->first;
	out->unseen = out->last;
	out->t0 = p->slices[out->first].t0;
	out->t1 = p->slices[out->last - 1].t1;
	out->from = out->t0;
	out->to = out->t1;
	*events = w.events;
	*outside = w.outside;
	return ret;
}

/* ---- cuts ------------------------------------------------------------------------------ */

struct verdict {
	uint64_t time;
	bool in_a, in_b;
	double duty;
};

static int by_time(const void *x, const void *y)
{
	const struct verdict *a = x, *b = y;

	return a->time < b->time ? -1 : a->time > b->time;
}

/* A piece's offset near its end. */
struct end {
	uint64_t t;
	int64_t y;
	double slope;
};

/* From slice k, which surely is the piece's, and one further inside. */
static struct end end_of(const struct problem *p, size_t k, size_t inner)
{
	const struct slice *s = &p->slices[k], *far = &p->slices[inner];
	struct end e = { s->mid, slice_middle(s), 0 };

	if (k != inner)
		e.slope = (double)(slice_middle(far) - e.y) / (double)(int64_t)(far->mid - s->mid);
	if (num_abs(e.slope) > p->rate)
		e.slope = 0;
	return e;
}

static uint64_t end_apply(const struct end *e, uint64_t t)
{
	return t + (uint64_t)(e->y + num_round(e->slope * (double)(int64_t)(t - e->t)));
}

static size_t judge(const struct problem *p, uint64_t t0, uint64_t t1, const struct end *a,
		    const struct end *b, struct verdict *v)
{
	size_t n = 0;
	bool unknown;

	for (size_t i = 0; i < p->in->n_cpus; i++) {
		const struct sync_cpu *c = &p->in->cpus[i];
		size_t end = cpu_lower(c, t1);

		if (p->map[i] < 0)
			continue;
		for (size_t k = cpu_lower(c, t0); k < end; k++) {
			const struct thread *t = &p->threads[p->map[i]];
			uint64_t at = c->times[k];

			v[n].time = at;
			v[n].duty = t->duty;
			v[n].in_a = !span_distance(t, end_apply(a, at), &unknown);
			v[n++].in_b = !span_distance(t, end_apply(b, at), &unknown);
		}
	}
	qsort(v, n, sizeof(*v), by_time);
	return n;
}

/*
 * How many more may be outside where the jump truly was. All events of a lost
 * window are outside together, and the other offset has most of them inside by chance.
 */
static int64_t cut_tau(const struct problem *p)
{
	return CUT_TAU + (int64_t)(CUT_BURSTS * p->burst * num_min(p->least / CUT_PART, 1));
}

/* Between which events the fewest fall outside, and between which nearly so few. */
static void place_cut(struct piece *a, struct piece *b, const struct verdict *v, size_t n, int64_t tau)
{
	int64_t score = 0, best = 0;

	for (size_t i = 0; i < n; i++) {
		score += (int)v[i].in_a - (int)v[i].in_b;
		best = score > best ? score : best;
	}
	score = 0;
	a->t1 = b->from = 0;
	for (size_t i = 0; i < n; i++) {
		score += (int)v[i].in_a - (int)v[i].in_b;
		if (score < best - tau)
			continue;
		a->t1 = a->t1 ? a->t1 : v[i].time + 1;
		if (score == best)
			a->to = b->from = v[i].time + 1;
		b->t0 = i + 1 < n ? v[i + 1].time : v[i].time + 1;
	}
	if (!a->t1) {
		a->t1 = a->to = b->from = b->t0 = n ? v[0].time : b->t0;
	} else if (!b->from) {
		a->to = b->from = a->t1;
	}
}

/* Events in neither, at the best of cuts: more than usual? */
static bool something_between(const struct problem *p, const struct verdict *v, size_t n)
{
	double expect = p->least * (double)n;
	size_t out_a = 0, out_b = 0, best;

	for (size_t i = 0; i < n; i++)
		out_b += !v[i].in_b;
	best = out_b;
	for (size_t i = 0; i < n; i++) {
		out_a += !v[i].in_a;
		out_b -= !v[i].in_b;
		best = out_a + out_b < best ? out_a + out_b : best;
	}
	return (double)best > 1.3 * expect + 8 + 6 * num_sqrt(p->burst * expect);
}

/* Inside half-way between what is usual and what is chance: as far as a piece goes. */
static double half_way(const struct problem *p, const struct verdict *v, size_t n)
{
	double chance = 0;

	for (size_t i = 0; i < n; i++)
		chance += v[i].duty / (double)n;
	return (num_max(1 - p->least, chance) + chance) / 2;
}

/*
 * There is a third piece between the two, that was not found: each ends by
 * itself, and no further out than it was followed.
 */
static void part_them(const struct problem *p, struct piece *a, struct piece *b, const struct verdict *v,
		      size_t n)
{
	size_t last = a->unseen - 1, first = b->seen;
	uint64_t end, begin;
	double c = half_way(p, v, n), sum = 0, best = 0, margin;

	/* as at an end without a neighbour, the last slices may be another's */
	last = last - a->seen > BACK_OFF ? last - BACK_OFF : a->seen;
	first = b->unseen - first > BACK_OFF + 1 ? first + BACK_OFF : b->unseen - 1;
	end = p->slices[last].t1;
	begin = p->slices[first].t0;
	/* some windows' full of another piece's events are inside by chance */
	margin = (CUT_TAU + PART_BURSTS * p->burst) * (1 - c);
	for (size_t i = 0; i < n; i++) {
		sum += v[i].in_a - c;
		best = num_max(best, sum);
	}
	a->t1 = v[0].time;
	sum = 0;
	for (size_t i = 0; i < n && sum < best - margin; i++) {
		sum += v[i].in_a - c;
		a->t1 = v[i].time + 1;
	}
	sum = best = 0;
	for (size_t i = n; i-- > 0;) {
		sum += v[i].in_b - c;
		best = num_max(best, sum);
	}
	b->t0 = v[n - 1].time;
	sum = 0;
	for (size_t i = n; i-- > 0 && sum < best - margin;) {
		sum += v[i].in_b - c;
		b->t0 = v[i].time;
	}
	a->t1 = a->t1 < end ? a->t1 : end;
	b->t0 = b->t0 > begin ? b->t0 : begin;
	if (b->t0 < a->t1)
		b->t0 = a->t1;
	a->to = b->from = b->t0;
}

int drift_cut(struct problem *p, struct piece *a, struct piece *b)
{
	/* the jump may have been followed for a few slices before it could be told */
	size_t x = a->last - a->first > CUT_BACK ? a->last - 1 - CUT_BACK : a->first;
	size_t y = b->last - b->first > CUT_BACK ? b->first + CUT_BACK : b->last - 1;
	struct end in_a = end_of(p, x, x - a->first > CUT_FAR ? x - CUT_FAR : a->first);
	struct end in_b = end_of(p, y, b->last - y > CUT_FAR ? y + CUT_FAR : b->last - 1);
	uint64_t t0 = p->slices[x].t0, t1 = p->slices[y].t1, n;
	struct verdict *v = malloc((slice_events(p, t0, t1) + 1) * sizeof(*v));

	if (!v)
		return -ENOMEM;
	n = judge(p, t0, t1, &in_a, &in_b, v);
	if (n && (b->seen > a->unseen + CUT_GAP || something_between(p, v, n)))
		part_them(p, a, b, v, n);
	else
		place_cut(a, b, v, n, cut_tau(p));
	free(v);
	while (a->last < p->n_slices && p->slices[a->last].t0 < a->t1)
		a->last++;
	while (b->first && p->slices[b->first - 1].t1 > b->t0)
		b->first--;
	return 0;
}
