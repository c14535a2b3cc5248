// SPDX-License-Identifier: LGPL-2.1-or-later
/* The tasks whose stacks are counted, each with the calls that it is in; and what is in frames. */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flame/flame-priv.h"

/* Beside pids: pid 0 is another task on each CPU, and so is the hypervisor. */
#define KEY_IDLE(cpu) (-1 - (int64_t)(cpu))
#define KEY_HYP(cpu)  (INT64_MIN + (int64_t)(cpu))
#define KEY_NONE      INT64_MAX /* a record without a pid */

static int64_t flame_task_key(int32_t pid, uint32_t cpu)
{
	return pid > 0 ? pid : pid ? KEY_NONE : KEY_IDLE(cpu);
}

/* ---- which are wanted ------------------------------------------------------------------- */

bool flame_listed(const struct strlist *l, const char *name)
{
	for (size_t i = 0; i < l->n; i++)
		if (!fnmatch(l->v[i], name, 0))
			return true;
	return !l->n;
}

static bool flame_task_wanted(const struct flame *f, int32_t pid, const char *comm)
{
	char number[16];

	snprintf(number, sizeof(number), "%d", pid);
	return flame_listed(&f->opts.tasks, comm) || flame_listed(&f->opts.tasks, number);
}

static const char *flame_task_comm(struct flame_input *in, const struct flame_task *t, int32_t pid)
{
	if (*t->comm)
		return t->comm;
	names_learned(&in->names); /* by steps_learn */
	return pid > 0 ? names_find(&in->names, pid) : pid ? FLAME_UNKNOWN : "swapper";
}

static int flame_task_frame(struct flame *f, struct flame_task *t, int32_t pid)
{
	struct flame_input *in = &f->v[t->input];
	const char *comm = flame_task_comm(in, t, pid);

	t->idle = !pid && !f->opts.idle;
	t->skip = in->skip || !flame_task_wanted(f, pid, comm ? comm : FLAME_UNKNOWN);
	if (t->skip)
		return 0;
	f->text.len = 0;
	buf_addstr(&f->text, comm ? comm : FLAME_UNKNOWN);
	if (pid > 0 && (f->opts.pids || !comm))
		buf_printf(&f->text, "-%d", pid);
	return buf_str(&f->text) ? flame_tree_named(f->tree, in->frame, buf_str(&f->text), &t->frame)
				 : -ENOMEM;
}

/* ---- the table --------------------------------------------------------------------------- */

static struct flame_task *flame_task_place(struct flame_task *v, size_t room, uint32_t input, int64_t key)
{
	uint64_t hash = ((uint64_t)key * 0x9e3779b97f4a7c15u) ^ (uint64_t)input * 0xbf58476d1ce4e5b9u;
	size_t i = (hash ^ hash >> 32) & (room - 1);

	while (v[i].used && (v[i].key != key || v[i].input != input))
		i = (i + 1) & (room - 1);
	return &v[i];
}

/* Those that are in no call need no place: they get a new one. */
static int flame_tasks_grow(struct flame *f)
{
	struct flame_task *old = f->tasks, *v;
	size_t in_calls = 0, room = 256;

	for (size_t i = 0; i < f->room_tasks; i++)
		in_calls += old[i].n > 0;
	while (room < 4 * in_calls)
		room *= 2;
	v = calloc(room, sizeof(*v));
	if (!v)
		return -ENOMEM;
	for (size_t i = 0; i < f->room_tasks; i++) {
		if (old[i].n)
			*flame_task_place(v, room, old[i].input, old[i].key) = old[i];
		else
			free(old[i].calls);
	}
	free(old);
	f->tasks = v;
	f->room_tasks = room;
	f->n_tasks = in_calls;
	return 0;
}

/* Also NULL: out of memory. *made: it is new. */
static struct flame_task *flame_task_any(struct flame *f, uint32_t input, int64_t key, bool *made)
{
	struct flame_task *t = f->room_tasks ? flame_task_place(f->tasks, f->room_tasks, input, key) : NULL;

	*made = !t || !t->used;
	if (!*made)
		return t;
	if (2 * f->n_tasks >= f->room_tasks) {
		if (flame_tasks_grow(f))
			return NULL;
		t = flame_task_place(f->tasks, f->room_tasks, input, key);
	}
	*t = (struct flame_task){ .used = true, .input = input, .key = key };
	f->n_tasks++;
	return t;
}

struct flame_task *flame_task_get(struct flame *f, uint32_t input, int32_t pid, uint32_t cpu)
{
	bool made;
	struct flame_task *t = flame_task_any(f, input, flame_task_key(pid, cpu), &made);

	return t && made && flame_task_frame(f, t, pid) ? NULL : t;
}

int flame_task_called(struct flame *f, uint32_t input, int32_t pid, uint32_t cpu, const char comm[16])
{
	struct flame_task *t = flame_task_get(f, input, pid, cpu);

	if (!t || !strncmp(t->comm, comm, sizeof(t->comm)))
		return t ? 0 : -ENOMEM;
	memcpy(t->comm, comm, sizeof(t->comm));
	return flame_task_frame(f, t, pid);
}

struct flame_task *flame_task_find(struct flame *f, uint32_t input, int32_t pid, uint32_t cpu)
{
	struct flame_task *t =
		f->room_tasks ? flame_task_place(f->tasks, f->room_tasks, input, flame_task_key(pid, cpu))
			      : NULL;

	return t && t->used ? t : NULL;
}

struct flame_task *flame_task_hyp(struct flame *f, uint32_t input, uint32_t cpu)
{
	bool made;
	struct flame_task *t = flame_task_any(f, input, KEY_HYP(cpu), &made);

	if (t)
		t->cpu = cpu;
	return t;
}

void flame_tasks_release(struct flame *f)
{
	for (size_t i = 0; i < f->room_tasks; i++)
		free(f->tasks[i].calls);
	free(f->tasks);
}

void flame_count(struct flame *f, const struct flame_task *t, uint32_t frame, enum flame_weight w, uint64_t n)
{
	if (t->skip)
		return;
	if (t->idle)
		f->counts.idle[w] += n;
	else
		flame_tree_add(f->tree, frame, f->v[t->input].side, w, n);
}

/* ---- frames ------------------------------------------------------------------------------ */

int flame_name_of(struct flame *f, uint32_t input, int64_t pid, const struct flame_address *a, uint32_t *out)
{
	struct flame_input *in = &f->v[input];
	bool symbol = a->symbol < in->symbols.n;
	int ret;

	*out = symbol ? in->symbol_names[a->symbol] : 0;
	if (*out)
		return 0;
	f->text.len = 0;
	if (symbol)
		flame_symbol_text(&in->symbols, a->symbol, &f->text);
	else if (!flame_maps_text(in->maps, pid, f->now, a->addr, &f->text))
		flame_address_text(&in->symbols, pid, a->addr, &f->text);
	if (!buf_str(&f->text))
		return -ENOMEM;
	ret = flame_tree_name(f->tree, buf_str(&f->text), f->text.len, out);
	if (symbol)
		in->symbol_names[a->symbol] = *out;
	return ret;
}
