// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sync/anchor.h"

/* Ticks: a guest's handlers of interrupts, each raised by its host between two of its events. */

/* One CPU's ticks of one line, in order, and its thread. */
struct line {
	const struct problem *p;
	const struct sync_result *r;
	const struct sync_tick *v;
	size_t n;
	int32_t pid;
};

/* First of the line's raises not before `time`, or where it would be. */
static size_t raise_lower(const struct line *l, uint64_t time)
{
	const struct sync_input *in = l->p->in;
	size_t low = 0, high = in->n_raises;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct sync_raise *v = &in->raises[mid];

		if (v->pid != l->pid	    ? v->pid < l->pid
		    : v->line != l->v->line ? v->line < l->v->line
					    : v->time < time)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static bool is_line(const struct line *l, size_t raise)
{
	const struct sync_input *in = l->p->in;

	return raise < in->n_raises && in->raises[raise].pid == l->pid &&
	       in->raises[raise].line == l->v->line;
}

/* Host time in which a tick was raised, for all offsets that are known to be possible. */
struct when {
	uint64_t from, to;
};

/* Only where it must have been recorded: between two that were, and nothing was lost. */
static bool raised_when(const struct line *l, const struct sync_tick *tick, struct when *w)
{
	const struct sync_input *in = l->p->in;
	struct known then, now;
	size_t first;

	if (!tick->clear || !anchors_know(l->r, tick->clear, &then) || !anchors_know(l->r, tick->time, &now))
		return false;
	*w = (struct when){ tick->clear + (uint64_t)then.low, tick->time + (uint64_t)now.high };
	first = raise_lower(l, w->from);
	return first && is_line(l, first - 1) && is_line(l, raise_lower(l, w->to)) &&
	       !sync_gap_between(in->host_gaps, in->n_host_gaps, w->from, w->to);
}

/*
 * It was raised after tick->clear: by the first raise that can have been or a later one,
 * which was before the handler. And by the last that can have been before the handler or an
 * earlier one, which was after tick->clear.
 */
static int put_tick(const struct line *l, struct anchors *all, const struct sync_tick *tick, size_t *offered,
		    size_t *dropped)
{
	const struct sync_raise *raises = l->p->in->raises;
	struct anchor low = { tick->time, 0, INT64_MAX }, high = { tick->clear, INT64_MIN, 0 };
	struct when w;
	size_t first, end;
	int ret;

	if (!raised_when(l, tick, &w))
		return 0;
	++*offered;
	first = raise_lower(l, w.from);
	end = raise_lower(l, w.to + 1);
	if (first == end) {
		++*dropped;
		return 0;
	}
	low.low = (int64_t)(raises[first].time - tick->time);
	high.high = (int64_t)(raises[end - 1].time - tick->clear);
	ret = anchors_put(all, l->r, &low);
	return ret ? ret : anchors_put(all, l->r, &high);
}

/*
 * Whether there are as many raises as ticks, in each stretch without a loss. Else some came
 * without: what is told by the others' raises is wrong for these.
 */
static bool each_raised(const struct line *l)
{
	const struct sync_input *in = l->p->in;
	struct when all = { 0 }, w;
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++) {
		if (!raised_when(l, &l->v[i], &w))
			continue;
		if (!n || sync_gap_between(in->host_gaps, in->n_host_gaps, all.from, w.to)) {
			all.from = w.from;
			n = 0;
		}
		if (++n > raise_lower(l, w.to + 1) - raise_lower(l, all.from))
			return false;
	}
	return true;
}

static int put_line(const struct line *l, struct anchors *all)
{
	size_t offered = 0, dropped = 0, from = all->n;
	int ret = 0;

	for (size_t i = 0; i < l->n && !ret; i++)
		ret = put_tick(l, all, &l->v[i], &offered, &dropped);
	if (l->v->each && !each_raised(l))
		dropped = offered;
	anchors_judge(all, from, offered, dropped);
	return ret;
}

static int by_line(const void *a, const void *b)
{
	const struct sync_tick *x = a, *y = b;

	if (x->cpu != y->cpu)
		return x->cpu < y->cpu ? -1 : 1;
	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	return x->time < y->time ? -1 : x->time > y->time;
}

static int32_t thread_of_number(const struct problem *p, unsigned int cpu)
{
	for (size_t i = 0; i < p->in->n_cpus; i++)
		if (p->in->cpus[i].cpu == cpu)
			return anchors_thread(p, i);
	return 0;
}

int anchors_ticks(const struct problem *p, const struct sync_result *r, struct anchors *all)
{
	struct line l = { .p = p, .r = r };
	size_t n = p->in->n_raises ? p->in->n_ticks : 0;
	struct sync_tick *v = n ? malloc(n * sizeof(*v)) : NULL;
	int ret = 0;

	if (n && !v)
		return -ENOMEM;
	if (n) {
		memcpy(v, p->in->ticks, n * sizeof(*v));
		qsort(v, n, sizeof(*v), by_line);
	}
	for (size_t i = 0; i < n && !ret; i += l.n) {
		l.v = v + i;
		for (l.n = 1; i + l.n < n && l.v[l.n].cpu == l.v->cpu && l.v[l.n].line == l.v->line;)
			l.n++;
		l.pid = thread_of_number(p, l.v->cpu);
		if (l.pid)
			ret = put_line(&l, all);
	}
	free(v);
	return ret;
}
