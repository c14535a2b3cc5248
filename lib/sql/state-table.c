// SPDX-License-Identifier: LGPL-2.1-or-later
/* The tables vcpu_states and thread_states: where time goes, as lib/analysis models it, span by span. */
#include <errno.h>
#include <stdlib.h>

#include "analysis/states.h"
#include "sql/sql-priv.h"
#include "util/array.h"

enum sql_state_what {
	STATE_TS,
	STATE_DUR,
	STATE_MACHINE,
	STATE_GUEST_NAME,
	STATE_VCPU,
	STATE_TID,
	STATE_NAME,
	STATE_CPU,
	STATE_STATE,
	STATE_BY,
	STATE_REASON,
	STATE_OTHER_TID,
	STATE_OTHER_NAME,
	STATE_TS_BOUND,
	STATE_END_BOUND,
	STATE_COARSE
};

static const struct sql_column sql_vcpu_state_columns[] = {
	{ "ts", "INTEGER", KEY_NONE },	      { "dur", "INTEGER", KEY_NONE },
	{ "machine", "TEXT", KEY_NONE },      { "guest", "TEXT", KEY_NONE },
	{ "vcpu", "INTEGER", KEY_NONE },      { "tid", "INTEGER", KEY_NONE },
	{ "cpu", "INTEGER", KEY_NONE },	      { "state", "TEXT", KEY_NONE },
	{ "reason", "TEXT", KEY_NONE },	      { "other_tid", "INTEGER", KEY_NONE },
	{ "other_name", "TEXT", KEY_NONE },   { "ts_bound", "INTEGER", KEY_NONE },
	{ "end_bound", "INTEGER", KEY_NONE }, { "coarse", "INTEGER", KEY_NONE },
};
static const enum sql_state_what sql_vcpu_state_what[] = { STATE_TS,	     STATE_DUR,	       STATE_MACHINE,
							   STATE_GUEST_NAME, STATE_VCPU,       STATE_TID,
							   STATE_CPU,	     STATE_STATE,      STATE_REASON,
							   STATE_OTHER_TID,  STATE_OTHER_NAME, STATE_TS_BOUND,
							   STATE_END_BOUND,  STATE_COARSE };

static const struct sql_column sql_thread_state_columns[] = {
	{ "ts", "INTEGER", KEY_NONE },	      { "dur", "INTEGER", KEY_NONE },
	{ "machine", "TEXT", KEY_NONE },      { "tid", "INTEGER", KEY_NONE },
	{ "name", "TEXT", KEY_NONE },	      { "cpu", "INTEGER", KEY_NONE },
	{ "state", "TEXT", KEY_NONE },	      { "by", "TEXT", KEY_NONE },
	{ "reason", "TEXT", KEY_NONE },	      { "other_tid", "INTEGER", KEY_NONE },
	{ "other_name", "TEXT", KEY_NONE },   { "ts_bound", "INTEGER", KEY_NONE },
	{ "end_bound", "INTEGER", KEY_NONE }, { "coarse", "INTEGER", KEY_NONE },
};
static const enum sql_state_what sql_thread_state_what[] = {
	STATE_TS,	  STATE_DUR,	  STATE_MACHINE,   STATE_TID,	 STATE_NAME,
	STATE_CPU,	  STATE_STATE,	  STATE_BY,	   STATE_REASON, STATE_OTHER_TID,
	STATE_OTHER_NAME, STATE_TS_BOUND, STATE_END_BOUND, STATE_COARSE
};

struct sql_state_cursor {
	struct sql_cursor c;
	struct sql_scan scan;
	struct step_batch batch;
	struct states *states;
	struct state_span *v; /* what the last run of records ended */
	size_t n, i;	      /* v[i] is the row */
	bool ended;
};

/* ---- rows ------------------------------------------------------------------------------------------ */

static int sql_state_span(void *cursor, const struct state_span *span)
{
	struct sql_state_cursor *c = cursor;

	return array_push(&c->v, &c->n, span, sizeof(*span));
}

static void sql_state_close(struct sql_cursor *cursor)
{
	struct sql_state_cursor *c = (struct sql_state_cursor *)cursor;

	states_close(c->states);
	c->states = NULL;
	if (c->scan.t)
		sql_scan_close(&c->scan);
	step_batch_release(&c->batch);
	free(c->v);
	c->v = NULL;
	c->n = c->i = 0;
}

static int sql_state_open(struct sql_cursor *cursor, unsigned int want)
{
	struct sql_state_cursor *c = (struct sql_state_cursor *)cursor;
	struct sql *s = cursor->sql;
	int ret;

	sql_state_close(cursor);
	c->ended = false;
	c->i = SIZE_MAX; /* in front of the first */
	ret = sql_scan_open(&c->scan, s, NULL, PART_ALL);
	return ret ? ret : states_open(&c->states, s->in, c->scan.t, s->steps, want, sql_state_span, c);
}

static int sql_vcpu_state_filter(struct sql_cursor *c)
{
	return sql_state_open(c, STATES_VCPUS);
}

static int sql_thread_state_filter(struct sql_cursor *c)
{
	return sql_state_open(c, STATES_TASKS | STATES_GUEST_TASKS);
}

/* What the next records end: 1; 0: nothing is left. */
static int sql_state_more(struct sql_state_cursor *c)
{
	int ret = sql_scan_run(&c->scan);

	c->n = 0;
	if (ret == 1) {
		struct pass_run run = { .records = &c->scan.run };

		ret = steps_fill(c->c.sql->steps, c->scan.t, &c->scan.run, STATES_STEPS, &c->batch);
		run.steps = c->batch.v;
		run.n_steps = c->batch.n;
		ret = ret ?: states_run(c->states, &run);
		return ret ? ret : 1;
	}
	if (ret || c->ended)
		return ret;
	c->ended = true;
	ret = states_end(c->states);
	if (!ret && states_left_out(c->states))
		sql_note(c->c.sql, "there are more vCPUs and tasks than can be followed: some are left out");
	return ret ? ret : 1;
}

static int sql_state_next(struct sql_cursor *cursor)
{
	struct sql_state_cursor *c = (struct sql_state_cursor *)cursor;

	for (c->i++; c->i >= c->n; c->i = 0) {
		int ret = sql_state_more(c);

		if (ret != 1)
			return ret;
	}
	return 1;
}

/* ---- columns --------------------------------------------------------------------------------------- */

static void sql_state_number(sqlite3_context *to, bool known, uint64_t v)
{
	if (known)
		sqlite3_result_int64(to, sql_ts(v));
}

static void sql_state_comm(struct sql_state_cursor *c, sqlite3_context *to, size_t input, int32_t pid)
{
	const char *name =
		pid == STATE_NO_TASK || input == STATE_NO_INPUT ? NULL : states_comm(c->states, input, pid);

	if (name)
		sqlite3_result_text(to, name, -1, SQLITE_TRANSIENT);
}

static void sql_state_text(struct sql_state_cursor *c, sqlite3_context *to, enum sql_state_what what)
{
	const struct state_span *v = &c->v[c->i];
	const char *reason;

	switch (what) {
	case STATE_MACHINE:
		sql_give_text(to, c->c.sql->in->v[v->owner->input].machine);
		break;
	case STATE_GUEST_NAME:
		sql_give_text(to, v->owner->guest_name);
		break;
	case STATE_NAME:
		sql_state_comm(c, to, v->owner->input, v->owner->pid);
		break;
	case STATE_STATE:
		sql_give_text(to, state_name(v->state));
		break;
	case STATE_BY:
		sql_give_text(to, v->by == STATE_UNKNOWN ? NULL : state_name(v->by));
		break;
	case STATE_REASON:
		reason = states_reason(c->states, v);
		if (reason)
			sqlite3_result_text(to, reason, -1, SQLITE_TRANSIENT);
		break;
	case STATE_OTHER_NAME:
		sql_state_comm(c, to, v->other_input, v->other);
		break;
	default:
		break;
	}
}

static void sql_state_what(struct sql_state_cursor *c, sqlite3_context *to, enum sql_state_what what)
{
	const struct state_span *v = &c->v[c->i];

	switch (what) {
	case STATE_TS:
		sql_state_number(to, true, v->from);
		break;
	case STATE_DUR:
		sql_state_number(to, true, v->to - v->from);
		break;
	case STATE_VCPU:
		sql_state_number(to, v->owner->vcpu != STATE_NO_CPU, v->owner->vcpu);
		break;
	case STATE_TID:
		sql_state_number(to, v->owner->pid >= 0, (uint64_t)v->owner->pid);
		break;
	case STATE_CPU:
		sql_state_number(to, v->cpu != STATE_NO_CPU, v->cpu);
		break;
	case STATE_OTHER_TID:
		sql_state_number(to, v->other != STATE_NO_TASK, (uint64_t)v->other);
		break;
	case STATE_TS_BOUND:
		sql_state_number(to, v->from_bound != UINT64_MAX, v->from_bound);
		break;
	case STATE_END_BOUND:
		sql_state_number(to, v->to_bound != UINT64_MAX, v->to_bound);
		break;
	case STATE_COARSE:
		sql_state_number(to, true, v->coarse);
		break;
	default:
		sql_state_text(c, to, what);
	}
}

static void sql_vcpu_state_column(struct sql_cursor *c, sqlite3_context *to, int i)
{
	sql_state_what((struct sql_state_cursor *)c, to, sql_vcpu_state_what[i]);
}

static void sql_thread_state_column(struct sql_cursor *c, sqlite3_context *to, int i)
{
	sql_state_what((struct sql_state_cursor *)c, to, sql_thread_state_what[i]);
}

/* ---- the tables ------------------------------------------------------------------------------------- */

#define STATE_TABLE(of)                                                                                      \
	.name = #of "_states", .columns = sql_##of##_state_columns,                                          \
	.n = ARRAY_SIZE(sql_##of##_state_columns), .bytes = 100, .size = sizeof(struct sql_state_cursor),    \
	.filter = sql_##of##_state_filter, .next = sql_state_next, .column = sql_##of##_state_column,        \
	.close = sql_state_close

const struct sql_table sql_vcpu_states_table = { STATE_TABLE(vcpu) };
const struct sql_table sql_thread_states_table = { STATE_TABLE(thread) };
