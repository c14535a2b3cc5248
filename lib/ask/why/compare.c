// SPDX-License-Identifier: LGPL-2.1-or-later
/* Compares the tail with the middle by cause: shares of the difference, and their ranges by resampling. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "ask/why/why-priv.h"

#define WHY_ROUNDS 400
#define WHY_SEED   0x9e3779b97f4a7c15

/* The instances of both groups, and the time of each by cause. */
struct why_table {
	const struct why *w;
	uint32_t *v[WHY_TAIL + 1]; /* by group */
	size_t n[WHY_TAIL + 1];
	uint32_t *column; /* by cause: its row */
	size_t columns;
	double *ns; /* [place of the instance][column] */
};

static uint64_t why_length(const struct why_instance *one)
{
	return one->to - one->from;
}

/* ---- sums ------------------------------------------------------------------------------------------ */

/* Sums up the groups by cause. */
static void why_sum(const struct why_table *t, double *sums[WHY_TAIL + 1])
{
	for (int g = WHY_MIDDLE; g <= WHY_TAIL; g++)
		for (size_t i = 0; i < t->n[g]; i++) {
			const struct why_instance *one = &t->w->v[t->v[g][i]];

			for (size_t k = 0; k < one->n; k++)
				sums[g][one->v[k].cause] += (double)(one->v[k].to - one->v[k].from);
		}
}

static int why_row_order(const void *a, const void *b)
{
	const struct why_row *x = a, *y = b;
	double p = fabs(x->tail - x->typical), q = fabs(y->tail - y->typical);

	if (p > q || p < q)
		return p > q ? -1 : 1;
	return x->example < y->example ? -1 : x->example > y->example;
}

/* Rows of all causes, the greatest difference first; those beyond WHY_ROWS_MAX become one. */
static int why_rows(struct why_table *t, struct why_comparison *c, double *sums[WHY_TAIL + 1])
{
	struct why_row *all = calloc(t->w->n_causes + 1, sizeof(*all));
	size_t n = 0;

	if (!all)
		return -ENOMEM;
	for (uint32_t i = 0; i < t->w->n_causes; i++) {
		struct why_row row = { .cause = t->w->causes[i], .example = i };

		row.typical = sums[WHY_MIDDLE][i] / (double)(t->n[WHY_MIDDLE] ?: 1);
		row.tail = sums[WHY_TAIL][i] / (double)(t->n[WHY_TAIL] ?: 1);
		if (row.typical > 0 || row.tail > 0)
			all[n++] = row;
	}
	qsort(all, n, sizeof(*all), why_row_order);
	for (size_t i = 0; i < n; i++) {
		size_t to = i < WHY_ROWS_MAX ? i : WHY_ROWS_MAX;

		t->column[all[i].example] = (uint32_t)to;
		if (to == c->n)
			c->v[c->n++] = all[i];
		else {
			c->v[to].typical += all[i].typical;
			c->v[to].tail += all[i].tail;
		}
		if (to == WHY_ROWS_MAX)
			c->v[to].cause = (struct why_cause){ WHY_OTHERS, 0, 0, STATE_NO_CPU, STATE_NO_TASK, 0, 0 };
	}
	for (size_t i = 0; i < c->n; i++)
		c->v[i].example = 0;
	free(all);
	return 0;
}

/* Times by instance and row; of the tail also how many have it, and which one most. */
static void why_fill(struct why_table *t, struct why_comparison *c)
{
	size_t place = 0;

	for (int g = WHY_MIDDLE; g <= WHY_TAIL; g++)
		for (size_t i = 0; i < t->n[g]; i++, place++) {
			const struct why_instance *one = &t->w->v[t->v[g][i]];
			double *ns = &t->ns[place * t->columns];

			for (size_t k = 0; k < one->n; k++)
				ns[t->column[one->v[k].cause]] += (double)(one->v[k].to - one->v[k].from);
			for (size_t k = 0; k < c->n && g == WHY_TAIL; k++) {
				struct why_row *row = &c->v[k];

				row->in += ns[k] > 0;
				if ((uint64_t)ns[k] > row->example_ns) {
					row->example_ns = (uint64_t)ns[k];
					row->example = t->v[g][i];
				}
			}
		}
}

/* ---- resampling --------------------------------------------------------------------------------------- */

/* xorshift64* (Vigna 2016). */
static uint64_t why_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1d;
}

static void why_resample(const struct why_table *t, uint64_t *random, double *difference)
{
	for (int g = WHY_MIDDLE; g <= WHY_TAIL; g++) {
		size_t base = g == WHY_TAIL ? t->n[WHY_MIDDLE] : 0;
		double weight = (g == WHY_TAIL ? 1.0 : -1.0) / (double)t->n[g];

		for (size_t i = 0; i < t->n[g]; i++) {
			size_t at = base + (size_t)(why_random(random) >> 11) % t->n[g];

			for (size_t k = 0; k < t->columns; k++)
				difference[k] += weight * t->ns[at * t->columns + k];
		}
	}
}

static int why_by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* The range of each share in 95 of 100 resamplings of both groups. */
static int why_ranges(const struct why_table *t, struct why_comparison *c)
{
	double *shares = calloc(WHY_ROUNDS * t->columns, sizeof(*shares)), difference[WHY_ROWS_MAX + 1];
	uint64_t random = WHY_SEED;

	if (!shares)
		return -ENOMEM;
	for (size_t r = 0; r < WHY_ROUNDS; r++) {
		double all = 0;

		for (size_t k = 0; k < t->columns; k++)
			difference[k] = 0;
		why_resample(t, &random, difference);
		for (size_t k = 0; k < t->columns; k++)
			all += difference[k];
		for (size_t k = 0; k < t->columns; k++)
			shares[k * WHY_ROUNDS + r] = all > 0 ? difference[k] / all : 0;
	}
	for (size_t k = 0; k < c->n; k++) {
		qsort(&shares[k * WHY_ROUNDS], WHY_ROUNDS, sizeof(*shares), why_by_value);
		c->v[k].low = shares[k * WHY_ROUNDS + WHY_ROUNDS / 40];
		c->v[k].high = shares[(k + 1) * WHY_ROUNDS - 1 - WHY_ROUNDS / 40];
	}
	free(shares);
	return 0;
}

/* ---- all of it ---------------------------------------------------------------------------------------- */

/* Of too few for a tail all are typical, and none is of the tail. */
static void why_table_groups(struct why_table *t, struct why_comparison *c)
{
	const struct why *w = t->w;
	size_t tail = 0, middle = 0;

	for (size_t i = 0; i < w->n; i++) {
		tail += w->v[i].group == WHY_TAIL;
		middle += w->v[i].group == WHY_MIDDLE;
	}
	for (uint32_t i = 0; i < w->n; i++) {
		enum why_group g = w->v[i].group;

		if (tail < WHY_TAIL_MIN || middle < WHY_TAIL_MIN)
			g = w->v[i].v && !w->v[i].overfull ? WHY_MIDDLE : 0;
		if (g)
			t->v[g][t->n[g]++] = i;
	}
	c->n_typical = t->n[WHY_MIDDLE];
	c->n_tail = t->n[WHY_TAIL];
}

int why_compare(const struct why *w, struct why_comparison *c)
{
	struct why_table t = { .w = w };
	double *sums[WHY_TAIL + 1] = { NULL };
	int ret = -ENOMEM;

	*c = (struct why_comparison){ 0 };
	for (int g = WHY_MIDDLE; g <= WHY_TAIL; g++) {
		t.v[g] = calloc(w->n + 1, sizeof(*t.v[g]));
		sums[g] = calloc(w->n_causes + 1, sizeof(*sums[g]));
		if (!t.v[g] || !sums[g])
			goto out;
	}
	t.column = calloc(w->n_causes + 1, sizeof(*t.column));
	if (!t.column)
		goto out;
	why_table_groups(&t, c);
	why_sum(&t, sums);
	ret = why_rows(&t, c, sums);
	if (ret)
		goto out;
	for (size_t k = 0; k < c->n; k++) {
		c->typical += c->v[k].typical;
		c->tail += c->v[k].tail;
	}
	c->p50 = w->n ? why_length(&w->v[(w->n - 1) / 2]) : 0;
	c->p_tail = c->n_tail ? why_length(&w->v[w->tail]) : 0;
	for (size_t k = 0; k < c->n && c->n_tail && c->tail > c->typical; k++)
		c->v[k].share = (c->v[k].tail - c->v[k].typical) / (c->tail - c->typical);
	t.columns = c->n;
	t.ns = calloc((t.n[WHY_MIDDLE] + t.n[WHY_TAIL]) * t.columns + 1, sizeof(*t.ns));
	if (!t.ns) {
		ret = -ENOMEM;
		goto out;
	}
	why_fill(&t, c);
	if (c->n_tail && c->tail > c->typical)
		ret = why_ranges(&t, c);
out:
	for (int g = WHY_MIDDLE; g <= WHY_TAIL; g++) {
		free(t.v[g]);
		free(sums[g]);
	}
	free(t.column);
	free(t.ns);
	return ret;
}
