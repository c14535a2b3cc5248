// SPDX-License-Identifier: LGPL-2.1-or-later
/* What records mean, found once for each event of each file, and made of a run's records. */
#include "analysis/steps.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "decode/esr.h"
#include "util/array.h"

/* Which event, by system and name, is which step, and which fields are its a and b. NULL system: the
 * hypervisor's; NULL name: each that is not another row's. */
static const struct step_row {
	const char *system, *name;
	enum step_kind kind;
	const char *a[2], *b[5]; /* of a the first that the event has; behind b what else a step needs */
} step_rows[] = {
	{ "kvm", "kvm_entry", STEP_KVM_ENTRY, { "vcpu_pc", "rip" }, { NULL } },
	{ "kvm", "kvm_exit", STEP_KVM_EXIT, { "ret", "exit_reason" }, { "esr_ec", "isa" } },
	{ "kvm", "kvm_userspace_exit", STEP_USER_EXIT, { "reason" }, { NULL } },
	{ "kvm", "kvm_vcpu_wakeup", STEP_VCPU_WAKEUP, { "ns" }, { NULL } },
	{ "kvm", "kvm_wfx_arm64", STEP_WFX, { "is_wfe" }, { NULL } },
	{ "sched", "sched_switch", STEP_SWITCH, { "next_pid" }, { "prev_state", "next_comm" } },
	{ "sched", "sched_waking", STEP_WAKING, { "pid" }, { "target_cpu" } },
	{ "sched", "sched_wakeup", STEP_WAKEUP, { "pid" }, { "target_cpu" } },
	{ "sched", "sched_wakeup_new", STEP_WAKEUP, { "pid" }, { "target_cpu" } },
	{ "irq", "irq_handler_entry", STEP_IRQ_ENTER, { "irq" }, { NULL } },
	{ "irq", "irq_handler_exit", STEP_IRQ_EXIT, { "irq" }, { NULL } },
	{ "irq", "softirq_raise", STEP_SOFTIRQ_RAISE, { "vec" }, { NULL } },
	{ "irq", "softirq_entry", STEP_SOFTIRQ_ENTER, { "vec" }, { NULL } },
	{ "irq", "softirq_exit", STEP_SOFTIRQ_EXIT, { "vec" }, { NULL } },
	{ "irq_vectors", "local_timer_entry", STEP_IRQ_ENTER, { "vector" }, { NULL } },
	{ "irq_vectors", "local_timer_exit", STEP_IRQ_EXIT, { "vector" }, { NULL } },
	{ "irq_vectors", "reschedule_entry", STEP_IRQ_ENTER, { "vector" }, { NULL } },
	{ "irq_vectors", "reschedule_exit", STEP_IRQ_EXIT, { "vector" }, { NULL } },
	{ "irq_vectors", "call_function_entry", STEP_IRQ_ENTER, { "vector" }, { NULL } },
	{ "irq_vectors", "call_function_exit", STEP_IRQ_EXIT, { "vector" }, { NULL } },
	{ "irq_vectors", "call_function_single_entry", STEP_IRQ_ENTER, { "vector" }, { NULL } },
	{ "irq_vectors", "call_function_single_exit", STEP_IRQ_EXIT, { "vector" }, { NULL } },
	{ "timer", "hrtimer_start", STEP_TIMER_SET, { "hrtimer" }, { NULL } },
	{ "timer", "hrtimer_expire_entry", STEP_TIMER_ENTER, { "hrtimer" }, { NULL } },
	{ "timer", "hrtimer_expire_exit", STEP_TIMER_EXIT, { "hrtimer" }, { NULL } },
	{ "kvm", "vgic_update_irq_pending", STEP_VIRQ, { "vcpu_id" }, { "irq" } },
	{ "kvm", "kvm_apic_accept_irq", STEP_VIRQ, { "apicid" }, { "vec" } },
	{ "kvm", "kvm_timer_update_irq", STEP_VTIMER, { "vcpu_id" }, { "irq" } },
	{ "kvm", "kvm_mmio", STEP_MMIO, { "gpa" }, { "type" } },
	{ "kvm", "kvm_pio", STEP_PORT, { "port" }, { "rw" } },
	{ "kvm", "kvm_handle_sys_reg", STEP_SYSREG, { "hsr" }, { NULL } },
	{ "kvm", "kvm_sys_access", STEP_SYSREG, { "Op0" }, { "is_write", "Op1", "CRn", "CRm", "Op2" } },
	{ "kvm", "kvm_msr", STEP_MSR, { "ecx" }, { "write" } },
	{ "kvm", "kvm_hvc_arm64", STEP_SMCCC, { "r0" }, { NULL } },
	{ "kvm", "kvm_hypercall", STEP_HYPERCALL, { "nr" }, { NULL } },
	{ "ftrace", "print", STEP_PRINT, { NULL }, { NULL } },
	{ "hypertrace", "guest_hypertrace", STEP_PRINT, { "client" }, { NULL } },
	{ NULL, "hyp_enter", STEP_HYP_ENTER, { "reason" }, { "vcpu" } },
	{ NULL, "hyp_exit", STEP_HYP_EXIT, { "reason" }, { "vcpu" } },
	{ NULL, NULL, STEP_HYP_OTHER, { NULL }, { NULL } },
};

#define WORDS_MAX 4096 /* of a kind in a file */

struct step_word {
	uint64_t number;
	const char *text; /* the format's */
};

struct step_event {
	enum step_kind kind;
	struct field_load pid, a, b, more[4]; /* numbers but for a switch's more[0], a name */
};

/* Whose names were looked for. */
struct step_names {
	uint64_t *seen; /* a bit for each pid */
	size_t room;	/* words */
	size_t n;	/* learned */
};

struct step_words {
	struct step_word *v;
	size_t n;
};

struct step_input {
	struct step_event *events; /* by id */
	size_t n;
	bool known[STEP_KINDS];
	struct tep_handle *tep;
	struct step_names *names;
	struct step_words words[STEP_KINDS];
};

struct steps {
	struct step_input *v;
	size_t n;
};

/* ---- events ------------------------------------------------------------------------------ */

static const struct step_row *step_row_of(const struct known_event *k)
{
	for (size_t i = 0; i < ARRAY_SIZE(step_rows); i++) {
		const struct step_row *r = &step_rows[i];

		if ((r->system ? !strcmp(r->system, k->event->system) : k->hyp) &&
		    (!r->name || !strcmp(r->name, k->event->name)))
			return r;
	}
	return NULL;
}

/* FIELD_NONE: the event has no such number. */
static struct field_load step_number(struct field_load l)
{
	return l.kind == FIELD_NUMBER ? l : (struct field_load){ 0 };
}

static struct field_load step_field(struct tep_event *e, const char *name)
{
	return step_number(field_load(name ? tep_find_field(e, name) : NULL));
}

static const char *step_name_of_a(struct tep_event *e, const struct step_row *r)
{
	return step_field(e, r->a[0]).kind == FIELD_NUMBER ? r->a[0] : r->a[1];
}

/* ---- words of reasons --------------------------------------------------------------------- */

static int step_word_add(struct step_words *w, const struct tep_print_flag_sym *s, uint64_t table)
{
	struct step_word word = { 0 };
	char *end;

	for (; s; s = s->next) {
		word.number = (uint32_t)strtoull(s->value, &end, 0) | table << 32;
		word.text = s->str;
		if (w->n < WORDS_MAX && !*end && array_push(&w->v, &w->n, &word, sizeof(word)))
			return -ENOMEM;
	}
	return 0;
}

/* The tables of __print_symbolic in a print format, in their order: the first is table 0. */
static int step_words_read(struct step_words *w, const struct tep_print_arg *arg, uint64_t *table)
{
	if (!arg)
		return 0;
	switch (arg->type) {
	case TEP_PRINT_SYMBOL:
		return step_word_add(w, arg->symbol.symbols, (*table)++);
	case TEP_PRINT_OP:
		return step_words_read(w, arg->op.left, table) ?: step_words_read(w, arg->op.right, table);
	case TEP_PRINT_TYPE:
		return step_words_read(w, arg->typecast.item, table);
	default:
		return 0;
	}
}

static int step_words_of(struct step_words *w, const struct tep_event *e)
{
	uint64_t table = 0;
	int ret = 0;

	if (w->n)
		return 0;
	for (const struct tep_print_arg *arg = e->print_fmt.args; arg && !ret; arg = arg->next)
		ret = step_words_read(w, arg, &table);
	return ret;
}

static const char *step_word_find(const struct step_words *w, uint64_t number)
{
	for (size_t i = 0; i < w->n; i++)
		if (w->v[i].number == number)
			return w->v[i].text;
	return NULL;
}

const char *steps_reason(const struct steps *s, size_t input, enum step_kind kind, uint64_t number)
{
	const struct step_words *w = &s->v[input].words[kind];
	uint64_t isa = number >> 32, reason = (uint32_t)number;

	/* x86: the tables of VMX and SVM are the first and the second; a format with one table has just that
	 */
	return step_word_find(w, isa ? (isa - 1) << 32 | reason : reason) ?: step_word_find(w, reason);
}

/* ---- opening ---------------------------------------------------------------------------------- */

static int step_event_open(struct step_input *s, const struct known_event *k, unsigned int id)
{
	const struct step_row *r = step_row_of(k);
	struct step_event *e = &s->events[id];

	if (!r)
		return 0;
	e->kind = r->kind;
	e->pid = step_number(k->pid);
	e->a = step_field(k->event, step_name_of_a(k->event, r));
	e->b = step_field(k->event, r->b[0]);
	for (size_t i = 1; i < ARRAY_SIZE(r->b); i++)
		e->more[i - 1] = step_field(k->event, r->b[i]);
	if (r->kind == STEP_SWITCH)
		e->more[0] = field_load(tep_find_field(k->event, r->b[1]));
	s->known[r->kind] = true;
	return step_words_of(&s->words[r->kind], k->event);
}

static int step_input_open(struct step_input *s, const struct input *in)
{
	int ret = 0;

	s->tep = in->tep;
	s->events = calloc(in->n_known + 1, sizeof(*s->events));
	s->names = calloc(1, sizeof(*s->names));
	if (!s->events || !s->names)
		return -ENOMEM;
	s->n = in->n_known;
	for (unsigned int id = 0; id < in->n_known && !ret; id++) {
		const struct known_event *k = input_event(in, id);

		ret = k ? step_event_open(s, k, id) : 0;
	}
	return ret;
}

int steps_open(struct steps **out, const struct inputs *in)
{
	struct steps *s = calloc(1, sizeof(*s));
	int ret;

	if (!s)
		return -ENOMEM;
	s->v = calloc(in->n + 1, sizeof(*s->v));
	ret = s->v ? 0 : -ENOMEM;
	for (; !ret && s->n < in->n; s->n++)
		ret = step_input_open(&s->v[s->n], &in->v[s->n]);
	if (ret)
		steps_close(s);
	else
		*out = s;
	return ret;
}

void steps_close(struct steps *s)
{
	if (!s)
		return;
	for (size_t i = 0; s->v && i < s->n; i++) {
		free(s->v[i].events);
		if (s->v[i].names)
			free(s->v[i].names->seen);
		free(s->v[i].names);
		for (size_t k = 0; k < STEP_KINDS; k++)
			free(s->v[i].words[k].v);
	}
	free(s->v);
	free(s);
}

enum step_kind steps_kind(const struct steps *s, size_t input, unsigned int id)
{
	return id < s->v[input].n ? s->v[input].events[id].kind : STEP_NONE;
}

bool steps_known(const struct steps *s, size_t input, enum step_kind kind)
{
	return s->v[input].known[kind];
}

/* ---- records --------------------------------------------------------------------------------- */

/* Of a step_number(). */
static inline uint64_t step_value(const struct field_load *l, const struct merge_record *m)
{
	return l->size && field_inside(l, m->len) ? field_word(l, m->data + l->offset) : STEP_UNKNOWN;
}

/* kvm_handle_sys_reg has a whole ESR, kvm_sys_access five fields and whether it is a write. */
static void step_sysreg(struct step *to, const struct step_event *e, const struct merge_record *m)
{
	static const unsigned int masks[] = { 7, 15, 15, 7 }, shifts[] = { 14, 10, 1, 17 };

	if (e->more[0].kind == FIELD_NONE) {
		to->b = !(to->a & 1);
		to->a = esr_ec(to->a) == ESR_SYS64 ? to->a & ESR_SYSREG : STEP_UNKNOWN;
		return;
	}
	to->a = (to->a & 3) << 20;
	for (size_t i = 0; i < ARRAY_SIZE(masks) && to->a != STEP_UNKNOWN; i++) {
		uint64_t v = step_value(&e->more[i], m);

		to->a = v == STEP_UNKNOWN ? v : to->a | (v & masks[i]) << shifts[i];
	}
}

static void step_meaning(struct step *to, const struct step_event *e, const struct merge_record *m)
{
	to->pid = (int32_t)step_value(&e->pid, m);
	to->a = step_value(&e->a, m);
	to->b = step_value(&e->b, m);
	if (e->kind == STEP_KVM_EXIT && e->more[0].kind == FIELD_NUMBER && to->a != STEP_UNKNOWN)
		to->a = (uint32_t)to->a | step_value(&e->more[0], m) << 32;
	else if (e->kind == STEP_SYSREG && to->a != STEP_UNKNOWN)
		step_sysreg(to, e, m);
	else if (e->kind == STEP_HYP_OTHER)
		to->a = timeline_id(m);
}

/* A step of that record, without a and b. */
static struct step *step_add(struct step_batch *b, const struct merge_record *m, size_t at,
			     const struct merge_stream *of, enum step_kind kind)
{
	struct step *to = &b->v[b->n++];

	b->set |= STEP_SET(kind);
	*to = (struct step){ .ts = m->ts,
			     .at = (uint32_t)at,
			     .stream = m->stream,
			     .cpu = of->cpu,
			     .pid = -1,
			     .input = (uint16_t)of->input,
			     .buffer = (uint16_t)of->buffer,
			     .kind = (uint8_t)kind };
	return to;
}

int steps_fill(const struct steps *s, const struct timeline *t, const struct merge_run *run, uint64_t set,
	       struct step_batch *b)
{
	const struct merge_stream *of = NULL;
	const struct step_input *in = NULL;

	b->n = 0;
	b->set = 0;
	if (array_room(&b->v, &b->room, 3 * run->n, sizeof(*b->v)))
		return -ENOMEM;
	for (size_t i = 0; i < run->n; i++) {
		const struct merge_record *m = &run->v[i];
		unsigned int id = timeline_id(m);
		const struct step_event *e;
		struct step *step;

		if (!of || m->stream != m[-1].stream) {
			of = timeline_stream(t, m);
			in = &s->v[of->input];
		}
		e = id < in->n ? &in->events[id] : NULL;
		if (m->missed || m->paused) {
			step = step_add(b, m, i, of, STEP_LOST);
			step->a = m->missed < 0 ? UINT64_MAX : (uint64_t)m->missed;
			step->b = !m->data && !m->paused;
		}
		if (e && e->kind != STEP_NONE && set & STEP_SET(e->kind))
			step_meaning(step_add(b, m, i, of, e->kind), e, m);
		if (m->gap || m->end)
			step_add(b, m, i, of, m->gap ? STEP_GAP : STEP_END);
	}
	return 0;
}

void step_batch_release(struct step_batch *b)
{
	free(b->v);
	*b = (struct step_batch){ 0 };
}

/* ---- names ------------------------------------------------------------------------------------ */

#define PIDS 4194304u /* the kernel's PID_MAX_LIMIT */

/* Whether it was looked for before; from now on it was. True, too, if there is no room to say so. */
static bool step_name_seen(struct step_names *n, uint32_t pid)
{
	size_t word = pid / 64;
	uint64_t bit = 1ull << pid % 64, *seen;
	bool was;

	if (word >= n->room) {
		seen = realloc(n->seen, 2 * (word + 1) * sizeof(*seen));
		if (!seen)
			return true;
		memset(seen + n->room, 0, (2 * (word + 1) - n->room) * sizeof(*seen));
		n->seen = seen;
		n->room = 2 * (word + 1);
	}
	was = n->seen[word] & bit;
	n->seen[word] |= bit;
	return was;
}

static void step_learn(const struct step_input *in, const struct merge_record *m, uint32_t pid)
{
	const uint8_t *data;
	char comm[17] = { 0 };
	size_t n;

	if (field_load_bytes(&in->events[timeline_id(m)].more[0], m->data, m->len, &data, &n) != 1 || !n)
		return;
	memcpy(comm, data, n < sizeof(comm) - 1 ? n : sizeof(comm) - 1);
	/* what memory does not suffice for stays without a name */
	if (*comm && !tep_is_pid_registered(in->tep, (int)pid) && !tep_register_comm(in->tep, comm, (int)pid))
		in->names->n++;
}

void steps_learn(const struct steps *s, const struct merge_run *run, const struct step_batch *b)
{
	for (size_t i = 0; i < b->n && b->set & STEP_SET(STEP_SWITCH); i++) {
		const struct step *step = &b->v[i];
		const struct step_input *in = &s->v[step->input];

		if (step->kind == STEP_SWITCH && step->a && step->a < PIDS && in->tep &&
		    in->names->n < STEP_NAMES_MAX && !step_name_seen(in->names, (uint32_t)step->a))
			step_learn(in, &run->v[step->at], (uint32_t)step->a);
	}
}
