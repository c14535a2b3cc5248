// SPDX-License-Identifier: LGPL-2.1-or-later
/* Pairs entries and exits of each vCPU's thread, in the order of time. */
#include <errno.h>
#include <stdlib.h>

#include "analysis/exits-priv.h"
#include "decode/esr.h"

#define VCPUS_MAX 4096
#define SLOTS	  (2 * VCPUS_MAX)

/* kvm_mmio's type: include/trace/events/kvm.h */
enum { MMIO_UNSATISFIED, MMIO_READ, MMIO_WRITE };

/* Where a thread is. */
struct exits_now {
	uint32_t buffer; /* the first stream of the one that its events count from: the first one's */
	enum { THREAD_UNKNOWN, THREAD_GUEST, THREAD_EXIT } at;
	uint64_t since;
	uint32_t cpu;
	size_t rows[EXITS_TABLES]; /* of this exit; EXITS_NO_ROW: not asked for */
	uint64_t mmio, port;	   /* since when; mmio 0: not at all */
};

/* ---- threads ------------------------------------------------------------------------------------ */

/* True with *index: the thread is known. False with *slot: where it would be. */
static bool exits_find(const struct exits *e, size_t input, int32_t pid, size_t *index, size_t *slot)
{
	uint64_t h = ((uint64_t)input << 32 | (uint32_t)pid) * 0x9e3779b97f4a7c15;
	size_t i = (size_t)(h >> 32) & (SLOTS - 1);

	for (; e->slots[i]; i = (i + 1) & (SLOTS - 1)) {
		const struct exits_vcpu *v = &e->vcpus[e->slots[i] - 1];

		if (v->pid == pid && v->input == input) {
			*index = e->slots[i] - 1u;
			return true;
		}
	}
	*slot = i;
	return false;
}

static void exits_forget(struct exits_now *now)
{
	now->at = THREAD_UNKNOWN;
	now->mmio = 0;
	for (size_t i = 0; i < EXITS_TABLES; i++)
		now->rows[i] = EXITS_NO_ROW;
}

static void exits_add_vcpu(struct exits *e, size_t slot, size_t input, const struct step *s)
{
	struct exits_vcpu *v = &e->vcpus[e->n];

	*v = (struct exits_vcpu){ .input = input, .pid = s->pid };
	v->of = input_vcpu(&e->in->v[input], s->pid, &v->guest);
	e->now[e->n].buffer = gaps_buffer(&e->gaps, s->stream);
	exits_forget(&e->now[e->n]);
	e->slots[slot] = (uint16_t)++e->n;
}

/*
 * False: the event does not count. A thread is known from its first kvm_entry on, as perf has it.
 */
static bool exits_vcpu_of(struct exits *e, const struct step *s, size_t *index)
{
	size_t input = e->gaps.v[s->stream].of->input;
	size_t slot;

	if (exits_find(e, input, s->pid, index, &slot))
		return e->now[*index].buffer == gaps_buffer(&e->gaps, s->stream);
	if (s->kind != STEP_KVM_ENTRY || s->pid <= 0)
		return false;
	if (e->n == VCPUS_MAX) {
		e->cut.vcpus++;
		return false;
	}
	*index = e->n;
	exits_add_vcpu(e, slot, input, s);
	return true;
}

/* ---- stretches ------------------------------------------------------------------------------------- */

static int exits_row_of(struct exits *e, enum exits_table table, size_t vcpu, uint64_t key, uint32_t info)
{
	const struct exits_row like = { .table = table, .vcpu = vcpu, .key = key, .info = info };

	return exits_map_row(&e->rows, &like, &e->now[vcpu].rows[table]);
}

static uint32_t exits_info(const struct step *s)
{
	if (s->b == STEP_UNKNOWN)
		return 0;
	return s->a == KVM_EXIT_ARM_TRAP ? EXITS_CLASS + (uint32_t)(s->b & 0x3f) : EXITS_ARM64;
}

/* Time that goes back is no stretch. */
static void exits_add(struct exits *e, size_t row, bool guest, uint64_t from, uint64_t to)
{
	if (row == EXITS_NO_ROW)
		e->cut.rows++;
	else if (to >= from)
		sums_add(guest ? &e->rows.v[row].guest : &e->rows.v[row].handled, to - from);
}

static int exits_stay(const struct exits *e, const struct exits_now *now, size_t row, size_t vcpu,
		      uint64_t to)
{
	const struct exits_vcpu *v = &e->vcpus[vcpu];
	struct stay stay = { .from = now->since,
			     .to = to,
			     .input = v->input,
			     .pid = v->pid,
			     .cpu = now->cpu,
			     .what = STAY_EXIT };

	if (!e->stays || row == EXITS_NO_ROW || to < now->since)
		return 0;
	stay.kind = exits_kind(e->rows.v[row].key, e->rows.v[row].info);
	return stays_add(e->stays, &stay);
}

static int exits_entry(struct exits *e, size_t vcpu, const struct step *s)
{
	struct exits_now *now = &e->now[vcpu];
	int ret = 0;

	if (now->at == THREAD_EXIT) {
		exits_add(e, now->rows[EXITS_REASON], false, now->since, s->ts);
		ret = exits_stay(e, now, now->rows[EXITS_REASON], vcpu, s->ts);
		for (size_t i = EXITS_SYSREG; i < EXITS_TABLES; i++)
			if (now->rows[i] != EXITS_NO_ROW)
				exits_add(e, now->rows[i], false, now->since, s->ts);
		if (now->mmio && now->rows[EXITS_MMIO] != EXITS_NO_ROW)
			exits_add(e, now->rows[EXITS_MMIO], false, now->mmio, s->ts);
		if (now->rows[EXITS_IOPORT] != EXITS_NO_ROW)
			exits_add(e, now->rows[EXITS_IOPORT], false, now->port, s->ts);
	}
	exits_forget(now);
	now->at = THREAD_GUEST;
	now->since = s->ts;
	return ret;
}

static int exits_exit(struct exits *e, size_t vcpu, const struct step *s)
{
	struct exits_now *now = &e->now[vcpu];
	bool ran = now->at == THREAD_GUEST;
	uint64_t since = now->since;
	int ret;

	exits_forget(now);
	ret = exits_row_of(e, EXITS_REASON, vcpu, s->a, exits_info(s));
	if (ran)
		exits_add(e, now->rows[EXITS_REASON], true, since, s->ts);
	now->at = THREAD_EXIT;
	now->since = now->mmio = s->ts;
	now->cpu = e->gaps.v[s->stream].of->cpu;
	return ret;
}

/* A read ends what the exit, or a write before it, began; a write begins. */
static int exits_mmio(struct exits *e, size_t vcpu, const struct step *s)
{
	struct exits_now *now = &e->now[vcpu];
	int ret = 0;

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

/* What the exit was for. */
static int exits_detail(struct exits *e, size_t vcpu, const struct step *s)
{
	uint32_t write = s->b && s->b != STEP_UNKNOWN ? EXITS_WRITE : 0;

	if (e->now[vcpu].at != THREAD_EXIT || s->a == STEP_UNKNOWN)
		return 0;
	switch (s->kind) {
	case STEP_PORT:
		e->now[vcpu].port = s->ts;
		return exits_row_of(e, EXITS_IOPORT, vcpu, s->a, write);
	case STEP_SYSREG:
		return exits_row_of(e, EXITS_SYSREG, vcpu, s->a, EXITS_ESR | write);
	case STEP_MSR:
		return exits_row_of(e, EXITS_SYSREG, vcpu, s->a, EXITS_MSR | write);
	case STEP_SMCCC:
		return exits_row_of(e, EXITS_HYPERCALL, vcpu, s->a, EXITS_SMCCC);
	case STEP_HYPERCALL:
		return exits_row_of(e, EXITS_HYPERCALL, vcpu, s->a, 0);
	default:
		return exits_mmio(e, vcpu, s);
	}
}

/* ---- losses ------------------------------------------------------------------------------------------- */

/* Events are missing on that CPU: whatever is open could have ended there. */
static void exits_lost(struct exits *e, uint32_t stream)
{
	for (size_t i = 0; i < e->n; i++) {
		struct exits_now *now = &e->now[i];

		if (now->buffer != gaps_buffer(&e->gaps, stream))
			continue;
		e->cut.lost += now->at != THREAD_UNKNOWN;
		exits_forget(now);
	}
}

/* What begins while events are missing. */
static void exits_unknown(struct exits *e, size_t vcpu, const struct step *s)
{
	e->cut.lost += s->kind == STEP_KVM_ENTRY || s->kind == STEP_KVM_EXIT;
	exits_forget(&e->now[vcpu]);
}

static int exits_event(struct exits *e, const struct step *s)
{
	size_t vcpu;

	if (!exits_vcpu_of(e, s, &vcpu))
		return 0;
	if (gaps_any(&e->gaps, s->stream)) {
		exits_unknown(e, vcpu, s);
		return 0;
	}
	if (s->kind == STEP_KVM_ENTRY)
		return exits_entry(e, vcpu, s);
	return s->kind == STEP_KVM_EXIT ? exits_exit(e, vcpu, s) : exits_detail(e, vcpu, s);
}

/* ---- the part ------------------------------------------------------------------------------------------ */

#define EXITS_EVENTS                                                                                         \
	(STEP_SET(STEP_KVM_ENTRY) | STEP_SET(STEP_KVM_EXIT) | STEP_SET(STEP_MMIO) | STEP_SET(STEP_PORT) |    \
	 STEP_SET(STEP_SYSREG) | STEP_SET(STEP_MSR) | STEP_SET(STEP_SMCCC) | STEP_SET(STEP_HYPERCALL))

static int exits_step(struct exits *e, const struct step *s)
{
	if (STEP_SET(s->kind) & EXITS_EVENTS)
		return exits_event(e, s);
	if (s->kind == STEP_GAP || s->kind == STEP_LOST)
		exits_lost(e, s->stream);
	if (s->kind == STEP_GAP)
		gaps_start(&e->gaps, s->stream);
	else if (s->kind == STEP_LOST && !s->b) /* else nothing follows, and nobody knows when they were */
		gaps_stop(&e->gaps, s->stream);
	return 0;
}

static int exits_after(void *ctx, struct pass_run *run)
{
	struct exits *e = ctx;
	int ret = 0;

	if (e->stays && run->records->n)
		stays_begin(e->stays, run->records->v[0].ts);
	for (size_t i = 0; i < run->n_steps && !ret; i++)
		ret = exits_step(e, &run->steps[i]);
	return ret;
}

struct pass_part exits_part(struct exits *e)
{
	return (struct pass_part){ .ctx = e, .steps = EXITS_EVENTS, .after = exits_after };
}

int exits_open(struct exits **out, const struct inputs *in, const struct timeline *t,
	       const struct steps *steps, struct stays *stays)
{
	struct exits *e = calloc(1, sizeof(*e));
	int ret = -ENOMEM;

	if (!e)
		return ret;
	*e = (struct exits){ .in = in, .t = t, .steps = steps, .stays = stays };
	e->vcpus = calloc(VCPUS_MAX, sizeof(*e->vcpus));
	e->now = calloc(VCPUS_MAX, sizeof(*e->now));
	e->slots = calloc(SLOTS, sizeof(*e->slots));
	if (e->vcpus && e->now && e->slots)
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
	free(e->slots);
	gaps_release(&e->gaps);
	free(e);
}

const struct exits_row *exits_rows(const struct exits *e, size_t *n)
{
	*n = e->rows.n;
	return e->rows.v;
}

const struct exits_vcpu *exits_vcpus(const struct exits *e, size_t *n)
{
	*n = e->n;
	return e->vcpus;
}

struct exits_cut exits_cut(const struct exits *e)
{
	return e->cut;
}
