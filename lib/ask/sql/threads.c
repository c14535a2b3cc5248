// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Names of tasks. A file's own table of them names the tasks of events and states. The table threads adds
 * the last name that an event of the scheduler gives, an exec's file name included.
 */
#include "ask/states/reading.h"
#include "ask/sql/sql-priv.h"
#include "base/cursor.h"

#define PIDS 4194304 /* the kernel's PID_MAX_LIMIT */

struct sql_task {
	uint64_t key; /* first, for u64_below: input << 32 | tid */
	char *name;
};

void sql_tasks_free(struct sql_tasks *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->v[i].name);
	free(t->v);
	*t = (struct sql_tasks){ 0 };
}

static uint64_t sql_task_key(size_t input, int32_t tid)
{
	return (uint64_t)input << 32 | (uint32_t)tid;
}

/* True if the task is there; *at: its place, or where it belongs. */
static bool sql_tasks_find(const struct sql_tasks *t, uint64_t key, size_t *at)
{
	*at = array_lower_bound(t->v, t->n, sizeof(*t->v), u64_below, &key);
	return *at < t->n && t->v[*at].key == key;
}

/* Replaces the name before. -ENOMEM. */
static int sql_tasks_name(struct sql_tasks *t, size_t input, int32_t tid, const char *name, size_t len)
{
	struct sql_task new = { sql_task_key(input, tid), NULL };
	size_t at;
	bool there = sql_tasks_find(t, new.key, &at);

	if (there && strlen(t->v[at].name) == len && !memcmp(t->v[at].name, name, len))
		return 0;
	new.name = strndup(name, len);
	if (!new.name || (!there && array_insert(&t->v, &t->n, at, &new, sizeof(new)))) {
		free(new.name);
		return -ENOMEM;
	}
	if (there) {
		free(t->v[at].name);
		t->v[at] = new;
	}
	return 0;
}

int sql_tasks_read(struct sql_tasks *t, const struct inputs *in)
{
	const char *name;
	uint64_t pid;
	size_t len;
	int ret = 0;

	for (size_t i = 0; i < in->n && !ret; i++) {
		const struct dat_text *text = &reader_info(in->v[i].reader)->cmdlines;
		struct cursor c = cursor_at(text->data, text->len);

		while (!ret && reader_task(&c, &pid, &name, &len))
			ret = pid < PIDS ? sql_tasks_name(t, i, (int32_t)pid, name, len) : 0;
	}
	return ret;
}

const char *sql_comm(const struct sql *s, size_t input, int32_t tid)
{
	size_t at;

	return !tid							  ? "<idle>"
	       : sql_tasks_find(&s->saved, sql_task_key(input, tid), &at) ? s->saved.v[at].name
									  : NULL;
}

struct sql_threads {
	const struct reading *reading;
	struct sql_tasks tasks;
};

static int sql_threads_after(void *ctx, struct pass_run *run)
{
	struct sql_threads *j = ctx;
	int ret = 0;

	for (size_t i = 0; i < run->records->n && !ret; i++) {
		const struct merge_record *m = &run->records->v[i];
		size_t input = merge_stream(j->reading->timeline->merge, m)->input;
		struct step_named named[STEP_NAMED];

		for (size_t k = steps_named(j->reading->steps, input, m, named), at = 0; at < k && !ret; at++)
			if (named[at].pid < PIDS)
				ret = sql_tasks_name(&j->tasks, input, named[at].pid, named[at].comm,
						     named[at].len);
	}
	return ret;
}

/* By all events that name tasks. */
int sql_threads_join(struct sql_insert *in, struct reading *r)
{
	struct sql_threads *j = in->job = calloc(1, sizeof(*j));

	if (!j)
		return -ENOMEM;
	j->reading = r;
	reading_add(r, (struct pass_part){ .ctx = j, .after = sql_threads_after });
	return sql_tasks_read(&j->tasks, r->in);
}

void sql_threads_end(struct sql_insert *in)
{
	struct sql_threads *j = in->job;

	if (!j)
		return;
	for (size_t i = 0; i < j->tasks.n && !in->ret; i++) {
		uint64_t key = j->tasks.v[i].key, input = key >> 32;

		sql_insert(in, (int64_t)i + 1, in->sql->in->v[input].machine, (int64_t)(uint32_t)key,
			   j->tasks.v[i].name, (int64_t)input);
	}
	sql_tasks_free(&j->tasks);
	free(j);
}
