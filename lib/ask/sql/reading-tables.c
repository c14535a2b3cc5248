// SPDX-License-Identifier: LGPL-2.1-or-later
/* Fills tables with other questions' answers: findings of why, chains of latency's presets, marked spans. */
#include "ask/why/why.h"
#include "ask/sql/sql-priv.h"

int sql_findings_join(struct sql_insert *in, struct reading *r)
{
	struct finding_job *j = NULL;
	int ret = findings_join(&j, r);

	in->job = j;
	return ret;
}

void sql_findings_end(struct sql_insert *in)
{
	const struct sql *s = in->sql;
	struct findings f = { 0 };

	in->ret = in->ret ?: findings_end(in->job, &f);
	for (size_t i = 0; i < f.n && !in->ret; i++) {
		const struct finding *one = &f.v[i];
		const struct finding_stretch *longest = &one->example;
		const struct state_owner *on = &one->on;

		sql_insert(in, longest->to ? sql_ts(longest->from) : -1,
			   longest->to ? sql_ts(longest->to - longest->from) : -1,
			   s->in->v[on->input].machine, on->guest_name,
			   on->vcpu == STATE_NO_CPU ? -1 : (int64_t)on->vcpu, (int64_t)on->pid, one->what,
			   sql_ts(one->lost), sql_ts(one->n), (int64_t)(one->share * 1e6 + 0.5),
			   (int64_t)on->input,
			   longest->to ? sql_utc(s, on->input, longest->from, 0, SQL_UTC_NS) : -1,
			   longest->to ? sql_utc(s, on->input, longest->from, 0, SQL_UTC_BOUND) : -1);
	}
	free(f.v);
	findings_close(in->job);
}

/* As a markers_listener. */
static int sql_spans_span(void *ctx, const struct markers_span *v)
{
	struct sql_insert *in = ctx;
	const struct sql *s = in->sql;
	const struct input *of = &s->in->v[v->input];
	uint64_t bound = of->guest ? filetime_widest_bound(&of->time) ?: UINT64_MAX : 0;

	sql_insert(in, sql_ts(v->from), sql_ts(v->to - v->from), of->machine, (int64_t)v->cpu,
		   v->client ? -1 : (int64_t)v->pid, v->client, v->names[v->n - 1],
		   v->n > 1 ? v->names[v->n - 2] : NULL, (int64_t)v->n - 1, sql_ts(v->own),
		   bound > INT64_MAX ? -1 : (int64_t)bound, (int64_t)v->input,
		   sql_utc(s, v->input, v->from, bound, SQL_UTC_NS),
		   sql_utc(s, v->input, v->from, bound, SQL_UTC_BOUND));
	return in->ret;
}

int sql_spans_join(struct sql_insert *in, struct reading *r)
{
	int ret = reading_markers(r);

	if (!ret)
		markers_listen(r->markers, sql_spans_span, in);
	return ret;
}

/* A preset whose chains become rows. */
struct sql_chains {
	struct sql_insert *in;
	const struct latency_preset *preset;
	struct latency_plan plan;
	struct latency *latency; /* NULL: its events are not in the files */
};

#define SQL_STAGES 5 /* no preset has more */

/* As a plan's `each`. */
static int sql_chain_row(void *ctx, const struct latency_worst *chain, const struct latency_key *row,
			 size_t n)
{
	const struct sql_chains *c = ctx;
	const struct sql *s = c->in->sql;
	const struct chain_event *v = chain->v;
	enum latency_scope scope = (enum latency_scope)(row->scope >> 32);
	const struct latency_key of = { latency_scope(SCOPE_GUEST, (uint32_t)row->scope), 0 };
	struct buf guest = { 0 }, queue = { 0 };
	int64_t stages[SQL_STAGES] = { -1, -1, -1, -1, -1 };
	uint64_t bound = 0;

	for (size_t i = 0; i + 1 < n; i++) {
		uint64_t one = latency_bound(&v[i], &v[i + 1]);

		bound = one > bound ? one : bound;
		if (i < SQL_STAGES)
			stages[i] = sql_ts(v[i + 1].ts - v[i].ts);
	}
	if (scope == SCOPE_VCPU || scope == SCOPE_PAIR)
		latency_key_text(&of, BY_GUEST, latency_result(c->latency).vcpus, s->in, true, &guest);
	if (scope == SCOPE_PAIR)
		latency_key_text(row, BY_PAIR, latency_result(c->latency).vcpus, s->in, true, &queue);
	sql_insert(c->in, c->preset->name, sql_ts(v->ts), sql_ts(chain->took), s->in->v[v->input].machine,
		   (int64_t)v->cpu, (int64_t)v->pid, guest.len ? buf_str(&guest) : NULL,
		   scope == SCOPE_VCPU ? sql_ts(row->value) : -1, queue.len ? buf_str(&queue) : NULL,
		   stages[0], stages[1], stages[2], stages[3], stages[4],
		   bound > INT64_MAX ? -1 : (int64_t)bound, (int64_t)v->input,
		   sql_utc(s, v->input, v->ts, v->bound, SQL_UTC_NS),
		   sql_utc(s, v->input, v->ts, v->bound, SQL_UTC_BOUND));
	buf_release(&guest);
	buf_release(&queue);
	return c->in->ret;
}

/* As a plan's `stopped`. */
static bool sql_chain_stopped(void *ctx)
{
	return sql_stopped(((const struct sql_chains *)ctx)->in->sql);
}

/* All presets. */
int sql_latency_join(struct sql_insert *in, struct reading *r)
{
	struct sql_chains *c = in->job = calloc(LATENCY_GROUP_MAX, sizeof(*c));
	struct latency *first = NULL;
	int ret = c ? 0 : -ENOMEM;

	for (size_t i = 0; !ret && i < LATENCY_GROUP_MAX && latency_preset_at(i); i++, c++) {
		*c = (struct sql_chains){ .in = in, .preset = latency_preset_at(i) };
		latency_preset_plan(c->preset, r->in, &c->plan);
		c->plan.queues = false;
		c->plan.uncounted = true;
		c->plan.each = sql_chain_row;
		c->plan.stopped = sql_chain_stopped;
		c->plan.ctx = c;
		ret = latency_begin(&c->latency, &first, r->in, &c->plan, r->timeline, &in->sql->once);
	}
	if (first)
		reading_add(r, latency_part(first));
	return ret;
}

void sql_latency_end(struct sql_insert *in)
{
	struct sql_chains *c = in->job;

	for (size_t i = 0; c && i < LATENCY_GROUP_MAX; i++) {
		if (c[i].latency && !in->ret)
			in->ret = latency_end(c[i].latency);
		latency_close(c[i].latency);
	}
	free(c);
}
