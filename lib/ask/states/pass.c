// SPDX-License-Identifier: LGPL-2.1-or-later
/* Several questions at one reading, and on how many CPUs of each buffer events are missing meanwhile. */
#include "ask/states/pass.h"

struct pass {
	struct timeline *t;
	const struct steps *steps;
	const struct pass_part *parts;
	size_t n;
	size_t first[PASS_PARTS_MAX]; /* of each part with a first(): the pipeline's number for it */
	uint64_t set;		      /* of steps: those that parts want */
	void **own;		      /* without the merge: of each worker */
};

/* Memory of a run of the pipeline, or of a worker of the streams. */
struct pass_own {
	const struct pass *of;
	struct step_batch steps;
	void *parts[PASS_PARTS_MAX];
	struct buf out[PASS_PARTS_MAX];
};

static void pass_release(void *own)
{
	struct pass_own *o = own;

	for (size_t i = 0; i < o->of->n; i++) {
		if (o->parts[i] && o->of->parts[i].release)
			o->of->parts[i].release(o->parts[i]);
		buf_release(&o->out[i]);
	}
	step_batch_release(&o->steps);
	free(o);
}

enum pass_stage { PASS_WORK, PASS_FIRST, PASS_AFTER };

/* Calls work(), after() or those first() that have that number, of each part with the steps that it wants. */
static int pass_parts(const struct pass *p, enum pass_stage stage, size_t number, struct pass_own *o,
		      const struct merge_run *records, size_t worker)
{
	int ret = 0;

	for (size_t i = 0; i < p->n && !ret; i++) {
		const struct pass_part *part = &p->parts[i];
		int (*call)(void *ctx, struct pass_run *run) = stage == PASS_WORK    ? part->work
							       : stage == PASS_FIRST ? part->first
										     : part->after;
		bool wanted = part->steps && o->steps.set & (part->steps | STEPS_LOSSES);
		struct pass_run run = { .records = records,
					.steps = o->steps.v,
					.n_steps = wanted ? o->steps.n : 0,
					.out = &o->out[i],
					.worker = worker };

		if (stage == PASS_WORK)
			run.out->len = 0;
		if (!call || (stage == PASS_FIRST && p->first[i] != number))
			continue;
		run.own = o->parts[i];
		ret = call(part->ctx, &run);
		o->parts[i] = run.own;
	}
	return ret;
}

static int pass_work(const struct pass *p, const struct merge_run *records, size_t worker, void **own)
{
	struct pass_own *o = *own ? *own : (*own = calloc(1, sizeof(*o)));
	int ret = 0;

	if (!o)
		return -ENOMEM;
	o->of = p;
	if (p->set)
		ret = steps_fill(p->steps, p->t, records, p->set, &o->steps);
	return ret ?: pass_parts(p, PASS_WORK, 0, o, records, worker);
}

static int pass_run_before(void *ctx, struct pipeline_run *run)
{
	const struct pass *p = ctx;
	int ret = 0;

	for (size_t i = 0; i < p->n && !ret; i++)
		if (p->parts[i].before)
			ret = p->parts[i].before(p->parts[i].ctx, merge_fraction(p->t->merge));
	return ret;
}

static int pass_run_work(void *ctx, struct pipeline_run *run)
{
	return pass_work(ctx, &run->records, run->worker, &run->own);
}

static int pass_run_first(void *ctx, struct pipeline_run *run, size_t number)
{
	return pass_parts(ctx, PASS_FIRST, number, run->own, &run->records, run->worker);
}

static int pass_run_after(void *ctx, struct pipeline_run *run)
{
	const struct pass *p = ctx;
	const struct pass_own *o = run->own;

	if (p->steps && !p->parts[0].learns)
		steps_learn(p->steps, &run->records, o->steps.v, o->steps.named);
	return pass_parts(p, PASS_AFTER, 0, run->own, &run->records, run->worker);
}

static int pass_stream_work(void *ctx, const struct merge_run *run, size_t worker)
{
	const struct pass *p = ctx;

	return pass_work(p, run, worker, &p->own[worker]);
}

/* Returns the pipeline's number for first() of a part: a new one, or that of a part that uses the same. */
static size_t pass_first(const struct pass *p, size_t part, size_t *n)
{
	for (size_t i = 0; i < part; i++)
		if (p->parts[i].first && p->parts[i].uses && p->parts[i].uses == p->parts[part].uses)
			return p->first[i];
	return *n < PIPELINE_FIRSTS_MAX ? (*n)++ : 0;
}

#define PASS_RUN 4096 /* models go from core to core with each run */

int pass_read(struct timeline *t, const struct steps *steps, const struct pass_part *parts, size_t n)
{
	struct pipeline_job job = { .run = PASS_RUN,
				    .before = pass_run_before,
				    .work = pass_run_work,
				    .after = pass_run_after,
				    .release = pass_release };
	struct pass p = { .t = t, .steps = steps, .parts = parts, .n = n };
	size_t n_workers = pipeline_workers();
	bool order = false;
	int ret;

	if (n > PASS_PARTS_MAX)
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		p.set |= parts[i].steps;
		order |= parts[i].first || parts[i].after;
		if (!parts[i].first)
			continue;
		job.first = pass_run_first;
		p.first[i] = pass_first(&p, i, &job.n_firsts);
	}
	merge_tell_pauses(t->merge);
	if (order)
		return pipeline_work(t, &job, &p);
	p.own = calloc(n_workers, sizeof(void *));
	ret = p.own ? streams_work(t, pass_stream_work, &p) : -ENOMEM;
	for (size_t i = 0; p.own && i < n_workers; i++)
		if (p.own[i])
			pass_release(p.own[i]);
	free(p.own);
	return ret;
}

int gaps_open(struct gaps *g, const struct timeline *t)
{
	size_t n = merge_streams(t->merge), first = 0;
	const struct merge_stream *before = NULL;

	g->v = calloc(n + 1, sizeof(*g->v));
	if (!g->v)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct merge_stream *s = merge_stream_at(t->merge, i);

		if (before && (before->input != s->input || before->buffer != s->buffer))
			first = i;
		before = s;
		g->v[i].buffer = (uint32_t)first;
		if (s->gap)
			gaps_start(g, (uint32_t)i);
	}
	return 0;
}

void gaps_release(struct gaps *g)
{
	free(g->v);
	g->v = NULL;
}

void gaps_start(struct gaps *g, uint32_t stream)
{
	struct gaps_stream *s = &g->v[stream];

	g->v[s->buffer].n += !s->open;
	s->open = true;
}

void gaps_stop(struct gaps *g, uint32_t stream)
{
	struct gaps_stream *s = &g->v[stream];

	g->v[s->buffer].n -= s->open;
	s->open = false;
}
