// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Names of tasks. A file's own table of them names the tasks of events and states. The table threads adds
 * the last name that an event of the scheduler gives, an exec's file name included.
 */
#include "ask/states/reading.h"
#include "ask/sql/sql-priv.h"
#include "base/cursor.h"

#define PIDS	 4194304 /* the kernel's PID_MAX_LIMIT */
#define COMM_LEN 15	 /* its TASK_COMM_LEN, without the NUL */

struct sql_task {
	size_t input;
	int32_t tid;
	char *name;
};

void sql_tasks_free(struct sql_tasks *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->v[i].name);
	free(t->v);
	*t = (struct sql_tasks){ 0 };
}

static bool sql_task_before(const void *entry, const void *key)
{
	const struct sql_task *a = entry, *b = key;

	return a->input < b->input || (a->input == b->input && a->tid < b->tid);
}

/* True if the task is there; *at: its place, or where it belongs. */
static bool sql_tasks_find(const struct sql_tasks *t, size_t input, int32_t tid, size_t *at)
{
	const struct sql_task key = { input, tid, NULL };

	*at = array_lower_bound(t->v, t->n, sizeof(*t->v), sql_task_before, &key);
	return *at < t->n && t->v[*at].input == input && t->v[*at].tid == tid;
}

/* Replaces the name before. -ENOMEM. */
static int sql_tasks_name(struct sql_tasks *t, size_t input, int32_t tid, const char *name, size_t len)
{
	struct sql_task new = { input, tid, NULL };
	size_t at;
	bool there = sql_tasks_find(t, input, tid, &at);

	if (there && strlen(t->v[at].name) == len && !memcmp(t->v[at].name, name, len))
		return 0;
	new.name = strndup(name, len);
	if (!new.name || (!there && array_push(&t->v, &t->n, &new, sizeof(new)))) {
		free(new.name);
		return -ENOMEM;
	}
	if (there)
		free(t->v[at].name);
	else
		memmove(&t->v[at + 1], &t->v[at], (t->n - 1 - at) * sizeof(new));
	t->v[at] = new;
	return 0;
}

int sql_tasks_read(struct sql_tasks *t, const struct inputs *in)
{
	const char *line;
	size_t len;
	int ret = 0;

	for (size_t i = 0; i < in->n && !ret; i++) {
		const struct dat_text *text = &reader_info(in->v[i].reader)->cmdlines;
		struct cursor c = cursor_at(text->data, text->len);

		/* "87 CPU 0/KVM", by line */
		while (!ret && cursor_line(&c, &line, &len)) {
			struct cursor at = cursor_at(line, len);
			int32_t pid = 0;
			bool number = false;

			for (; cursor_peek(&at) >= '0' && cursor_peek(&at) <= '9' && pid < PIDS;
			     number = true)
				pid = pid * 10 + cursor_u8(&at) - '0';
			if (number && cursor_accept(&at, ' '))
				ret = sql_tasks_name(t, i, pid, (const char *)at.p, cursor_left(&at));
		}
	}
	return ret;
}

const char *sql_comm(const struct sql *s, size_t input, int32_t tid)
{
	size_t at;

	return !tid ? "<idle>" : sql_tasks_find(&s->saved, input, tid, &at) ? s->saved.v[at].name : NULL;
}

/* An event's fields that name a task. */
struct sql_naming {
	bool known, exec;
	struct field_load pid[2], name[2];
};

static void sql_naming_of(struct sql_naming *n, struct tep_event *e)
{
	static const char *const fields[][2] = {
		{ "prev_pid", "prev_comm" }, { "next_pid", "next_comm" }, { "child_pid", "child_comm" },
		{ "pid", "newcomm" },	     { "pid", "comm" },		  { "pid", "filename" }
	};
	size_t k = 0, i = 0;

	n->known = true;
	n->exec = !strcmp(e->name, "sched_process_exec");
	if (strcmp(e->system, "sched") != 0 && strcmp(e->system, "task") != 0)
		return;
	for (i = n->exec ? 5 : 0; i < 5u + n->exec && k < ARRAY_SIZE(n->pid); i++) {
		n->pid[k] = field_load(tep_find_field(e, fields[i][0]));
		n->name[k] = field_load(tep_find_field(e, fields[i][1]));
		k += n->pid[k].kind == FIELD_NUMBER && n->name[k].kind != FIELD_NONE;
	}
}

static int sql_threads_record(struct sql_tasks *t, const struct sql_naming *n, const struct merge_record *m,
			      size_t input)
{
	for (size_t i = 0; i < ARRAY_SIZE(n->pid); i++) {
		const uint8_t *name, *slash;
		uint64_t pid;
		size_t len;

		if (n->pid[i].kind != FIELD_NUMBER || !field_load_number(&n->pid[i], m->data, m->len, &pid) ||
		    !pid || pid >= PIDS || field_load_bytes(&n->name[i], m->data, m->len, &name, &len) != 1)
			continue;
		len = strnlen((const char *)name, len);
		slash = n->exec ? memrchr(name, '/', len) : NULL;
		if (slash) {
			len -= (size_t)(slash + 1 - name);
			name = slash + 1;
		}
		if (len && sql_tasks_name(t, input, (int32_t)pid, (const char *)name,
					  len < COMM_LEN ? len : COMM_LEN))
			return -ENOMEM;
	}
	return 0;
}

struct sql_threads {
	const struct timeline *t;
	struct sql_naming **events; /* by input and id */
	struct sql_tasks tasks;
};

static int sql_threads_after(void *ctx, struct pass_run *run)
{
	struct sql_threads *j = ctx;
	int ret = 0;

	for (size_t i = 0; i < run->records->n && !ret; i++) {
		const struct merge_record *m = &run->records->v[i];
		size_t input = merge_stream(j->t->merge, m)->input;
		unsigned int id;
		const struct known_event *k = m->data ? timeline_event(j->t, m, &id) : NULL;

		if (!k)
			continue;
		if (!j->events[input][id].known)
			sql_naming_of(&j->events[input][id], k->event);
		ret = sql_threads_record(&j->tasks, &j->events[input][id], m, input);
	}
	return ret;
}

/* By all events that name tasks. */
int sql_threads_join(struct sql_insert *in, struct reading *r)
{
	struct sql_threads *j = in->job = calloc(1, sizeof(*j));

	if (!j)
		return -ENOMEM;
	j->t = r->timeline;
	j->events = inputs_table(r->in, 0, sizeof(**j->events));
	reading_add(r, (struct pass_part){ .ctx = j, .after = sql_threads_after });
	return j->events ? sql_tasks_read(&j->tasks, r->in) : -ENOMEM;
}

void sql_threads_end(struct sql_insert *in)
{
	struct sql_threads *j = in->job;

	if (!j)
		return;
	for (size_t i = 0; i < j->tasks.n && !in->ret; i++)
		sql_insert(in, (int64_t)i + 1, in->sql->in->v[j->tasks.v[i].input].machine,
			   (int64_t)j->tasks.v[i].tid, j->tasks.v[i].name, (int64_t)j->tasks.v[i].input);
	sql_tasks_free(&j->tasks);
	free(j->events);
	free(j);
}
