// SPDX-License-Identifier: LGPL-2.1-or-later
/* The tasks, vCPUs and CPUs that are known, so many at most. */
#include <errno.h>
#include <stdlib.h>

#include "analysis/states-priv.h"

static void *table_new(struct states *st, size_t size)
{
	void *p = arena_alloc(&st->arena, size);

	if (!p)
		st->error = -ENOMEM;
	return p;
}

/* ---- tasks ------------------------------------------------------------------------------ */

static size_t task_slot(const struct states *st, uint16_t input, int32_t pid)
{
	uint64_t hash = ((uint64_t)input << 32 | (uint32_t)pid) * 0x9e3779b97f4a7c15ull;
	size_t i = (size_t)(hash >> 32) & (st->tasks_room - 1);

	while (st->tasks[i] && (st->tasks[i]->pid != pid || st->tasks[i]->input != input))
		i = (i + 1) & (st->tasks_room - 1);
	return i;
}

struct state_task *state_task_find(const struct states *st, const struct state_input *in, int32_t pid)
{
	return pid > 0 && st->tasks_room ? st->tasks[task_slot(st, in->index, pid)] : NULL;
}

static int tasks_grow(struct states *st)
{
	struct state_task **old = st->tasks;
	size_t room = st->tasks_room;

	if (2 * (st->n_tasks + 1) <= room)
		return 0;
	st->tasks = calloc(room ? 2 * room : 64, sizeof(struct state_task *));
	if (!st->tasks) {
		st->tasks = old;
		return -ENOMEM;
	}
	st->tasks_room = room ? 2 * room : 64;
	for (size_t i = 0; i < room; i++)
		if (old[i])
			st->tasks[task_slot(st, old[i]->input, old[i]->pid)] = old[i];
	free(old);
	return 0;
}

static struct state_task *task_new(struct states *st, const struct state_input *in, int32_t pid, bool track)
{
	struct state_task *t;

	if (st->n_tasks == STATES_TASKS_MAX) {
		st->left_out++;
		return NULL;
	}
	if (tasks_grow(st)) {
		st->error = -ENOMEM;
		return NULL;
	}
	t = table_new(st, sizeof(*t));
	if (!t)
		return NULL;
	t->pid = pid;
	t->input = in->index;
	t->thief = STATE_NO_TASK;
	if (track) {
		t->track = table_new(st, sizeof(*t->track));
		if (!t->track ||
		    state_track_begin(st, t->track, in->in->guest ? STATE_OF_GUEST_TASK : STATE_OF_TASK,
				      in->index, pid)) {
			st->error = -ENOMEM;
			return NULL;
		}
	}
	st->tasks[task_slot(st, in->index, pid)] = t;
	st->n_tasks++;
	return t;
}

static bool tasks_wanted(const struct states *st, const struct state_input *in)
{
	return st->want & (in->in->guest ? STATES_GUEST_TASKS : STATES_TASKS);
}

struct state_task *state_task_of(struct states *st, struct state_input *in, int32_t pid)
{
	struct state_task *t = state_task_find(st, in, pid);

	return t || pid <= 0 || !tasks_wanted(st, in) ? t : task_new(st, in, pid, true);
}

/* ---- vCPUs ------------------------------------------------------------------------------ */

static struct state_vcpu *vcpu_new(struct states *st, struct state_input *in, struct state_task *t)
{
	struct state_vcpu *v;

	if (st->n_vcpus == STATES_VCPUS_MAX) {
		st->left_out++;
		return NULL;
	}
	v = table_new(st, sizeof(*v));
	if (!v)
		return NULL;
	v->in = in;
	v->task = t;
	if (state_track_begin(st, &v->track, STATE_OF_VCPU, in->index, t->pid)) {
		st->error = -ENOMEM;
		return NULL;
	}
	v->next = in->vcpus;
	in->vcpus = v;
	st->n_vcpus++;
	return t->vcpu = v;
}

struct state_vcpu *state_vcpu_of(struct states *st, struct state_input *in, int32_t pid)
{
	struct state_task *t = state_task_find(st, in, pid);

	if (!t && pid > 0)
		t = task_new(st, in, pid, tasks_wanted(st, in));
	if (!t)
		return NULL;
	return t->vcpu ?: vcpu_new(st, in, t);
}

/* ---- CPUs ------------------------------------------------------------------------------- */

static int cpus_grow(struct state_input *in, size_t number)
{
	size_t room = in->n_cpus ?: 8;
	struct state_cpu **v;

	while (room <= number)
		room *= 2;
	v = realloc(in->cpus, room * sizeof(*v));
	if (!v)
		return -ENOMEM;
	memset(v + in->n_cpus, 0, (room - in->n_cpus) * sizeof(*v));
	in->cpus = v;
	in->n_cpus = room;
	return 0;
}

struct state_cpu *state_cpu_new(struct states *st, struct state_input *in, uint64_t number)
{
	struct state_cpu *c;

	if (number >= STATE_CPUS_MAX) {
		st->left_out++;
		return NULL;
	}
	if (number >= in->n_cpus && cpus_grow(in, number)) {
		st->error = -ENOMEM;
		return NULL;
	}
	c = table_new(st, sizeof(*c));
	if (!c)
		return NULL;
	c->number = (uint32_t)number;
	c->in = in;
	c->pid = STATE_NO_TASK;
	return in->cpus[number] = c;
}
