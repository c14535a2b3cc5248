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

/* So many that do not fit mean that they are not what they are taken for. */
static void judge(struct anchors *all, size_t from, size_t offered, size_t dropped)
{
	bool wrong = dropped * ANCHORS_WRONG > offered;

	if (wrong)
		all->n = from;
	all->offered += offered;
	all->dropped += wrong ? offered : dropped;
}

/* ---- deeds ------------------------------------------------------------------------- */

/* One end of the offset's range, where it tells more than is known. */
static int put_end(struct anchors *all, const struct sync_result *r, const struct anchor *one)
{
	struct known k;

	if (!know(r, one->time, &k) || (one->low <= k.low && one->high >= k.high))
		return 0;
	return put(all, one);
}

/* Both sides' deeds of one kind and key, in order; the guest's apart from each other. */
struct match {
	const struct problem *p;
	const struct sync_result *r;
	const struct sync_deed *guest, *host;
	size_t n_guest, n_host;
};

/* Whether for any offset that is known to be possible the host's can begin in the guest's. */
static bool can_be(const struct known *k, int64_t play, const struct sync_deed *guest,
		   const struct sync_deed *host)
{
	return (int64_t)(host->a - guest->b) <= k->high + play &&
	       (int64_t)(host->a - guest->a) >= k->low - play;
}

/* Of the clocks, from one end to the other. */
static int64_t play_of(const struct problem *p, const struct sync_deed *d)
{
	return (int64_t)(p->rate * (double)(d->b - d->a)) + 1;
}

/*
 * A sleep is one of an idle CPU. Anything else can come of what the guest did not trace: then
 * the one that was traced has left its own nearby. So there must be no second one, and none lost.
 */
static bool alone(const struct match *m, size_t i, const struct known *k,
		  const struct sync_deed *guest)
{
	const struct sync_input *in = m->p->in;
	int64_t play = play_of(m->p, guest);

	if (guest->kind == SYNC_SLEEP)
		return true;
	return !(i && can_be(k, play, guest, &m->host[i - 1])) &&
	       !(i + 1 < m->n_host && can_be(k, play, guest, &m->host[i + 1])) &&
	       !sync_gap_between(in->host_gaps, in->n_host_gaps,
				 guest->a + (uint64_t)(k->low - play),
				 guest->b + (uint64_t)(k->high + play));
}

static size_t deed_lower(const struct sync_deed *v, size_t n, uint64_t time)
{
	size_t low = 0;

	while (low < n) {
		size_t mid = low + (n - low) / 2;

		if (v[mid].b < time)
			low = mid + 1;
		else
			n = mid;
	}
	return low;
}

#define LOOKED_AT 64 /* deeds that are too short to be the one, before it is given up */

/* The one deed that the host's can be, UNSURE or NOWHERE. */
#define UNSURE	SIZE_MAX
#define NOWHERE (SIZE_MAX - 1)
static size_t find_deed(const struct match *m, const struct sync_deed *w, const struct known *k)
{
	size_t found = NOWHERE;
	size_t first = deed_lower(m->guest, m->n_guest, w->a - (uint64_t)k->high);

	for (size_t i = first; i < m->n_guest; i++) {
		const struct sync_deed *v = &m->guest[i];
		int64_t low = (int64_t)(w->b - v->b), high = (int64_t)(w->a - v->a);
		int64_t play = play_of(m->p, v);

		if (high < k->low - play)
			break;
		if (i - first == LOOKED_AT)
			return UNSURE;
		if (low > high + play || low > k->high + play)
			continue;
		if (found != NOWHERE)
			return UNSURE;
		found = i;
	}
	return found;
}

/* What the host saw of a deed began after it did and ended before it. */
static int put_deed(const struct match *m, size_t i, struct anchors *all, size_t *offered,
		    size_t *dropped)
{
	const struct sync_input *in = m->p->in;
	const struct sync_result *r = m->r;
	const struct sync_deed *w = &m->host[i], *v;
	uint64_t guess = w->a - (uint64_t)sync_offset(r, r->knots[0].time);
	struct known k;
	size_t found;
	int ret;

	/* the offset is a function of the guest's time: twice is near enough */
	if (!know(r, w->a - (uint64_t)sync_offset(r, guess), &k) ||
	    sync_gap_between(in->guest_gaps, in->n_guest_gaps, w->a - (uint64_t)k.high,
			     w->b - (uint64_t)k.low))
		return 0;
	found = find_deed(m, w, &k);
	if (found == UNSURE || (found != NOWHERE && !alone(m, i, &k, &m->guest[found])))
		return 0;
	++*offered;
	if (found == NOWHERE) {
		++*dropped;
		return 0;
	}
	v = &m->guest[found];
	ret = put_end(all, r, &(struct anchor){ v->b, (int64_t)(w->b - v->b), INT64_MAX });
	return ret ? ret
		   : put_end(all, r, &(struct anchor){ v->a, INT64_MIN, (int64_t)(w->a - v->a) });
}

/* Deeds are known from the CPU's first event to its last. */
static bool covered(const struct sync_cpu *c, const struct sync_result *r,
		    const struct sync_deed *w)
{
	uint64_t bound = sync_median_bound(r), first, last;

	if (!c->n || bound > INT64_MAX / 4)
		return false;
	first = c->times[0] + (uint64_t)sync_offset(r, c->times[0]) + 2 * bound;
	last = c->times[c->n - 1] + (uint64_t)sync_offset(r, c->times[c->n - 1]) - 2 * bound;
	return w->a > first && w->b < last;
}

static bool same_deed(const struct sync_deed *x, const struct sync_deed *y)
{
	return x->kind == y->kind && x->key == y->key;
}

static int by_deed(const void *a, const void *b)
{
	const struct sync_deed *x = a, *y = b;

	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->a < y->a ? -1 : x->a > y->a;
}

/* A copy in order, what overlaps joined. */
static struct sync_deed *guest_deeds(const struct sync_input *in, size_t *n)
{
	struct sync_deed *v = malloc((in->n_guest_deeds + 1) * sizeof(*v));

	*n = 0;
	if (!v)
		return NULL;
	memcpy(v, in->guest_deeds, in->n_guest_deeds * sizeof(*v));
	qsort(v, in->n_guest_deeds, sizeof(*v), by_deed);
	for (size_t i = 0; i < in->n_guest_deeds; i++) {
		if (!*n || !same_deed(&v[i], &v[*n - 1]) || v[i].a > v[*n - 1].b)
			v[(*n)++] = v[i];
		else if (v[i].b > v[*n - 1].b)
			v[*n - 1].b = v[i].b;
	}
	return v;
}

/* CPU number `cpu` of the input, whose thread it is */
struct owner {
	int32_t pid;
	int32_t cpu;
};

static int by_pid(const void *a, const void *b)
{
	const struct owner *x = a, *y = b;

	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

static struct owner *owners_of(const struct problem *p)
{
	struct owner *v = malloc((p->in->n_cpus + 1) * sizeof(*v));

	for (size_t i = 0; v && i < p->in->n_cpus; i++)
		v[i] = (struct owner){ thread_of(p, i), (int32_t)i };
	if (v)
		qsort(v, p->in->n_cpus, sizeof(*v), by_pid);
	return v;
}

/* Those of the guest's own threads, in order; now with the CPU's place instead of the thread. */
static struct sync_deed *host_deeds(const struct problem *p, const struct owner *owners, size_t *n)
{
	const struct sync_input *in = p->in;
	struct sync_deed *v = malloc((in->n_host_deeds + 1) * sizeof(*v));

	*n = 0;
	for (size_t i = 0; v && i < in->n_host_deeds; i++) {
		const struct owner want = { .pid = in->host_deeds[i].pid }, *o;

		o = bsearch(&want, owners, in->n_cpus, sizeof(*owners), by_pid);
		if (!o || !o->pid)
			continue;
		v[*n] = in->host_deeds[i];
		v[*n].pid = o->cpu;
		if (v[*n].kind == SYNC_SLEEP)
			v[*n].key = in->cpus[o->cpu].cpu;
		++*n;
	}
	if (v)
		qsort(v, *n, sizeof(*v), by_deed);
	return v;
}

static int match_all(const struct match *m, struct anchors *all)
{
	size_t offered = 0, dropped = 0, from = all->n;
	int ret = 0;

	for (size_t i = 0; m->n_guest && i < m->n_host && !ret; i++)
		if (covered(&m->p->in->cpus[m->host[i].pid], m->r, &m->host[i]))
			ret = put_deed(m, i, all, &offered, &dropped);
	judge(all, from, offered, dropped);
	return ret;
}

/* Those that begin v and are the same deed as `of`. */
static size_t count_same(const struct sync_deed *v, size_t n, const struct sync_deed *of)
{
	size_t i = 0;

	while (i < n && same_deed(&v[i], of))
		i++;
	return i;
}

static int match_each(struct match *m, const struct sync_deed *guest, size_t n_guest,
		      const struct sync_deed *host, size_t n_host, struct anchors *all)
{
	int ret = 0;

	for (size_t i = 0, g = 0; i < n_host && !ret; i += m->n_host) {
		m->host = host + i;
		m->n_host = count_same(host + i, n_host - i, host + i);
		while (g < n_guest && !same_deed(guest + g, host + i) &&
		       by_deed(guest + g, host + i) < 0)
			g++;
		m->guest = guest + g;
		m->n_guest = count_same(guest + g, n_guest - g, host + i);
		ret = match_all(m, all);
	}
	return ret;
}

static int put_deeds(const struct problem *p, const struct sync_result *r, struct anchors *all)
{
	struct match m = { .p = p, .r = r };
	struct sync_deed *guest, *host = NULL;
	struct owner *owners;
	size_t n_guest, n_host;
	int ret = -ENOMEM;

	if (!p->in->n_guest_deeds || !p->in->n_host_deeds)
		return 0;
	guest = guest_deeds(p->in, &n_guest);
	owners = owners_of(p);
	if (owners)
		host = host_deeds(p, owners, &n_host);
	if (guest && host)
		ret = match_each(&m, guest, n_guest, host, n_host, all);
	free(guest);
	free(host);
	free(owners);
	return ret;
}

/* ---- interrupts -------------------------------------------------------------------- */

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

	if (!tick->clear || !know(l->r, tick->clear, &then) || !know(l->r, tick->time, &now))
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
static int put_tick(const struct line *l, struct anchors *all, const struct sync_tick *tick,
		    size_t *offered, size_t *dropped)
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
	ret = put_end(all, l->r, &low);
	return ret ? ret : put_end(all, l->r, &high);
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
	judge(all, from, offered, dropped);
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
			return thread_of(p, i);
	return 0;
}

static int put_ticks(const struct problem *p, const struct sync_result *r, struct anchors *all)
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
		for (l.n = 1;
		     i + l.n < n && l.v[l.n].cpu == l.v->cpu && l.v[l.n].line == l.v->line;)
			l.n++;
		l.pid = thread_of_number(p, l.v->cpu);
		if (l.pid)
			ret = put_line(&l, all);
	}
	free(v);
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
	ret = put_deeds(p, r, all);
	if (!ret)
		ret = put_ticks(p, r, all);
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
