// SPDX-License-Identifier: LGPL-2.1-or-later
/* Compares the tail with the middle by cause: shares of the difference, and their ranges by resampling. */

#include "ask/why/why-priv.h"

#define WHY_ROUNDS 400

enum { MIDDLE, TAIL };

/* Both groups of instances, and the time of each instance by cause. */
struct why_table {
	const struct why *w;
	size_t from[2], n[2]; /* by group: a part of the instances, which are sorted */
	size_t columns;	      /* causes */
	double *ns;	      /* [instance][column] */
};

/* Means by cause; of the tail also how many have it, and which one most. */
static void why_table_fill(struct why_table *t, struct why_comparison *c, struct why_row *total)
{
	for (int g = MIDDLE; g <= TAIL; g++)
		for (size_t i = t->from[g]; i < t->from[g] + t->n[g]; i++) {
			const struct why_instance *one = &t->w->v[i];
			double *ns = &t->ns[i * t->columns];

			for (size_t k = 0; k < one->n; k++)
				ns[one->v[k].cause] += (double)(one->v[k].to - one->v[k].from);
			for (size_t k = 0; k < t->columns; k++) {
				struct why_row *row = &c->v[k];

				*(g == TAIL ? &row->tail : &row->typical) += ns[k] / (double)t->n[g];
				row->in += g == TAIL && ns[k] > 0;
				if (g == TAIL && ns[k] > (double)row->example_ns) {
					row->example_ns = (uint64_t)ns[k];
					row->example = one;
				}
			}
		}
	for (size_t k = 0; k < t->columns; k++) {
		c->v[k].cause = t->w->causes[k];
		total->typical += c->v[k].typical;
		total->tail += c->v[k].tail;
	}
}

/* The shares of one resampling of both groups. */
static void why_resample(const struct why_table *t, unsigned short random[3], double *shares)
{
	double all = 0;

	for (int g = MIDDLE; g <= TAIL; g++)
		for (size_t i = 0; i < t->n[g]; i++) {
			size_t at = t->from[g] + (size_t)(erand48(random) * (double)t->n[g]);
			double weight = (g == TAIL ? 1.0 : -1.0) / (double)t->n[g];

			for (size_t k = 0; k < t->columns; k++)
				shares[k] += weight * t->ns[at * t->columns + k];
		}
	for (size_t k = 0; k < t->columns; k++)
		all += shares[k];
	for (size_t k = 0; k < t->columns; k++)
		shares[k] = all > 0 ? shares[k] / all : 0;
}

/* The range of each share in 95 of 100 resamplings. */
static int why_ranges(const struct why_table *t, struct why_comparison *c)
{
	double *shares = calloc(WHY_ROUNDS * t->columns, sizeof(*shares)), one[WHY_ROUNDS];
	unsigned short random[3] = { 0 };

	if (!shares)
		return -ENOMEM;
	for (size_t r = 0; r < WHY_ROUNDS; r++)
		why_resample(t, random, &shares[r * t->columns]);
	for (size_t k = 0; k < t->columns; k++) {
		for (size_t r = 0; r < WHY_ROUNDS; r++)
			one[r] = shares[r * t->columns + k];
		qsort(one, WHY_ROUNDS, sizeof(*one), compare_double);
		c->v[k].low = one[WHY_ROUNDS / 40];
		c->v[k].high = one[WHY_ROUNDS - 1 - WHY_ROUNDS / 40];
	}
	free(shares);
	return 0;
}

/* By the share of the difference; without a tail by time. */
static int why_row_order(const void *a, const void *b)
{
	const struct why_row *x = a, *y = b;

	return ORDER(y->share, x->share) ?: ORDER(y->typical, x->typical);
}

int why_compare(const struct why *w, double tail, struct why_comparison *c)
{
	struct why_row total = { 0 };
	size_t n = w->n, low = n * 2 / 5, last = (size_t)((double)n * tail);
	size_t high = n - low < last ? n - low : last;
	bool few = n - last < WHY_TAIL_MIN || high < low + WHY_TAIL_MIN; /* for a tail: all are the middle */
	struct why_table t = { .w = w,
			       .from = { [MIDDLE] = few ? 0 : low, [TAIL] = last },
			       .n = { [MIDDLE] = few ? n : high - low, [TAIL] = few ? 0 : n - last },
			       .columns = w->n_causes,
			       .ns = calloc(n * w->n_causes + 1, sizeof(*t.ns)) };
	int ret = t.ns ? 0 : -ENOMEM;

	*c = (struct why_comparison){ .seen = w->seen, .n_all = w->n };
	why_cause_plain(&total.cause, WHY_TOTAL);
	if (!ret) {
		why_table_fill(&t, c, &total);
		c->n_typical = t.n[MIDDLE];
		c->n_tail = total.in = t.n[TAIL];
		c->p50 = w->n ? w->v[(w->n - 1) / 2].to - w->v[(w->n - 1) / 2].from : 0;
		c->p_tail = c->n_tail ? w->v[t.from[TAIL]].to - w->v[t.from[TAIL]].from : 0;
		c->stands_out = c->n_tail && total.tail > total.typical;
		for (size_t k = 0; k < t.columns && c->stands_out; k++)
			c->v[k].share = (c->v[k].tail - c->v[k].typical) / (total.tail - total.typical);
		ret = c->stands_out ? why_ranges(&t, c) : 0;
		qsort(c->v, t.columns, sizeof(*c->v), why_row_order);
		for (size_t k = 0; k < t.columns; k++)
			if (c->v[k].typical > 0 || c->v[k].tail > 0)
				c->v[c->n++] = c->v[k];
		c->v[c->n] = total;
	}
	free(t.ns);
	return ret;
}
