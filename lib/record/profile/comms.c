// SPDX-License-Identifier: LGPL-2.1-or-later
/* The tasks that are sampled: their names, and whether their maps are known. */
#include "record/profile/profile-priv.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>

#include "base/array.h"
#include "base/files.h"

struct profile_task {
	int32_t tid;
	bool maps; /* are known */
	char comm[16];
};

struct profile_tasks {
	pthread_mutex_t lock;
	struct profile_task *v; /* by tid */
	size_t n;
};

struct profile_tasks *profile_tasks_new(void)
{
	struct profile_tasks *t = calloc(1, sizeof(*t));

	if (t)
		pthread_mutex_init(&t->lock, NULL);
	return t;
}

void profile_tasks_free(struct profile_tasks *t)
{
	if (!t)
		return;
	pthread_mutex_destroy(&t->lock);
	free(t->v);
	free(t);
}

static bool profile_task_before(const void *entry, const void *tid)
{
	return ((const struct profile_task *)entry)->tid < *(const int32_t *)tid;
}

/* NULL: not known. Under the lock, as the next one. */
static struct profile_task *profile_task_find(struct profile_tasks *t, int32_t tid)
{
	size_t i = array_lower_bound(t->v, t->n, sizeof(*t->v), profile_task_before, &tid);

	return i < t->n && t->v[i].tid == tid ? &t->v[i] : NULL;
}

/* Adds or replaces it. */
static int profile_task_put(struct profile_tasks *t, const struct profile_task *task)
{
	size_t i = array_lower_bound(t->v, t->n, sizeof(*t->v), profile_task_before, &task->tid);

	if (i == t->n || t->v[i].tid != task->tid) {
		if (array_push(&t->v, &t->n, task, sizeof(*task)))
			return -ENOMEM;
		memmove(&t->v[i + 1], &t->v[i], (t->n - 1 - i) * sizeof(*t->v));
	}
	t->v[i] = *task;
	return 0;
}

int profile_tasks_named(struct profile_tasks *t, int32_t tid, const char comm[16], bool exec)
{
	struct profile_task task = { .tid = tid }, *was;
	int ret;

	pthread_mutex_lock(&t->lock);
	was = profile_task_find(t, tid);
	task.maps = exec || (was && was->maps);
	memcpy(task.comm, comm, sizeof(task.comm) - 1);
	ret = profile_task_put(t, &task);
	pthread_mutex_unlock(&t->lock);
	return ret;
}

/* Reads /proc/TID/comm; "": no such task. It exists for threads, too, though they are not listed. */
static void profile_task_ask(struct profile_task *task)
{
	struct buf text = { 0 };
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/comm", task->tid);
	if (!read_file(path, 256, &text) && text.len)
		snprintf(task->comm, sizeof(task->comm), "%.*s", (int)strcspn((char *)buf_str(&text), "\n"),
			 (char *)text.data);
	buf_release(&text);
}

int profile_tasks_forked(struct profile_tasks *t, int32_t tid, int32_t parent)
{
	struct profile_task task = { .tid = tid }, *of;
	int ret;

	pthread_mutex_lock(&t->lock);
	of = profile_task_find(t, parent);
	if (of)
		memcpy(task.comm, of->comm, sizeof(task.comm));
	else
		profile_task_ask(&task);
	ret = profile_task_put(t, &task);
	pthread_mutex_unlock(&t->lock);
	return ret;
}

int profile_tasks_name(struct profile_tasks *t, int32_t tid, char comm[16])
{
	struct profile_task task = { .tid = tid }, *was;
	int ret = 0;

	if (tid <= 0) {
		snprintf(comm, 16, "%s", tid ? "" : "swapper");
		return 0;
	}
	pthread_mutex_lock(&t->lock);
	was = profile_task_find(t, tid);
	if (!was || !*was->comm) {
		task.maps = was && was->maps;
		profile_task_ask(&task);
		ret = profile_task_put(t, &task);
		was = &task;
	}
	memcpy(comm, was->comm, sizeof(was->comm));
	pthread_mutex_unlock(&t->lock);
	return ret;
}

bool profile_tasks_maps_due(struct profile_tasks *t, int32_t tgid)
{
	struct profile_task *task;
	bool due;

	pthread_mutex_lock(&t->lock);
	task = profile_task_find(t, tgid);
	due = task && !task->maps;
	if (due)
		task->maps = true;
	pthread_mutex_unlock(&t->lock);
	return due;
}

void profile_tasks_list(struct profile_tasks *t, struct buf *out)
{
	pthread_mutex_lock(&t->lock);
	for (size_t i = 0; i < t->n; i++)
		if (*t->v[i].comm && !strchr(t->v[i].comm, '\n'))
			buf_printf(out, "%d %s\n", t->v[i].tid, t->v[i].comm);
	pthread_mutex_unlock(&t->lock);
}
