// SPDX-License-Identifier: LGPL-2.1-or-later
/* What became of chains, key by key, and which took longest. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "latency/latency-priv.h"
#include "util/array.h"

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

static int latency_add_worst(struct latency *l, const struct latency_worst *one)
{
	struct latency_rows *r = &l->rows;
	int ret;

	if (r->n_worst < l->plan->worst) {
		ret = array_push(&r->worst, &r->n_worst, one, sizeof(*one));
		for (size_t i = r->n_worst / 2; i-- > 0 && !ret && r->n_worst == l->plan->worst;)
			latency_sift(r->worst, r->n_worst, i);
		return ret;
	}
	if (r->n_worst && one->took > r->worst[0].took) {
		r->worst[0] = *one;
		latency_sift(r->worst, r->n_worst, 0);
	}
	return 0;
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

/* ---- what is told --------------------------------------------------------------------------------- */

static int latency_row_done(struct latency *l, uint32_t row, const struct chain_event *v, size_t n)
{
	struct latency_row *r = &l->rows.v[row];
	struct latency_worst one = { .took = v[n - 1].ts - v[0].ts, .row = row };
	int ret = histogram_add(&r->stages[n - 1], one.took);

	for (size_t i = 0; i + 1 < n && !ret; i++) {
		uint64_t bound = latency_bound(&v[i], &v[i + 1]);

		r->bound = bound > r->bound ? bound : r->bound;
		if (n > 2)
			ret = histogram_add(&r->stages[i], v[i + 1].ts - v[i].ts);
	}
	memcpy(one.v, v, n * sizeof(*v));
	return ret ? ret : latency_add_worst(l, &one);
}

int latency_row_tell(void *ctx, enum chain_fate fate, uint32_t row, const struct chain_event *v, size_t n)
{
	struct latency *l = ctx;
	struct latency_row *r;

	if (n == 1 && (fate == CHAIN_STRAY || fate == CHAIN_UNDECIDED) && !l->plan->strays)
		return 0;
	r = &l->rows.v[row];
	switch (fate) {
	case CHAIN_DONE:
		return latency_row_done(l, row, v, n);
	case CHAIN_UNDECIDED:
		if (n == 1)
			r->doubtful++;
		else
			r->undecided++;
		return 0;
	case CHAIN_LOST:
		r->lost++;
		return 0;
	case CHAIN_STOPPED:
		r->stopped[n]++;
		return 0;
	case CHAIN_STRAY:
		r->strays++;
		return 0;
	case CHAIN_REFUSED:
		r->refused++;
		return 0;
	}
	return 0;
}
