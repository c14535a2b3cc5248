// SPDX-License-Identifier: LGPL-2.1-or-later
/* Finds the trace points of each file's events once, and makes steps of a run's records. */
#include "ask/states/steps.h"

#include "base/decode/esr.h"
#include "base/decode/mark-lines.h"
#include "base/arena.h"

/* Steps by system and name of their event, with the fields for a and b. NULL system: the hypervisor's; NULL
 * name: each that is not another row's. */
static const struct step_row {
	const char *system, *name;
	enum step_kind kind;
	const char *a[2], *b[5]; /* a: the first that the event has; after b[0] further fields of the step */
} step_rows[] = {
	{ "kvm", "kvm_entry", STEP_KVM_ENTRY, { "vcpu_pc", "rip" }, { NULL } },
	{ "kvm", "kvm_exit", STEP_KVM_EXIT, { "ret", "exit_reason" }, { "esr_ec", "isa" } },
	{ "kvm", "kvm_userspace_exit", STEP_USER_EXIT, { "reason" }, { NULL } },
	{ "kvm", "kvm_vcpu_wakeup", STEP_VCPU_WAKEUP, { "ns" }, { NULL } },
	{ "kvm", "kvm_wfx_arm64", STEP_WFX, { "is_wfe" }, { NULL } },
	{ "sched", "sched_switch", STEP_SWITCH, { "next_pid" }, { "prev_state" } },
	{ "sched", "sched_waking", STEP_WAKING, { "pid" }, { "target_cpu" } },
	{ "sched", "sched_wakeup", STEP_WAKEUP, { "pid" }, { "target_cpu" } },
	{ "sched", "sched_wakeup_new", STEP_WAKEUP, { "pid" }, { "target_cpu" } },
	{ "sched", "sched_process_exec", STEP_NAME, { "pid" }, { NULL } },
	{ "task", "task_rename", STEP_NAME, { "pid" }, { NULL } },
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
	{ "irq_vectors", "irq_work_entry", STEP_IRQ_ENTER, { "vector" }, { NULL } },
	{ "irq_vectors", "irq_work_exit", STEP_IRQ_EXIT, { "vector" }, { NULL } },
	{ "timer", "hrtimer_start", STEP_TIMER_SET, { "hrtimer" }, { NULL } },
	{ "timer", "hrtimer_expire_entry", STEP_TIMER_ENTER, { "hrtimer" }, { NULL } },
	{ "timer", "hrtimer_expire_exit", STEP_TIMER_EXIT, { "hrtimer" }, { NULL } },
	{ "kvm", "vgic_update_irq_pending", STEP_VIRQ, { "vcpu_id" }, { "irq" } },
	{ "kvm", "kvm_apic_accept_irq", STEP_VIRQ, { "apicid" }, { "vec" } },
	{ "kvm", "kvm_timer_update_irq", STEP_VTIMER, { "vcpu_id" }, { "irq" } },
	{ "kvm", "kvm_mmio", STEP_MMIO, { "gpa" }, { "type" } },
	{ "kvm", "kvm_pio", STEP_PORT, { "port" }, { "rw" } },
	{ "kvm", "kvm_guest_fault", STEP_FAULT, { "ipa" }, { NULL, "hsr" } },
	{ "kvm", "kvm_page_fault", STEP_FAULT, { "fault_address" }, { "error_code" } },
	{ "kvm", "kvm_handle_sys_reg", STEP_SYSREG, { "hsr" }, { NULL } },
	{ "kvm", "kvm_sys_access", STEP_SYSREG, { "Op0" }, { "is_write", "Op1", "CRn", "CRm", "Op2" } },
	{ "kvm", "kvm_msr", STEP_MSR, { "ecx" }, { "write" } },
	{ "kvm", "kvm_hvc_arm64", STEP_SMCCC, { "r0" }, { NULL } },
	{ "kvm", "kvm_hypercall", STEP_HYPERCALL, { "nr" }, { NULL } },
	{ "ftrace", "print", STEP_PRINT, { NULL }, { NULL } },
	{ "hyptrace", "sample", STEP_SAMPLE, { "mode" }, { NULL } },
	{ MARK_SYSTEM, MARK_EVENT, STEP_PRINT, { "client" }, { NULL } },
	{ NULL, "hyp_enter", STEP_HYP_ENTER, { "reason" }, { "vcpu" } },
	{ NULL, "hyp_exit", STEP_HYP_EXIT, { "reason" }, { "vcpu" } },
	{ NULL, NULL, STEP_HYP_OTHER, { NULL }, { NULL } },
};

#define WORDS_MAX 4096 /* of a kind in a file */

struct step_word {
	uint64_t number;
	const char *text; /* the format's */
};

/* A number of a record: the last of the 8 bytes that end with it, which may begin in the record's header. */
struct step_field {
	uint64_t sign; /* its bit; 0: unsigned */
	uint32_t end;  /* bytes from the record's begin; 0: the event has no such number */
	uint8_t shift; /* what is not the number's */
};

struct step_event {
	enum step_kind kind;
	bool exec;
	struct step_field pid, a, b, more[4]; /* more: further ones, or the tasks that it names */
	struct field_load names[STEP_NAMED];  /* of these */
};

/* The last names that were seen. */
struct step_names {
	struct step_name {
		int32_t pid;
		bool first; /* the file's table has none */
		uint64_t since;
		const char *comm;
		const struct step_name *before; /* NULL: the one of the file's table, if it has one */
	} * v;
	size_t n;
	struct map by_pid;
	size_t changes;
	struct arena texts;
};

struct step_words {
	struct step_word *v;
	size_t n;
};

struct step_input {
	struct step_event *events; /* by id */
	size_t n;
	struct tep_handle *tep;
	struct step_names names;
	struct step_words words[STEP_KINDS];
};

struct steps {
	struct step_input *v;
	size_t n;
};

static struct step_field step_number(const struct field_load *l)
{
	if (l->kind != FIELD_NUMBER)
		return (struct step_field){ 0 };
	return (struct step_field){ .sign = l->sign ? 1ull << (8 * l->size - 1) : 0,
				    .end = l->offset + l->size,
				    .shift = (uint8_t)(64 - 8 * l->size) };
}

static struct step_field step_field(struct tep_event *e, const char *name)
{
	const struct field_load l = field_load(name ? tep_find_field(e, name) : NULL);

	return step_number(&l);
}

/* The tables of __print_symbolic in a print format, in their order: the first is table 0. */
static int step_words_read(struct step_words *w, const struct tep_print_arg *arg, uint64_t *table)
{
	struct step_word word = { 0 };
	char *end;

	if (!arg)
		return 0;
	switch (arg->type) {
	case TEP_PRINT_SYMBOL:
		for (const struct tep_print_flag_sym *s = arg->symbol.symbols; s; s = s->next) {
			word.number = (uint32_t)strtoull(s->value, &end, 0) | *table << 32;
			word.text = s->str;
			if (w->n < WORDS_MAX && !*end && array_push(&w->v, &w->n, &word, sizeof(word)))
				return -ENOMEM;
		}
		++*table;
		return 0;
	case TEP_PRINT_OP:
		return step_words_read(w, arg->op.left, table) ?: step_words_read(w, arg->op.right, table);
	case TEP_PRINT_TYPE:
		return step_words_read(w, arg->typecast.item, table);
	default:
		return 0;
	}
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

const char *steps_class(enum step_kind kind, uint64_t number, uint64_t class)
{
	bool trap = kind == STEP_KVM_EXIT && number == KVM_EXIT_ARM_TRAP && class < 64;

	return trap ? esr_ec_name((unsigned int)class) : NULL;
}

const char *steps_why(const struct steps *s, const struct input *in, size_t input, uint64_t why)
{
	const struct known_event *e;

	if (why < SPAN_REASONS)
		return steps_reason(s, input, STEP_HYP_ENTER, why);
	e = why == SPAN_UNKNOWN ? NULL : input_event(in, (unsigned int)(why - SPAN_REASONS));
	return e ? e->event->name : NULL;
}

/* Finds the fields that name a task; an exec's `comm`, if it has one, is the name before. */
static void step_names_open(struct step_event *e, struct tep_event *event)
{
	static const char *const fields[][2] = {
		{ "prev_pid", "prev_comm" }, { "next_pid", "next_comm" }, { "child_pid", "child_comm" },
		{ "pid", "newcomm" },	     { "pid", "comm" },		  { "pid", "filename" }
	};
	size_t n = 0;

	e->exec = !strcmp(event->name, "sched_process_exec");
	for (size_t i = e->exec ? 5 : 0; i < 5u + e->exec && n < STEP_NAMED; i++) {
		e->more[n] = step_field(event, fields[i][0]);
		e->names[n] = field_load(tep_find_field(event, fields[i][1]));
		n += e->more[n].end && e->names[n].kind != FIELD_NONE;
	}
}

static int step_event_open(struct step_input *s, const struct known_event *k, unsigned int id)
{
	const struct step_row *r = step_rows, *end = r + ARRAY_SIZE(step_rows);
	struct step_event *e = &s->events[id];
	uint64_t table = 0;
	int ret = 0;

	if (!strcmp(k->event->system, "sched") || !strcmp(k->event->system, "task"))
		step_names_open(e, k->event);
	while (r < end &&
	       ((r->system ? strcmp(r->system, k->event->system) != 0 : !k->hyp) ||
		(r->name ? strcmp(r->name, k->event->name) != 0 : !visit_event_tells(k->event->name))))
		r++;
	if (r == end)
		return 0;
	e->kind = r->kind;
	e->pid = step_number(&k->pid);
	e->a = step_field(k->event, r->a[0]);
	if (!e->a.end)
		e->a = step_field(k->event, r->a[1]);
	e->b = step_field(k->event, r->b[0]);
	for (size_t i = 1; i < ARRAY_SIZE(r->b) && r->b[i]; i++)
		e->more[i - 1] = step_field(k->event, r->b[i]);
	if (s->words[r->kind].n)
		return 0;
	for (const struct tep_print_arg *arg = k->event->print_fmt.args; arg && !ret; arg = arg->next)
		ret = step_words_read(&s->words[r->kind], arg, &table);
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
	for (; !ret && s->n < in->n; s->n++) {
		struct step_input *v = &s->v[s->n];
		const struct input *of = &in->v[s->n];

		v->tep = of->tep;
		v->events = calloc(of->n_known + 1, sizeof(*v->events));
		if (v->events)
			v->n = of->n_known;
		else
			ret = -ENOMEM;
		for (unsigned int id = 0; id < v->n && !ret; id++) {
			const struct known_event *k = input_event(of, id);

			ret = k ? step_event_open(v, k, id) : 0;
		}
	}
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
		free(s->v[i].names.v);
		map_release(&s->v[i].names.by_pid);
		arena_release(&s->v[i].names.texts);
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

/* The number, where the record has it. */
static inline uint64_t step_value(const struct step_field *f, const struct merge_record *m)
{
	uint64_t v;

	if (f->end - 1u >= m->len)
		return STEP_UNKNOWN;
	memcpy(&v, m->data + f->end - sizeof(v), sizeof(v));
	v >>= f->shift;
	return (v ^ f->sign) - f->sign;
}

/* kvm_handle_sys_reg has a whole ESR, kvm_sys_access five fields and whether it is a write. */
static void step_sysreg(struct step *to, const struct step_event *e, const struct merge_record *m)
{
	static const unsigned int masks[] = { 7, 15, 15, 7 }, shifts[] = { 14, 10, 1, 17 };

	if (!e->more[0].end) {
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

bool steps_hyp_point(const struct steps *s, size_t input, const struct merge_record *m, uint64_t row,
		     struct span_point *p)
{
	const struct step_input *in = &s->v[input];
	unsigned int id = timeline_id(m);
	const struct step_event *e = id < in->n ? &in->events[id] : NULL;
	uint64_t vcpu;

	if (!e || e->kind < STEP_HYP_ENTER || e->kind > STEP_HYP_OTHER)
		return false;
	vcpu = step_value(&e->b, m);
	*p = (struct span_point){ .ts = m->ts,
				  .row = row,
				  .reason = step_value(&e->a, m),
				  .machine = (uint32_t)input,
				  .event = id,
				  .vcpu = vcpu <= INT32_MAX ? (int32_t)vcpu : 0,
				  .kind = e->kind == STEP_HYP_ENTER  ? POINT_HYP_ENTER
					  : e->kind == STEP_HYP_EXIT ? POINT_HYP_EXIT
								     : POINT_HYP_EVENT };
	return true;
}

/* Kinds whose a and b are not just their fields. */
#define STEPS_MADE                                                                                           \
	(STEP_SET(STEP_KVM_EXIT) | STEP_SET(STEP_SYSREG) | STEP_SET(STEP_FAULT) | STEP_SET(STEP_HYP_OTHER))

static void step_make(struct step *to, const struct step_event *e, const struct merge_record *m)
{
	uint64_t more = e->kind == STEP_SYSREG ? STEP_UNKNOWN : step_value(&e->more[0], m);

	if (e->kind == STEP_KVM_EXIT && e->more[0].end && to->a != STEP_UNKNOWN)
		to->a = (uint32_t)to->a | more << 32;
	else if (e->kind == STEP_SYSREG && to->a != STEP_UNKNOWN)
		step_sysreg(to, e, m);
	else if (e->kind == STEP_FAULT && more != STEP_UNKNOWN) /* arm64's fault status */
		to->b = esr_fault_is_permission(more);
	else if (e->kind == STEP_FAULT && to->b != STEP_UNKNOWN)
		to->b &= 1; /* x86's error code has a bit for a page that is there */
	else if (e->kind == STEP_HYP_OTHER)
		to->a = timeline_id(m);
}

/* A step of that record. */
static inline struct step *step_add(struct step *to, const struct merge_record *m, size_t at,
				    const struct merge_stream *of, enum step_kind kind, uint64_t pid,
				    uint64_t a, uint64_t b)
{
	*to = (struct step){ .ts = m->ts,
			     .a = a,
			     .b = b,
			     .at = (uint32_t)at,
			     .stream = m->stream,
			     .cpu = of->cpu,
			     .pid = (int32_t)pid,
			     .input = (uint16_t)of->input,
			     .buffer = (uint16_t)of->buffer,
			     .kind = (uint8_t)kind };
	return to + 1;
}

#define STEPS_NAMES (STEP_SET(STEP_SWITCH) | STEP_SET(STEP_NAME))

/* True if what the record names tasks is not what the run's records before it did. */
static bool step_names(struct step_batch *b, const struct step_event *e, const struct merge_record *m,
		       size_t input)
{
	bool new = false;

	if (e->kind == STEP_NAME) {
		memset(b->seen, 0, sizeof(b->seen));
		return true;
	}
	for (size_t i = 0; i < STEP_NAMED && e->names[i].kind != FIELD_NONE; i++) {
		const struct field_load *f = &e->names[i];
		struct step_seen now = { (uint32_t)step_value(&e->more[i], m), (uint32_t)input, { 0 } };
		struct step_seen *seen = &b->seen[now.pid % STEPS_SEEN];

		if (f->kind != FIELD_BYTES || f->size != sizeof(now.comm) || !field_inside(f, m->len))
			return true;
		memcpy(now.comm, m->data + f->offset, sizeof(now.comm));
		if (!now.pid || !memcmp(seen, &now, sizeof(now)))
			continue;
		*seen = now;
		new = true;
	}
	return new;
}

int steps_fill(const struct steps *s, const struct timeline *t, const struct merge_run *run, uint64_t set,
	       struct step_batch *b)
{
	const struct merge_stream *of = NULL;
	const struct step_input *in = NULL;
	uint64_t kinds = 0;
	struct step *to;

	set = (set | STEP_SET(STEP_NAME)) & ~STEP_SET(STEP_NONE);
	if (array_room(&b->v, &b->room, 3 * run->n, sizeof(*b->v)))
		return -ENOMEM;
	memset(b->seen, 0, sizeof(b->seen));
	b->named = 0;
	to = b->v;
	for (size_t i = 0; i < run->n; i++) {
		const struct merge_record *m = &run->v[i];
		unsigned int id = timeline_id(m);

		if (!of || m->stream != m[-1].stream) {
			of = merge_stream(t->merge, m);
			in = &s->v[of->input];
		}
		if (m->missed || m->paused) {
			to = step_add(to, m, i, of, STEP_LOST, UINT64_MAX,
				      m->missed < 0 ? UINT64_MAX : (uint64_t)m->missed,
				      !m->data && !m->paused);
			kinds |= STEP_SET(STEP_LOST);
		}
		if (id < in->n && set & STEP_SET(in->events[id].kind)) {
			const struct step_event *e = &in->events[id];

			to = step_add(to, m, i, of, e->kind, step_value(&e->pid, m), step_value(&e->a, m),
				      step_value(&e->b, m));
			kinds |= STEP_SET(e->kind);
			if (STEPS_MADE & STEP_SET(e->kind))
				step_make(&to[-1], e, m);
			else if (STEPS_NAMES & STEP_SET(e->kind) && step_names(b, e, m, of->input)) {
				to[-1].names = true;
				b->named = (size_t)(to - b->v);
			}
		}
		if (m->gap || m->end) {
			to = step_add(to, m, i, of, m->gap ? STEP_GAP : STEP_END, UINT64_MAX, 0, 0);
			kinds |= STEP_SET(to[-1].kind);
		}
	}
	b->n = (size_t)(to - b->v);
	b->set = kinds;
	return 0;
}

void step_batch_release(struct step_batch *b)
{
	free(b->v);
	*b = (struct step_batch){ 0 };
}

#define COMM_LEN 15 /* the kernel's TASK_COMM_LEN, without its NUL */

static bool step_name_same(const void *names, size_t index, const void *pid)
{
	return ((const struct step_name *)names)[index].pid == *(const int32_t *)pid;
}

static struct step_name *step_name_find(const struct step_names *n, int32_t pid)
{
	size_t i = map_find(&n->by_pid, map_hash((uint32_t)pid), step_name_same, n->v, &pid);

	return i == MAP_NONE ? NULL : &n->v[i];
}

size_t steps_named(const struct steps *s, size_t input, const struct merge_record *m,
		   struct step_named v[STEP_NAMED])
{
	const struct step_input *in = &s->v[input];
	unsigned int id = timeline_id(m);
	const struct step_event *e = id < in->n ? &in->events[id] : NULL;
	size_t n = 0;

	for (size_t i = 0; e && i < STEP_NAMED && e->names[i].kind != FIELD_NONE; i++) {
		const uint8_t *name, *slash;
		uint64_t pid = step_value(&e->more[i], m);
		size_t len;

		if (!pid || pid > INT32_MAX ||
		    field_load_bytes(&e->names[i], m->data, m->len, &name, &len) != 1)
			continue;
		len = strnlen((const char *)name, len);
		slash = e->exec ? memrchr(name, '/', len) : NULL;
		if (slash) {
			len -= (size_t)(slash + 1 - name);
			name = slash + 1;
		}
		len = len < COMM_LEN ? len : COMM_LEN;
		if (len)
			v[n++] = (struct step_named){ (int32_t)pid, (const char *)name, len };
	}
	return n;
}

static void step_name_is(struct step_input *in, const struct step_named *is, uint64_t ts)
{
	struct step_names *names = &in->names;
	struct step_name new = { .pid = is->pid, .since = ts };
	struct step_name *at = step_name_find(names, new.pid), *before = NULL;

	if ((at && !strncmp(at->comm, is->comm, is->len) && !at->comm[is->len]) ||
	    names->changes == STEP_NAMES_MAX)
		return;
	names->changes++;
	new.comm = arena_text(&names->texts, is->comm, is->len) ?: "";
	new.first = !at && !(in->tep && tep_is_pid_registered(in->tep, new.pid));
	if (at)
		before = arena_alloc(&names->texts, sizeof(*before));
	if (before)
		*before = *at;
	new.before = before;
	if (at)
		*at = new;
	else if (map_push(&names->by_pid, map_hash((uint32_t)is->pid), &names->v, &names->n, &new,
			  sizeof(new)))
		return; /* out of memory: the task keeps the name of the file's table */
	if (in->tep && !tep_is_pid_registered(in->tep, new.pid)) /* for libtraceevent's own printing */
		tep_register_comm(in->tep, new.comm, new.pid);
}

void steps_learn(const struct steps *s, const struct merge_run *run, const struct step *v, size_t n)
{
	for (const struct step *end = v + n; v < end; v++) {
		struct step_named named[STEP_NAMED];
		size_t tasks = v->names ? steps_named(s, v->input, &run->v[v->at], named) : 0;

		for (size_t i = 0; i < tasks; i++)
			step_name_is(&s->v[v->input], &named[i], run->v[v->at].ts);
	}
}

const char *steps_comm(const struct steps *s, size_t input, int32_t pid, uint64_t ts)
{
	const struct step_input *in = &s->v[input];
	const struct step_name *at = pid > 0 ? step_name_find(&in->names, pid) : NULL;
	bool none = false;

	for (; at && at->since > ts; at = at->before)
		none = at->first;
	if (at || none)
		return at ? at->comm : NULL;
	return in->tep && tep_is_pid_registered(in->tep, pid) ? tep_data_comm_from_pid(in->tep, pid) : NULL;
}

const char *steps_task(const struct steps *s, const struct inputs *in, size_t input, int32_t pid, uint64_t ts,
		       char out[STEPS_TASK_MAX])
{
	const struct offset_guest *guest = NULL;
	const struct offset_vcpu *vcpu = input_vcpu(&in->v[input], pid, &guest);
	const char *comm = steps_comm(s, input, pid, ts);

	if (vcpu)
		snprintf(out, STEPS_TASK_MAX, "%s:%u", guest->name ?: "", vcpu->cpu);
	else
		snprintf(out, STEPS_TASK_MAX, "%s%s%d", comm ?: "", comm ? "-" : "", pid);
	return out;
}
