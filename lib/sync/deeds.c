// SPDX-License-Identifier: LGPL-2.1-or-later
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sync/anchor.h"

/*
 * Deeds: a span of the guest's time, and what the host saw within it. Which of the host's
 * lies in which of the guest's is told by the offsets that are possible, and a key.
 */

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
static bool alone(const struct match *m, size_t i, const struct known *k, const struct sync_deed *guest)
{
	const struct sync_input *in = m->p->in;
	int64_t play = play_of(m->p, guest);

	if (guest->kind == SYNC_SLEEP)
		return true;
	return !(i && can_be(k, play, guest, &m->host[i - 1])) &&
	       !(i + 1 < m->n_host && can_be(k, play, guest, &m->host[i + 1])) &&
	       !sync_gap_between(in->host_gaps, in->n_host_gaps, guest->a + (uint64_t)(k->low - play),
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
static int put_deed(const struct match *m, size_t i, struct anchors *all, size_t *offered, size_t *dropped)
{
	const struct sync_input *in = m->p->in;
	const struct sync_result *r = m->r;
	const struct sync_deed *w = &m->host[i], *v;
	uint64_t guess = w->a - (uint64_t)sync_offset(r, r->knots[0].time);
	struct known k;
	size_t found;
	int ret;

	/* the offset is a function of the guest's time: twice is near enough */
	if (!anchors_know(r, w->a - (uint64_t)sync_offset(r, guess), &k) ||
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
	ret = anchors_put(all, r, &(struct anchor){ v->b, (int64_t)(w->b - v->b), INT64_MAX });
	return ret ? ret : anchors_put(all, r, &(struct anchor){ v->a, INT64_MIN, (int64_t)(w->a - v->a) });
}

/* Deeds are known from the CPU's first event to its last. */
static bool covered(const struct sync_cpu *c, const struct sync_result *r, const struct sync_deed *w)
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
		v[i] = (struct owner){ anchors_thread(p, i), (int32_t)i };
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
	anchors_judge(all, from, offered, dropped);
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
		while (g < n_guest && !same_deed(guest + g, host + i) && by_deed(guest + g, host + i) < 0)
			g++;
		m->guest = guest + g;
		m->n_guest = count_same(guest + g, n_guest - g, host + i);
		ret = match_all(m, all);
	}
	return ret;
}

int anchors_deeds(const struct problem *p, const struct sync_result *r, struct anchors *all)
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
