// SPDX-License-Identifier: LGPL-2.1-or-later
/* The events during the longest chains, as text. */
#include "ask/latency/latency.h"

#include "read/print.h"

#define HALF (BETWEEN_LINES / 2)

struct between_job {
	struct between *v;
	const struct latency_worst *worst;
	size_t n, n_points;
	uint64_t from, to; /* of all of them */
	struct timeline *t;
	struct print *print;
	struct buf ready, text;
};

static void between_line_release(struct between_line *l)
{
	free(l->task);
	free(l->what);
	*l = (struct between_line){ 0 };
}

static int between_line_fill(struct between_job *j, const struct merge_record *m, struct between_line *l)
{
	struct print_record r;
	int ret;

	j->ready.len = j->text.len = 0;
	ret = print_begin(j->print, j->t, m, &r, &j->ready);
	if (ret)
		return ret;
	print_fields(j->print, &r, &j->ready, 0, &j->text);
	*l = (struct between_line){ .ts = m->ts, .input = (uint32_t)r.at->input, .cpu = r.at->cpu };
	l->task = r.pid < 0 ? strdup("-") : str_printf("%s-%d", r.comm ? r.comm : "<...>", r.pid);
	l->what = buf_str(&j->text)
			  ? str_printf("%s: %s", r.event ? r.event->event->name : "?", buf_str(&j->text))
			  : NULL;
	return l->task && l->what ? 0 : -ENOMEM;
}

/* A new line: the first half stays, after it the newest are kept. */
static struct between_line *between_line(struct between *b)
{
	b->records++;
	if (b->n == BETWEEN_LINES) {
		between_line_release(&b->v[HALF]);
		memmove(&b->v[HALF], &b->v[HALF + 1], (HALF - 1) * sizeof(b->v[0]));
		b->v[--b->n] = (struct between_line){ 0 };
	}
	return &b->v[b->n++];
}

static bool between_on(const struct latency_worst *w, size_t n_points, size_t input, unsigned int cpu)
{
	for (size_t i = 0; i < n_points; i++)
		if (w->v[i].input == input && w->v[i].cpu == cpu)
			return true;
	return false;
}

static int between_after(void *ctx, struct pass_run *run)
{
	const struct merge_run *r = run->records;
	struct between_job *j = ctx;
	int ret = 0;

	if (r->n && (r->v[0].ts > j->to || r->v[r->n - 1].ts < j->from))
		return 0;
	for (size_t i = 0; i < r->n && !ret; i++) {
		const struct merge_record *m = &r->v[i];
		const struct merge_stream *at = merge_stream(j->t->merge, m);

		for (size_t k = 0; m->data && k < j->n && !ret; k++) {
			const struct latency_worst *w = &j->worst[k];

			if (m->ts >= w->v[0].ts && m->ts <= w->v[j->n_points - 1].ts &&
			    between_on(w, j->n_points, at->input, at->cpu))
				ret = between_line_fill(j, m, between_line(&j->v[k]));
		}
	}
	return ret;
}

static bool between_want(void *ctx, size_t input, size_t buffer, unsigned int cpu)
{
	const struct between_job *j = ctx;

	for (size_t i = 0; i < j->n; i++)
		if (between_on(&j->worst[i], j->n_points, input, cpu))
			return true;
	return false;
}

int between_read(struct between **out, const struct inputs *in, const struct latency_worst *worst, size_t n,
		 size_t n_points)
{
	struct between_job j = { .worst = worst, .n = n, .n_points = n_points, .from = UINT64_MAX };
	const struct pass_part part = { .ctx = &j, .after = between_after };
	int ret = -ENOMEM;

	*out = NULL;
	j.v = calloc(n + 1, sizeof(*j.v));
	if (!j.v)
		return ret;
	for (size_t i = 0; i < n; i++) {
		j.from = worst[i].v[0].ts < j.from ? worst[i].v[0].ts : j.from;
		j.to = worst[i].v[n_points - 1].ts > j.to ? worst[i].v[n_points - 1].ts : j.to;
	}
	ret = print_open(&j.print, in, false) ?: timeline_open(&j.t, in, between_want, &j, NULL);
	ret = ret ?: pass_read(j.t, NULL, &part, 1);
	timeline_close(j.t);
	print_close(j.print);
	buf_release(&j.ready);
	buf_release(&j.text);
	if (ret)
		between_free(j.v, n);
	else
		*out = j.v;
	return ret;
}

void between_free(struct between *b, size_t n)
{
	for (size_t i = 0; b && i < n; i++)
		for (size_t k = 0; k < b[i].n; k++)
			between_line_release(&b[i].v[k]);
	free(b);
}
