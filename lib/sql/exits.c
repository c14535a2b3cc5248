// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The table kvm_exits: each kvm_exit of a vCPU's thread, with how long the guest ran before and how long it
 * took until it ran again. Where events were lost neither is known.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "decode/esr.h"
#include "sql/sql-priv.h"

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
	EXIT_ESR_CLASS
};

static const struct sql_column sql_exit_columns[] = {
	[EXIT_ID] = { "event_id", "INTEGER", KEY_NONE },
	[EXIT_TS] = { "ts", "INTEGER", KEY_NONE },
	[EXIT_DUR] = { "dur", "INTEGER", KEY_NONE },
	[EXIT_GUEST_DUR] = { "guest_dur", "INTEGER", KEY_NONE },
	[EXIT_MACHINE] = { "machine", "TEXT", KEY_MACHINE },
	[EXIT_CPU] = { "cpu", "INTEGER", KEY_NONE },
	[EXIT_TID] = { "tid", "INTEGER", KEY_NONE },
	[EXIT_GUEST] = { "guest", "TEXT", KEY_NONE },
	[EXIT_VCPU] = { "vcpu", "INTEGER", KEY_NONE },
	[EXIT_REASON] = { "reason", "TEXT", KEY_NONE },
	[EXIT_ESR_CLASS] = { "esr_class", "TEXT", KEY_NONE },
};

#define EXIT_NOTHING (-1)
#define EXIT_THREADS 4096

/* What a vCPU's thread does. */
struct sql_exit {
	size_t input, stream;
	uint64_t record; /* of kvm_exit */
	int32_t tid;
	bool entered, exited; /* `since` is a kvm_entry's; the rest is a kvm_exit's, whose end is to come */
	bool lost;	      /* events, since then */
	uint64_t since, ts;
	int64_t dur, guest_dur; /* EXIT_NOTHING: not known */
	uint64_t reason, ec;
};

struct sql_exit_cursor {
	struct sql_cursor c;
	struct sql_scan scan;
	struct step_batch batch;
	struct sql_exit *threads;
	size_t n;
	struct sql_exit row;
	size_t last; /* at the end: of those that are left */
};

/* ---- threads -------------------------------------------------------------------------------------- */

/* NULL: there are too many. */
static struct sql_exit *sql_exit_thread(struct sql_exit_cursor *c, const struct step *step)
{
	struct sql_exit one = { .input = step->input, .tid = step->pid };

	for (size_t i = 0; i < c->n; i++)
		if (c->threads[i].tid == step->pid && c->threads[i].input == step->input)
			return &c->threads[i];
	if (c->n == EXIT_THREADS)
		return NULL;
	c->threads[c->n] = one;
	return &c->threads[c->n++];
}

static void sql_exit_lost(struct sql_exit_cursor *c, size_t input)
{
	for (size_t i = 0; i < c->n; i++)
		if (c->threads[i].input == input) {
			c->threads[i].entered = false;
			c->threads[i].lost = true;
		}
}

/* Whether c->row is an exit that ended; known: by an entry. */
static bool sql_exit_end(struct sql_exit_cursor *c, struct sql_exit *t, uint64_t ts, bool known)
{
	if (!t->exited)
		return false;
	c->row = *t;
	c->row.dur = known && !t->lost && ts >= t->ts ? (int64_t)(ts - t->ts) : EXIT_NOTHING;
	t->exited = false;
	return true;
}

static bool sql_exit_step(struct sql_exit_cursor *c, const struct step *step)
{
	struct sql_exit *t = step->pid < 0 ? NULL : sql_exit_thread(c, step);
	bool row;

	if (!t)
		return false;
	/* two exits one after the other: an entry is missing between them */
	row = sql_exit_end(c, t, step->ts, step->kind == STEP_KVM_ENTRY);
	t->lost = false;
	if (step->kind == STEP_KVM_ENTRY) {
		t->entered = true;
		t->since = step->ts;
		return row;
	}
	t->exited = true;
	t->guest_dur = t->entered && step->ts >= t->since ? (int64_t)(step->ts - t->since) : EXIT_NOTHING;
	t->entered = false;
	t->ts = step->ts;
	t->stream = c->scan.stream;
	t->record = c->scan.record;
	t->reason = step->a;
	t->ec = step->b;
	return row;
}

/* ---- rows ------------------------------------------------------------------------------------------ */

static void sql_exit_close(struct sql_cursor *cursor)
{
	struct sql_exit_cursor *c = (struct sql_exit_cursor *)cursor;

	if (c->scan.t)
		sql_scan_close(&c->scan);
	step_batch_release(&c->batch);
	free(c->threads);
	c->threads = NULL;
	c->n = c->last = 0;
}

static int sql_exit_filter(struct sql_cursor *cursor)
{
	struct sql_exit_cursor *c = (struct sql_exit_cursor *)cursor;

	sql_exit_close(cursor);
	c->threads = calloc(EXIT_THREADS, sizeof(*c->threads));
	return c->threads ? sql_scan_open(&c->scan, cursor->sql, &cursor->want, PART_OTHER) : -ENOMEM;
}

/* 1: c->row; 0: the record ends no exit. */
static int sql_exit_record(struct sql_exit_cursor *c)
{
	const struct merge_record *m = c->scan.m;
	size_t input = c->c.sql->streams[c->scan.stream].input;
	enum step_kind kind = m->data ? steps_kind(c->c.sql->steps, input, timeline_id(m)) : STEP_NONE;
	struct merge_record one = *m;
	struct merge_run run = { .v = &one, .n = 1 };
	int ret;

	if (m->missed || m->paused)
		sql_exit_lost(c, input);
	if (kind != STEP_KVM_ENTRY && kind != STEP_KVM_EXIT)
		return 0;
	one.missed = 0;
	one.paused = false;
	ret = steps_fill(c->c.sql->steps, c->scan.t, &run, STEPS_ALL, &c->batch);
	return ret ? ret : c->batch.n && sql_exit_step(c, &c->batch.v[0]);
}

static int sql_exit_next(struct sql_cursor *cursor)
{
	struct sql_exit_cursor *c = (struct sql_exit_cursor *)cursor;
	int ret;

	/* an exit in time ends with its thread's next entry, which may be later */
	while ((ret = sql_scan_next(&c->scan)) == 1) {
		ret = sql_exit_record(c);
		if (ret)
			return ret;
	}
	for (; !ret && c->last < c->n; c->last++)
		if (sql_exit_end(c, &c->threads[c->last], 0, false))
			return 1;
	return ret;
}

/* ---- columns --------------------------------------------------------------------------------------- */

static void sql_exit_dur(sqlite3_context *to, int64_t dur)
{
	if (dur != EXIT_NOTHING)
		sqlite3_result_int64(to, dur);
}

static void sql_exit_reason(const struct sql_exit_cursor *c, sqlite3_context *to)
{
	const char *word = steps_reason(c->c.sql->steps, c->row.input, STEP_KVM_EXIT, c->row.reason);

	if (c->row.reason == STEP_UNKNOWN)
		return;
	if (!word)
		word = kvm_exit_arm_name((uint32_t)c->row.reason);
	if (word)
		sqlite3_result_text(to, word, -1, SQLITE_TRANSIENT);
	else
		sqlite3_result_text(to, sqlite3_mprintf("%u", (uint32_t)c->row.reason), -1, sqlite3_free);
}

static void sql_exit_class(const struct sql_exit_cursor *c, sqlite3_context *to)
{
	const char *name = c->row.ec < 64 ? esr_ec_name((unsigned int)c->row.ec) : NULL;

	if (c->row.ec != STEP_UNKNOWN && c->row.reason == KVM_EXIT_ARM_TRAP)
		sql_give_text(to, name);
}

static void sql_exit_guest(const struct sql_exit_cursor *c, sqlite3_context *to, bool name)
{
	const struct offset_guest *guest = NULL;
	const struct offset_vcpu *vcpu = input_vcpu(&c->c.sql->in->v[c->row.input], c->row.tid, &guest);

	if (vcpu && name)
		sql_give_text(to, guest->name);
	else if (vcpu)
		sqlite3_result_int64(to, vcpu->cpu);
}

static void sql_exit_column(struct sql_cursor *cursor, sqlite3_context *to, int i)
{
	const struct sql_exit_cursor *c = (const struct sql_exit_cursor *)cursor;
	const struct sql_exit *row = &c->row;

	switch (i) {
	case EXIT_ID:
		sqlite3_result_int64(to, sql_id(ID_EVENT, row->stream, row->record));
		break;
	case EXIT_TS:
		sqlite3_result_int64(to, sql_ts(row->ts));
		break;
	case EXIT_DUR:
		sql_exit_dur(to, row->dur);
		break;
	case EXIT_GUEST_DUR:
		sql_exit_dur(to, row->guest_dur);
		break;
	case EXIT_MACHINE:
		sql_give_text(to, cursor->sql->in->v[row->input].machine);
		break;
	case EXIT_CPU:
		sqlite3_result_int64(to, cursor->sql->streams[row->stream].cpu);
		break;
	case EXIT_TID:
		sqlite3_result_int(to, row->tid);
		break;
	case EXIT_GUEST:
	case EXIT_VCPU:
		sql_exit_guest(c, to, i == EXIT_GUEST);
		break;
	case EXIT_REASON:
		sql_exit_reason(c, to);
		break;
	case EXIT_ESR_CLASS:
		sql_exit_class(c, to);
		break;
	}
}

const struct sql_table sql_exits_table = {
	.name = "kvm_exits",
	.columns = sql_exit_columns,
	.n = ARRAY_SIZE(sql_exit_columns),
	.bytes = 200,
	.size = sizeof(struct sql_exit_cursor),
	.filter = sql_exit_filter,
	.next = sql_exit_next,
	.column = sql_exit_column,
	.close = sql_exit_close,
};
