// SPDX-License-Identifier: LGPL-2.1-or-later
/* Results of chains, key by key, and the longest. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ask/latency/latency-priv.h"
#include "base/array.h"

uint64_t latency_bound(const struct chain_event *a, const struct chain_event *b)
{
	if (a->input == b->input)
		return 0;
	return a->bound > UINT64_MAX - b->bound ? UINT64_MAX : a->bound + b->bound;
}

/* ---- rows -------------------------------------------------------------------------------- */

int latency_row_of(struct latency_rows *r, const struct latency_key *key, uint32_t *row)
{
	struct latency_row new = { .key = *key };
	size_t at = latency_keys_find(&r->keys, key);
	int ret;

	if (at != SIZE_MAX) {
		*row = (uint32_t)at;
		return 0;
	}
	if (r->n > LATENCY_ROWS_MAX) { /* the last one is the others' */
		*row = LATENCY_ROWS_MAX;
		return 0;
	}
	new.others = r->n == LATENCY_ROWS_MAX;
	*row = (uint32_t)r->n;
	ret = new.others ? 0 : latency_keys_add(&r->keys, key);
	return ret ? ret : array_push(&r->v, &r->n, &new, sizeof(new));
}

void latency_rows_release(struct latency_rows *r)
{
	for (size_t i = 0; i < r->n; i++)
		for (size_t k = 0; k < CHAIN_POINTS_MAX; k++)
			histogram_release(&r->v[i].stages[k]);
	free(r->v);
	free(r->worst);
	latency_keys_release(&r->keys);
	*r = (struct latency_rows){ 0 };
}

/* ---- the longest: a heap, the shortest of them at its top ------------------------------------- */

static void latency_sift(struct latency_worst *v, size_t n, size_t i)
{
	for (size_t child; (child = 2 * i + 1) < n; i = child) {
		struct latency_worst swap = v[i];

		child += child + 1 < n && v[child + 1].took < v[child].took;
		if (v[i].took <= v[child].took)
			break;
		v[i] = v[child];
		v[child] = swap;
	}
}

static int latency_longer(const void *a, const void *b)
{
	const struct latency_worst *x = a, *y = b;

	if (x->took != y->took)
		return x->took > y->took ? -1 : 1;
	return x->v[0].ts < y->v[0].ts ? -1 : x->v[0].ts > y->v[0].ts;
}

void latency_rows_sort(struct latency_rows *r)
{
	if (r->n_worst)
		qsort(r->worst, r->n_worst, sizeof(*r->worst), latency_longer);
}

uint64_t latency_begun(const struct latency_row *r, size_t n_points)
{
	uint64_t n = r->stages[n_points - 1].n + r->undecided + r->lost + r->refused;

	for (size_t i = 0; i < n_points; i++)
		n += r->stopped[i] + r->unrecorded[i];
	return n;
}

/* ---- results ------------------------------------------------------------------------------------- */

static int latency_row_done(struct latency *l, uint32_t row, const struct chain_event *v, size_t n)
{
	struct latency_rows *all = &l->rows;
	struct latency_row *r = &all->v[row];
	struct latency_worst one = { .took = v[n - 1].ts - v[0].ts, .row = row };
	int ret = histogram_add(&r->stages[n - 1], one.took);

	for (size_t i = 0; i + 1 < n && !ret; i++) {
		uint64_t bound = latency_bound(&v[i], &v[i + 1]);

		r->bound = bound > r->bound ? bound : r->bound;
		if (n > 2)
			ret = histogram_add(&r->stages[i], v[i + 1].ts - v[i].ts);
	}
	memcpy(one.v, v, n * sizeof(*v));
	if (!ret && all->n_worst < l->plan->worst) {
		ret = array_push(&all->worst, &all->n_worst, &one, sizeof(one));
		for (size_t i = all->n_worst / 2; i-- > 0 && !ret && all->n_worst == l->plan->worst;)
			latency_sift(all->worst, all->n_worst, i);
	} else if (!ret && all->n_worst && one.took > all->worst[0].took) {
		all->worst[0] = one;
		latency_sift(all->worst, all->n_worst, 0);
	}
	return ret || !l->plan->each ? ret : l->plan->each(l->plan->ctx, &one, &r->key, n);
}

/*
 * Whether a file has the point's machine from that time until now. Chains of --from and --to count as stopped
 * in any case.
 */
static bool latency_recorded(const struct latency *l, const struct latency_row *r, size_t point,
			     uint64_t since)
{
	enum latency_scope scope = (enum latency_scope)(r->key.scope >> 32);
	bool of_guest = !r->others && (scope == SCOPE_VCPU || scope == SCOPE_PAIR);

	for (size_t i = 0; i < l->in->n; i++) {
		const struct latency_input *v = &l->v[i];

		if (!(v->points & 1u << point) || (l->in->v[i].guest && of_guest &&
						   vcpu_map_of_input(l->vcpus, i) != (uint32_t)r->key.scope))
			continue;
		if (v->live && v->begun <= since)
			return true;
	}
	return l->plan->strays;
}

/* The first event of a complete chain whose machine's file began after the chain: another may have been
 * before. */
static size_t latency_too_early(const struct latency *l, enum chain_fate fate, const struct chain_event *v,
				size_t n)
{
	size_t first = l->plan->recalls;

	if (l->plan->strays || (fate != CHAIN_DONE && fate != CHAIN_UNDECIDED))
		return 0;
	for (size_t i = first + 1; i < n; i++)
		if (l->v[v[i].input].begun > v[first].ts ||
		    v[first].ts - l->v[v[i].input].begun < latency_bound(&v[first], &v[i]))
			return i;
	return 0;
}

int latency_row_add(void *ctx, enum chain_fate fate, uint32_t row, const struct chain_event *v, size_t n)
{
	struct latency *l = ctx;
	struct latency_row *r;
	size_t came;

	if (n == 1 && (fate == CHAIN_STRAY || fate == CHAIN_UNDECIDED) && !l->plan->strays)
		return 0;
	r = &l->rows.v[row];
	came = latency_too_early(l, fate, v, n);
	if (came) {
		r->unrecorded[came]++;
		return 0;
	}
	switch (fate) {
	case CHAIN_DONE:
		return latency_row_done(l, row, v, n);
	case CHAIN_UNDECIDED:
		*(n == 1 ? &r->doubtful : &r->undecided) += 1;
		break;
	case CHAIN_LOST:
		r->lost++;
		break;
	case CHAIN_STOPPED:
		came = n + l->plan->recalls;
		(latency_recorded(l, r, came, v[n - 1].ts) ? r->stopped : r->unrecorded)[came]++;
		break;
	case CHAIN_STRAY:
		r->strays++;
		break;
	case CHAIN_REFUSED:
		r->refused++;
		break;
	}
	return 0;
}
