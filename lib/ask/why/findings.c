// SPDX-License-Identifier: LGPL-2.1-or-later
/* Findings without a question: the causes that took most of the vCPUs' time, by one reading of the files. */

#include "ask/why/why-priv.h"

#define MOVES_LEAST	  20 /* of a vCPU, a second */
#define FINDING_TASKS_MAX 65536
#define PRICE_MOST	  1000000 /* ns: no exit costs more ordinarily */

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
	finding_part_add(&j->tasks[i].of, from, to);
	return 0;
}

/* Books what was stolen from a guest's task under the cause that its vCPU has meanwhile. */
static int finding_guest_task(struct finding_job *j, const struct state_span *s)
{
	struct finding_task task = { .input = s->owner->input, .pid = s->owner->pid, .other = STATE_NO_TASK };
	struct finding_vcpu *v = finding_vcpu_of(j, s->owner->input, s->cpu);
	struct state_span cut, of;
	struct why_cause cause;

	s = v ? states_cut(s, &cut) : NULL;
	if (!s)
		return 0;
	/* a wait is for the tasks that ran on that CPU meanwhile; what was stolen from them is not their
	 * doing */
	for (size_t i = v->n_ran; s->state == STATE_RUNNABLE && i-- > 0 && v->n_ran - i <= FINDING_RAN;) {
		struct finding_ran *r = &v->ran[i % FINDING_RAN];
		uint64_t from = r->from > s->from ? r->from : s->from, to = r->to < s->to ? r->to : s->to;

		if (r->to <= s->from)
			break;
		from = r->counted > from ? r->counted : from;
		if (from >= to)
			continue;
		r->counted = to;
		task.cause = FINDING_WAITS;
		task.pid = r->pid;
		task.other = (int32_t)s->cpu;
		if (finding_task_add(j, &task, from, to))
			return -ENOMEM;
	}
	if (s->state == STATE_RUNNING)
		v->ran[v->n_ran++ % FINDING_RAN] = (struct finding_ran){ s->from, s->to, 0, s->owner->pid };
	if (s->state != STATE_STOLEN)
		return 0;
	of = *s;
	of.owner = &v->owner;
	of.state = s->by;
	why_cause_span(j->why, &of, false, &cause);
	cause.cpu = STATE_NO_CPU;
	task.cause = why_cause_of(j->why, &cause);
	return task.cause == UINT32_MAX ? -ENOMEM : finding_task_add(j, &task, s->from, s->to);
}

/* Books the exit that is open under its reason; one without a part in the host is the hypervisor's alone. */
static int finding_exit_over(struct finding_job *j, struct finding_vcpu *v, bool whole)
{
	const struct finding_exit_open x = v->exit;

	v->exit = (struct finding_exit_open){ 0 };
	if (!x.cause || !x.ns)
		return 0;
	v->by[x.cause].ns += x.ns;
	v->by[x.cause].n++;
	j->halts[x.cause] |= x.halted;
	j->vmm.ns += x.vmm;
	j->vmm.n += x.vmm > 0;
	return whole && !x.vmm ? histogram_add(&j->exits_of[x.halted], x.ns) : 0;
}

/*
 * Only the time counts that all buffers cover. Of that, what is unknown before the first known span, or after
 * the last one, was not recorded on purpose.
 */
static int finding_span(void *ctx, const struct state_span *whole)
{
	static const struct finding_vcpu none = { .cpu = STATE_NO_CPU };
	struct finding_job *j = ctx;
	struct state_span cut;
	const struct state_span *part = states_cut(whole, &cut), *s = part ?: whole;
	uint64_t ns, bound;
	struct finding_exit_open *x;
	struct finding_vcpu *v;
	struct why_cause cause;
	bool unknown;
	size_t *place;
	uint32_t i;

	if (s->owner->kind == STATE_OF_GUEST_TASK)
		return finding_guest_task(j, s);
	why_cause_span(j->why, s, false, &cause);
	unknown = cause.kind == STATE_UNKNOWN || cause.kind == WHY_LOST;
	ns = s->to - s->from;
	bound = s->from_bound + s->to_bound;
	if (array_reach(&j->places, &j->n_places, s->owner->index + 1, sizeof(*j->places)))
		return -ENOMEM;
	place = &j->places[s->owner->index];
	if (!*place && array_push(&j->v, &j->n, &none, sizeof(none)))
		return -ENOMEM;
	*place = *place ?: j->n;
	v = &j->v[*place - 1];
	if (v->from < s->covered_from) {
		for (struct finding_task *t = j->tasks; t < j->tasks + j->n_tasks; t++)
			if (t->input == v->owner.guest)
				t->of = (struct finding_part){ 0 };
		*v = (struct finding_vcpu){ .cpu = STATE_NO_CPU, .from = s->covered_from, .known = v->known };
	}
	v->owner = *s->owner;
	v->known |= !unknown;
	if (!part)
		return 0;
	if (s->state == STATE_PREEMPTED || s->state == STATE_WAKING) {
		v->since = v->waits ? v->since : s->from;
		v->waits += s->to - s->from;
	} else if (s->state >= STATE_GUEST && s->state <= STATE_VMM && s->cpu != STATE_NO_CPU) {
		if (v->cpu != s->cpu && v->cpu != STATE_NO_CPU) {
			v->moves.ns += v->waits;
			v->moves.n++;
			if (v->waits)
				finding_stretch_take(&v->moves.longest, v->since, s->from);
		}
		v->cpu = s->cpu;
		v->waits = 0;
	} else if (s->state == STATE_UNKNOWN) {
		v->cpu = STATE_NO_CPU;
	}
	if (cause.kind == STATE_ENDED || (unknown && !v->wall))
		return 0;
	v->by[CAUSE_UNDECIDED].ns += bound < ns && bound >= s->from_bound ? bound : ns;
	v->by[CAUSE_UNDECIDED].n += bound > 0;
	if (unknown) {
		finding_part_add(&v->open[cause.kind == WHY_LOST], s->from, s->to);
		return finding_exit_over(j, v, false);
	}
	for (size_t k = 0; k < 2; k++) {
		struct finding_part *to = &v->by[k ? CAUSE_LOST : CAUSE_UNKNOWN], *open = &v->open[k];

		v->wall += open->ns;
		to->ns += open->ns;
		to->n += open->n;
		finding_stretch_take(&to->longest, open->longest.from, open->longest.to);
		*open = (struct finding_part){ 0 };
	}
	v->wall += ns;
	cause.cpu = STATE_NO_CPU; /* wherever it was */
	i = why_cause_of(j->why, &cause);
	if (i == UINT32_MAX)
		return -ENOMEM;
	if (cause.kind == STATE_HOST)
		finding_stretch_take(&v->by[i].longest, s->from, s->to);
	else
		finding_part_add(&v->by[i], s->from, s->to);
	/* the span as a part of an exit; before a halt the guest has nothing to do */
	if (s->state == STATE_GUEST)
		return finding_exit_over(j, v, true);
	x = &v->exit;
	if (s->state >= STATE_HYP && s->state <= STATE_HOST)
		x->ns += s->to - s->from;
	if (s->state == STATE_HOST && (s->why || !x->cause))
		x->cause = i;
	if (s->state == STATE_HALTED)
		*x = (struct finding_exit_open){ .cause = x->cause, .halted = true };
	if (s->state == STATE_VMM)
		x->vmm += s->to - s->from;
	return 0;
}

/* Exits by what they were for; `reasons` are those of such exits. */
static const struct finding_table {
	const char *what, *next, *reasons[4];
} finding_tables[EXITS_TABLES] = {
	[EXITS_MMIO] = { "MMIO at ",
			 "hyptrace stat --show mmio",
			 { "ABT_LOW", "EPT_MISCONFIG", "npf", "EXIT_MMIO" } },
	[EXITS_IOPORT] = { "I/O port ", "hyptrace stat --show ioport", { "IO_INSTRUCTION", "EXIT_IO" } },
	[EXITS_SYSREG] = { "register ", "hyptrace stat --show sysreg", { "SYS64", "MSR_", "msr" } },
	[EXITS_HYPERCALL] = { "hypercall ",
			      "hyptrace stat --show hypercall",
			      { "HVC64", "VMCALL", "vmmcall" } },
	[EXITS_FAULT] = { "stage-2 faults",
			  "hyptrace why --preset abort",
			  { "ABT_LOW", "EPT_VIOLATION", "npf" } },
};

static bool finding_is_of(const struct finding_job *j, uint32_t cause, enum exits_table table)
{
	const char *const *reason = finding_tables[table].reasons;
	struct buf text = { 0 };
	bool is = false;

	why_cause_text(j->why, &j->why->causes[cause], &text);
	for (size_t i = 0; i < 4 && reason[i]; i++)
		is |= buf_str(&text) && strstr(buf_str(&text), reason[i]);
	buf_release(&text);
	return is;
}

#define FINDING_FAULTS (FINDING_WAITS - 1)

/* ", most of it from the guest's task dd-123", if half of what the cause, or FINDING_FAULTS, stole is one's.
 */
static void finding_victim(const struct finding_job *j, uint32_t cause, struct buf *what)
{
	const struct finding_task *most = NULL;
	char name[STEPS_TASK_MAX];
	uint64_t all = 0;

	for (const struct finding_task *t = j->tasks; t < j->tasks + j->n_tasks; t++) {
		if (t->cause == FINDING_WAITS ||
		    (cause == FINDING_FAULTS ? !finding_is_of(j, t->cause, EXITS_FAULT) : t->cause != cause))
			continue;
		all += t->of.ns;
		most = most && most->of.ns >= t->of.ns ? most : t;
	}
	if (most && most->pid > 0 && most->of.ns >= all / 2)
		buf_printf(what, ", most of it from the guest's task %s",
			   steps_task(j->why->steps, j->why->in, most->input, most->pid, UINT64_MAX, name));
}

/* Of all vCPUs; the one that lost the greatest share of its time is named. shown: lost by each table's best.
 */
static int finding_cause(const struct finding_job *j, uint32_t cause, const uint64_t shown[EXITS_TABLES])
{
	const struct why_cause *c = &j->why->causes[cause];
	const struct why_kind_words *kind = why_kind(c->kind);
	struct finding f = { .next = kind->next };
	uint64_t elsewhere = 0;
	const struct offset_guest *guest;
	struct buf what = { 0 };

	if (!f.next)
		return 0;
	for (struct finding_vcpu *v = j->v; v < j->v + j->n; v++)
		v->part = v->by[cause];
	finding_sum(j, &f, kind->class + j->halts[cause]);
	for (size_t i = 0; i < EXITS_TABLES && (c->kind == STATE_HOST || c->kind == STATE_VMM); i++)
		elsewhere += finding_is_of(j, cause, i) ? shown[i] : 0;
	if (elsewhere >= f.lost / 2)
		return 0;
	why_cause_text(j->why, c, &what);
	if (kind->advice)
		buf_printf(&what, ": %s", kind->advice);
	if (c->kind == STATE_PREEMPTED && input_vcpu(&j->why->in->v[c->input], c->pid, &guest))
		buf_addstr(&what, ", overcommit");
	f.context = !strcmp(c->comm, "hyptrace") || !strcmp(c->comm, "trace-cmd");
	if (f.context)
		buf_addstr(&what, ", which recorded");
	finding_victim(j, cause, &what);
	return finding_push(j, &f, &what);
}

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
	uint64_t pages, permissions; /* of faults: pages that were not there, and faults on others */
	uint64_t calls;		     /* of faults: those in which the hypervisor was called */
};

static int finding_exit_push(const struct finding_job *j, struct finding_exit *e)
{
	const struct exits_row *r = e->row;
	struct finding *f = &e->f;
	struct buf what = { 0 };
	char name[EXITS_NAME_MAX];

	f->next = finding_tables[r->table].next;
	buf_printf(&what, "exits for %s", finding_tables[r->table].what);
	if (r->table != EXITS_FAULT) {
		buf_addstr(&what, exits_name(j->exits, f->on.input, r->table, r->key, r->info, name));
	} else {
		buf_printf(&what, ": %.0f %% a page's first, of %llu pages",
			   100.0 * (double)e->pages / (double)f->n, (unsigned long long)e->pages);
		if (f->n - e->permissions > e->pages)
			buf_printf(&what, ", %.0f %% on one that the host had taken back",
				   100.0 * (double)(f->n - e->permissions - e->pages) / (double)f->n);
		if (e->permissions)
			buf_printf(&what, ", %.0f %% for a permission",
				   100.0 * (double)e->permissions / (double)f->n);
		/* without pKVM it is called in a few: to flush a TLB, or for a vCPU that another preempted */
		if (2 * e->calls >= f->n)
			buf_printf(&what, ", %.0f %% a share or donation by the hypervisor",
				   100.0 * (double)e->calls / (double)f->n);
		finding_victim(j, FINDING_FAULTS, &what);
	}
	return finding_push(j, f, &what);
}

/* Of each table what took longest beyond the ordinary price, which faults have not; shown: how long, by
 * table. */
static int finding_exits(const struct finding_job *j, uint64_t shown[EXITS_TABLES])
{
	size_t n_rows = j->exits->rows.n, n_vcpus = j->exits->n, n = 0;
	const struct exits_row *rows = j->exits->rows.v, **v = calloc(n_rows + 1, sizeof(*v));
	const struct exits_vcpu *vcpus = j->exits->vcpus;
	struct finding_vcpu **of = calloc(n_vcpus + 1, sizeof(*of));
	struct finding_exit best[EXITS_TABLES] = { 0 };
	int ret = v && of ? 0 : -ENOMEM;

	for (size_t i = 0; i < n_vcpus && !ret; i++)
		of[i] = finding_thread_of(j, (uint32_t)vcpus[i].input, vcpus[i].pid);
	for (size_t i = 0; i < n_rows && !ret; i++)
		if (rows[i].table != EXITS_REASON && rows[i].handled.n && of[rows[i].vcpu])
			v[n++] = &rows[i];
	array_sort(v, n, sizeof(*v), finding_row_order);
	for (size_t i = 0, end; i < n; i = end) {
		struct finding_exit e = { .row = v[i] };
		enum exits_table table = v[i]->table;

		/* rows of one address, port, register or call, or all faults */
		for (end = i;
		     end < n && v[end]->table == table &&
		     (table == EXITS_FAULT || (v[end]->key == v[i]->key && v[end]->info == v[i]->info));
		     end++) {
			const struct exits_row *r = v[end];

			if (table == EXITS_FAULT && r->info)
				e.permissions += r->handled.n;
			else
				e.pages += end == i || r->key != v[end - 1]->key;
			e.calls += r->calls;
			of[r->vcpu]->part.ns += r->handled.sum;
			of[r->vcpu]->part.n += r->handled.n;
			finding_stretch_take(&of[r->vcpu]->part.longest, r->longest,
					     r->longest + r->handled.max);
		}
		finding_sum(j, &e.f,
			    table == EXITS_FAULT    ? OF_ALL
			    : table <= EXITS_IOPORT ? OF_ACCESSES
						    : OF_PARTS);
		if (e.f.lost > best[table].f.lost)
			best[table] = e;
	}
	for (size_t i = 0; i < EXITS_TABLES && !ret; i++) {
		shown[i] = best[i].f.lost;
		ret = best[i].row ? finding_exit_push(j, &best[i]) : 0;
	}
	free(v);
	free(of);
	return ret;
}

/* The task of a guest that ran longest while another one waited for its CPU. */
static int finding_waits(const struct finding_job *j)
{
	const struct finding_task *worst = NULL;
	const struct finding_vcpu *v;
	struct finding f = { .next = "hyptrace stat --show tasks" };
	struct buf what = { 0 };
	char name[STEPS_TASK_MAX];

	for (const struct finding_task *t = j->tasks; t < j->tasks + j->n_tasks; t++)
		if (t->cause == FINDING_WAITS && (!worst || t->of.ns > worst->of.ns))
			worst = t;
	v = worst ? finding_vcpu_of(j, worst->input, (uint32_t)worst->other) : NULL;
	if (!v)
		return 0;
	f.on = v->owner;
	f.lost = worst->of.ns;
	f.n = worst->of.n;
	f.example = worst->of.longest;
	f.share = (double)f.lost / (double)v->wall;
	buf_printf(&what, "the guest's task %s has a CPU while another one waits for it",
		   steps_task(j->why->steps, j->why->in, worst->input, worst->pid, UINT64_MAX, name));
	return finding_push(j, &f, &what);
}

/* The vCPU that moves most; its time is that of its waits before a move. */
static int finding_moves(const struct finding_job *j)
{
	struct finding f = { .next = "hyptrace stat --show vcpus,steal" };
	struct buf what = { 0 };

	for (struct finding_vcpu *v = j->v; v < j->v + j->n; v++)
		if ((double)v->moves.n * 1e9 >= MOVES_LEAST * (double)v->wall)
			v->part = v->moves;
	finding_sum(j, &f, OF_ALL);
	buf_printf(&what, "moves to another CPU, %.0f a second, and waits before them", f.rate);
	return finding_push(j, &f, &what);
}

/* The time of exits that is in no finding: their ordinary price. */
static int finding_ordinary(const struct finding_job *j)
{
	const struct answer units = { .ticks = inputs_in_ticks(j->why->in) };
	struct finding f = { .context = true };
	struct buf what = { 0 };
	char each[32];

	for (struct finding_vcpu *v = j->v; v < j->v + j->n; v++)
		v->part = v->ordinary;
	finding_sum(j, &f, OF_ALL);
	buf_printf(&what, "exits at their ordinary price, %s each",
		   answer_duration(&units, f.n ? f.lost / f.n : 0, each));
	return finding_push(j, &f, &what);
}

static int finding_order(const void *a, const void *b)
{
	const struct finding *x = a, *y = b;

	return ORDER(x->context, y->context) ?: ORDER(y->lost, x->lost) ?: strcmp(x->what, y->what);
}

int findings_join(struct finding_job **out, struct reading *r)
{
	struct finding_job *j = *out = calloc(1, sizeof(*j));
	int ret = j ? why_open(&j->why, r->in, NULL) : -ENOMEM;

	if (ret)
		return ret;
	j->why->steps = r->steps;
	ret = reading_states(r, STATES_VCPUS | STATES_GUEST_TASKS, finding_span, j);
	j->states = r->states;
	ret = ret ?: exits_open(&j->exits, r->in, r->timeline, r->steps, r->states, NULL);
	ret = ret ?: tails_open(&j->tails, r);
	if (ret)
		return ret;
	reading_add(r, exits_part(j->exits));
	return 0;
}

int findings_end(struct finding_job *j, struct findings *f)
{
	uint64_t shown[EXITS_TABLES];
	int ret;

	j->to = f;
	for (size_t k = 0; k < 2; k++) {
		j->price[k] = histogram_at(&j->exits_of[k], 0.5);
		j->price[k] = j->price[k] < PRICE_MOST ? j->price[k] : PRICE_MOST;
	}
	for (struct finding_vcpu *v = j->v; v < j->v + j->n; v++) {
		finding_exit_over(j, v, false);
		f->wall += v->wall;
		f->apart |= v->known;
	}
	ret = finding_moves(j) ?: finding_exits(j, shown);
	for (uint32_t i = 0; i < j->why->n_causes && !ret; i++)
		ret = finding_cause(j, i, shown);
	ret = ret ?: finding_waits(j);
	ret = ret ?: tails_find(j->tails, j);
	ret = ret ?: finding_ordinary(j);
	array_sort(f->v, f->n, sizeof(*f->v), finding_order);
	for (; f->n && f->v[f->n - 1].context; f->n--)
		f->n_context++;
	return ret;
}

void findings_close(struct finding_job *j)
{
	if (!j)
		return;
	tails_close(j->tails);
	exits_close(j->exits);
	free(j->v);
	free(j->places);
	free(j->tasks);
	map_release(&j->by_task);
	histogram_release(&j->exits_of[0]);
	histogram_release(&j->exits_of[1]);
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
