// SPDX-License-Identifier: LGPL-2.1-or-later
/* Slices of the guest's time, and the offset followed from one to the next. */
#include "sync/solver.h"

/* Documentation/clock-sync.md has the reason for each number. */
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

int tracks_slices(struct problem *p)
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

/* Usual rate of events outside. */
struct usual {
	double n, outside;
};

static void add_usual(struct usual *u, const struct slice *s)
{
	u->n = u->n * 0.95 + s->n;
	u->outside = u->outside * 0.95 + (s->n - s->best);
}

struct walk {
	struct problem *p;
	struct usual usual;
	struct track *out;
};

/* From slice k to `to` (exclusive; -1 = down to the first). *end: where it ends. */
static int walk_on(struct walk *w, ptrdiff_t k, ptrdiff_t to, ptrdiff_t *end)
{
	struct slice *all = w->p->slices;
	ptrdiff_t dir = to > k ? 1 : -1, i, since = k + dir;
	/*
	 * More outside than usual adds up, less takes away: a sum that grows too high
	 * means that something changed where it began to.
	 */
	double sum = 0;

	for (i = k + dir; i != to; i += dir) {
		struct slice *s = &all[i];
		const struct slice *prev = &all[i - dir];
		double expect, dt = fabs((double)(int64_t)(s->mid - prev->mid));
		int64_t grow = (int64_t)(w->p->rate * dt) + GROW;
		int64_t low = prev->low - grow, high = prev->high + grow;
		int ret;

		/* swept where the offset can have got to since the slice before, unless too wide to follow */
		if (high - low > PRIOR_MAX)
			break;
		s->offset = low + (high - low) / 2;
		s->slope = 0;
		s->rate = w->p->rate;
		ret = sweep_slice(w->p, s, low, high);
		if (ret)
			return ret;
		w->out->events += s->n;
		w->out->outside += s->n - s->best;
		if (!s->n) {
			s->valid = false;
			s->low = low;
			s->high = high;
		}
		expect = w->usual.n > 0 ? w->usual.outside / w->usual.n * s->n : 0;
		sum += (double)(s->n - s->best) - 1.3 * expect - 2;
		sum = sum > 0 ? sum : 0;
		if (sum > 8 + 6 * sqrt(w->p->burst * expect) && (i != since || sum > s->n / 2.0)) {
			/* it may have begun before it showed */
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

int tracks_follow(struct problem *p, size_t from, size_t to, size_t k, int64_t low, int64_t high,
		  size_t reach, struct track *out)
{
	struct slice *s = &p->slices[k];
	struct walk w = { .p = p, .usual = { USUAL, USUAL * p->part }, .out = out };
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
	*out = (struct track){ .events = s->n, .outside = s->n - s->best };
	ret = walk_on(&w, (ptrdiff_t)k, (ptrdiff_t)b, &end)
		      ?: walk_on(&w, (ptrdiff_t)k, (ptrdiff_t)a - 1, &begin);
	if (ret)
		return ret;
	out->segment = (struct segment){ .first = (size_t)(begin + 1), .last = (size_t)end };
	out->segment.seen = out->segment.first;
	out->segment.unseen = out->segment.last;
	out->segment.t0 = out->segment.from = p->slices[out->segment.first].t0;
	out->segment.t1 = out->segment.to = p->slices[out->segment.last - 1].t1;
	return 0;
}
