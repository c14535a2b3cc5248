// SPDX-License-Identifier: LGPL-2.1-or-later
/* Reads files for chains: matches events and finds their keys on every core, follows the chains in order. */
#include "latency/latency.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "latency/latency-priv.h"
#include "analysis/pass.h"
#include "util/array.h"

/* A record as one point; or a CPU that begins or ceases to lose events. */
struct latency_hit {
	struct chain_step step;
	struct latency_key row;
	uint32_t stream;
	uint16_t term;
	enum { HIT_POINT, HIT_LOSES, HIT_LOST } kind;
	uint64_t raw;
};

/* A run's. */
struct latency_run {
	struct latency_hit *hits;
	size_t n;
	bool paused, lost; /* there were such places */
	struct latency_count counts[LATENCY_TERMS_MAX];
};

/* ---- a run, by any thread --------------------------------------------------------------------- */

static void latency_run_free(void *own)
{
	struct latency_run *r = own;

	free(r->hits);
	free(r);
}

static int latency_hit(const struct latency *l, const struct merge_stream *at, const struct merge_record *m,
		       const struct latency_source *s, struct latency_run *r)
{
	const struct filter_record rec = { m->data, m->len, s->id, at->cpu };
	const struct latency_term *term = &l->plan->terms[s->term];
	const struct input *in = &l->in->v[at->input];
	struct latency_hit h = { .term = (uint16_t)s->term };
	struct chain_step *step = &h.step;

	r->counts[s->term].seen++;
	if (s->filter && !filter_match(s->filter, &rec))
		return 0;
	r->counts[s->term].passed++;
	if (!latency_take(&s->look, l->who, m, at->cpu, &step->look) ||
	    !latency_take(&s->next, l->who, m, at->cpu, &step->next) ||
	    !latency_take(&s->carry, l->who, m, at->cpu, &step->carry) ||
	    !latency_take(&s->row, l->who, m, at->cpu, &h.row)) {
		r->counts[s->term].keyless++;
		return 0;
	}
	step->point = term->point;
	step->event = (struct chain_event){ m->ts, 0, (uint32_t)at->input, at->cpu };
	if (l->reach && in->guest)
		step->event.bound = filetime_bound(&in->time, m->raw);
	if (!term->point && s->row.by == BY_NOTHING)
		h.row = step->next;
	else if (term->point)
		h.row = step->look;
	return array_push(&r->hits, &r->n, &h, sizeof(h));
}

/* The record as all the points that it is; of a point with several events it is one of them. */
static int latency_record(const struct latency *l, const struct merge_stream *at,
			  const struct merge_record *m, uint32_t first, struct latency_run *r)
{
	const struct latency_input *v = &l->v[at->input];
	size_t last = SIZE_MAX, n = r->n;
	int ret = 0;

	for (size_t i = first; i < v->n && v->v[i].id == v->v[first].id && !ret; i++) {
		const struct latency_term *term = &l->plan->terms[v->v[i].term];

		if (!term->cancels && term->point == last && r->n > n)
			continue;
		n = r->n;
		last = term->point;
		ret = latency_hit(l, at, m, &v->v[i], r);
	}
	return ret;
}

/* From this record on, or until it, events are lost on its CPU. */
static int latency_loss(const struct latency *l, const struct merge_stream *at, const struct merge_record *m,
			int kind, struct latency_run *r)
{
	const struct known_event *e = m->data ? input_event(&l->in->v[at->input], timeline_id(m)) : NULL;
	struct latency_hit h = { .kind = kind, .stream = m->stream, .raw = m->raw };

	/* a buffer holds either the kernel's events or the hypervisor's */
	if (kind == HIT_LOSES && e && !l->v[at->input].wanted[e->hyp])
		return 0;
	return array_push(&r->hits, &r->n, &h, sizeof(h));
}

static int latency_work(void *ctx, struct pass_run *run)
{
	const struct latency *l = ctx;
	struct latency_run *r = run->own ? run->own : (run->own = calloc(1, sizeof(*r)));
	const struct merge_stream *at = NULL;
	const struct latency_input *v = NULL;
	uint32_t stream = 0;
	int ret = r ? 0 : -ENOMEM;

	for (size_t i = 0; i < run->records->n && !ret; i++) {
		const struct merge_record *m = &run->records->v[i];
		unsigned int id = timeline_id(m);

		if (!at || m->stream != stream) {
			stream = m->stream;
			at = timeline_stream(l->t, m);
			v = &l->v[at->input];
		}
		r->paused |= m->paused;
		r->lost |= m->missed != 0;
		if (m->paused || (m->missed && m->data))
			ret = latency_loss(l, at, m, HIT_LOST, r);
		if (id < v->n_ids && v->first[id] && !ret)
			ret = latency_record(l, at, m, v->first[id] - 1, r);
		if (m->gap && !ret)
			ret = latency_loss(l, at, m, HIT_LOSES, r);
	}
	return ret;
}

/* ---- losses ----------------------------------------------------------------------------------------- */

/* Chains of which machines, or CPUs, a loss there may be in. */
static uint64_t latency_place(const struct latency *l, size_t input, unsigned int cpu)
{
	if (!l->plan->apart)
		return 0;
	return (uint64_t)(input + 1) << 32 | (l->plan->terms[0].next.by == BY_CPU ? cpu + 1 : 0);
}

/* The host's time, as early or as late as it may have been. */
static uint64_t latency_time(const struct latency *l, size_t input, unsigned int cpu, uint64_t raw, bool late)
{
	const struct filetime *t = &l->in->v[input].time;
	uint64_t ts = filetime_apply(t, cpu, raw);
	uint64_t bound = l->reach && l->in->v[input].guest ? filetime_bound(t, raw) : 0;

	if (bound > l->reach)
		bound = l->reach;
	if (late)
		return bound > UINT64_MAX - ts ? UINT64_MAX : ts + bound;
	return bound > ts ? 0 : ts - bound;
}

static int latency_loses(struct latency *l, uint32_t stream, bool first, uint64_t raw)
{
	const struct merge_record m = { .stream = stream & INT32_MAX };
	const struct merge_stream *at = timeline_stream(l->t, &m);

	if (l->losing[stream])
		return 0;
	l->losing[stream] = true;
	return losses_open(&l->losses, latency_place(l, at->input, at->cpu),
			   first ? 0 : latency_time(l, at->input, at->cpu, raw, false));
}

static void latency_found(struct latency *l, uint32_t stream, uint64_t raw)
{
	const struct merge_record m = { .stream = stream & INT32_MAX };
	const struct merge_stream *at = timeline_stream(l->t, &m);

	if (l->losing[stream])
		losses_close(&l->losses, latency_place(l, at->input, at->cpu),
			     latency_time(l, at->input, at->cpu, raw, true));
	l->losing[stream] = false;
}

/* What was lost before the first records. */
static int latency_losses_begin(struct latency *l)
{
	size_t n = timeline_streams(l->t);
	int ret = 0;

	l->losing = calloc(n + 1, sizeof(*l->losing));
	if (!l->losing)
		return -ENOMEM;
	for (size_t i = 0; i < n && !ret; i++) {
		const struct merge_record m = { .stream = (uint32_t)i & INT32_MAX };

		if (timeline_stream(l->t, &m)->gap)
			ret = latency_loses(l, (uint32_t)i, true, 0);
	}
	return ret;
}

static bool latency_lost(void *ctx, const struct chain_event *v, size_t n)
{
	const struct latency *l = ctx;
	uint64_t from = UINT64_MAX, to = 0;

	if (!l->losses.n)
		return false;
	for (size_t i = 0; i < n; i++) {
		uint64_t bound = v[i].bound < l->reach ? v[i].bound : l->reach;
		uint64_t early = bound > v[i].ts ? 0 : v[i].ts - bound, late = v[i].ts + bound;

		from = early < from ? early : from;
		to = late > to ? late : to;
	}
	return losses_between(&l->losses, latency_place(l, v[0].input, v[0].cpu), from, to);
}

/* ---- in order --------------------------------------------------------------------------------------------
 */

static int latency_row(struct latency *l, struct latency_hit *h)
{
	int ret = latency_row_of(&l->rows, &h->row, &h->step.row);

	if (ret)
		return ret;
	if (h->step.point)
		l->rows.v[h->step.row].ends++;
	else
		l->rows.v[h->step.row].begins++;
	return 0;
}

static int latency_follow(struct latency *l, struct latency_hit *h)
{
	const struct latency_plan *plan = l->plan;
	int ret = 0;

	if (h->kind == HIT_LOSES)
		return latency_loses(l, h->stream, false, h->raw);
	if (h->kind == HIT_LOST) {
		latency_found(l, h->stream, h->raw);
		return 0;
	}
	if (plan->terms[h->term].cancels)
		return chain_cancel(l->chain, &h->step);
	if (!h->step.point || (plan->strays && h->step.point + 1 == plan->n_points))
		ret = latency_row(l, h);
	return ret ? ret : chain_take(l->chain, &h->step);
}

static int latency_after(void *ctx, struct pass_run *run)
{
	struct latency *l = ctx;
	struct latency_run *r = run->own;
	int ret = 0;

	for (size_t i = 0; i < r->n && !ret; i++)
		ret = latency_follow(l, &r->hits[i]);
	l->paused |= r->paused;
	l->lost |= r->lost;
	for (size_t i = 0; i < l->plan->n_terms; i++) {
		l->counts[i].seen += r->counts[i].seen;
		l->counts[i].passed += r->counts[i].passed;
		l->counts[i].keyless += r->counts[i].keyless;
		r->counts[i] = (struct latency_count){ 0 };
	}
	r->n = 0;
	return ret;
}

/* ---- reading
 * ------------------------------------------------------------------------------------------------- */

static bool latency_want(void *ctx, size_t input, size_t buffer, unsigned int cpu)
{
	const struct latency *l = ctx;

	return l->v[input].n;
}

static int latency_read_opened(struct latency *l)
{
	const struct pass_part part = {
		.ctx = l, .work = latency_work, .after = latency_after, .release = latency_run_free
	};
	const struct chain_told told = { latency_row_tell, latency_lost, l };
	int ret = latency_losses_begin(l);

	if (!ret)
		ret = chain_open(&l->chain, l->plan->n_points, l->reach, &told);
	if (!ret)
		ret = pass_read(l->t, NULL, &part, 1);
	if (!ret)
		ret = chain_end(l->chain);
	latency_rows_sort(&l->rows);
	return ret;
}

int latency_read(struct latency *l, const struct log *log, uint64_t *damaged)
{
	int ret = timeline_open(&l->t, l->in, latency_want, l, log);

	if (ret)
		return ret;
	ret = latency_read_opened(l);
	*damaged = timeline_damaged(l->t);
	return ret;
}

/* ---- answers
 * --------------------------------------------------------------------------------------------------- */

const struct latency_row *latency_rows(const struct latency *l, size_t *n)
{
	*n = l->rows.n;
	return l->rows.v;
}

const struct latency_worst *latency_worst(const struct latency *l, size_t *n)
{
	*n = l->rows.n_worst;
	return l->rows.worst;
}

const struct latency_count *latency_count(const struct latency *l, size_t term)
{
	return &l->counts[term];
}

const char *latency_why_lost(const struct latency *l)
{
	if (!l->paused)
		return "events were lost";
	return l->lost ? "events were lost, or tracing was off," : "tracing was off";
}

const char *latency_unbounded(const struct latency *l)
{
	return l->unbounded;
}

const struct who *latency_who(const struct latency *l)
{
	return l->who;
}

/* ---- open and close
 * ---------------------------------------------------------------------------------------------- */

int latency_open(struct latency **out, const struct inputs *in, const struct latency_plan *plan,
		 const struct log *log)
{
	struct latency *l = calloc(1, sizeof(*l));
	int ret;

	if (!l)
		return -ENOMEM;
	l->in = in;
	l->plan = plan;
	ret = who_open(&l->who, in);
	if (!ret)
		ret = latency_terms_open(l, log);
	if (ret) {
		latency_close(l);
		return ret;
	}
	*out = l;
	return 0;
}

void latency_close(struct latency *l)
{
	if (!l)
		return;
	chain_close(l->chain);
	timeline_close(l->t);
	latency_rows_release(&l->rows);
	free(l->losing);
	losses_release(&l->losses);
	latency_terms_close(l);
	who_close(l->who);
	free(l);
}
