// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace stat: exits, with perf's columns; time in the hypervisor, the firmware and programs' spans. */
#include "stat-priv.h"

struct exit_table {
	const char *key;
	enum exits_table table;
	bool guest; /* the time that the guest ran, not that of handling */
	const char *title, *what, *none;
};

/* Rows of one table, added up as --per says. */
struct exit_sum {
	const struct exits_row *row; /* one of them */
	const struct exits_vcpu *vcpu;
	struct sums sums;
};

struct exit_sums {
	struct stat_answer *of;
	const struct exit_table *table;
	struct exit_sum *v;
	size_t n;
	struct sums total;
};

/* Group of the row: a machine, a guest or a vCPU. */
static int exit_by_group(const struct exit_sum *x, const struct exit_sum *y, enum stat_per per)
{
	int ret = ORDER(x->vcpu->input, y->vcpu->input);

	if (!ret && per >= STAT_GUEST)
		ret = ORDER(x->vcpu->guest, y->vcpu->guest);
	if (!ret && per == STAT_VCPU && x->vcpu->of && y->vcpu->of)
		ret = ORDER(x->vcpu->of->cpu, y->vcpu->of->cpu);
	if (!ret && per == STAT_VCPU)
		ret = ORDER((uint64_t)x->vcpu->pid, (uint64_t)y->vcpu->pid);
	return ret;
}

static int exit_by_what(const void *a, const void *b, void *of)
{
	const struct stat_answer *s = of;
	const struct exit_sum *x = a, *y = b;

	return exit_by_group(x, y, s->per)
		       ?: ORDER(x->row->key, y->row->key)
		       ?: ORDER(x->row->info, y->row->info);
}

/* The largest first, by time or by count. */
static int exit_by_time(const void *a, const void *b, void *of)
{
	const struct exit_sum *x = a, *y = b;
	const struct stat_answer *s = of;

	return exit_by_group(x, y, s->per)
		       ?: (s->by_count ? ORDER(y->sums.n, x->sums.n) : 0)
		       ?: ORDER(y->sums.sum, x->sums.sum)
		       ?: exit_by_what(a, b, of);
}

static int exit_sums_open(struct exit_sums *e)
{
	struct stat_answer *s = e->of;
	const struct exits_row *rows = s->exits->rows.v;
	size_t n = s->exits->rows.n, to = 0;

	e->v = calloc(n + 1, sizeof(*e->v));
	if (!e->v)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct sums *sums = e->table->guest ? &rows[i].guest : &rows[i].handled;

		if (rows[i].table != e->table->table || !sums->n)
			continue;
		e->v[e->n++] = (struct exit_sum){ &rows[i], &s->exits->vcpus[rows[i].vcpu], *sums };
		sums_join(&e->total, sums);
	}
	qsort_r(e->v, e->n, sizeof(*e->v), exit_by_what, s);
	for (size_t i = 1; i < e->n; i++) {
		if (exit_by_what(&e->v[to], &e->v[i], s))
			e->v[++to] = e->v[i];
		else
			sums_join(&e->v[to].sums, &e->v[i].sums);
	}
	e->n = e->n ? to + 1 : 0;
	qsort_r(e->v, e->n, sizeof(*e->v), exit_by_time, s);
	return 0;
}

/* Part of a whole; 0 of none. */
static struct answer_cell stat_share(uint64_t part, uint64_t whole)
{
	return CELL_SHARE(whole ? (double)part / (double)whole : 0);
}

static void exit_cells(struct stat_table *t, const struct exit_sums *e, const struct exit_sum *x)
{
	enum stat_per per = t->of->per;
	char name[EXITS_NAME_MAX], vcpu[STEPS_TASK_MAX];
	const char *guest = x->vcpu->guest ? x->vcpu->guest->name : NULL;

	stat_row(t, x->vcpu->input,
		 (struct answer_cell[]){
			 per == STAT_ALL ? CELL_NONE : CELL_WORD(guest),
			 per == STAT_VCPU
				 ? CELL_WORD(stat_task_name(t->of, x->vcpu->input, x->vcpu->pid, vcpu))
				 : CELL_NONE,
			 per == STAT_VCPU ? CELL_N((uint64_t)x->vcpu->pid) : CELL_NONE,
			 CELL_WORD(exits_name(t->of->exits, x->vcpu->input, e->table->table, x->row->key,
					      x->row->info, name)),
			 CELL_N(x->sums.n), stat_share(x->sums.n, e->total.n), CELL_N(x->sums.sum),
			 stat_share(x->sums.sum, e->total.sum), CELL_N(x->sums.min), CELL_N(x->sums.max),
			 CELL_N((uint64_t)(sums_mean(&x->sums) + 0.5)), CELL_SHARE(sums_error(&x->sums)) });
}

static const struct exit_table exit_tables[] = {
	{ "exits", EXITS_REASON, false, "Exits: from kvm_exit to kvm_entry", "VM-EXIT",
	  "the files have no kvm_entry with a kvm_exit" },
	{ "guest", EXITS_REASON, true, "Guest: from kvm_entry to the kvm_exit", "VM-EXIT",
	  "the files have no kvm_entry with a kvm_exit" },
	{ "mmio", EXITS_MMIO, false, "MMIO accesses", "MMIO Access",
	  "the files have no kvm_mmio in a vCPU's exit" },
	{ "ioport", EXITS_IOPORT, false, "I/O port accesses", "IO Port Access",
	  "the files have no kvm_pio in a vCPU's exit" },
	{ "sysreg", EXITS_SYSREG, false, "Exits for system registers", "register",
	  "the files have no kvm_handle_sys_reg, kvm_sys_access or kvm_msr in a vCPU's exit" },
	{ "hypercall", EXITS_HYPERCALL, false, "Exits for hypercalls", "hypercall",
	  "the files have no kvm_hvc_arm64 or kvm_hypercall in a vCPU's exit" },
	{ "faults", EXITS_FAULT, false, "Exits for stage-2 faults", "page",
	  "the files have no kvm_guest_fault or kvm_page_fault in a vCPU's exit" },
};

void stat_exits(struct stat_answer *s, const char *key)
{
	const struct answer_column *c = duration_columns;
	const struct exit_table *of = exit_tables;
	const struct exits_cut cut = s->exits->cut;
	struct exit_sums e = { .of = s };
	bool machines = false, reasons;
	struct stat_table t;
	char total[32];

	while (strcmp(of->key, key))
		of++;
	e.table = of;
	reasons = of->table == EXITS_REASON && !of->guest;
	s->ret = exit_sums_open(&e);
	if (s->ret)
		return;
	for (size_t i = 1; i < e.n; i++)
		machines |= e.v[i].vcpu->input != e.v[0].vcpu->input;
	stat_begin(&t, s, machines);
	/* the keys are those of all durations, the headings perf's */
	stat_column(&t, "guest", "guest", ANSWER_WORD, s->per == STAT_GUEST);
	stat_column(&t, "vcpu", "vCPU", ANSWER_WORD, s->per == STAT_VCPU);
	stat_column(&t, "pid", "thread", ANSWER_SIGNED, false);
	stat_column(&t, "what", of->what, ANSWER_WORD, true);
	stat_column(&t, c[DURATION_COUNT].key, "Samples", ANSWER_COUNT, true);
	stat_column(&t, "count_share", "Samples%", ANSWER_SHARE, s->per == STAT_ALL);
	stat_column(&t, c[DURATION_TOTAL].key, "Time", ANSWER_DURATION, false);
	stat_column(&t, "share", "Time%", ANSWER_SHARE, true);
	stat_column(&t, c[DURATION_MIN].key, "Min", ANSWER_DURATION, true);
	stat_column(&t, c[DURATION_MAX].key, "Max", ANSWER_DURATION, true);
	stat_column(&t, c[DURATION_AVG].key, "Avg", ANSWER_DURATION, true);
	stat_column(&t, "error_share", "+-", ANSWER_SHARE, true);
	if (stat_open(&t, key, of->title, e.n, of->none)) {
		for (size_t i = 0; i < e.n; i++)
			exit_cells(&t, &e, &e.v[i]);
		stat_close(&t);
		if (e.n)
			answer_note(s->out, "%s: %llu samples, %s in total", key,
				    (unsigned long long)e.total.n,
				    answer_duration(s->out, e.total.sum, total));
		if (reasons && cut.lost)
			answer_note(s->out,
				    "exits, guest: %llu stretches in which events were lost are unknown, and "
				    "left out",
				    (unsigned long long)cut.lost);
		if (reasons && (cut.vcpus || cut.rows))
			answer_note(s->out, "exits: there are too many %s, the last are left out",
				    cut.vcpus ? "vCPUs" : "different exits");
	}
	free(e.v);
}

/* A row of any of these tables. */
struct time_row {
	size_t input;
	const char *kind; /* NULL: all are of one kind */
	const char *name; /* NULL: unknown */
	const struct histogram *time;
};

static int time_longer_first(const void *a, const void *b)
{
	const struct time_row *x = a, *y = b;

	return ORDER(y->time->sum, x->time->sum) ?: strcmp(x->name ?: "", y->name ?: "");
}

/* name: key and heading of the rows' names. False: it is not there. */
static bool time_table(struct stat_answer *s, const char *key, const char *title, const char *name,
		       const char *none, struct time_row *v, size_t n)
{
	bool machines = false, kinds = !strcmp(name, "name");
	struct stat_table t;
	uint64_t total = 0;

	for (size_t i = 0; i < n; i++) {
		machines |= v[i].input != v[0].input;
		total += v[i].time->sum;
	}
	stat_begin(&t, s, machines);
	if (kinds)
		stat_column(&t, "kind", "kind", ANSWER_WORD, true);
	stat_column(&t, name, name, ANSWER_WORD, true);
	for (size_t i = 0; i < DURATIONS; i++) {
		const struct answer_column *c = &duration_columns[i];

		/* 80 columns have no room for both */
		stat_column(&t, c->key, c->title, c->kind, i != (kinds ? DURATION_P99_9 : DURATION_MIN));
		if (i == DURATION_TOTAL)
			stat_column(&t, "share", "share", ANSWER_SHARE, true);
	}
	if (!stat_open(&t, key, title, n, none))
		return false;
	qsort(v, n, sizeof(*v), time_longer_first);
	for (size_t i = 0; i < n; i++) {
		struct answer_cell cells[3 + DURATIONS];
		size_t to = 0;

		if (kinds)
			cells[to++] = CELL_WORD(v[i].kind);
		cells[to++] = CELL_WORD(v[i].name);
		for (size_t k = 0; k < DURATIONS; k++) {
			cells[to++] = CELL_N(duration_value(v[i].time, k));
			if (k == DURATION_TOTAL)
				cells[to++] = stat_share(v[i].time->sum, total);
		}
		stat_row(&t, v[i].input, cells);
	}
	stat_close(&t);
	return true;
}

static bool hyp_table(struct stat_answer *s, const struct hyptime_rows *rows, const char *key,
		      const char *title, const char *column, const char *none)
{
	struct time_row *v = calloc(rows->n + 1, sizeof(*v));
	bool there = false;

	s->ret = v ? 0 : -ENOMEM;
	for (size_t i = 0; i < rows->n && !s->ret; i++)
		v[i] = (struct time_row){ rows->v[i].input, NULL,
					  hyptime_name(s->hyp, rows->v[i].input, rows->v[i].kind),
					  &rows->v[i].time };
	if (!s->ret)
		there = time_table(s, key, title, column, none, v, rows->n);
	free(v);
	return there;
}

void stat_hyp(struct stat_answer *s, const char *key)
{
	const struct hyptime *h = s->hyp;
	uint64_t total = 0, count = 0, wall = 0;
	const struct counts_cpu *cpus = s->counts.cpus;
	char text[2][32];

	if (!hyp_table(s, &h->visits, key, "Hypervisor: from hyp_enter to hyp_exit, by reason", "reason",
		       "the files have no hyp_enter with a hyp_exit"))
		return;
	for (size_t i = 0; i < h->visits.n; i++) {
		total += h->visits.v[i].time.sum;
		count += h->visits.v[i].time.n;
	}
	/* share of all CPUs' time, from the first event of each buffer to its last */
	for (size_t i = 0; i < s->counts.n_cpus; i++)
		if (h->cpus[i].seen)
			wall += cpus[i].last - cpus[i].first;
	if (h->visits.n)
		answer_note(s->out, "hyp: %llu visits, %s in total: %.2f%% of %s recorded CPU time",
			    (unsigned long long)count, answer_duration(s->out, total, text[0]),
			    wall ? 100.0 * (double)total / (double)wall : 0,
			    answer_duration(s->out, wall, text[1]));
	if (h->enters || h->exits)
		answer_note(s->out,
			    "hyp: %llu hyp_enter and %llu hyp_exit without the other are left out: events "
			    "were lost, "
			    "or the recording begins or ends there",
			    (unsigned long long)h->enters, (unsigned long long)h->exits);
}

void stat_firmware(struct stat_answer *s, const char *key)
{
	hyp_table(s, &s->hyp->firmware, key,
		  "Firmware (EL3): from hyp_exit for smc until the hypervisor is entered again", "back_for",
		  "the files have no hyp_exit for smc with a hyp_enter after it");
}

void stat_spans(struct stat_answer *s, const char *key)
{
	static const char *const kinds[] = { [MARKERS_CROSVM] = "crosvm", [MARKERS_GUEST] = "hypertrace" };
	const struct markers_cut cut = s->markers->cut;
	const struct markers_row *rows = s->markers->rows;
	struct time_row *v = calloc(s->markers->n_rows + 1, sizeof(*v));
	size_t k = 0;

	if (!v) {
		s->ret = -ENOMEM;
		return;
	}
	for (size_t i = 0; i < s->markers->n_rows; i++)
		if (rows[i].time.n)
			v[k++] = (struct time_row){ rows[i].input, kinds[rows[i].kind], rows[i].name,
						    &rows[i].time };
	if (time_table(s, key, "Spans in trace_marker", "name", "the files have none", v, k) &&
	    (cut.begins || cut.ends || cut.others))
		answer_note(s->out,
			    "spans: %llu begins and %llu ends without the other, and %llu lines of too many "
			    "threads or names, are left out",
			    (unsigned long long)cut.begins, (unsigned long long)cut.ends,
			    (unsigned long long)cut.others);
	free(v);
}

const char *const stat_whats[] = { [SPAN_EXIT] = "exit", [SPAN_VISIT] = "hyp" };

void stat_longest(struct stat_answer *s, const char *key)
{
	static const struct answer_column took = COLUMN_TOOK;
	const struct tally *y = &s->tally;
	size_t rows = s->rows, n = 0;
	char name[EXITS_NAME_MAX], vcpu[STEPS_TASK_MAX];
	bool machines = false;
	struct stat_table t;

	for (size_t k = 0; k < TALLY_KINDS; k++) {
		n += y->n_longest[k];
		for (size_t i = 0; i < y->n_longest[k]; i++)
			machines |=
				y->longest[k][i].machine != y->longest[y->n_longest[0] ? 0 : k][0].machine;
	}
	stat_begin(&t, s, machines);
	stat_column(&t, "what", "what", ANSWER_WORD, true);
	stat_column(&t, "reason", "reason", ANSWER_WORD, true);
	stat_column(&t, took.key, took.title, took.kind, true);
	stat_column(&t, "at", "at", ANSWER_TIME, true);
	stat_column(&t, "cpu", "CPU", ANSWER_COUNT, true);
	stat_column(&t, "vcpu", "vCPU", ANSWER_WORD, true);
	stat_column(&t, "pid", "thread", ANSWER_SIGNED, false);
	if (!stat_open(&t, key, "The longest exits and visits to the hypervisor", n,
		       "the files have neither exits nor visits to the hypervisor"))
		return;
	s->rows = SIZE_MAX; /* --top says how many */
	for (size_t k = 0; k < TALLY_KINDS; k++) {
		for (size_t i = 0; i < y->n_longest[k]; i++) {
			const struct span *v = &y->longest[k][i];

			stat_row(&t, v->machine,
				 (struct answer_cell[]){
					 CELL_WORD(stat_whats[k]),
					 CELL_WORD(k == SPAN_EXIT ? exits_kind_name(s->exits, v->machine,
										    v->why, name)
								  : hyptime_name(s->hyp, v->machine, v->why)),
					 CELL_N(v->to - v->from), CELL_N(v->from), CELL_N(v->cpu),
					 CELL_WORD(stat_task_name(s, v->machine, v->vcpu, vcpu)),
					 v->vcpu > 0 ? CELL_N((uint64_t)v->vcpu) : CELL_NONE });
		}
	}
	s->rows = rows;
	stat_close(&t);
}
