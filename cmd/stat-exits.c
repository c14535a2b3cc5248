// SPDX-License-Identifier: GPL-2.0-only
/* hyptrace stat: guests' exits, and what was asked for in them, with the columns of perf kvm stat. */
#include <errno.h>
#include <stdlib.h>

#include "stat-priv.h"
#include "util/array.h"

/* Rows of one table put together by what --per says. */
struct exit_sum {
	const struct exits_row *row; /* one of them */
	const struct exits_vcpu *vcpu;
	struct sums sums;
};

struct exit_sums {
	struct stat_answer *of;
	enum exits_table table;
	bool guest; /* what the guest ran, not how long handling took */
	struct exit_sum *v;
	size_t n;
	struct sums total;
};

/* ---- rows ----------------------------------------------------------------------------------- */

static int exit_order(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

/* Which group it is in: those of a machine, a guest, a vCPU. */
static int exit_by_group(const struct exit_sum *x, const struct exit_sum *y, enum stat_per per)
{
	int ret = exit_order(x->vcpu->input, y->vcpu->input);

	if (!ret && per >= STAT_GUEST)
		ret = exit_order((uintptr_t)x->vcpu->guest, (uintptr_t)y->vcpu->guest);
	if (!ret && per == STAT_VCPU && x->vcpu->of && y->vcpu->of)
		ret = exit_order(x->vcpu->of->cpu, y->vcpu->of->cpu);
	if (!ret && per == STAT_VCPU)
		ret = exit_order((uint64_t)x->vcpu->pid, (uint64_t)y->vcpu->pid);
	return ret;
}

static int exit_by_what(const void *a, const void *b, void *of)
{
	const struct stat_answer *s = of;
	const struct exit_sum *x = a, *y = b;

	return exit_by_group(x, y, s->per)
		       ?: exit_order(x->row->key, y->row->key)
		       ?: exit_order(x->row->info, y->row->info);
}

/* The largest first, by what the answer is in order of. */
static int exit_by_time(const void *a, const void *b, void *of)
{
	const struct exit_sum *x = a, *y = b;
	const struct stat_answer *s = of;

	return exit_by_group(x, y, s->per)
		       ?: (s->by_count ? exit_order(y->sums.n, x->sums.n) : 0)
		       ?: exit_order(y->sums.sum, x->sums.sum)
		       ?: exit_by_what(a, b, of);
}

static int exit_sums_open(struct exit_sums *e)
{
	struct stat_answer *s = e->of;
	size_t n, n_vcpus, to = 0;
	const struct exits_row *rows = exits_rows(s->exits, &n);
	const struct exits_vcpu *vcpus = exits_vcpus(s->exits, &n_vcpus);

	e->v = calloc(n + 1, sizeof(*e->v));
	if (!e->v)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		const struct sums *sums = e->guest ? &rows[i].guest : &rows[i].handled;

		if (rows[i].table != e->table || !sums->n)
			continue;
		e->v[e->n++] = (struct exit_sum){ &rows[i], &vcpus[rows[i].vcpu], *sums };
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

static bool exit_machines(const struct exit_sums *e)
{
	for (size_t i = 1; i < e->n; i++)
		if (e->v[i].vcpu->input != e->v[0].vcpu->input)
			return true;
	return false;
}

/* ---- printing ------------------------------------------------------------------------------- */

static double exit_share(uint64_t part, uint64_t whole)
{
	return whole ? (double)part / (double)whole : 0;
}

static void exit_columns(struct stat_table *t, const char *what)
{
	enum stat_per per = t->of->per;

	stat_column(t, "guest", "guest", ANSWER_WORD, per == STAT_GUEST);
	stat_column(t, "vcpu", "vCPU", ANSWER_WORD, per == STAT_VCPU);
	stat_column(t, "pid", "thread", ANSWER_SIGNED, false);
	stat_column(t, "what", what, ANSWER_WORD, true);
	stat_column(t, "samples", "Samples", ANSWER_COUNT, true);
	stat_column(t, "samples_share", "Samples%", ANSWER_SHARE, per == STAT_ALL);
	stat_column(t, "time_ns", "Time", ANSWER_DURATION, false);
	stat_column(t, "time_share", "Time%", ANSWER_SHARE, true);
	stat_column(t, "min_ns", "Min", ANSWER_DURATION, true);
	stat_column(t, "max_ns", "Max", ANSWER_DURATION, true);
	stat_column(t, "avg_ns", "Avg", ANSWER_DURATION, true);
	stat_column(t, "error_share", "+-", ANSWER_SHARE, true);
}

static void exit_cells(struct stat_table *t, const struct exit_sums *e, const struct exit_sum *x)
{
	const struct input *in = &t->of->in->v[x->vcpu->input];
	enum stat_per per = t->of->per;
	char name[EXITS_NAME_MAX], vcpu[80];
	const char *guest = x->vcpu->guest ? x->vcpu->guest->name : NULL;

	stat_machine(t, x->vcpu->input);
	stat_cell(t, per == STAT_ALL ? CELL_NONE : CELL_WORD(guest));
	stat_cell(t, per == STAT_VCPU ? CELL_WORD(stat_vcpu_name(in, x->vcpu->pid, vcpu, sizeof(vcpu)))
				      : CELL_NONE);
	stat_cell(t, per == STAT_VCPU ? CELL_N((uint64_t)x->vcpu->pid) : CELL_NONE);
	stat_cell(t, CELL_WORD(exits_name(t->of->exits, x->vcpu->input, e->table, x->row->key, x->row->info,
					  name)));
	stat_cell(t, CELL_N(x->sums.n));
	stat_cell(t, CELL_SHARE(exit_share(x->sums.n, e->total.n)));
	stat_cell(t, CELL_N(x->sums.sum));
	stat_cell(t, CELL_SHARE(exit_share(x->sums.sum, e->total.sum)));
	stat_cell(t, CELL_N(x->sums.min));
	stat_cell(t, CELL_N(x->sums.max));
	stat_cell(t, CELL_N((uint64_t)(sums_mean(&x->sums) + 0.5)));
	stat_cell(t, CELL_SHARE(sums_error(&x->sums)));
	stat_row(t);
}

static void exit_total(const struct exit_sums *e, const char *key)
{
	char total[16];

	answer_note(e->of->out, "%s: %llu samples, %s in all", key, (unsigned long long)e->total.n,
		    duration_text(e->total.sum, total));
}

static void exit_left_out(const struct stat_answer *s)
{
	struct exits_cut cut = exits_cut(s->exits);

	if (cut.lost)
		answer_note(
			s->out,
			"exits, guest: %llu stretches in which events were lost are unknown, and left out",
			(unsigned long long)cut.lost);
	if (cut.vcpus || cut.rows)
		answer_note(s->out, "exits: there are too many %s, the last are left out",
			    cut.vcpus ? "vCPUs" : "different exits");
}

static void exit_table(struct stat_answer *s, enum exits_table table, bool guest, const char *key,
		       const char *title, const char *what, const char *why)
{
	struct exit_sums e = { .of = s, .table = table, .guest = guest };
	struct stat_table t;

	s->ret = exit_sums_open(&e);
	if (s->ret)
		return;
	stat_begin(&t, s, exit_machines(&e));
	exit_columns(&t, what);
	if (stat_open(&t, key, title, e.n, why)) {
		for (size_t i = 0; i < e.n; i++)
			exit_cells(&t, &e, &e.v[i]);
		stat_close(&t);
		if (e.n)
			exit_total(&e, key);
		if (table == EXITS_REASON && !guest)
			exit_left_out(s);
	}
	free(e.v);
}

#define NO_KVM "the files have no kvm_entry with a kvm_exit"

void stat_exits(struct stat_answer *s)
{
	exit_table(s, EXITS_REASON, false, "exits", "Exits: from kvm_exit to kvm_entry", "VM-EXIT", NO_KVM);
}

void stat_guest(struct stat_answer *s)
{
	exit_table(s, EXITS_REASON, true, "guest", "Guest: from kvm_entry to the kvm_exit", "VM-EXIT",
		   NO_KVM);
}

void stat_mmio(struct stat_answer *s)
{
	exit_table(s, EXITS_MMIO, false, "mmio", "MMIO accesses", "MMIO Access",
		   "the files have no kvm_mmio in a vCPU's exit");
}

void stat_ioport(struct stat_answer *s)
{
	exit_table(s, EXITS_IOPORT, false, "ioport", "I/O port accesses", "IO Port Access",
		   "the files have no kvm_pio in a vCPU's exit");
}

void stat_sysreg(struct stat_answer *s)
{
	exit_table(s, EXITS_SYSREG, false, "sysreg", "Exits for system registers", "register",
		   "the files have no kvm_handle_sys_reg, kvm_sys_access or kvm_msr in a vCPU's exit");
}

void stat_hypercall(struct stat_answer *s)
{
	exit_table(s, EXITS_HYPERCALL, false, "hypercall", "Exits for hypercalls", "hypercall",
		   "the files have no kvm_hvc_arm64 or kvm_hypercall in a vCPU's exit");
}
