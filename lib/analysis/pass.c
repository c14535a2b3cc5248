// SPDX-License-Identifier: LGPL-2.1-or-later
/* Several questions at one reading. */
#include "analysis/pass.h"

#include <errno.h>
#include <stdlib.h>

#include "read/pipeline.h"
#include "read/streams.h"

struct pass {
	struct timeline *t;
	const struct steps *steps;
	const struct pass_part *parts;
	size_t n;
	uint64_t set;	       /* of steps: what the parts want */
	struct pass_own **own; /* streams: of each worker */
};

/* What belongs to a run of the pipeline, or to a worker of the streams. */
struct pass_own {
	const struct pass *of;
	struct step_batch steps;
	void *parts[PASS_PARTS_MAX];
};

static void pass_release(void *own)
{
	struct pass_own *o = own;

	for (size_t i = 0; i < o->of->n; i++)
		if (o->parts[i] && o->of->parts[i].release)
			o->of->parts[i].release(o->parts[i]);
	step_batch_release(&o->steps);
	free(o);
}

static struct pass_own *pass_own(const struct pass *p, void **own)
{
	struct pass_own *o = *own;

	if (!o)
		*own = o = calloc(1, sizeof(*o));
	if (o)
		o->of = p;
	return o;
}

static int pass_part(const struct pass_part *part, int (*call)(void *ctx, struct pass_run *run),
		     struct pass_own *o, size_t i, const struct merge_run *records, size_t worker)
{
	bool wanted = part->steps && o->steps.set & (part->steps | STEPS_LOSSES);
	struct pass_run run = { records, o->steps.v, wanted ? o->steps.n : 0, o->parts[i], worker };
	int ret = call ? call(part->ctx, &run) : 0;

	o->parts[i] = run.own;
	return ret;
}

static int pass_work(const struct pass *p, const struct merge_run *records, size_t worker, void **own)
{
	struct pass_own *o = pass_own(p, own);
	int ret = o ? 0 : -ENOMEM;

	if (p->set && !ret)
		ret = steps_fill(p->steps, p->t, records, p->set, &o->steps);
	for (size_t i = 0; i < p->n && !ret; i++)
		ret = pass_part(&p->parts[i], p->parts[i].work, o, i, records, worker);
	return ret;
}

/* ---- in the order of time ------------------------------------------------------------------ */

static int pass_in_order_work(void *ctx, struct pipeline_run *run)
{
	return pass_work(ctx, &run->records, run->worker, &run->own);
}

static int pass_in_order_after(void *ctx, struct pipeline_run *run)
{
	const struct pass *p = ctx;
	struct pass_own *o = run->own;
	int ret = 0;

	if (p->steps)
		steps_learn(p->steps, &run->records, &o->steps);
	for (size_t i = 0; i < p->n && !ret; i++)
		ret = pass_part(&p->parts[i], p->parts[i].after, o, i, &run->records, run->worker);
	return ret;
}

/* ---- in no order ----------------------------------------------------------------------------- */

static int pass_streams_work(void *ctx, const struct merge_run *run, size_t worker)
{
	const struct pass *p = ctx;

	return pass_work(p, run, worker, (void **)&p->own[worker]);
}

static int pass_streams(struct pass *p)
{
	size_t n = pipeline_workers();
	int ret = -ENOMEM;

	p->own = calloc(n, sizeof(struct pass_own *));
	if (p->own)
		ret = streams_work(p->t, pass_streams_work, p);
	for (size_t i = 0; p->own && i < n; i++)
		if (p->own[i])
			pass_release(p->own[i]);
	free(p->own);
	return ret;
}

/* ---- all of it ---------------------------------------------------------------------------------- */

int pass_read(struct timeline *t, const struct steps *steps, const struct pass_part *parts, size_t n)
{
	static const struct pipeline_job job = { .work = pass_in_order_work,
						 .after = pass_in_order_after,
						 .release = pass_release };
	struct pass p = { .t = t, .steps = steps, .parts = parts, .n = n };
	bool order = false;

	if (n > PASS_PARTS_MAX)
		return -EINVAL;
	for (size_t i = 0; i < n; i++) {
		p.set |= parts[i].steps;
		order |= parts[i].after != NULL;
	}
	timeline_tell_pauses(t);
	return order ? pipeline_work(t, &job, &p) : pass_streams(&p);
}
