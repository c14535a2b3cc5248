// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace stat: where the wall time of vCPUs and of guests' tasks went, and what took it away. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stat-priv.h"

/* States that a table has a column for. */
struct state_column {
	enum state state;
	const char *key, *title;
};

static const struct state_column vcpu_states[] = {
	{ STATE_GUEST, "guest_ns", "guest" },
	{ STATE_HYP, "hypervisor_ns", "hyp" },
	{ STATE_FIRMWARE, "firmware_ns", "EL3" },
	{ STATE_HOST, "host_ns", "host" },
	{ STATE_VMM, "vmm_ns", "VMM" },
	{ STATE_PREEMPTED, "preempted_ns", "preempt" },
	{ STATE_HALTED, "halted_ns", "halted" },
	{ STATE_BLOCKED, "blocked_ns", "blocked" },
	{ STATE_OUTSIDE, "outside_ns", "outside" },
	{ STATE_ENDED, "ended_ns", "ended" },
	{ STATE_UNKNOWN, "unknown_ns", "unknown" },
};

static const struct state_column task_states[] = {
	{ STATE_RUNNING, "running_ns", "running" },    { STATE_STOLEN, "stolen_ns", "stolen" },
	{ STATE_RUNNABLE, "runnable_ns", "runnable" }, { STATE_SLEEPING, "sleeping_ns", "sleeping" },
	{ STATE_ENDED, "ended_ns", "ended" },	       { STATE_UNKNOWN, "unknown_ns", "unknown" },
};

/* ---- owners ---------------------------------------------------------------------------------- */

struct owner_rows {
	struct stat_answer *of;
	const struct state_total **v;
	size_t n;
};

static uint64_t owner_time(const struct state_total *t, enum state state)
{
	return t->all[state].ns;
}

static uint64_t owner_wall(const struct state_total *t)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < STATES; i++)
		ns += t->all[i].ns;
	return ns;
}

/* What it ran, or would have run had it not been stolen. */
static uint64_t owner_busy(const struct state_total *t)
{
	return owner_time(t, STATE_RUNNING) + owner_time(t, STATE_STOLEN);
}

/* vCPUs by their guest and number, tasks by how busy they were. */
static int owner_order(const void *a, const void *b)
{
	const struct state_total *x = *(const struct state_total *const *)a;
	const struct state_total *y = *(const struct state_total *const *)b;
	const struct state_owner *p = x->owner, *q = y->owner;

	if (p->kind != q->kind)
		return p->kind < q->kind ? -1 : 1;
	if (p->kind != STATE_OF_VCPU && owner_busy(x) != owner_busy(y))
		return owner_busy(x) < owner_busy(y) ? 1 : -1;
	if (p->kind == STATE_OF_VCPU && strcmp(p->guest_name ?: "", q->guest_name ?: ""))
		return strcmp(p->guest_name ?: "", q->guest_name ?: "");
	if (p->kind == STATE_OF_VCPU && p->vcpu != q->vcpu)
		return p->vcpu < q->vcpu ? -1 : 1;
	return p->index < q->index ? -1 : p->index > q->index;
}

/* Those of the kind that are known to have done anything. -ENOMEM. */
static int owner_rows_open(struct owner_rows *r, struct stat_answer *s, unsigned int kinds)
{
	*r = (struct owner_rows){ .of = s };
	r->v = calloc(s->totals.n + 1, sizeof(struct state_total *));
	if (!r->v)
		return -ENOMEM;
	for (size_t i = 0; i < s->totals.n; i++) {
		const struct state_total *t = &s->totals.v[i];

		if (t->owner && kinds & 1u << t->owner->kind &&
		    owner_wall(t) > owner_time(t, STATE_UNKNOWN) + owner_time(t, STATE_ENDED))
			r->v[r->n++] = t;
	}
	qsort(r->v, r->n, sizeof(struct state_total *), owner_order);
	return 0;
}

static const char *task_name(struct stat_answer *s, size_t input, int32_t pid, char *buf, size_t size)
{
	const char *comm = states_comm(s->states, input, pid);

	if (pid < 0)
		return NULL;
	if (comm)
		snprintf(buf, size, "%s-%d", comm, pid);
	else
		snprintf(buf, size, "%d", pid);
	return buf;
}

static const char *owner_name(struct stat_answer *s, const struct state_owner *o, char *buf, size_t size)
{
	if (o->kind == STATE_OF_VCPU)
		return stat_vcpu_name(&s->in->v[o->input], o->pid, buf, size);
	return task_name(s, o->input, o->pid, buf, size);
}

static bool owner_machines(const struct owner_rows *r)
{
	for (size_t i = 1; i < r->n; i++)
		if (r->v[i]->owner->input != r->v[0]->owner->input)
			return true;
	return false;
}

/* ---- where time went --------------------------------------------------------------------------- */

/* Whether its column would say more than 0.0%. */
static bool state_any(const struct owner_rows *r, enum state state)
{
	for (size_t i = 0; i < r->n; i++)
		if (r->v[i]->all[state].ns >= owner_wall(r->v[i]) / 2000 + 1)
			return true;
	return false;
}

/* People get shares of what there is, programs ns of all. */
static void state_columns(struct stat_table *t, const struct owner_rows *r, const char *who,
			  const struct state_column *states, size_t n)
{
	bool text = stat_is_text(t->of);

	stat_column(t, who, who, ANSWER_WORD, true);
	stat_column(t, "pid", "pid", ANSWER_SIGNED, false);
	stat_column(t, "wall_ns", "wall", ANSWER_DURATION, false);
	for (size_t i = 0; i < n; i++)
		stat_column(t, states[i].key, states[i].title, text ? ANSWER_SHARE : ANSWER_DURATION,
			    state_any(r, states[i].state));
	stat_column(t, "undecided_ns", "undecided", ANSWER_DURATION, false);
}

static void state_cells(struct stat_table *t, const struct state_total *x, const struct state_column *states,
			size_t n)
{
	uint64_t wall = owner_wall(x), undecided = 0;
	bool text = stat_is_text(t->of);
	char name[80];

	stat_machine(t, x->owner->input);
	stat_cell(t, CELL_WORD(owner_name(t->of, x->owner, name, sizeof(name))));
	stat_cell(t, CELL_N((uint64_t)x->owner->pid));
	stat_cell(t, CELL_N(wall));
	for (size_t i = 0; i < n; i++) {
		uint64_t ns = owner_time(x, states[i].state);

		undecided += x->all[states[i].state].undecided;
		stat_cell(t, text ? CELL_SHARE(wall ? (double)ns / (double)wall : 0) : CELL_N(ns));
	}
	stat_cell(t, CELL_N(undecided));
	stat_row(t);
}

static void state_table(struct stat_answer *s, enum state_kind kind, const char *key, const char *title,
			const char *who, const struct state_column *states, size_t n, const char *why)
{
	struct owner_rows r;
	struct stat_table t;
	char wall[16];

	s->ret = owner_rows_open(&r, s, 1u << kind);
	if (s->ret)
		return;
	stat_begin(&t, s, owner_machines(&r));
	state_columns(&t, &r, who, states, n);
	if (stat_open(&t, key, title, r.n, why)) {
		for (size_t i = 0; i < r.n; i++)
			state_cells(&t, r.v[i], states, n);
		stat_close(&t);
		if (r.n)
			answer_note(s->out, "%s: of the %s from the first to the last event", key,
				    duration_text(states_to(s->states) - states_from(s->states), wall));
	}
	free(r.v);
}

void stat_vcpus(struct stat_answer *s)
{
	state_table(s, STATE_OF_VCPU, "vcpus", "vCPUs: where their time went", "vcpu", vcpu_states,
		    ARRAY_SIZE(vcpu_states), "the files have no entries and exits of vCPUs");
}

void stat_tasks(struct stat_answer *s)
{
	state_table(s, STATE_OF_GUEST_TASK, "tasks", "Guests' tasks: where their time went", "task",
		    task_states, ARRAY_SIZE(task_states), "the files have no sched_switch of a guest");
	if (!s->ret && states_left_out(s->states))
		answer_note(s->out, "vcpus, tasks: there are too many, the last are left out");
}

/* ---- what took it ---------------------------------------------------------------------------------- */

struct steal_row {
	const struct state_total *from;
	enum state by;
	const struct state_thief *thief; /* NULL: no task */
	const struct state_sum *sum;
};

static int steal_longer_first(const void *a, const void *b)
{
	const struct steal_row *x = a, *y = b;

	if (x->sum->ns != y->sum->ns)
		return x->sum->ns < y->sum->ns ? 1 : -1;
	return owner_order(&x->from, &y->from);
}

/* Of a vCPU: who had the CPU while it could have run. Of a task: that, and all else that its vCPU did. */
static size_t steal_of(const struct state_total *t, struct steal_row *v)
{
	size_t n = 0;

	for (size_t i = 0; i < t->n_thieves; i++)
		v[n++] = (struct steal_row){ t, STATE_PREEMPTED, &t->thieves[i], &t->thieves[i].sum };
	for (size_t i = 0; i < STATES; i++)
		if (i != STATE_PREEMPTED && t->stolen[i].ns)
			v[n++] = (struct steal_row){ t, (enum state)i, NULL, &t->stolen[i] };
	return n;
}

static void steal_cells(struct stat_table *t, const struct steal_row *x)
{
	const struct state_owner *o = x->from->owner;
	char who[80], thief[80];

	stat_machine(t, o->input);
	stat_cell(t, CELL_WORD(o->kind == STATE_OF_VCPU ? "vcpu" : "task"));
	stat_cell(t, CELL_WORD(owner_name(t->of, o, who, sizeof(who))));
	stat_cell(t, CELL_N((uint64_t)o->pid));
	stat_cell(t, CELL_WORD(state_name(x->by)));
	stat_cell(t,
		  CELL_WORD(x->thief ? task_name(t->of, x->thief->input, x->thief->pid, thief, sizeof(thief))
				     : NULL));
	stat_cell(t, x->thief && x->thief->pid >= 0 ? CELL_N((uint64_t)x->thief->pid) : CELL_NONE);
	stat_cell(t, CELL_N(x->sum->n));
	stat_cell(t, CELL_N(x->sum->ns));
	stat_cell(t, CELL_N(x->sum->undecided));
	stat_row(t);
}

static void steal_table(struct stat_answer *s, const struct owner_rows *r, struct steal_row *v, size_t n)
{
	struct stat_table t;

	qsort(v, n, sizeof(*v), steal_longer_first);
	stat_begin(&t, s, owner_machines(r));
	stat_column(&t, "kind", "kind", ANSWER_WORD, true);
	stat_column(&t, "from", "from", ANSWER_WORD, true);
	stat_column(&t, "pid", "pid", ANSWER_SIGNED, false);
	stat_column(&t, "by", "by", ANSWER_WORD, true);
	stat_column(&t, "thief", "thief", ANSWER_WORD, true);
	stat_column(&t, "thief_pid", "pid", ANSWER_SIGNED, false);
	stat_column(&t, "count", "count", ANSWER_COUNT, true);
	stat_column(&t, "time_ns", "time", ANSWER_DURATION, true);
	stat_column(&t, "undecided_ns", "undecided", ANSWER_DURATION, false);
	if (!stat_open(&t, "steal", "Stolen: what had the CPU of a vCPU, or of a guest's task", n,
		       "nothing is known to have been stolen"))
		return;
	for (size_t i = 0; i < n; i++)
		steal_cells(&t, &v[i]);
	stat_close(&t);
}

void stat_steal(struct stat_answer *s)
{
	struct steal_row *v = NULL;
	struct owner_rows r;
	size_t room = 1, n = 0;

	s->ret = owner_rows_open(&r, s, 1u << STATE_OF_VCPU | 1u << STATE_OF_GUEST_TASK);
	if (s->ret)
		return;
	for (size_t i = 0; i < r.n; i++)
		room += r.v[i]->n_thieves + STATES;
	v = calloc(room, sizeof(*v));
	if (v) {
		for (size_t i = 0; i < r.n; i++)
			n += steal_of(r.v[i], v + n);
		steal_table(s, &r, v, n);
	} else {
		s->ret = -ENOMEM;
	}
	free(v);
	free(r.v);
}
