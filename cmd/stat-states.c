// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace stat: where the wall time of vCPUs and of guests' tasks went, and what took it away. */
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
	{ STATE_WAKING, "waking_ns", "waking" },
	{ STATE_HALTED, "halted_ns", "halted" },
	{ STATE_BLOCKED, "blocked_ns", "blocked" },
	{ STATE_OUTSIDE, "not_recorded_ns", "not recorded" },
	{ STATE_ENDED, "ended_ns", "ended" },
	{ STATE_UNKNOWN, "lost_ns", "lost" },
};

static const struct state_column task_states[] = {
	{ STATE_RUNNING, "running_ns", "running" },    { STATE_STOLEN, "stolen_ns", "stolen" },
	{ STATE_RUNNABLE, "runnable_ns", "runnable" }, { STATE_SLEEPING, "sleeping_ns", "sleeping" },
	{ STATE_ENDED, "ended_ns", "ended" },	       { STATE_UNKNOWN, "lost_ns", "lost" },
};

struct owner_rows {
	const struct state_total **v;
	size_t n;
};

static uint64_t owner_wall(const struct state_total *t)
{
	uint64_t ns = 0;

	for (size_t i = 0; i < STATES; i++)
		ns += t->all[i].ns;
	return ns;
}

/* vCPUs by their guest and number, tasks by how busy they were. */
static int owner_order(const void *a, const void *b)
{
	const struct state_total *x = *(const struct state_total *const *)a;
	const struct state_total *y = *(const struct state_total *const *)b;
	const struct state_owner *p = x->owner, *q = y->owner;
	int ret = ORDER(p->kind, q->kind);

	if (!ret && p->kind == STATE_OF_VCPU)
		ret = strcmp(p->guest_name ?: "", q->guest_name ?: "") ?: ORDER(p->vcpu, q->vcpu);
	else if (!ret)
		ret = ORDER(y->all[STATE_RUNNING].ns + y->all[STATE_STOLEN].ns,
			    x->all[STATE_RUNNING].ns + x->all[STATE_STOLEN].ns);
	return ret ?: ORDER(p->index, q->index);
}

/* Owners of the kinds that are known to have done anything. -ENOMEM. */
static int owner_rows_open(struct owner_rows *r, const struct stat_answer *s, unsigned int kinds)
{
	*r = (struct owner_rows){ 0 };
	r->v = calloc(s->totals.n + 1, sizeof(struct state_total *));
	if (!r->v)
		return -ENOMEM;
	for (size_t i = 0; i < s->totals.n; i++) {
		const struct state_total *t = &s->totals.v[i];

		if (t->owner && kinds & 1u << t->owner->kind &&
		    owner_wall(t) > t->all[STATE_UNKNOWN].ns + t->all[STATE_ENDED].ns)
			r->v[r->n++] = t;
	}
	qsort(r->v, r->n, sizeof(struct state_total *), owner_order);
	return 0;
}

/* True if they are of several machines. */
static bool owner_machines(const struct owner_rows *r)
{
	for (size_t i = 1; i < r->n; i++)
		if (r->v[i]->owner->input != r->v[0]->owner->input)
			return true;
	return false;
}

/* People get shares of what there is, programs ns of all. */
static void state_table(struct stat_answer *s, enum state_kind kind, const char *key, const char *title,
			const char *who, const struct state_column *states, size_t n, const char *why)
{
	enum answer_kind time = stat_is_text(s) ? ANSWER_SHARE : ANSWER_DURATION;
	bool shown[STATES] = { false };
	struct owner_rows r;
	struct stat_table t;

	s->ret = owner_rows_open(&r, s, 1u << kind);
	if (s->ret)
		return;
	stat_begin(&t, s, owner_machines(&r));
	stat_column(&t, who, who, ANSWER_WORD, true);
	stat_column(&t, "pid", "pid", ANSWER_SIGNED, false);
	stat_column(&t, "wall_ns", "wall", ANSWER_DURATION, false);
	for (size_t i = 0; i < n; i++) {
		bool any = false; /* the column has more than 0.0% */

		for (size_t k = 0; k < r.n && !any; k++)
			any = r.v[k]->all[states[i].state].ns >= owner_wall(r.v[k]) / 2000 + 1;
		stat_column(&t, states[i].key, states[i].title, time, any);
		shown[states[i].state] = any;
	}
	stat_column(&t, "undecided_ns", "undecided", ANSWER_DURATION, false);
	for (size_t i = 0; i < s->totals.n && !r.n; i++) {
		const struct state_owner *o = s->totals.v[i].owner;
		uint64_t from = 0, to = 1;

		if (o && o->kind == kind)
			states_covered(s->states, o->input, &from, &to);
		if (from >= to)
			why = "the buffers that show it have no time in common";
	}
	if (stat_open(&t, key, title, r.n, why)) {
		for (size_t i = 0; i < r.n; i++) {
			uint64_t wall = owner_wall(r.v[i]), undecided = 0;
			const struct state_owner *o = r.v[i]->owner;
			char name[STEPS_TASK_MAX];
			struct answer_cell cells[4 + STATES] = { CELL_WORD(stat_task_name(s, o->input, o->pid,
											  name)),
								 CELL_N((uint64_t)o->pid), CELL_N(wall) };

			for (size_t k = 0; k < n; k++) {
				uint64_t ns = r.v[i]->all[states[k].state].ns;

				undecided += r.v[i]->all[states[k].state].undecided;
				cells[3 + k] = stat_is_text(s)
						       ? CELL_SHARE(wall ? (double)ns / (double)wall : 0)
						       : CELL_N(ns);
			}
			cells[3 + n] = CELL_N(undecided);
			stat_row(&t, o->input, cells);
		}
		stat_close(&t);
		if (r.n) {
			uint64_t least = UINT64_MAX, most = 0,
				 whole = states_to(s->states) - states_from(s->states);
			char text[3][32];

			/* The time that shares are of, and the meaning of the columns that have no state. */
			for (size_t i = 0; i < r.n; i++) {
				uint64_t wall = owner_wall(r.v[i]);

				least = wall < least ? wall : least;
				most = wall > most ? wall : most;
			}
			answer_note(s->out, "%s: of the %s%s%s that all its buffers cover; the files have %s",
				    key, least < most ? answer_duration(s->out, least, text[0]) : "",
				    least < most ? " to " : "", answer_duration(s->out, most, text[1]),
				    answer_duration(s->out, whole, text[2]));
			if (shown[STATE_OUTSIDE])
				answer_note(s->out, "not recorded: out of the guest, where only sched_switch "
						    "shows more (hyptrace record -e sched)");
			if (shown[STATE_UNKNOWN])
				answer_note(s->out, "lost: no event shows it: events were lost, tracing was "
						    "off, or the first one had not come yet");
		}
	}
	free(r.v);
}

void stat_vcpus(struct stat_answer *s, const char *key)
{
	state_table(s, STATE_OF_VCPU, key, "vCPUs: where their time went", "vcpu", vcpu_states,
		    ARRAY_SIZE(vcpu_states), "the files have no entries and exits of vCPUs");
}

void stat_tasks(struct stat_answer *s, const char *key)
{
	state_table(s, STATE_OF_GUEST_TASK, key, "Guests' tasks: where their time went", "task", task_states,
		    ARRAY_SIZE(task_states), "the files have no sched_switch of a guest");
	if (!s->ret && states_left_out(s->states))
		answer_note(s->out, "vcpus, tasks: there are too many, the last are left out");
}

struct steal_row {
	const struct state_total *from;
	enum state by;
	const struct state_thief *thief; /* NULL: no task */
	const struct state_sum *sum;
};

static int steal_longer_first(const void *a, const void *b)
{
	const struct steal_row *x = a, *y = b;

	return ORDER(y->sum->ns, x->sum->ns) ?: owner_order(&x->from, &y->from);
}

static void steal_cells(struct stat_table *t, const struct steal_row *x)
{
	const struct state_owner *o = x->from->owner;
	char who[STEPS_TASK_MAX], thief[STEPS_TASK_MAX];

	stat_row(t, o->input,
		 (struct answer_cell[]){
			 CELL_WORD(o->kind == STATE_OF_VCPU ? "vcpu" : "task"),
			 CELL_WORD(stat_task_name(t->of, o->input, o->pid, who)), CELL_N((uint64_t)o->pid),
			 CELL_WORD(state_name(x->by)),
			 CELL_WORD(x->thief ? stat_task_name(t->of, x->thief->input, x->thief->pid, thief)
					    : NULL),
			 x->thief && x->thief->pid >= 0 ? CELL_N((uint64_t)x->thief->pid) : CELL_NONE,
			 CELL_N(x->sum->n), CELL_N(x->sum->ns), CELL_N(x->sum->undecided) });
}

void stat_steal(struct stat_answer *s, const char *key)
{
	struct steal_row *v = NULL;
	struct owner_rows r;
	struct stat_table t;
	size_t room = 1, n = 0;

	s->ret = owner_rows_open(&r, s, 1u << STATE_OF_VCPU | 1u << STATE_OF_GUEST_TASK);
	if (s->ret)
		return;
	for (size_t i = 0; i < r.n; i++)
		room += r.v[i]->n_thieves + STATES;
	v = calloc(room, sizeof(*v));
	if (!v) {
		s->ret = -ENOMEM;
		goto out;
	}
	for (size_t i = 0; i < r.n; i++) {
		const struct state_total *of = r.v[i];

		/* of a vCPU: the tasks that had its CPU while it could have run */
		for (size_t k = 0; k < of->n_thieves; k++)
			v[n++] = (struct steal_row){ of, STATE_PREEMPTED, &of->thieves[k],
						     &of->thieves[k].sum };
		/* of a task: also all else that its vCPU did */
		for (size_t k = 0; k < STATES; k++)
			if (k != STATE_PREEMPTED && of->stolen[k].ns)
				v[n++] = (struct steal_row){ of, (enum state)k, NULL, &of->stolen[k] };
	}
	qsort(v, n, sizeof(*v), steal_longer_first);
	stat_begin(&t, s, owner_machines(&r));
	stat_column(&t, "kind", "kind", ANSWER_WORD, true);
	stat_column(&t, "from", "from", ANSWER_WORD, true);
	stat_column(&t, "pid", "pid", ANSWER_SIGNED, false);
	stat_column(&t, "by", "by", ANSWER_WORD, true);
	stat_column(&t, "thief", "thief", ANSWER_WORD, true);
	stat_column(&t, "thief_pid", "pid", ANSWER_SIGNED, false);
	stat_column(&t, duration_columns[DURATION_COUNT].key, "count", ANSWER_COUNT, true);
	stat_column(&t, duration_columns[DURATION_TOTAL].key, "time", ANSWER_DURATION, true);
	stat_column(&t, "undecided_ns", "undecided", ANSWER_DURATION, false);
	if (stat_open(&t, key, "Stolen: what had the CPU of a vCPU, or of a guest's task", n,
		      "nothing is known to have been stolen")) {
		for (size_t i = 0; i < n; i++)
			steal_cells(&t, &v[i]);
		stat_close(&t);
	}
out:
	free(v);
	free(r.v);
}

/* With the columns of perf kvm report --sort comm, each in shares of its machine's samples. */
void stat_cpu(struct stat_answer *s, const char *key)
{
	static const struct {
		const char *key, *title;
		enum sample_mode mode;
	} modes[] = {
		{ "kernel", "sys", SAMPLE_KERNEL },
		{ "user", "usr", SAMPLE_USER },
		{ "hypervisor", "hyp", SAMPLE_HYPERVISOR },
		{ "guest_kernel", "guest sys", SAMPLE_GUEST_KERNEL },
		{ "guest_user", "guest usr", SAMPLE_GUEST_USER },
	};
	const struct samples_row *rows = s->samples.rows;
	size_t n = s->samples.n;
	uint64_t all = 0, seen[ARRAY_SIZE(modes)] = { 0 };
	struct stat_table t;

	samples_sort(&s->samples);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < ARRAY_SIZE(modes); k++)
			seen[k] += rows[i].n[modes[k].mode];
	stat_begin(&t, s, s->in->n > 1);
	stat_column(&t, "comm", "task", ANSWER_WORD, true);
	stat_column(&t, "samples", "samples", ANSWER_COUNT, true);
	stat_column(&t, "share", "share", ANSWER_SHARE, true);
	for (size_t k = 0; k < ARRAY_SIZE(modes); k++)
		stat_column(&t, modes[k].key, modes[k].title, ANSWER_SHARE, seen[k]);
	if (!stat_open(&t, key, "CPU use by samples, in shares of the machine's", n,
		       "the files have no samples: record with --profile 99"))
		return;
	for (size_t i = 0; i < n; i++) {
		if (!i || rows[i].input != rows[i - 1].input) {
			all = 0;
			for (size_t k = i; k < n && rows[k].input == rows[i].input; k++)
				all += rows[k].all;
		}
		struct answer_cell cells[3 + ARRAY_SIZE(modes)] = {
			CELL_WORD(rows[i].comm), CELL_N(rows[i].all),
			CELL_SHARE((double)rows[i].all / (double)all)
		};

		for (size_t k = 0; k < ARRAY_SIZE(modes); k++)
			cells[3 + k] = CELL_SHARE((double)rows[i].n[modes[k].mode] / (double)all);
		stat_row(&t, rows[i].input, cells);
	}
	stat_close(&t);
}
