// SPDX-License-Identifier: LGPL-2.1-or-later
/* The tasks of the stacks, each with the calls that it is in; and names of frames. */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask/flame/flame-priv.h"
#include "base/array.h"

/* Beside pids: pid 0 is another task on each CPU, and so is the hypervisor. */
#define KEY_IDLE(cpu) (-1 - (int64_t)(cpu))
#define KEY_HYP(cpu)  (INT64_MIN + (int64_t)(cpu))
#define KEY_NONE      INT64_MAX /* a record without a pid */

static int64_t flame_task_key(int32_t pid, uint32_t cpu)
{
	return pid > 0 ? pid : pid ? KEY_NONE : KEY_IDLE(cpu);
}

/* ---- wanted tasks ------------------------------------------------------------------- */

bool flame_listed(const struct strlist *l, const char *name)
{
	for (size_t i = 0; i < l->n; i++)
		if (!strcmp(l->v[i], name) || !fnmatch(l->v[i], name, 0))
			return true;
	return !l->n;
}

/* Makes the frame of the task, named by its last sample, else by the steps so far. */
static int flame_task_frame(struct flame *f, struct flame_task *t, int32_t pid)
{
	struct flame_input *in = &f->v[t->input];
	const char *idle = pid ? FLAME_UNKNOWN : "swapper";
	const char *known = *t->comm ? t->comm : pid > 0 ? t->name : idle, *comm = known ?: FLAME_UNKNOWN;
	const struct strlist *wanted = &f->opts.tasks;
	const char *text;
	char number[16];

	snprintf(number, sizeof(number), "%d", pid);
	f->text.len = 0;
	buf_printf(&f->text, "%s-%s", comm, number);
	text = buf_str(&f->text);
	t->idle = !pid && !f->opts.idle;
	t->skip =
		in->skip || !text ||
		(!flame_listed(wanted, comm) && !flame_listed(wanted, number) && !flame_listed(wanted, text));
	if (t->skip)
		return text ? 0 : -ENOMEM;
	if (pid <= 0 || (known && !f->opts.pids)) {
		f->text.len = 0;
		buf_addstr(&f->text, comm);
	}
	return buf_str(&f->text) ? flame_tree_named(f->tree, in->frame, buf_str(&f->text), &t->frame)
				 : -ENOMEM;
}

/* ---- the table --------------------------------------------------------------------------- */

static bool flame_task_same(const void *tasks, size_t i, const void *wanted)
{
	const struct flame_task *t = &((const struct flame_task *)tasks)[i], *w = wanted;

	return t->key == w->key && t->input == w->input;
}

/* NULL: it is not there, or, if it should be made, out of memory. *made: it is new. */
static struct flame_task *flame_task_any(struct flame *f, uint32_t input, int64_t key, bool *made)
{
	struct flame_task task = { .input = input, .key = key };
	uint32_t hash = map_hash((uint64_t)key ^ (uint64_t)input << 48);
	size_t i = map_find(&f->by_key, hash, flame_task_same, f->tasks, &task);

	if (i == MAP_NONE && made) {
		i = f->n_tasks;
		if (array_push(&f->tasks, &f->n_tasks, &task, sizeof(task)) ||
		    map_insert(&f->by_key, hash, i))
			return NULL;
		*made = true;
	}
	return i == MAP_NONE ? NULL : &f->tasks[i];
}

struct flame_task *flame_task_get(struct flame *f, uint32_t input, int32_t pid, uint32_t cpu)
{
	bool made = false;
	struct flame_task *t = flame_task_any(f, input, flame_task_key(pid, cpu), &made);
	const char *name = pid > 0 ? steps_comm(f->steps, input, pid) : NULL;

	if (!t || (!made && name == t->name))
		return t;
	t->name = name;
	*t->comm = '\0';
	return flame_task_frame(f, t, pid) ? NULL : t;
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
	return flame_task_any(f, input, flame_task_key(pid, cpu), NULL);
}

struct flame_task *flame_task_hyp(struct flame *f, uint32_t input, uint32_t cpu)
{
	bool made = false;
	struct flame_task *t = flame_task_any(f, input, KEY_HYP(cpu), &made);

	if (t)
		t->cpu = cpu;
	return t;
}

void flame_tasks_release(struct flame *f)
{
	for (size_t i = 0; i < f->n_tasks; i++)
		free(f->tasks[i].calls);
	free(f->tasks);
	map_release(&f->by_key);
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
