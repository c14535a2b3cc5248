// SPDX-License-Identifier: LGPL-2.1-or-later
/* Places the jump between two segments where the fewest events are outside. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "sync/solver.h"
#include "base/array.h"

/* Documentation/clock-sync.md has the reason for each number. */
#define BACK_OFF    2	 /* slices */
#define CUT_TAU	    3	 /* events */
#define CUT_BURSTS  6	 /* windows' full of them, where that many can be missing */
#define PART_BURSTS 24	 /* ... where a third segment lies between two */
#define CUT_PART    0.01 /* of the events outside: then they can */
#define CUT_BACK    3	 /* slices */
#define CUT_FAR	    10
#define JUMP_GAP    6 /* slices between two segments: more is a third one's */

struct verdict {
	uint64_t time;
	bool in_a, in_b;
	double duty;
};

/* A segment's offset near its end. */
struct segment_end {
	uint64_t t;
	int64_t y;
	double slope;
};

/* From slice k, which surely is the segment's, and one further inside. */
static struct segment_end end_of(const struct problem *p, size_t k, size_t inner)
{
	const struct slice *s = &p->slices[k], *far = &p->slices[inner];
	struct segment_end e = { s->mid, slice_middle(s), 0 };

	if (k != inner)
		e.slope = (double)(slice_middle(far) - e.y) / (double)(int64_t)(far->mid - s->mid);
	if (fabs(e.slope) > p->rate)
		e.slope = 0;
	return e;
}

static uint64_t end_apply(const struct segment_end *e, uint64_t t)
{
	return t + (uint64_t)(e->y + llround(e->slope * (double)(int64_t)(t - e->t)));
}

/* Between which events the fewest fall outside, and between which nearly so few. */
static void place_jump(struct segment *a, struct segment *b, const struct verdict *v, size_t n, int64_t tau)
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

/* Events in neither, at the best of jumps: more than usual? */
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
	return (double)best > 1.3 * expect + 8 + 6 * sqrt(p->burst * expect);
}

/*
 * There is a third segment between the two, that was not found: each ends by
 * itself, and no further out than it was followed.
 */
static void part_them(const struct problem *p, struct segment *a, struct segment *b, const struct verdict *v,
		      size_t n)
{
	size_t last = a->unseen - 1, first = b->seen;
	uint64_t end, begin;
	double chance = 0, c, sum = 0, best = 0, margin;

	/* inside half-way between what is usual and what is chance: as far as a segment goes */
	for (size_t i = 0; i < n; i++)
		chance += v[i].duty / (double)n;
	c = (fmax(1 - p->least, chance) + chance) / 2;
	/* as at an end without a neighbour, the last slices may be another's */
	last = last - a->seen > BACK_OFF ? last - BACK_OFF : a->seen;
	first = b->unseen - first > BACK_OFF + 1 ? first + BACK_OFF : b->unseen - 1;
	end = p->slices[last].t1;
	begin = p->slices[first].t0;
	/* some windows' full of another segment's events are inside by chance */
	margin = (CUT_TAU + PART_BURSTS * p->burst) * (1 - c);
	for (size_t i = 0; i < n; i++) {
		sum += v[i].in_a - c;
		best = fmax(best, sum);
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
		best = fmax(best, sum);
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

int place_jump_between(struct problem *p, struct segment *a, struct segment *b)
{
	/* the jump may have been followed for a few slices before it showed */
	size_t x = a->last - a->first > CUT_BACK ? a->last - 1 - CUT_BACK : a->first;
	size_t y = b->last - b->first > CUT_BACK ? b->first + CUT_BACK : b->last - 1;
	struct segment_end in_a = end_of(p, x, x - a->first > CUT_FAR ? x - CUT_FAR : a->first);
	struct segment_end in_b = end_of(p, y, b->last - y > CUT_FAR ? y + CUT_FAR : b->last - 1);
	uint64_t t0 = p->slices[x].t0, t1 = p->slices[y].t1, n = 0;
	struct verdict *v = malloc((slice_events(p, t0, t1) + 1) * sizeof(*v));

	if (!v)
		return -ENOMEM;
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
			v[n].in_a = !thread_distance(t, end_apply(&in_a, at));
			v[n++].in_b = !thread_distance(t, end_apply(&in_b, at));
		}
	}
	qsort(v, n, sizeof(*v), compare_u64);
	if (n && (b->seen > a->unseen + JUMP_GAP || something_between(p, v, n)))
		part_them(p, a, b, v, n);
	else
		/*
		 * The events outside at the true jump: all of a lost window are outside together, and the
		 * other offset has most of them inside by chance.
		 */
		place_jump(a, b, v, n,
			   CUT_TAU + (int64_t)(CUT_BURSTS * p->burst * fmin(p->least / CUT_PART, 1)));
	free(v);
	while (a->last < p->n_slices && p->slices[a->last].t0 < a->t1)
		a->last++;
	while (b->first && p->slices[b->first - 1].t1 > b->t0)
		b->first--;
	return 0;
}
