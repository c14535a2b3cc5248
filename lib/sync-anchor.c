// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sync-math.h"
#include "sync-priv.h"

/*
 * Anchors: a cause on one side and its effect on the other leave a range of the
 * offset, one- or two-sided. Which belong together is told by what is known
 * already: all that could be count.
 */

/* What is known of the offset at a guest time. */
struct known {
	int64_t low, high;
};

static bool know(const struct sync_result *r, uint64_t guest, struct known *k)
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
	struct anchor *v = grown(all->v, all->n, sizeof(*v));

	if (!v)
		return -ENOMEM;
	all->v = v;
	v[all->n++] = *one;
	return 0;
}

static int32_t thread_of(const struct problem *p, size_t cpu)
{
	return p->map[cpu] < 0 ? 0 : p->threads[p->map[cpu]].pid;
}

/* ---- sleeps ------------------------------------------------------------------------ */

/* One end of the offset's range, where it tells more than is known. */
static int put_end(struct anchors *all, const struct sync_result *r, const struct anchor *one)
{
	struct known k;

	if (!know(r, one->time, &k) || (one->low <= k.low && one->high >= k.high))
		return 0;
	return put(all, one);
}

/*
 * A sleep that the host saw lies inside one of the CPU's idle spans: if it can be
 * no other one, it began after the span did and ended before it.
 */
static int put_sleep(const struct problem *p, struct anchors *all, const struct sync_result *r,
		     const struct thread *idle, const struct sync_window *w)
{
	uint64_t guess = w->a - (uint64_t)sync_offset(r, r->knots[0].time);
	const struct span *found = NULL;
	struct known k;
	int ret;

	/* the offset is a function of the guest's time: twice is near enough */
	if (!know(r, w->a - (uint64_t)sync_offset(r, guess), &k))
		return 0;
	for (size_t i = span_at(idle, w->a - (uint64_t)k.high); i < idle->n; i++) {
		const struct span *v = &idle->v[i];
		int64_t low = (int64_t)(w->b - v->b), high = (int64_t)(w->a - v->a);
		/* of the clocks, from one end to the other */
		int64_t play = (int64_t)(p->rate * (double)(v->b - v->a)) + 1;

		if (high < k.low - play)
			break;
		if (low > high + play || low > k.high + play)
			continue;
		if (found) /* it can be another one */
			return 0;
		found = v;
	}
	all->offered++;
	if (!found) {
		all->dropped++;
		return 0;
	}
	ret = put_end(all, r, &(struct anchor){ found->b, (int64_t)(w->b - found->b), INT64_MAX });
	return ret ? ret
		   : put_end(all, r,
			     &(struct anchor){ found->a, INT64_MIN, (int64_t)(w->a - found->a) });
}

/* Idle spans are known from the CPU's first event to its last. */
static bool covered(const struct sync_cpu *c, const struct sync_result *r,
		    const struct sync_window *w)
{
	uint64_t bound = sync_median_bound(r), first, last;

	if (!c->n || bound > INT64_MAX / 4)
		return false;
	first = c->times[0] + (uint64_t)sync_offset(r, c->times[0]) + 2 * bound;
	last = c->times[c->n - 1] + (uint64_t)sync_offset(r, c->times[c->n - 1]) - 2 * bound;
	return w->a > first && w->b < last;
}

static int put_sleeps(const struct problem *p, const struct sync_result *r, struct anchors *all)
{
	const struct sync_input *in = p->in;
	struct sync_input as_windows = { .windows = (struct sync_window *)in->idles,
					 .n_windows = in->n_idles };
	struct problem idle = { .in = &as_windows };
	int ret = in->n_sleeps && in->n_idles ? windows_threads(&idle) : 0;

	for (size_t i = 0; i < in->n_cpus && !ret; i++) {
		const struct thread *t = NULL;

		for (size_t k = 0; k < idle.n_threads; k++)
			if (idle.threads[k].pid == (int32_t)in->cpus[i].cpu + 1)
				t = &idle.threads[k];
		for (size_t k = 0; t && k < in->n_sleeps && !ret; k++)
			if (in->sleeps[k].pid == thread_of(p, i) &&
			    covered(&in->cpus[i], r, &in->sleeps[k]))
				ret = put_sleep(p, all, r, t, &in->sleeps[k]);
	}
	windows_release(&idle);
	return ret;
}

/* ---- timer interrupts ------------------------------------------------------------- */

/* First of a thread's raises not before `time`, as they are sorted; n: none. */
static size_t raise_lower(const struct sync_input *in, int32_t pid, uint64_t time)
{
	size_t low = 0, high = in->n_raises;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct sync_point *v = &in->raises[mid];

		if (v->pid < pid || (v->pid == pid && v->time < time))
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/*
 * When interrupts were on, at tick->clear, none was pending: what raised this one
 * came later. So the first raise that can have, or a later one, was before the
 * handler; if the one before it is known, and nothing was lost in between.
 */
static int put_tick(const struct problem *p, const struct sync_result *r, struct anchors *all,
		    const struct sync_tick *tick, int32_t pid)
{
	const struct sync_input *in = p->in;
	struct known k;
	size_t i;

	if (!tick->clear || !know(r, tick->clear, &k))
		return 0;
	i = raise_lower(in, pid, tick->clear + (uint64_t)k.low);
	if (!i || i >= in->n_raises || in->raises[i].pid != pid || in->raises[i - 1].pid != pid ||
	    !in->raises[i].enter || !know(r, tick->time, &k))
		return 0;
	all->offered++;
	if ((int64_t)(in->raises[i].time - tick->time) > k.high) {
		all->dropped++;
		return 0;
	}
	if ((int64_t)(in->raises[i].time - tick->time) <= k.low)
		return 0;
	return put(all, &(struct anchor){ tick->time, (int64_t)(in->raises[i].time - tick->time),
					  INT64_MAX });
}

static int put_ticks(const struct problem *p, const struct sync_result *r, struct anchors *all)
{
	const struct sync_input *in = p->in;
	int ret = 0;

	for (size_t i = 0; i < in->n_cpus && in->n_raises; i++)
		for (size_t k = 0; k < in->n_ticks && thread_of(p, i) && !ret; k++)
			if (in->ticks[k].cpu == in->cpus[i].cpu)
				ret = put_tick(p, r, all, &in->ticks[k], thread_of(p, i));
	return ret;
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
	ret = put_sleeps(p, r, all);
	if (!ret)
		ret = put_ticks(p, r, all);
	/* so many that do not fit mean that they are not what they are taken for */
	if (!ret && all->dropped * ANCHORS_WRONG > all->offered) {
		all->dropped = all->offered;
		all->n = 0;
	}
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
