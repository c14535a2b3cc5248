// SPDX-License-Identifier: LGPL-2.1-or-later
/* Findings without a question: the causes that took most of the vCPUs' time, by one reading of the files. */

#include "ask/why/why-priv.h"

#define MOVES_LEAST	  20 /* of a vCPU, a second */
#define FINDING_TASKS_MAX 65536

static void finding_move(struct finding_vcpu *v, const struct state_span *s)
{
	if (s->state == STATE_PREEMPTED || s->state == STATE_WAKING) {
		v->since = v->waits ? v->since : s->from;
		v->waits += s->to - s->from;
	} else if (s->state >= STATE_GUEST && s->state <= STATE_VMM && s->cpu != STATE_NO_CPU) {
		if (v->cpu != s->cpu && v->cpu != STATE_NO_CPU) {
			v->moves.ns += v->waits;
			v->moves.n++;
			if (v->waits)
				finding_stretch_take(&v->longest_move, v->since, s->from);
		}
		v->cpu = s->cpu;
		v->waits = 0;
	} else if (s->state == STATE_UNKNOWN) {
		v->cpu = STATE_NO_CPU;
	}
}

static bool finding_task_same(const void *tasks, size_t i, const void *wanted)
{
	const struct finding_task *a = (const struct finding_task *)tasks + i, *b = wanted;

	return a->cause == b->cause && a->input == b->input && a->pid == b->pid && a->other == b->other;
}

static int finding_task_add(struct finding_job *j, const struct finding_task *task, uint64_t from,
			    uint64_t to)
{
	uint32_t hash = map_hash((uint64_t)task->cause << 32 ^ (uint64_t)task->input << 52 ^
				 (uint64_t)(uint32_t)task->other << 20 ^ (uint32_t)task->pid);
	size_t i = map_find(&j->by_task, hash, finding_task_same, j->tasks, task);

	if (i == MAP_NONE && j->n_tasks == FINDING_TASKS_MAX)
		return 0;
	if (i == MAP_NONE && map_push(&j->by_task, hash, &j->tasks, &j->n_tasks, task, sizeof(*task)))
		return -ENOMEM;
	i = i == MAP_NONE ? j->n_tasks - 1 : i;
	j->tasks[i].ns += to - from;
	j->tasks[i].n++;
	finding_stretch_take(&j->tasks[i].longest, from, to);
	return 0;
}

/* A wait is for the tasks that ran on that CPU meanwhile; what was stolen from them is not their doing. */
static int finding_wait(struct finding_job *j, struct finding_cpu *c, const struct state_span *s)
{
	int ret = 0;

	for (size_t i = c->n; i-- > 0 && c->n - i <= FINDING_RAN && !ret;) {
		struct finding_ran *r = &c->v[i % FINDING_RAN];
		struct finding_task task = { .cause = FINDING_WAITS,
					     .input = s->owner->input,
					     .pid = r->pid,
					     .other = (int32_t)c->cpu };
		uint64_t from = r->from > s->from ? r->from : s->from, to = r->to < s->to ? r->to : s->to;

		if (r->to <= s->from)
			break;
		from = r->counted > from ? r->counted : from;
		if (from >= to)
			continue;
		r->counted = to;
		ret = finding_task_add(j, &task, from, to);
	}
	return ret;
}

/* Books what was stolen from a guest's task under the cause that its vCPU has meanwhile. */
static int finding_guest_task(struct finding_job *j, const struct state_span *s)
{
	struct finding_task task = { .input = s->owner->input, .pid = s->owner->pid, .other = STATE_NO_TASK };
	const struct finding_vcpu *v = j->v;
	struct state_span of = *s;
	struct why_cause cause;

	if ((s->state == STATE_RUNNABLE || s->state == STATE_RUNNING) && s->cpu != STATE_NO_CPU) {
		const struct finding_cpu none = { .input = s->owner->input, .cpu = s->cpu };
		struct finding_cpu *c = j->cpus;

		while (c < j->cpus + j->n_cpus && (c->input != none.input || c->cpu != none.cpu))
			c++;
		if (c == j->cpus + j->n_cpus) {
			if (array_push(&j->cpus, &j->n_cpus, &none, sizeof(none)))
				return -ENOMEM;
			c = &j->cpus[j->n_cpus - 1];
		}
		if (s->state == STATE_RUNNABLE)
			return finding_wait(j, c, s);
		c->v[c->n++ % FINDING_RAN] = (struct finding_ran){ s->from, s->to, 0, s->owner->pid };
		return 0;
	}
	while (v < j->v + j->n && (!v->owner.guest_name || v->owner.guest != s->owner->input))
		v++;
	if (s->state != STATE_STOLEN || v == j->v + j->n)
		return 0;
	of.owner = &v->owner;
	of.state = s->by;
	cause = why_cause_span(j->why, &of, false);
	cause.cpu = STATE_NO_CPU;
	task.cause = why_cause_of(j->why, &cause);
	return task.cause == UINT32_MAX ? -ENOMEM : finding_task_add(j, &task, s->from, s->to);
}

/* Time that is unknown before the first known span, or after the last one, was not recorded on purpose. */
static int finding_span(void *ctx, const struct state_span *s)
{
	static const struct finding_vcpu none = { .cpu = STATE_NO_CPU };
	static const size_t nowhere = SIZE_MAX;
	struct finding_job *j = ctx;
	uint64_t ns = s->to - s->from, bound = s->from_bound + s->to_bound;
	struct finding_vcpu *v;
	struct why_cause cause;
	uint32_t i;

	if (s->owner->kind == STATE_OF_GUEST_TASK)
		return finding_guest_task(j, s);
	cause = why_cause_span(j->why, s, false);
	while (j->n_places <= s->owner->index)
		if (array_push(&j->places, &j->n_places, &nowhere, sizeof(nowhere)))
			return -ENOMEM;
	if (j->places[s->owner->index] == nowhere) {
		j->places[s->owner->index] = j->n;
		if (array_push(&j->v, &j->n, &none, sizeof(none)))
			return -ENOMEM;
	}
	v = &j->v[j->places[s->owner->index]];
	v->owner = *s->owner;
	finding_move(v, s);
	v->known |= cause.kind != STATE_UNKNOWN;
	if (!v->known || cause.kind == STATE_ENDED)
		return 0;
	if (v->open && cause.kind != STATE_UNKNOWN)
		finding_stretch_take(&v->longest[CAUSE_UNKNOWN], s->from - v->open, s->from);
	v->open = cause.kind == STATE_UNKNOWN ? v->open + ns : 0;
	v->undecided += bound < ns && bound >= s->from_bound ? bound : ns;
	cause.cpu = STATE_NO_CPU; /* wherever it was */
	i = why_cause_of(j->why, &cause);
	if (i == UINT32_MAX)
		return -ENOMEM;
	v->by[i].ns += ns;
	v->by[i].n++;
	if (cause.kind != STATE_UNKNOWN)
		finding_stretch_take(&v->longest[i], s->from, s->to);
	v->wall += ns;
	return 0;
}

/* Causes that take time from a vCPU, by the command that shows more of them. */
static const char *const finding_next[WHY_KINDS] = {
	[STATE_UNKNOWN] = "hyptrace stat --show lost,vcpus",
	[STATE_HYP] = "hyptrace stat --show hyp,longest",
	[STATE_FIRMWARE] = "hyptrace stat --show firmware",
	[STATE_HOST] = "hyptrace stat --show exits,mmio,ioport,sysreg,hypercall",
	[STATE_VMM] = "hyptrace stat --show exits,mmio,ioport,hypercall",
	[STATE_PREEMPTED] = "hyptrace stat --show steal",
	[STATE_WAKING] = "hyptrace why --preset irq",
	[STATE_BLOCKED] = "hyptrace stat --show vcpus",
	[STATE_OUTSIDE] = "hyptrace stat --show vcpus",
};

/* Arm64's aborts of a guest, x86's EPT violations and nested page faults. */
static bool finding_is_fault(const char *reason)
{
	return strstr(reason, "ABT_LOW") || strstr(reason, "EPT_VIOLATION") || strstr(reason, "npf");
}

/* ", most of it from the guest's task dd-123", if half of what these causes stole from tasks is one task's.
 */
static void finding_victim(const struct finding_job *j, const bool causes[WHY_CAUSES_MAX], struct buf *what)
{
	struct why_cause guest = why_cause_plain(STATE_GUEST);
	const struct finding_task *most = NULL;
	uint64_t all = 0;

	for (const struct finding_task *t = j->tasks; t < j->tasks + j->n_tasks; t++) {
		if (t->cause >= WHY_CAUSES_MAX || !causes[t->cause])
			continue;
		all += t->ns;
		most = most && most->ns >= t->ns ? most : t;
	}
	if (!most || most->pid <= 0 || most->ns < all / 2)
		return;
	guest.input = (uint16_t)most->input;
	guest.pid = most->pid;
	buf_addstr(what, ", most of it from the guest's task ");
	why_task_text(j->why, &guest, what);
}

/* Of all vCPUs; the one that lost the greatest share of its time is named. */
static int finding_cause(const struct finding_job *j, uint32_t cause, bool faults)
{
	const struct why_cause *c = &j->why->causes[cause];
	struct finding f = { .next = finding_next[c->kind] };
	const struct finding_vcpu *worst = NULL;
	bool causes[WHY_CAUSES_MAX] = { false };
	const struct offset_guest *guest;
	struct buf what = { 0 };
	int ret = 0;

	for (const struct finding_vcpu *v = j->v; v < j->v + j->n && f.next; v++) {
		f.lost += v->by[cause].ns;
		f.n += v->by[cause].n;
		if (v->by[cause].ns && (double)v->by[cause].ns > f.share * (double)v->wall) {
			worst = v;
			f.share = (double)v->by[cause].ns / (double)v->wall;
		}
	}
	if (f.share < FINDING_LEAST)
		return 0;
	why_cause_text(j->why, c, &what);
	/* else finding_exits() has more of it */
	if (c->kind != STATE_HOST || !faults || !buf_str(&what) || !finding_is_fault(buf_str(&what))) {
		if (why_kind_advice(c->kind))
			buf_printf(&what, ": %s", why_kind_advice(c->kind));
		if (c->kind == STATE_PREEMPTED && input_vcpu(&j->why->in->v[c->input], c->pid, &guest))
			buf_addstr(&what, ", overcommit");
		causes[cause] = true;
		f.example = worst->longest[cause];
		finding_victim(j, causes, &what);
		ret = finding_push(j, &f, &worst->owner, buf_str(&what) ?: "");
	}
	buf_release(&what);
	return ret;
}

static const struct finding_table {
	const char *what, *next;
} finding_tables[EXITS_TABLES] = {
	[EXITS_MMIO] = { "MMIO at ", "hyptrace stat --show mmio" },
	[EXITS_IOPORT] = { "I/O port ", "hyptrace stat --show ioport" },
	[EXITS_SYSREG] = { "register ", "hyptrace stat --show sysreg" },
	[EXITS_HYPERCALL] = { "hypercall ", "hyptrace stat --show hypercall" },
	[EXITS_FAULT] = { "stage-2 faults", "hyptrace why --preset abort" },
};

static int finding_row_order(const void *a, const void *b)
{
	const struct exits_row *x = *(const struct exits_row *const *)a,
			       *y = *(const struct exits_row *const *)b;

	return ORDER(x->table, y->table) ?: ORDER(x->key, y->key) ?: ORDER(x->info, y->info);
}

/* The most of a table. */
struct finding_exit {
	struct finding f;
	const struct exits_row *row; /* the first */
	const struct finding_vcpu *worst;
	uint64_t pages, permissions; /* of faults: pages that were not there, and faults on others */
};

static int finding_exit_push(const struct finding_job *j, struct finding_exit *e)
{
	const struct exits_row *r = e->row;
	struct finding *f = &e->f;
	const struct exits_vcpu *of = &exits_vcpus(j->exits, &(size_t){ 0 })[r->vcpu];
	struct buf what = { 0 }, cause = { 0 };
	bool causes[WHY_CAUSES_MAX] = { false };
	char name[EXITS_NAME_MAX];
	int ret;

	f->next = finding_tables[r->table].next;
	buf_printf(&what, "exits for %s", finding_tables[r->table].what);
	if (r->table != EXITS_FAULT) {
		buf_addstr(&what, exits_name(j->exits, of->input, r->table, r->key, r->info, name));
	} else {
		buf_printf(&what, ": %.0f %% a page's first, of %llu pages",
			   100.0 * (double)e->pages / (double)f->n, (unsigned long long)e->pages);
		if (f->n - e->permissions > e->pages)
			buf_printf(&what, ", %.0f %% on one that the host had taken back",
				   100.0 * (double)(f->n - e->permissions - e->pages) / (double)f->n);
		if (e->permissions)
			buf_printf(&what, ", %.0f %% for a permission",
				   100.0 * (double)e->permissions / (double)f->n);
		for (size_t i = 0; i < j->why->n_causes; i++) {
			cause.len = 0;
			why_cause_text(j->why, &j->why->causes[i], &cause);
			causes[i] = buf_str(&cause) && finding_is_fault(buf_str(&cause));
		}
		finding_victim(j, causes, &what);
	}
	ret = finding_push(j, f, &e->worst->owner, buf_str(&what) ?: "");
	buf_release(&what);
	buf_release(&cause);
	return ret;
}

/* Of each table what took longest. *faults: there are stage-2 faults. */
static int finding_exits(const struct finding_job *j, bool *faults)
{
	size_t n, n_vcpus, groups = 0;
	const struct exits_row *rows = exits_rows(j->exits, &n), **v = calloc(n + 1, sizeof(*v));
	const struct exits_vcpu *vcpus = exits_vcpus(j->exits, &n_vcpus);
	const struct finding_vcpu **of = calloc(n_vcpus + 1, sizeof(*of));
	uint64_t *ns = calloc(n_vcpus + 1, sizeof(*ns));
	struct finding_exit best[EXITS_TABLES] = { 0 };
	int ret = v && of && ns ? 0 : -ENOMEM;

	for (size_t i = 0; i < n_vcpus && !ret; i++)
		for (const struct finding_vcpu *k = j->v; k < j->v + j->n; k++)
			if (k->owner.input == vcpus[i].input && k->owner.pid == vcpus[i].pid && k->wall)
				of[i] = k;
	for (size_t i = 0; i < n && !ret; i++)
		if (rows[i].table != EXITS_REASON && rows[i].handled.n && of[rows[i].vcpu])
			v[groups++] = &rows[i];
	n = groups;
	if (n)
		qsort(v, n, sizeof(*v), finding_row_order);
	for (size_t i = 0, end; i < n; i = end) {
		struct finding_exit e = { .row = v[i] };

		/* rows of one address, port, register or call, or all faults */
		for (end = i;
		     end < n && v[end]->table == v[i]->table &&
		     (v[i]->table == EXITS_FAULT || (v[end]->key == v[i]->key && v[end]->info == v[i]->info));
		     end++) {
			const struct exits_row *r = v[end];
			double share;

			if (r->table == EXITS_FAULT && r->info)
				e.permissions += r->handled.n;
			else
				e.pages += end == i || r->key != v[end - 1]->key;
			e.f.lost += r->handled.sum;
			e.f.n += r->handled.n;
			ns[r->vcpu] += r->handled.sum;
			share = (double)ns[r->vcpu] / (double)of[r->vcpu]->wall;
			e.worst = share > e.f.share ? of[r->vcpu] : e.worst;
			e.f.share = share > e.f.share ? share : e.f.share;
		}
		for (size_t k = i; k < end; k++) {
			ns[v[k]->vcpu] = 0;
			if (of[v[k]->vcpu] == e.worst)
				finding_stretch_take(&e.f.example, v[k]->longest,
						     v[k]->longest + v[k]->handled.max);
		}
		*faults |= v[i]->table == EXITS_FAULT;
		if (e.worst && e.f.lost > best[v[i]->table].f.lost)
			best[v[i]->table] = e;
	}
	for (size_t i = 0; i < EXITS_TABLES && !ret; i++)
		if (best[i].f.share >= FINDING_LEAST)
			ret = finding_exit_push(j, &best[i]);
	free(v);
	free(of);
	free(ns);
	return ret;
}

/* The task of a guest that ran longest while another one waited for its CPU. */
static int finding_waits(const struct finding_job *j)
{
	struct why_cause task = why_cause_plain(STATE_GUEST);
	const struct finding_task *worst = NULL;
	const struct finding_vcpu *v;
	struct finding f = { .next = "hyptrace stat --show tasks" };
	struct buf what = { 0 };
	int ret = 0;

	for (const struct finding_task *t = j->tasks; t < j->tasks + j->n_tasks; t++)
		if (t->cause == FINDING_WAITS && (!worst || t->ns > worst->ns))
			worst = t;
	v = worst ? finding_vcpu_of(j, worst->input, (uint32_t)worst->other) : NULL;
	if (!v)
		return 0;
	f.lost = worst->ns;
	f.n = worst->n;
	f.example = worst->longest;
	f.share = (double)f.lost / (double)v->wall;
	if (f.share < FINDING_LEAST)
		return 0;
	task.input = (uint16_t)worst->input;
	task.pid = worst->pid;
	buf_addstr(&what, "the guest's task ");
	why_task_text(j->why, &task, &what);
	buf_addstr(&what, " has a CPU while another one waits for it");
	ret = finding_push(j, &f, &v->owner, buf_str(&what) ?: "");
	buf_release(&what);
	return ret;
}

/* The vCPU that moves most; its time is that of its waits before a move. */
static int finding_moves(const struct finding_job *j)
{
	struct finding f = { .next = "hyptrace stat --show vcpus,steal" };
	const struct finding_vcpu *worst = NULL;
	char what[64];
	double rate, most = MOVES_LEAST;

	for (const struct finding_vcpu *v = j->v; v < j->v + j->n; v++) {
		f.lost += v->moves.ns;
		f.n += v->moves.n;
		rate = v->wall ? (double)v->moves.n * 1e9 / (double)v->wall : 0;
		if (rate >= most) {
			worst = v;
			most = rate;
			f.example = v->longest_move;
			f.share = (double)v->moves.ns / (double)v->wall;
		}
	}
	snprintf(what, sizeof(what), "moves to another CPU, %.0f a second, and waits before them", most);
	return worst ? finding_push(j, &f, &worst->owner, what) : 0;
}

static int finding_order(const void *a, const void *b)
{
	const struct finding *x = a, *y = b;

	if (x->lost != y->lost)
		return x->lost < y->lost ? 1 : -1;
	return strcmp(x->what, y->what);
}

int findings_join(struct finding_job **out, struct reading *r)
{
	struct finding_job *j = *out = calloc(1, sizeof(*j));
	int ret = j ? why_open(&j->why, r->in, NULL) : -ENOMEM;

	if (ret)
		return ret;
	j->why->steps = r->steps;
	ret = reading_states(r, STATES_VCPUS | STATES_GUEST_TASKS, finding_span, j);
	ret = ret ?: reading_exits(r, NULL) ?: tails_open(&j->tails, r->in, r->timeline);
	if (ret)
		return ret;
	j->exits = r->exits;
	tails_join(j->tails, r);
	return 0;
}

int findings_end(struct finding_job *j, struct findings *f)
{
	bool faults = false;
	int ret = 0;

	j->to = f;
	for (struct finding_vcpu *v = j->v; v < j->v + j->n && !ret; v++) {
		struct finding open = { .lost = v->undecided, .n = 1, .next = "hyptrace sync" };

		v->by[CAUSE_UNKNOWN].ns -= v->open;
		v->by[CAUSE_UNKNOWN].n -= v->open > 0;
		v->wall -= v->open;
		f->wall += v->wall;
		open.share = v->wall ? (double)v->undecided / (double)v->wall : 0;
		if (open.share >= FINDING_LEAST)
			ret = finding_push(j, &open, &v->owner, why_kind_advice(WHY_UNDECIDED));
	}
	ret = ret ?: finding_moves(j);
	ret = ret ?: finding_exits(j, &faults);
	for (uint32_t i = 0; i < j->why->n_causes && !ret; i++)
		ret = finding_cause(j, i, faults);
	ret = ret ?: finding_waits(j);
	ret = ret ?: tails_find(j->tails, j);
	array_sort(f->v, f->n, sizeof(*f->v), finding_order);
	return ret;
}

void findings_close(struct finding_job *j)
{
	if (!j)
		return;
	tails_close(j->tails);
	free(j->v);
	free(j->places);
	free(j->tasks);
	free(j->cpus);
	map_release(&j->by_task);
	why_close(j->why);
	free(j);
}

int findings_read(struct findings *f, const struct inputs *in, const struct log *log, uint64_t *damaged)
{
	struct finding_job *j = NULL;
	struct reading r;
	int ret = reading_open(&r, in, NULL, log) ?: findings_join(&j, &r) ?: reading_run(&r);

	*damaged = reading_damaged(&r);
	ret = ret ?: findings_end(j, f);
	findings_close(j);
	reading_close(&r);
	return ret;
}
