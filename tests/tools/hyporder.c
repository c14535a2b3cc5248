// SPDX-License-Identifier: GPL-2.0-only
/*
 * Checks the order of host and hypervisor around each run of a guest:
 *
 *	kvm_entry <= hyp_exit(eret_guest) <= hyp_enter(guest_exit) <= kvm_exit
 *
 * on the same CPU and for the same vCPU, whose pid is kvm_entry's common_pid
 * and hyp_exit's field `vcpu`. Several such hyp pairs can lie between one
 * kvm_entry and its kvm_exit. The kernel's text cuts hyp times to microseconds,
 * so a hyp time may be up to 999 ns early; where only that makes the order
 * hold, the pair is counted apart.
 *
 * A pair is left out (and counted) where the host's half is not known: before
 * the first kvm_entry of its CPU, after the last event, next to lost events.
 *
 * Exit status: 0 all in order, 1 violations or nothing to check, 2 usage or an
 * unreadable file, 3 events are missing that nothing explains.
 */
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <trace-cmd.h>

#define CUT	 999 /* ns that a hyp time may be early */
#define SHOWN	 5   /* violations in detail */
#define FEW	 10  /* fewer events of a kind than this prove nothing */
#define TIME_END UINT64_MAX

enum kind { KVM_ENTRY, KVM_EXIT, ERET_GUEST, GUEST_EXIT, KINDS };
static const char *const kind_names[KINDS] = { "kvm_entry", "kvm_exit", "hyp_exit eret_guest",
					       "hyp_enter guest_exit" };

struct span {
	uint64_t from, to; /* ns, both included */
	int pid;
};

struct spans {
	struct span *v;
	size_t n, cap;
};

struct cpu {
	struct spans windows; /* kvm_entry to kvm_exit */
	struct spans pairs;   /* eret_guest to guest_exit */
	struct spans blind;   /* where windows are not known */
	uint64_t n[KINDS];
	bool lossy; /* events were lost in either buffer */
};

struct order {
	struct cpu *cpus;
	int n_cpus;
	uint64_t checked, violations, cut;
	uint64_t edges, lost; /* pairs left out */
	uint64_t incomplete;  /* halves without the other: at the edges, next to losses */
	uint64_t missing;     /* ... and those that nothing explains */
};

static void spans_add(struct spans *s, uint64_t from, uint64_t to, int pid)
{
	if (s->n == s->cap) {
		s->cap = s->cap ? 2 * s->cap : 64;
		s->v = realloc(s->v, s->cap * sizeof(*s->v));
		if (!s->v)
			abort();
	}
	s->v[s->n++] = (struct span){ from, to, pid };
}

/* ---- reading: halves into spans -------------------------------------------------- */

/* One buffer's events of one CPU, joined: `first` begins a span, `last` ends it. */
struct joiner {
	struct order *o;
	struct cpu *cpu;
	struct spans *out;
	struct spans *blind; /* or NULL */
	enum kind first, last;
	uint64_t begun;	  /* time of an open span */
	int pid;	  /* its vCPU; -1: none is open */
	uint64_t last_ts; /* of the last half */
	uint64_t unknown; /* since when a half may be missing; TIME_END: no doubt */
	bool lost;	  /* ... because events were lost, or at the start */
};

/* From here on, until the next `first`, the other half may be missing. */
static void doubt(struct joiner *j, uint64_t since, bool explained)
{
	j->o->missing += !explained;
	if (j->unknown == TIME_END)
		j->unknown = since;
	j->lost |= explained;
}

static void join_first(struct joiner *j, uint64_t ts, int pid)
{
	if (j->pid != -1)
		doubt(j, j->begun, false);
	if (j->unknown != TIME_END && j->blind)
		spans_add(j->blind, j->unknown, ts, 0);
	j->unknown = TIME_END;
	j->lost = false;
	j->begun = ts;
	j->pid = pid;
}

static void join_last(struct joiner *j, uint64_t ts, int pid)
{
	if (j->pid == pid)
		spans_add(j->out, j->begun, ts, pid);
	else if (j->pid != -1)
		doubt(j, j->begun, false);
	else if (!j->lost)
		doubt(j, j->last_ts, false);
	else
		j->o->incomplete++;
	j->pid = -1;
}

static void join_lost(struct joiner *j, uint64_t since)
{
	j->o->incomplete += j->pid != -1;
	doubt(j, j->pid != -1 ? j->begun : since, true);
	j->pid = -1;
	j->cpu->lossy = true;
}

static void join_end(struct joiner *j, uint64_t last_ts)
{
	j->o->incomplete += j->pid != -1;
	if (!j->blind)
		return;
	if (j->pid != -1)
		last_ts = j->begun;
	if (j->unknown != TIME_END && j->unknown < last_ts)
		last_ts = j->unknown;
	spans_add(j->blind, last_ts, TIME_END, 0);
}

/* ---- reading: records into halves ------------------------------------------------- */

struct reader {
	struct tep_handle *tep;
	struct tep_event *first, *last;
	struct tep_format_field *vcpu_first, *vcpu_last; /* hyp only */
	const char *reason_first, *reason_last;		 /* hyp only */
	signed char is_reason[2][256];			 /* 0: not asked yet, 1 yes, -1 no */
};

/* The number of a reason differs between kernels: only its text is believed. */
static bool has_reason(struct reader *rd, struct tep_event *event, struct tep_record *r, int which)
{
	const char *want = which ? rd->reason_last : rd->reason_first;
	struct tep_format_field *f = tep_find_field(event, "reason");
	char text[64] = "reason=";
	struct trace_seq seq;
	signed char *known;

	if (!want)
		return true;
	if (!f)
		return false;
	known = &rd->is_reason[which][((uint8_t *)r->data)[f->offset]];
	if (!*known) {
		strncat(text, want, sizeof(text) - 10);
		strcat(text, " ");
		trace_seq_init(&seq);
		tep_print_event(rd->tep, &seq, r, "%s ", TEP_PRINT_INFO);
		trace_seq_terminate(&seq);
		*known = strstr(seq.buffer, text) ? 1 : -1;
		trace_seq_destroy(&seq);
	}
	return *known > 0;
}

static int vcpu_pid(const struct reader *rd, struct tep_format_field *vcpu, struct tep_record *r)
{
	unsigned long long v = 0;

	if (!vcpu)
		return tep_data_pid(rd->tep, r);
	tep_read_number_field(vcpu, r->data, &v);
	return (int)v;
}

static void take(struct reader *rd, struct joiner *j, struct tep_record *r)
{
	int type = tep_data_type(rd->tep, r);

	if (type == rd->first->id && has_reason(rd, rd->first, r, 0)) {
		j->cpu->n[j->first]++;
		join_first(j, r->ts, vcpu_pid(rd, rd->vcpu_first, r));
	} else if (type == rd->last->id && has_reason(rd, rd->last, r, 1)) {
		j->cpu->n[j->last]++;
		join_last(j, r->ts, vcpu_pid(rd, rd->vcpu_last, r));
	} else {
		return;
	}
	j->last_ts = r->ts;
}

static void read_cpu(struct tracecmd_input *handle, int cpu, struct reader *rd, struct joiner *j)
{
	struct tep_record *r = tracecmd_read_cpu_first(handle, cpu);
	uint64_t last_ts = 0;

	while (r) {
		if (r->missed_events)
			join_lost(j, last_ts);
		take(rd, j, r);
		last_ts = r->ts;
		tracecmd_free_record(r);
		r = tracecmd_read_data(handle, cpu);
	}
	join_end(j, last_ts);
}

static void read_buffer(struct order *o, struct tracecmd_input *handle, struct reader *rd, bool hyp)
{
	rd->tep = tracecmd_get_tep(handle);
	for (int i = 0; i < o->n_cpus; i++) {
		struct cpu *c = &o->cpus[i];
		struct joiner j = {
			.o = o,
			.cpu = c,
			.out = hyp ? &c->pairs : &c->windows,
			.blind = hyp ? NULL : &c->blind,
			.first = hyp ? ERET_GUEST : KVM_ENTRY,
			.last = hyp ? GUEST_EXIT : KVM_EXIT,
			.pid = -1,
			.lost = true, /* nothing is known before the start */
		};

		read_cpu(handle, i, rd, &j);
	}
}

/* ---- the check ------------------------------------------------------------------- */

/* The last span that begins at or before ts, or -1. */
static ssize_t find(const struct spans *s, uint64_t ts)
{
	size_t lo = 0, hi = s->n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (s->v[mid].from <= ts)
			lo = mid + 1;
		else
			hi = mid;
	}
	return (ssize_t)lo - 1;
}

static bool holds(const struct span *w, const struct span *p, uint64_t early)
{
	return w->pid == p->pid && w->from <= p->from + early && p->from <= p->to && p->to <= w->to;
}

static void violation(struct order *o, int cpu, const struct cpu *c, const struct span *p, ssize_t i)
{
	if (o->violations++ >= SHOWN)
		return;
	printf("cpu %d vcpu %d: hyp_exit %" PRIu64 " hyp_enter %" PRIu64, cpu, p->pid, p->from, p->to);
	if (i >= 0)
		printf(", the kvm_entry before %" PRIu64 " kvm_exit %" PRIu64 " vcpu %d",
		       c->windows.v[i].from, c->windows.v[i].to, c->windows.v[i].pid);
	if (i + 1 < (ssize_t)c->windows.n)
		printf(", the kvm_entry after %" PRIu64 " kvm_exit %" PRIu64 " vcpu %d",
		       c->windows.v[i + 1].from, c->windows.v[i + 1].to, c->windows.v[i + 1].pid);
	printf("\n");
}

static bool in_blind(struct order *o, const struct cpu *c, const struct span *p)
{
	for (size_t i = 0; i < c->blind.n; i++) {
		const struct span *b = &c->blind.v[i];

		if (p->from > b->to || p->from + CUT < b->from)
			continue;
		if (i == 0 || b->to == TIME_END)
			o->edges++;
		else
			o->lost++;
		return true;
	}
	return false;
}

static void check_pair(struct order *o, int cpu, const struct span *p)
{
	const struct cpu *c = &o->cpus[cpu];
	ssize_t i = find(&c->windows, p->from), k = find(&c->windows, p->from + CUT);

	if (i >= 0 && holds(&c->windows.v[i], p, 0)) {
		o->checked++;
		return;
	}
	for (; k > i; k--) {
		if (!holds(&c->windows.v[k], p, CUT))
			continue;
		o->checked++;
		o->cut++;
		return;
	}
	if (in_blind(o, c, p))
		return;
	o->checked++;
	violation(o, cpu, c, p, i);
}

/* A tracepoint delivered nothing where another did. */
static bool is_silent(const struct cpu *c)
{
	bool none = false, many = false;

	for (int k = 0; k < KINDS; k++) {
		none |= !c->n[k];
		many |= c->n[k] >= FEW;
	}
	return none && many && !c->lossy;
}

static bool report_missing(const struct order *o)
{
	uint64_t sum[KINDS] = { 0 };
	bool missing = false;

	for (int i = 0; i < o->n_cpus; i++) {
		for (int k = 0; k < KINDS; k++)
			sum[k] += o->cpus[i].n[k];
		if (is_silent(&o->cpus[i])) {
			printf("cpu %d: a tracepoint delivered nothing\n", i);
			missing = true;
		}
	}
	for (int k = 0; k < KINDS; k++) {
		printf("%s%s %" PRIu64, k ? ", " : "", kind_names[k], sum[k]);
		missing |= !sum[k];
	}
	printf("\n");
	if (o->missing)
		printf("events without their other half, and no loss to explain it: %" PRIu64 "\n",
		       o->missing);
	return missing || o->missing;
}

static uint64_t without_pairs(const struct cpu *c)
{
	uint64_t n = 0;

	for (size_t i = 0; i < c->windows.n; i++) {
		const struct span *w = &c->windows.v[i];
		ssize_t k = find(&c->pairs, w->to);

		n += k < 0 || c->pairs.v[k].from + CUT < w->from;
	}
	return n;
}

static int verdict(struct order *o)
{
	uint64_t bare = 0;
	bool missing;

	for (int i = 0; i < o->n_cpus; i++) {
		for (size_t k = 0; k < o->cpus[i].pairs.n; k++)
			check_pair(o, i, &o->cpus[i].pairs.v[k]);
		bare += without_pairs(&o->cpus[i]);
	}
	printf("pairs checked %" PRIu64 ", violations %" PRIu64 ", within the microsecond cut %" PRIu64 "\n",
	       o->checked, o->violations, o->cut);
	printf("left out: pairs at the edges %" PRIu64 ", next to lost events %" PRIu64
	       ", incomplete %" PRIu64 "; from kvm_entry to kvm_exit without a pair %" PRIu64 "\n",
	       o->edges, o->lost, o->incomplete, bare);
	missing = report_missing(o);
	if (o->violations)
		return 1;
	if (missing)
		return 3;
	return o->checked ? 0 : 1;
}

/* ---- the file --------------------------------------------------------------------- */

static struct tracecmd_input *find_buffer(struct tracecmd_input *handle, const char *name)
{
	for (int i = 0; i < tracecmd_buffer_instances(handle); i++)
		if (!strcmp(tracecmd_buffer_instance_name(handle, i), name))
			return tracecmd_buffer_instance_handle(handle, i);
	return NULL;
}

static bool find_events(struct tep_handle *tep, struct reader *host, struct reader *hyp)
{
	host->first = tep_find_event_by_name(tep, "kvm", "kvm_entry");
	host->last = tep_find_event_by_name(tep, "kvm", "kvm_exit");
	hyp->first = tep_find_event_by_name(tep, NULL, "hyp_exit");
	hyp->last = tep_find_event_by_name(tep, NULL, "hyp_enter");
	hyp->reason_first = "eret_guest";
	hyp->reason_last = "guest_exit";
	if (!host->first || !host->last || !hyp->first || !hyp->last) {
		fprintf(stderr, "hyporder: no format of kvm_entry, kvm_exit, hyp_exit or hyp_enter\n");
		return false;
	}
	hyp->vcpu_first = tep_find_field(hyp->first, "vcpu");
	hyp->vcpu_last = tep_find_field(hyp->last, "vcpu");
	if (!hyp->vcpu_first || !hyp->vcpu_last) {
		fprintf(stderr, "hyporder: hyp_exit or hyp_enter has no field vcpu\n");
		return false;
	}
	return true;
}

static int check_file(struct tracecmd_input *handle, const char *name)
{
	struct tracecmd_input *instance = find_buffer(handle, name);
	struct reader host = { 0 }, hyp = { 0 };
	struct order o = { .n_cpus = tep_get_cpus(tracecmd_get_tep(handle)) };
	int ret = 2;

	if (!instance)
		fprintf(stderr, "hyporder: no buffer '%s'\n", name);
	else if (find_events(tracecmd_get_tep(handle), &host, &hyp)) {
		o.cpus = calloc((size_t)o.n_cpus + 1, sizeof(*o.cpus));
		if (!o.cpus)
			abort();
		read_buffer(&o, handle, &host, false);
		read_buffer(&o, instance, &hyp, true);
		ret = verdict(&o);
	}
	for (int i = 0; o.cpus && i < o.n_cpus; i++) {
		free(o.cpus[i].windows.v);
		free(o.cpus[i].pairs.v);
		free(o.cpus[i].blind.v);
	}
	free(o.cpus);
	if (instance)
		tracecmd_close(instance);
	return ret;
}

int main(int argc, char **argv)
{
	struct tracecmd_input *handle;
	int ret;

	if (argc < 2 || argc > 3 || argv[1][0] == '-') {
		fprintf(stderr, "usage: hyporder FILE [BUFFER]\n");
		return 2;
	}
	handle = tracecmd_open(argv[1], TRACECMD_FL_LOAD_NO_PLUGINS);
	if (!handle) {
		fprintf(stderr, "hyporder: cannot read '%s'\n", argv[1]);
		return 2;
	}
	ret = check_file(handle, argc > 2 ? argv[2] : "hyp");
	tracecmd_close(handle);
	return ret;
}
