// SPDX-License-Identifier: LGPL-2.1-or-later
/* The tables vcpu_states, thread_states and steal: where time goes, as lib/ask/states models it, span by
 * span. */
#include "base/decode/esr.h"
#include "ask/states/reading.h"
#include "ask/sql/sql-priv.h"

enum {
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
	STATE_COARSE,
	STATE_CLASS,
	STATE_MACHINE_ID
};

/* clang-format off */
#define STATE_WHEN                                                 \
	{ "ts", "INTEGER", KEY_NONE, STATE_TS },                   \
	{ "dur", "INTEGER", KEY_NONE, STATE_DUR },                 \
	{ "machine", "TEXT", KEY_NONE, STATE_MACHINE }
/* The explanation of a state, and how wrong its times can be. */
#define STATE_EXPLAINED                                            \
	{ "reason", "TEXT", KEY_NONE, STATE_REASON },              \
	{ "other_tid", "INTEGER", KEY_NONE, STATE_OTHER_TID },     \
	{ "other_name", "TEXT", KEY_NONE, STATE_OTHER_NAME },      \
	{ "ts_bound", "INTEGER", KEY_NONE, STATE_TS_BOUND },       \
	{ "end_bound", "INTEGER", KEY_NONE, STATE_END_BOUND }
/* clang-format on */

static const struct sql_column sql_vcpu_state_columns[] = {
	STATE_WHEN,
	{ "guest", "TEXT", KEY_NONE, STATE_GUEST_NAME },
	{ "vcpu", "INTEGER", KEY_NONE, STATE_VCPU },
	{ "tid", "INTEGER", KEY_NONE, STATE_TID },
	{ "cpu", "INTEGER", KEY_NONE, STATE_CPU },
	{ "state", "TEXT", KEY_NONE, STATE_STATE },
	STATE_EXPLAINED,
	{ "coarse", "INTEGER", KEY_NONE, STATE_COARSE },
	{ "esr_class", "TEXT", KEY_NONE, STATE_CLASS },
	SQL_LAST_COLUMNS(STATE_MACHINE_ID),
};

static const struct sql_column sql_thread_state_columns[] = {
	STATE_WHEN,
	{ "tid", "INTEGER", KEY_NONE, STATE_TID },
	{ "name", "TEXT", KEY_NONE, STATE_NAME },
	{ "cpu", "INTEGER", KEY_NONE, STATE_CPU },
	{ "state", "TEXT", KEY_NONE, STATE_STATE },
	{ "by", "TEXT", KEY_NONE, STATE_BY },
	STATE_EXPLAINED,
	{ "coarse", "INTEGER", KEY_NONE, STATE_COARSE },
	SQL_LAST_COLUMNS(STATE_MACHINE_ID),
};

static const struct sql_column sql_steal_columns[] = {
	STATE_WHEN,
	{ "guest", "TEXT", KEY_NONE, STATE_GUEST_NAME },
	{ "vcpu", "INTEGER", KEY_NONE, STATE_VCPU },
	{ "tid", "INTEGER", KEY_NONE, STATE_TID },
	{ "name", "TEXT", KEY_NONE, STATE_NAME },
	{ "by", "TEXT", KEY_NONE, STATE_BY },
	STATE_EXPLAINED,
	SQL_LAST_COLUMNS(STATE_MACHINE_ID),
};

struct sql_state_cursor {
	struct sql_cursor c;
	struct sql_scan scan;
	struct step_batch batch;
	struct states *states;
	struct state_span *v; /* spans that the last run of records ended: rows */
	size_t n, room;
	bool ended, own; /* own: the states are not those of a reading that others share */
};

static int sql_state_span(void *cursor, const struct state_span *span)
{
	struct sql_state_cursor *c = cursor;

	if (c->c.table == &sql_steal_table && span->state != STATE_STOLEN && span->state != STATE_PREEMPTED)
		return 0;
	return array_push_kept(&c->v, &c->room, &c->n, span, sizeof(*span));
}

static void sql_state_close(struct sql_cursor *cursor)
{
	struct sql_state_cursor *c = (struct sql_state_cursor *)cursor;

	if (c->own)
		states_close(c->states);
	sql_scan_close(&c->scan);
	step_batch_release(&c->batch);
	free(c->v);
}

static unsigned int sql_state_owners(const struct sql_table *t)
{
	return t == &sql_vcpu_states_table ? STATES_VCPUS
	       : t == &sql_steal_table	   ? STATES_VCPUS | STATES_GUEST_TASKS
					   : STATES_TASKS | STATES_GUEST_TASKS;
}

static int sql_state_filter(struct sql_cursor *cursor)
{
	struct sql_state_cursor *c = (struct sql_state_cursor *)cursor;
	struct sql *s = cursor->sql;
	int ret = sql_scan_open(&c->scan, s, NULL, PART_ALL);

	if (ret)
		return ret;
	/* a state does not last over the time in which nothing was recorded */
	merge_tell_pauses(c->scan.t->merge);
	c->own = true;
	return states_open(&c->states, s->in, c->scan.t, s->steps, sql_state_owners(cursor->table),
			   sql_state_span, c);
}

static void sql_state_ended(const struct sql_state_cursor *c)
{
	if (states_left_out(c->states))
		sql_note(c->c.sql, "there are more vCPUs and tasks than can be followed: some are left out");
}

static int sql_state_next(struct sql_cursor *cursor)
{
	struct sql_state_cursor *c = (struct sql_state_cursor *)cursor;
	struct pass_run run = { .records = &c->scan.run };
	int ret;

	/* until records end a span, and at last the spans that the end of all ends */
	do {
		c->n = 0;
		ret = sql_scan_run(&c->scan);
		if (ret == 1) {
			ret = steps_fill(cursor->sql->steps, c->scan.t, &c->scan.run, STATES_STEPS,
					 &c->batch);
			run.steps = c->batch.v;
			run.n_steps = c->batch.n;
			ret = ret ?: states_run(c->states, &run) ?: 1;
		} else if (!ret && !c->ended) {
			c->ended = true;
			ret = states_end(c->states) ?: 1;
			sql_state_ended(c);
		}
	} while (ret == 1 && !c->n);
	return ret == 1 ? (int)c->n : ret;
}

static int sql_state_after(void *ctx, struct pass_run *run)
{
	struct sql_state_cursor *c = ctx;
	size_t n = c->n;

	c->n = 0;
	return sql_cursor_give(&c->c, n);
}

static int sql_state_join(struct sql_cursor *cursor, struct reading *r)
{
	struct sql_state_cursor *c = (struct sql_state_cursor *)cursor;
	unsigned int want = sql_state_owners(cursor->table);
	int ret;

	/* of a model that follows all tasks a vCPU's states are not what they are without */
	c->own = cursor->table == &sql_thread_states_table;
	if (c->own) {
		ret = states_open(&c->states, r->in, r->timeline, r->steps, want, sql_state_span, c);
		reading_add(r, states_part(c->states));
	} else {
		ret = reading_states(r, want, sql_state_span, c);
		c->states = r->states;
	}
	reading_add(r, (struct pass_part){ .ctx = c, .after = sql_state_after });
	return ret;
}

static int sql_state_last(struct sql_cursor *cursor)
{
	struct sql_state_cursor *c = (struct sql_state_cursor *)cursor;
	int ret = c->own ? states_end(c->states) : 0;

	sql_state_ended(c);
	return ret ?: sql_state_after(c, NULL);
}

static const char *sql_state_comm(const struct sql *s, size_t input, int32_t pid)
{
	return pid != STATE_NO_TASK && input != STATE_NO_INPUT ? sql_comm(s, input, pid) : NULL;
}

/* none: the number that stands for no number. */
static int64_t sql_state_number(uint64_t v, uint64_t none)
{
	return v == none ? VALUE_NULL : sql_ts(v);
}

static bool sql_state_values(struct sql_cursor *cursor, int i, size_t from, size_t n, union value *out)
{
	const struct sql_state_cursor *c = (const struct sql_state_cursor *)cursor;
	const struct state_span *v = &c->v[from], *end = v + n;
	const struct sql *s = cursor->sql;
	const struct input *in = s->in->v;
	int what = cursor->table->columns[i].what;
	bool steal = cursor->table == &sql_steal_table;

	switch (what) {
	case STATE_TS:
		SQL_NUMBERS(sql_ts(v->from));
	case STATE_DUR:
		SQL_NUMBERS(sql_ts(v->to - v->from));
	case STATE_VCPU: /* of a task its CPU */
		SQL_NUMBERS(sql_state_number(steal && v->state == STATE_STOLEN ? v->cpu : v->owner->vcpu,
					     STATE_NO_CPU));
	case STATE_TID:
		SQL_NUMBERS(v->owner->pid >= 0 ? v->owner->pid : VALUE_NULL);
	case STATE_CPU:
		SQL_NUMBERS(sql_state_number(v->cpu, STATE_NO_CPU));
	case STATE_OTHER_TID:
		SQL_NUMBERS(v->other != STATE_NO_TASK ? v->other : VALUE_NULL);
	case STATE_TS_BOUND:
		SQL_NUMBERS(sql_state_number(v->from_bound, UINT64_MAX));
	case STATE_END_BOUND:
		SQL_NUMBERS(sql_state_number(v->to_bound, UINT64_MAX));
	case STATE_MACHINE_ID:
		SQL_NUMBERS(v->owner->input);
	case STATE_COARSE:
		SQL_NUMBERS(v->coarse);
	case STATE_MACHINE:
		SQL_TEXTS(in[v->owner->input].machine);
	case STATE_GUEST_NAME:
		SQL_TEXTS(steal && v->state == STATE_STOLEN ? in[v->owner->input].machine
							    : v->owner->guest_name);
	case STATE_NAME:
		SQL_TEXTS(v->owner->kind == STATE_OF_VCPU
				  ? NULL
				  : sql_state_comm(s, v->owner->input, v->owner->pid));
	case STATE_STATE:
		SQL_TEXTS(state_name(v->state));
	case STATE_BY: /* preempted: of steal alone */
		SQL_TEXTS(v->state == STATE_PREEMPTED ? state_name(v->state)
			  : v->by == STATE_UNKNOWN    ? NULL
						      : state_name(v->by));
	case STATE_REASON:
		SQL_TEXTS(states_reason(c->states, v));
	case STATE_CLASS:
		SQL_TEXTS(v->why == STEP_KVM_EXIT && v->class < 64 ? esr_ec_name((unsigned int)v->class)
								   : NULL);
	case STATE_OTHER_NAME:
		SQL_TEXTS(sql_state_comm(s, v->other_input, v->other));
	default: /* SQL_UTC_NS, SQL_UTC_BOUND */
		SQL_NUMBERS(sql_utc(s, v->owner->input, v->from, v->from_bound, what));
	}
}

#define STATE_TABLE(title, of)                                                                               \
	.bytes = 100, .patience = 2, .values = sql_state_values, .join = sql_state_join,                     \
	.last = sql_state_last, SQL_TABLE(title, sql_##of##_columns, state)

const struct sql_table sql_vcpu_states_table = { STATE_TABLE("vcpu_states", vcpu_state) };
const struct sql_table sql_thread_states_table = { STATE_TABLE("thread_states", thread_state) };
const struct sql_table sql_steal_table = { STATE_TABLE("steal", steal) };
