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

		if (!(STEP_SET(v->kind) & (EXIT_STEPS | STEPS_LOSSES)))
			continue;
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

/* The reason: the others have values. */
static struct cell sql_exit_column(struct sql_cursor *cursor, int i)
{
	const struct span *row = &((const struct sql_exit_cursor *)cursor)->v[cursor->at];
	const char *word;

	if (row->why == SPAN_UNKNOWN)
		return SQL_NOTHING;
	word = steps_reason(cursor->sql->steps, row->machine, STEP_KVM_EXIT, row->why)
		       ?: kvm_exit_arm_name((uint32_t)row->why);
	return word ? sql_text(word) : sql_number_text(cursor, (uint32_t)row->why);
}

static bool sql_exit_values(struct sql_cursor *cursor, int i, size_t from, size_t n, union value *out)
{
	const struct span *v = &((const struct sql_exit_cursor *)cursor)->v[from], *end = v + n;
	const struct input *in = cursor->sql->in->v;
	int what = cursor->table->columns[i].what;

	switch (what) {
	case EXIT_ID:
		SQL_NUMBERS((int64_t)v->first);
	case EXIT_TS:
		SQL_NUMBERS(sql_ts(v->from));
	case EXIT_DUR:
		SQL_NUMBERS(v->end == SPAN_PAIRED ? (int64_t)(v->to - v->from) : VALUE_NULL);
	case EXIT_GUEST_DUR:
		SQL_NUMBERS(v->before != SPAN_UNKNOWN ? (int64_t)v->before : VALUE_NULL);
	case EXIT_MACHINE:
		SQL_TEXTS(in[v->machine].machine);
	case EXIT_MACHINE_ID:
		SQL_NUMBERS(v->machine);
	case EXIT_CPU:
		SQL_NUMBERS(v->cpu);
	case EXIT_TID:
		SQL_NUMBERS(v->pid);
	case EXIT_GUEST:
		SQL_TEXTS(sql_guest(&in[v->machine], v->pid));
	case EXIT_VCPU:
		SQL_NUMBERS(sql_vcpu(&in[v->machine], v->pid));
	case EXIT_ESR_CLASS:
		SQL_TEXTS(v->ec < 64 && v->why == KVM_EXIT_ARM_TRAP ? esr_ec_name((unsigned int)v->ec)
								    : NULL);
	case SQL_UTC_NS:
	case SQL_UTC_BOUND:
		SQL_NUMBERS(sql_utc(cursor->sql, v->machine, v->from, 0, what));
	}
	return false;
}

const struct sql_table sql_exits_table = {
	SQL_TABLE("kvm_exits", sql_exit_columns, exit),
	.column = sql_exit_column,
	.values = sql_exit_values,
	.bytes = 200,
	.patience = 2,
	.number = sql_exit_number,
	.join = sql_exit_join,
	.last = sql_exit_last,
};
