// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The table kvm_exits: each kvm_exit of a vCPU's thread, with how long the guest ran before and how long it
 * took until it ran again. Where events were lost neither is known.
 */
#include "ask/states/reading.h"
#include "base/decode/esr.h"
#include "ask/sql/sql-priv.h"

enum {
	EXIT_ID,
	EXIT_TS,
	EXIT_DUR,
	EXIT_GUEST_DUR,
	EXIT_MACHINE,
	EXIT_CPU,
	EXIT_TID,
	EXIT_GUEST,
	EXIT_VCPU,
	EXIT_REASON,
	EXIT_ESR_CLASS,
	EXIT_MACHINE_ID
};

static const struct sql_column sql_exit_columns[] = {
	{ "event_id", "INTEGER", KEY_NONE, EXIT_ID },
	{ "ts", "INTEGER", KEY_NONE, EXIT_TS },
	{ "dur", "INTEGER", KEY_NONE, EXIT_DUR },
	{ "guest_dur", "INTEGER", KEY_NONE, EXIT_GUEST_DUR },
	{ "machine", "TEXT", KEY_MACHINE, EXIT_MACHINE },
	{ "cpu", "INTEGER", KEY_NONE, EXIT_CPU },
	{ "tid", "INTEGER", KEY_NONE, EXIT_TID },
	{ "guest", "TEXT", KEY_NONE, EXIT_GUEST },
	{ "vcpu", "INTEGER", KEY_NONE, EXIT_VCPU },
	{ "reason", "TEXT", KEY_NONE, EXIT_REASON },
	{ "esr_class", "TEXT", KEY_NONE, EXIT_ESR_CLASS },
	SQL_LAST_COLUMNS(EXIT_MACHINE_ID),
};

struct sql_exit_cursor {
	struct sql_cursor c;
	struct sql_scan scan;
	struct step_batch batch;
	struct exit_threads threads;
	struct span *v; /* exits that the last run of records ended: rows */
	size_t n, room;
};

#define EXIT_STEPS (STEP_SET(STEP_KVM_ENTRY) | STEP_SET(STEP_KVM_EXIT))

static void sql_exit_close(struct sql_cursor *cursor)
{
	struct sql_exit_cursor *c = (struct sql_exit_cursor *)cursor;

	sql_scan_close(&c->scan);
	step_batch_release(&c->batch);
	exit_threads_release(&c->threads);
	free(c->v);
}

static int sql_exit_filter(struct sql_cursor *cursor)
{
	struct sql_exit_cursor *c = (struct sql_exit_cursor *)cursor;

	return sql_scan_open(&c->scan, cursor->sql, &cursor->want, PART_OTHER)
		       ?: gaps_open(&c->threads.gaps, c->scan.t);
}

/* The exits that the run's steps end. */
static int sql_exit_after(void *ctx, struct pass_run *run)
{
	struct sql_exit_cursor *c = ctx;
	struct sql_scan *scan = &c->scan;
	struct span row;
	int ret = 0;

	scan->run = *run->records;
	c->n = 0;
	for (const struct step *v = run->steps, *end = v + run->n_steps; v < end && !ret; v++) {
		uint64_t event = 0;

		if (v->kind == STEP_KVM_EXIT) {
			scan->m = &scan->run.v[v->at];
			event = (uint64_t)sql_id(ID_EVENT, scan->map[v->stream], sql_scan_record(scan));
		}
		ret = exit_threads_step(&c->threads, v, event, &row);
		if (ret == 1)
			ret = array_push_kept(&c->v, &c->room, &c->n, &row, sizeof(row));
	}
	return ret ?: sql_cursor_give(&c->c, c->n);
}

/* At the end: those of all threads that are open. */
static int sql_exit_last(struct sql_cursor *cursor)
{
	struct sql_exit_cursor *c = (struct sql_exit_cursor *)cursor;
	struct span row;
	int ret = 0;

	c->n = 0;
	for (size_t i = 0; i < c->threads.n && !ret; i++)
		if (exit_finish(&c->threads.v[i].side, &row))
			ret = array_push_kept(&c->v, &c->room, &c->n, &row, sizeof(row));
	return ret ?: sql_cursor_give(cursor, c->n);
}

static int sql_exit_join(struct sql_cursor *cursor, struct reading *r)
{
	struct sql_exit_cursor *c = (struct sql_exit_cursor *)cursor;

	reading_add(r, (struct pass_part){ .ctx = c, .steps = EXIT_STEPS, .after = sql_exit_after });
	return sql_scan_join(&c->scan, cursor->sql, r->timeline) ?: gaps_open(&c->threads.gaps, r->timeline);
}

/* An exit in time ends with its thread's next entry, which may be later. */
static int sql_exit_next(struct sql_cursor *cursor)
{
	struct sql_exit_cursor *c = (struct sql_exit_cursor *)cursor;
	struct pass_run run = { .records = &c->scan.run };
	int ret;

	do {
		ret = sql_scan_run(&c->scan);
		if (ret != 1)
			return ret ?: sql_exit_last(cursor) ?: (int)c->n;
		ret = steps_fill(cursor->sql->steps, c->scan.t, &c->scan.run, EXIT_STEPS, &c->batch);
		run.steps = c->batch.v;
		run.n_steps = c->batch.n;
		ret = ret ?: sql_exit_after(c, &run);
	} while (!ret && !c->n);
	return ret ?: (int)c->n;
}

static int64_t sql_exit_number(const struct sql_cursor *c)
{
	return (int64_t)((const struct sql_exit_cursor *)c)->v[c->at].first;
}

static struct cell sql_exit_column(struct sql_cursor *cursor, int i)
{
	const struct span *row = &((const struct sql_exit_cursor *)cursor)->v[cursor->at];
	const struct input *in = &cursor->sql->in->v[row->machine];
	int what = cursor->table->columns[i].what;
	const char *word;

	switch (what) {
	case EXIT_ID:
		return sql_number(sql_exit_number(cursor));
	case EXIT_TS:
		return sql_number(sql_ts(row->from));
	case EXIT_DUR:
		return row->end == SPAN_PAIRED ? sql_number((int64_t)(row->to - row->from)) : SQL_NOTHING;
	case EXIT_GUEST_DUR:
		return row->before != SPAN_UNKNOWN ? sql_number((int64_t)row->before) : SQL_NOTHING;
	case EXIT_MACHINE:
		return sql_text(in->machine);
	case EXIT_MACHINE_ID:
		return sql_number((int64_t)row->machine);
	case EXIT_CPU:
		return sql_number(row->cpu);
	case EXIT_TID:
		return sql_number(row->pid);
	case EXIT_GUEST:
	case EXIT_VCPU:
		return sql_vcpu(in, row->pid, what == EXIT_GUEST);
	case EXIT_REASON:
		if (row->why == SPAN_UNKNOWN)
			break;
		word = steps_reason(cursor->sql->steps, row->machine, STEP_KVM_EXIT, row->why)
			       ?: kvm_exit_arm_name((uint32_t)row->why);
		return word ? sql_text(word) : sql_number_text(cursor, (uint32_t)row->why);
	case SQL_UTC_NS:
	case SQL_UTC_BOUND:
		return sql_utc(cursor->sql, row->machine, row->from, 0, what);
	case EXIT_ESR_CLASS:
		if (row->ec < 64 && row->why == KVM_EXIT_ARM_TRAP)
			return sql_text(esr_ec_name((unsigned int)row->ec));
	}
	return SQL_NOTHING;
}

const struct sql_table sql_exits_table = {
	SQL_TABLE("kvm_exits", sql_exit_columns, exit),
	.column = sql_exit_column,
	.bytes = 200,
	.patience = 2,
	.number = sql_exit_number,
	.join = sql_exit_join,
	.last = sql_exit_last,
};
