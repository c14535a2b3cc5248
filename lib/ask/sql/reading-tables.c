// SPDX-License-Identifier: LGPL-2.1-or-later
/* Fills tables with other questions' answers: findings of why, chains of latency's presets, marked spans. */
#include "ask/why/why.h"
#include "ask/sql/sql-priv.h"

/* A part of a pass that ends it when the statement is interrupted. */
static int sql_reading_after(void *ctx, struct pass_run *run)
{
	return sql_stopped(ctx) ? -EINTR : 0;
}

static struct pass_part sql_reading_part(struct sql *s)
{
	return (struct pass_part){ .ctx = s, .after = sql_reading_after };
}

/* utc_ns or utc_bound; -1: unknown. */
static int64_t sql_reading_utc(const struct sql *s, size_t input, uint64_t ts, uint64_t bound, int what)
{
	struct cell cell = sql_utc(s, input, ts, bound, what);

	return cell.kind == CELL_NUMBER ? cell.number : -1;
}

void sql_fill_findings(struct sql *s, struct sql_insert *in)
{
	struct findings f = { 0 };
	struct finding_job *j = NULL;
	struct reading r;
	int ret = reading_open(&r, s->in, NULL, &s->once) ?: findings_join(&j, &r);

	reading_add(&r, sql_reading_part(s));
	ret = ret ?: reading_run(&r) ?: findings_end(j, &f);
	for (size_t i = 0; i < f.n && !ret; i++) {
		const struct finding *one = &f.v[i];
		const struct finding_stretch *longest = &one->example;
		const struct state_owner *on = &one->on;

		sql_insert(in, longest->to ? sql_ts(longest->from) : -1,
			   longest->to ? sql_ts(longest->to - longest->from) : -1,
			   s->in->v[on->input].machine, on->guest_name,
			   on->vcpu == STATE_NO_CPU ? -1 : (int64_t)on->vcpu, (int64_t)on->pid, one->what,
			   sql_ts(one->lost), sql_ts(one->n), (int64_t)(one->share * 1e6 + 0.5),
			   (int64_t)on->input,
			   longest->to ? sql_reading_utc(s, on->input, longest->from, 0, SQL_UTC_NS) : -1,
			   longest->to ? sql_reading_utc(s, on->input, longest->from, 0, SQL_UTC_BOUND) : -1);
	}
	in->ret = ret ?: in->ret;
	free(f.v);
	merge_damage_join(&s->damaged, reading_damaged(&r));
	findings_close(j);
	reading_close(&r);
}

struct sql_spans {
	struct sql *sql;
	struct sql_insert *in;
};

/* As a markers_listener. */
static int sql_spans_span(void *ctx, const struct markers_span *v)
{
	const struct sql_spans *to = ctx;
	const struct input *of = &to->sql->in->v[v->input];
	uint64_t bound = of->guest ? filetime_widest_bound(&of->time) ?: UINT64_MAX : 0;

	sql_insert(to->in, sql_ts(v->from), sql_ts(v->to - v->from), of->machine, (int64_t)v->cpu,
		   v->client ? -1 : (int64_t)v->pid, v->client, v->names[v->n - 1],
		   v->n > 1 ? v->names[v->n - 2] : NULL, (int64_t)v->n - 1, sql_ts(v->own),
		   bound > INT64_MAX ? -1 : (int64_t)bound, (int64_t)v->input,
		   sql_reading_utc(to->sql, v->input, v->from, bound, SQL_UTC_NS),
		   sql_reading_utc(to->sql, v->input, v->from, bound, SQL_UTC_BOUND));
	return to->in->ret;
}

void sql_fill_spans(struct sql *s, struct sql_insert *in)
{
	struct sql_spans to = { s, in };
	struct reading r;
	int ret = reading_open(&r, s->in, NULL, &s->once) ?: reading_markers(&r);

	if (!ret) {
		markers_listen(r.markers, sql_spans_span, &to);
		reading_add(&r, sql_reading_part(s));
		ret = reading_run(&r);
	}
	in->ret = ret ?: in->ret;
	merge_damage_join(&s->damaged, reading_damaged(&r));
	reading_close(&r);
}

/* A preset whose chains become rows. */
struct sql_chains {
	struct sql *sql;
	struct sql_insert *in;
	const struct latency_preset *preset;
	struct latency_plan plan;
	struct latency *latency;
	bool begun; /* in the pass */
};

#define SQL_STAGES 5 /* no preset has more */

/* As a plan's `each`. */
static int sql_chain_row(void *ctx, const struct latency_worst *chain, const struct latency_key *row,
			 size_t n)
{
	const struct sql_chains *c = ctx;
	const struct sql *s = c->sql;
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
		   sql_reading_utc(s, v->input, v->ts, v->bound, SQL_UTC_NS),
		   sql_reading_utc(s, v->input, v->ts, v->bound, SQL_UTC_BOUND));
	buf_release(&guest);
	buf_release(&queue);
	return c->in->ret;
}

/* As a plan's `stopped`. */
static bool sql_chain_stopped(void *ctx)
{
	return sql_stopped(((const struct sql_chains *)ctx)->sql);
}

/* All presets by one pass. */
void sql_fill_latency(struct sql *s, struct sql_insert *in)
{
	struct pass_part parts[PASS_PARTS_MAX];
	struct sql_chains all[PASS_PARTS_MAX] = { 0 };
	const struct latency_preset *p;
	struct timeline *t = NULL;
	size_t n = 0, n_parts = 0;
	int ret = timeline_open(&t, s->in, NULL, NULL, &s->once);

	for (; !ret && n < PASS_PARTS_MAX && (p = latency_preset_at(n)); n++) {
		struct sql_chains *c = &all[n];

		*c = (struct sql_chains){ .sql = s, .in = in, .preset = p };
		latency_preset_plan(p, s->in, &c->plan);
		c->plan.queues = false;
		c->plan.each = sql_chain_row;
		c->plan.stopped = sql_chain_stopped;
		c->plan.ctx = c;
		ret = latency_open(&c->latency, s->in, &c->plan, &s->once);
		if (ret || !latency_fed(c->latency))
			continue;
		c->begun = true;
		ret = latency_survey(c->latency) ?: latency_begin(c->latency, t);
		n_parts += latency_parts(c->latency, &parts[n_parts]);
	}
	if (!ret && n_parts)
		ret = pass_read(t, NULL, parts, n_parts);
	for (size_t i = 0; i < n && !ret; i++)
		ret = all[i].begun ? latency_end(all[i].latency) : 0;
	in->ret = ret ?: in->ret;
	for (size_t i = 0; i < PASS_PARTS_MAX; i++)
		latency_close(all[i].latency);
	merge_damage_join(&s->damaged, t ? merge_damaged(t->merge) : 0);
	timeline_close(t);
}
