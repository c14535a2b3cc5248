// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <stdlib.h>

#include "sync/anchor.h"
#include "sync/math.h"
#include "util/array.h"

/*
 * Anchors: a cause on one side and its effect on the other leave a range of the
 * offset, one- or two-sided. Which belong together is told by what is known
 * already: all that could be count.
 */

bool anchors_know(const struct sync_result *r, uint64_t guest, struct known *k)
{
	uint64_t bound = sync_bound(r, guest);
	int64_t offset = sync_offset(r, guest);

	if (bound > INT64_MAX / 4)
		return false;
	*k = (struct known){ offset - (int64_t)bound, offset + (int64_t)bound };
	return true;
}

static int put(struct anchors *all, const struct anchor *one)
{
	struct anchor *v = array_grow(all->v, all->n, sizeof(*v));

	if (!v)
		return -ENOMEM;
	all->v = v;
	v[all->n++] = *one;
	return 0;
}

int32_t anchors_thread(const struct problem *p, size_t cpu)
{
	return p->map[cpu] < 0 ? 0 : p->threads[p->map[cpu]].pid;
}

void anchors_judge(struct anchors *all, size_t from, size_t offered, size_t dropped)
{
	bool wrong = dropped * ANCHORS_WRONG > offered;

	if (wrong)
		all->n = from;
	all->offered += offered;
	all->dropped += wrong ? offered : dropped;
}

int anchors_put(struct anchors *all, const struct sync_result *r, const struct anchor *one)
{
	struct known k;

	if (!anchors_know(r, one->time, &k) || (one->low <= k.low && one->high >= k.high))
		return 0;
	return put(all, one);
}

/* ---- all of them ---------------------------------------------------------------------- */

static int by_time(const void *a, const void *b)
{
	const struct anchor *x = a, *y = b;

	return x->time < y->time ? -1 : x->time > y->time;
}

int anchors_make(const struct problem *p, const struct sync_result *r, struct anchors *all)
{
	int ret;

	*all = (struct anchors){ 0 };
	if (!r->n_knots)
		return 0;
	ret = anchors_deeds(p, r, all);
	if (!ret)
		ret = anchors_ticks(p, r, all);
	if (all->n)
		qsort(all->v, all->n, sizeof(*all->v), by_time);
	return ret;
}

void anchors_release(struct anchors *all)
{
	free(all->v);
	*all = (struct anchors){ 0 };
}

/* ---- a slice --------------------------------------------------------------------------- */

/* The tightest few of one side, the tightest first. */
struct few {
	int64_t v[ANCHORS_SPARE + 1];
	size_t n;
};

static void few_put(struct few *f, int64_t v)
{
	size_t i = f->n < ANCHORS_SPARE + 1 ? f->n++ : f->n;

	for (; i && f->v[i - 1] < v; i--)
		if (i < ANCHORS_SPARE + 1)
			f->v[i] = f->v[i - 1];
	if (i < ANCHORS_SPARE + 1)
		f->v[i] = v;
}

size_t anchors_narrow(const struct anchors *all, struct slice *s, double slope)
{
	struct few lows = { .n = 0 }, highs = { .n = 0 }; /* highs: negative */
	size_t low = 0, high = all->n, n = 0;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (all->v[mid].time < s->t0)
			low = mid + 1;
		else
			high = mid;
	}
	for (; low < all->n && all->v[low].time < s->t1; low++, n++) {
		const struct anchor *a = &all->v[low];
		double dt = (double)(int64_t)(a->time - s->mid);
		int64_t moved = num_round(dt * slope);
		int64_t play = (int64_t)num_ceil(num_abs(dt) * s->rate) + 1;

		if (a->low != INT64_MIN)
			few_put(&lows, a->low - moved - play);
		if (a->high != INT64_MAX)
			few_put(&highs, -(a->high - moved + play));
	}
	if (lows.n > ANCHORS_SPARE && lows.v[ANCHORS_SPARE] > s->low)
		s->low = lows.v[ANCHORS_SPARE];
	if (highs.n > ANCHORS_SPARE && -highs.v[ANCHORS_SPARE] < s->high)
		s->high = -highs.v[ANCHORS_SPARE];
	s->low0 = s->low > s->low0 ? s->low : s->low0;
	s->high0 = s->high < s->high0 ? s->high : s->high0;
	return n;
}
