// SPDX-License-Identifier: LGPL-2.1-or-later
/* Adds exits of each vCPU's thread up, and what was asked for in them, in the order of time. */
#include "ask/states/exit-sums.h"
#include "ask/states/states.h"
#include "base/decode/esr.h"

#define VCPUS_MAX 4096

/* kvm_mmio's type: include/trace/events/kvm.h */
enum { MMIO_UNSATISFIED, MMIO_READ, MMIO_WRITE };

/* State of a thread. */
struct exits_now {
	uint32_t buffer; /* the first stream of the one that its events count from: the first one's */
	struct exit_side side;
	size_t rows[EXITS_TABLES]; /* of this exit; EXITS_NO_ROW: not asked for */
	uint64_t mmio, port;	   /* since when; mmio 0: not at all */
	uint64_t from;		   /* what came before does not count */
	bool called;		   /* the hypervisor, since the exit */
};

static bool exits_map_same(const void *rows, size_t i, const void *like)
{
	const struct exits_row *a = (const struct exits_row *)rows + i, *b = like;

	return a->key == b->key && a->info == b->info && a->vcpu == b->vcpu && a->table == b->table;
}

int exits_map_row(struct exits_map *m, const struct exits_row *like, size_t *index)
{
	uint32_t hash = map_hash(like->key * 0x9e3779b97f4a7c15 ^
				 ((uint64_t)like->vcpu << 20 | (uint64_t)like->info << 3 | like->table));

	*index = map_find(&m->map, hash, exits_map_same, m->v, like);
	if (*index != EXITS_NO_ROW || m->n == EXITS_ROWS_MAX)
		return 0;
	*index = m->n;
	return map_push(&m->map, hash, &m->v, &m->n, like, sizeof(*like));
}

void exits_map_release(struct exits_map *m)
{
	free(m->v);
	map_release(&m->map);
	*m = (struct exits_map){ 0 };
}

static bool exits_same_vcpu(const void *vcpus, size_t i, const void *step)
{
	const struct exits_vcpu *v = (const struct exits_vcpu *)vcpus + i;
	const struct step *s = step;

	return v->pid == s->pid && v->input == s->input;
}

static void exits_forget(struct exits_now *now)
{
	now->mmio = 0;
	now->called = false;
	for (size_t i = 0; i < EXITS_TABLES; i++)
		now->rows[i] = EXITS_NO_ROW;
}

static uint32_t exits_hash(const struct step *s)
{
	return map_hash((uint64_t)s->input << 32 | (uint32_t)s->pid);
}

/* 0: the event does not count; 1; -ENOMEM. A thread is known from its first kvm_entry on, as perf has it. */
static int exits_vcpu_of(struct exits *e, const struct step *s, size_t *index)
{
	uint32_t buffer = gaps_buffer(&e->gaps, s->stream);
	uint32_t hash = exits_hash(s);
	struct exits_vcpu v;
	struct exits_now *now;

	*index = map_find(&e->by_thread, hash, exits_same_vcpu, e->vcpus, s);
	if (*index != MAP_NONE)
		return e->now[*index].buffer == buffer;
	if (s->kind != STEP_KVM_ENTRY || s->pid <= 0)
		return 0;
	if (e->n == VCPUS_MAX) {
		e->cut.vcpus++;
		return 0;
	}
	v = (struct exits_vcpu){ .input = s->input, .pid = s->pid };
	v.of = input_vcpu(&e->in->v[s->input], s->pid, &v.guest);
	now = array_next(&e->now, e->n, sizeof(*now));
	if (!now)
		return -ENOMEM;
	now->buffer = buffer;
	exits_forget(now);
	*index = e->n;
	return map_push(&e->by_thread, hash, &e->vcpus, &e->n, &v, sizeof(v)) ?: 1;
}

static int exits_row_of(struct exits *e, enum exits_table table, size_t vcpu, uint64_t key, uint32_t info)
{
	const struct exits_row like = { .table = table, .vcpu = vcpu, .key = key, .info = info };

	return exits_map_row(&e->rows, &like, &e->now[vcpu].rows[table]);
}

/* Notes that a thread called the hypervisor while it handled a fault: it had a page shared or donated. */
static void exits_call(struct exits *e, const struct step *s)
{
	size_t i = map_find(&e->by_thread, exits_hash(s), exits_same_vcpu, e->vcpus, s);

	if (i != MAP_NONE && e->now[i].side.open && e->now[i].rows[EXITS_FAULT] != EXITS_NO_ROW) {
		const char *reason = steps_reason(e->steps, s->input, STEP_HYP_ENTER, s->a);

		e->now[i].called |= reason && !strcmp(reason, "hvc");
	}
}

/* Time that goes back is no stretch. */
static void exits_add(struct exits *e, size_t row, bool guest, uint64_t from, uint64_t to)
{
	uint64_t begin = 0, end = UINT64_MAX;
	struct exits_row *r;

	e->cut.rows += row == EXITS_NO_ROW;
	if (row == EXITS_NO_ROW || to < from)
		return;
	r = &e->rows.v[row];
	if (e->within)
		states_covered(e->within, e->vcpus[r->vcpu].input, &begin, &end);
	/* a buffer that begins later than the vCPU's rows empties them */
	for (size_t i = 0; e->now[r->vcpu].from < begin && i < e->rows.n; i++)
		if (e->rows.v[i].vcpu == r->vcpu) {
			e->rows.v[i].handled = e->rows.v[i].guest = (struct sums){ 0 };
			e->rows.v[i].calls = 0;
		}
	e->now[r->vcpu].from = begin;
	if (from < begin || to > end)
		return;
	if (!guest && (!r->handled.n || to - from > r->handled.max))
		r->longest = from;
	r->calls += !guest && r->table == EXITS_FAULT && e->now[r->vcpu].called;
	sums_add(guest ? &r->guest : &r->handled, to - from);
}

/* Takes an event that names the purpose of the exit. */
static int exits_detail(struct exits *e, size_t vcpu, const struct step *s)
{
	uint32_t write = s->b && s->b != STEP_UNKNOWN ? EXITS_WRITE : 0; /* a fault's: for a permission */
	struct exits_now *now = &e->now[vcpu];
	int ret = 0;

	if (!now->side.open || now->side.lost || s->a == STEP_UNKNOWN)
		return 0;
	switch (s->kind) {
	case STEP_FAULT:
		e->faults = true;
		return exits_row_of(e, EXITS_FAULT, vcpu,
				    e->rows.n < EXITS_ROWS_MAX / 2 ? s->a & ~(EXITS_PAGE - 1) : EXITS_PAGES,
				    write);
	case STEP_PORT:
		now->port = s->ts;
		return exits_row_of(e, EXITS_IOPORT, vcpu, s->a, write);
	case STEP_SYSREG:
		return exits_row_of(e, EXITS_SYSREG, vcpu, s->a, EXITS_ESR | write);
	case STEP_MSR:
		return exits_row_of(e, EXITS_SYSREG, vcpu, s->a, EXITS_MSR | write);
	case STEP_SMCCC:
		return exits_row_of(e, EXITS_HYPERCALL, vcpu, s->a, EXITS_SMCCC);
	case STEP_HYPERCALL:
		return exits_row_of(e, EXITS_HYPERCALL, vcpu, s->a, 0);
	default: /* a read ends what the exit, or a write before it, began; a write begins */
		break;
	}
	now->rows[EXITS_FAULT] = EXITS_NO_ROW;
	if (s->b == MMIO_WRITE) {
		now->mmio = s->ts;
		return exits_row_of(e, EXITS_MMIO, vcpu, s->a, EXITS_WRITE);
	}
	if (!now->mmio || s->b != MMIO_READ)
		return 0;
	if (now->rows[EXITS_MMIO] == EXITS_NO_ROW)
		ret = exits_row_of(e, EXITS_MMIO, vcpu, s->a, 0);
	exits_add(e, now->rows[EXITS_MMIO], false, now->mmio, s->ts);
	now->rows[EXITS_MMIO] = EXITS_NO_ROW;
	now->mmio = 0;
	return ret;
}

#define EXITS_EVENTS                                                                                         \
	(STEP_SET(STEP_KVM_ENTRY) | STEP_SET(STEP_KVM_EXIT) | STEP_SET(STEP_MMIO) | STEP_SET(STEP_PORT) |    \
	 STEP_SET(STEP_SYSREG) | STEP_SET(STEP_MSR) | STEP_SET(STEP_SMCCC) | STEP_SET(STEP_HYPERCALL) |      \
	 STEP_SET(STEP_FAULT) | STEP_SET(STEP_HYP_ENTER))

/* Events are missing on that CPU: what is open could have ended there. */
static void side_lost(struct exit_side *side)
{
	const struct step lost = { .kind = STEP_LOST };
	struct span none;

	step_exit(side, &lost, 0, &none);
}

/* True if events are missing from here on or up to here; counted among the gaps. */
static bool step_missing(struct gaps *gaps, const struct step *s)
{
	if (s->kind == STEP_GAP)
		gaps_start(gaps, s->stream);
	else if (s->kind == STEP_LOST && !s->b) /* else nothing follows, and nobody knows when they were */
		gaps_stop(gaps, s->stream);
	return s->kind == STEP_GAP || s->kind == STEP_LOST;
}

static int exits_step(struct exits *e, const struct step *s)
{
	size_t vcpu;
	int ret;

	if (!(STEP_SET(s->kind) & EXITS_EVENTS)) {
		bool missing = step_missing(&e->gaps, s);

		for (size_t i = 0; missing && i < e->n; i++) {
			struct exits_now *now = &e->now[i];

			if (now->buffer != gaps_buffer(&e->gaps, s->stream))
				continue;
			e->cut.lost += now->side.in || (now->side.open && !now->side.lost);
			side_lost(&now->side);
			exits_forget(now);
		}
		return 0;
	}
	if (s->kind == STEP_HYP_ENTER) {
		exits_call(e, s);
		return 0;
	}
	ret = exits_vcpu_of(e, s, &vcpu);
	if (ret != 1)
		return ret;
	if (s->kind != STEP_KVM_ENTRY && s->kind != STEP_KVM_EXIT)
		return exits_detail(e, vcpu, s);
	if (!gaps_any(&e->gaps, s->stream)) {
		struct exits_now *now = &e->now[vcpu];
		size_t row = now->rows[EXITS_REASON];
		uint32_t info = 0;
		struct span done;

		ret = 0;
		if (step_exit(&now->side, s, 0, &done) && done.end == SPAN_PAIRED) {
			exits_add(e, row, false, done.from, done.to);
			for (size_t i = EXITS_SYSREG; i < EXITS_TABLES; i++)
				if (now->rows[i] != EXITS_NO_ROW)
					exits_add(e, now->rows[i], false, done.from, done.to);
			if (now->mmio && now->rows[EXITS_MMIO] != EXITS_NO_ROW)
				exits_add(e, now->rows[EXITS_MMIO], false, now->mmio, done.to);
			if (now->rows[EXITS_IOPORT] != EXITS_NO_ROW)
				exits_add(e, now->rows[EXITS_IOPORT], false, now->port, done.to);
			if (e->to && row != EXITS_NO_ROW) {
				done.why = exits_kind(e->rows.v[row].key, e->rows.v[row].info);
				ret = tally_add(e->to, &done);
			}
		}
		exits_forget(now);
		if (ret || s->kind != STEP_KVM_EXIT)
			return ret;
		if (s->b != STEP_UNKNOWN)
			info = s->a == KVM_EXIT_ARM_TRAP ? EXITS_CLASS + (uint32_t)(s->b & 0x3f)
							 : EXITS_ARM64;
		ret = exits_row_of(e, EXITS_REASON, vcpu, s->a, info);
		if (now->side.span.before != SPAN_UNKNOWN)
			exits_add(e, now->rows[EXITS_REASON], true, s->ts - now->side.span.before, s->ts);
		now->mmio = s->ts;
		return ret;
	}
	e->cut.lost++; /* it begins while events are missing */
	return 0;
}

static int exits_first(void *ctx, struct pass_run *run)
{
	struct exits *e = ctx;
	int ret = 0;

	if (e->to && run->records->n)
		tally_begin(e->to, run->records->v[0].ts);
	for (const struct step *s = run->steps, *end = s + run->n_steps; s < end && !ret; s++)
		if (STEP_SET(s->kind) & (EXITS_EVENTS | STEPS_LOSSES) &&
		    (s->kind != STEP_HYP_ENTER || e->faults))
			ret = exits_step(e, s);
	return ret;
}

struct pass_part exits_part(struct exits *e)
{
	return (struct pass_part){
		.ctx = e,
		.steps = EXITS_EVENTS,
		.first = exits_first,
		.uses = e->within ? (const void *)e->within : e->to,
	};
}

int exits_open(struct exits **out, const struct inputs *in, const struct timeline *t,
	       const struct steps *steps, const struct states *within, struct tally *to)
{
	struct exits *e = calloc(1, sizeof(*e));
	int ret;

	if (!e)
		return -ENOMEM;
	*e = (struct exits){ .in = in, .steps = steps, .within = within, .to = to };
	ret = gaps_open(&e->gaps, t);
	if (ret)
		exits_close(e);
	else
		*out = e;
	return ret;
}

void exits_close(struct exits *e)
{
	if (!e)
		return;
	exits_map_release(&e->rows);
	free(e->vcpus);
	free(e->now);
	map_release(&e->by_thread);
	gaps_release(&e->gaps);
	free(e);
}

#define NAME(...) snprintf(out, EXITS_NAME_MAX, __VA_ARGS__)

const char *exits_name(const struct exits *e, size_t input, enum exits_table table, uint64_t key,
		       uint32_t info, char out[EXITS_NAME_MAX])
{
	const struct sysreg r = { .op0 = key >> 20 & 3,
				  .op1 = key >> 14 & 7,
				  .crn = key >> 10 & 15,
				  .crm = key >> 1 & 15,
				  .op2 = key >> 17 & 7 };
	const char *how = info & EXITS_WRITE ? "write" : "read";
	char call[SMCCC_TEXT_MAX], name[SYSREG_NAME_MAX];
	const char *word = NULL;

	switch (table) {
	case EXITS_MMIO:
		NAME("0x%" PRIx64 ":%c", key, info & EXITS_WRITE ? 'W' : 'R');
		break;
	case EXITS_FAULT:
		if (key == EXITS_PAGES)
			NAME("other pages%s", info ? " (permission)" : "");
		else
			NAME("0x%" PRIx64 "%s", key, info ? " (permission)" : "");
		break;
	case EXITS_IOPORT:
		NAME("0x%" PRIx64 ":%s", key, info & EXITS_WRITE ? "POUT" : "PIN");
		break;
	case EXITS_SYSREG:
		if (info & EXITS_MSR)
			NAME("MSR 0x%" PRIx64 " %s", key, how);
		else
			NAME("%s %s", sysreg_text(&r, name, sizeof(name)), how);
		break;
	case EXITS_HYPERCALL:
		if (info & EXITS_SMCCC)
			NAME("%s", smccc_text((uint32_t)key, call, sizeof(call)));
		else
			NAME("%" PRIu64, key);
		break;
	default:
		/* as perf: a trap by its class, all else by its reason */
		if (info >= EXITS_CLASS)
			word = esr_ec_name(info - EXITS_CLASS);
		else if (info == EXITS_ARM64)
			word = kvm_exit_arm_name((uint32_t)key);
		if (!word && info < EXITS_CLASS)
			word = steps_reason(e->steps, input, STEP_KVM_EXIT, key);
		if (word)
			NAME("%s", word);
		else if (info >= EXITS_CLASS)
			NAME("TRAP 0x%02x", info - EXITS_CLASS);
		else
			NAME("exit 0x%" PRIx32, (uint32_t)key);
	}
	return out;
}

const char *exits_kind_name(const struct exits *e, size_t input, uint64_t kind, char out[EXITS_NAME_MAX])
{
	return exits_name(e, input, EXITS_REASON, kind & 0xffffffffff, (uint32_t)(kind >> 40), out);
}

static bool same_thread(const void *threads, size_t i, const void *wanted)
{
	const struct exit_thread *a = (const struct exit_thread *)threads + i, *b = wanted;

	return a->pid == b->pid && a->buffer == b->buffer;
}

int exit_threads_step(struct exit_threads *e, const struct step *s, uint64_t row, struct span *done)
{
	const struct exit_thread one = { .buffer = gaps_buffer(&e->gaps, s->stream), .pid = s->pid };
	uint32_t hash;
	size_t i;
	int ret;

	if (step_missing(&e->gaps, s))
		for (i = 0; i < e->n; i++)
			if (e->v[i].buffer == one.buffer)
				side_lost(&e->v[i].side);
	if ((s->kind != STEP_KVM_ENTRY && s->kind != STEP_KVM_EXIT) || s->pid < 0)
		return 0;
	hash = map_hash((uint64_t)one.buffer << 32 | (uint32_t)one.pid);
	if (map_reach(&e->by_thread, hash, same_thread, &e->v, &e->n, &one, sizeof(one), &i))
		return -ENOMEM;
	ret = step_exit(&e->v[i].side, s, row, done);
	if (gaps_any(&e->gaps, s->stream))
		side_lost(&e->v[i].side);
	return ret;
}

void exit_threads_release(struct exit_threads *e)
{
	gaps_release(&e->gaps);
	map_release(&e->by_thread);
	free(e->v);
	*e = (struct exit_threads){ 0 };
}
