// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The table kvm_exits: each kvm_exit of a vCPU's thread, with how long the guest ran before and how long it
 * took until it ran again. Where events were lost neither is known.
 */
#include "ask/states/exits.h"
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
	struct span row;
	size_t step; /* of the batch: the next one */
	size_t last; /* at the end: of those that are left */
};

static void sql_exit_close(struct sql_cursor *cursor)
{
	struct sql_exit_cursor *c = (struct sql_exit_cursor *)cursor;

	sql_scan_close(&c->scan);
	step_batch_release(&c->batch);
	exit_threads_release(&c->threads);
}

static int sql_exit_filter(struct sql_cursor *cursor)
{
	struct sql_exit_cursor *c = (struct sql_exit_cursor *)cursor;

	return sql_scan_open(&c->scan, cursor->sql, &cursor->want, PART_OTHER)
		       ?: gaps_open(&c->threads.gaps, c->scan.t);
}

static int sql_exit_next(struct sql_cursor *cursor)
{
	struct sql_exit_cursor *c = (struct sql_exit_cursor *)cursor;
	struct sql_scan *scan = &c->scan;
	int ret;

	/* an exit in time ends with its thread's next entry, which may be later */
	do {
		while (c->step < c->batch.n) {
			const struct step *step = &c->batch.v[c->step++];
			uint64_t event = 0;

			if (step->kind == STEP_KVM_EXIT) {
				scan->m = &scan->run.v[step->at];
				event = (uint64_t)sql_id(ID_EVENT, scan->map[step->stream],
							 sql_scan_record(scan));
			}
			ret = exit_threads_step(&c->threads, step, event, &c->row);
			if (ret)
				return ret;
		}
		c->step = 0;
		ret = sql_scan_run(scan);
		if (ret == 1)
			ret = steps_fill(cursor->sql->steps, scan->t, &scan->run,
					 STEP_SET(STEP_KVM_ENTRY) | STEP_SET(STEP_KVM_EXIT), &c->batch)
				      ?: 1;
	} while (ret == 1);
	c->batch.n = 0;
	for (; !ret && c->last < c->threads.n; c->last++)
		if (exit_finish(&c->threads.v[c->last].side, &c->row))
			return 1;
	return ret;
}

static int64_t sql_exit_number(const struct sql_cursor *c)
{
	return (int64_t)((const struct sql_exit_cursor *)c)->row.first;
}

static struct cell sql_exit_column(struct sql_cursor *cursor, int i)
{
	const struct span *row = &((const struct sql_exit_cursor *)cursor)->row;
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
	.bytes = 200,
	.patience = 2,
	.number = sql_exit_number,
};
