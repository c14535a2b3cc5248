// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * The hypervisor's time on each CPU. Perfetto itself makes slices of hyp_enter
 * and hyp_exit, gives them a reason by the events between them, and none by
 * mainline's own `reason`. So each time is written twice: as those events, for
 * Perfetto's pkvm_hypervisor_events, and as a slice of ours that has it all.
 *
 * Perfetto takes every hyp_enter for the begin of a slice. One whose hyp_exit
 * was lost would never end and hold all later ones, so an event is passed on as
 * one that Perfetto knows only when its counterpart is there: a hyp_enter waits
 * for what comes next on its CPU.
 */
#include <stdlib.h>
#include <string.h>

#include "decode/esr.h"
#include "decode/smccc.h"
#include "export/perfetto-priv.h"

#define CATEGORY "hyp"

struct cpu {
	struct pf_item item;	 /* number: the CPU */
	struct pf_record *enter; /* the open one: in the chunk, or `waiting` */
	struct pf_record waiting;
	struct buf bytes; /* of `waiting` */
	uint64_t track;
	/* of the open one */
	struct pf_args args;
	const char *reason;
	const struct pf_event *within; /* the last event in between */
};

const char *pf_hyp_reason(struct perfetto *pf, const struct pf_record *r)
{
	const struct field_load *f = &r->event->reason;

	/* numbers differ from kernel to kernel: the format has the names */
	return f->kind == FIELD_NUMBER ? pf_word(pf, r, "reason=", field_load_padded(f, r->data, r->len))
				       : NULL;
}

static struct cpu *get_cpu(struct perfetto *pf, size_t input, unsigned int cpu)
{
	struct cpu *c = pf_map_find(&pf->cpus, input, cpu, 0);
	uint64_t parent;

	if (c)
		return c;
	c = pf_map_add(&pf->cpus, sizeof(*c), input, cpu, 0);
	if (!c) {
		pf->bad = true;
		return NULL;
	}
	parent = pf_parent(pf, input, 0, PF_HYP, "Hypervisor (EL2)");
	c->track = pf_track(pf, input, parent, arena_printf(&pf->arena, "CPU %u", cpu), (int)cpu);
	return c;
}

/* ---- one time in the hypervisor ----------------------------------------------------- */

static const char *slice_name(const struct cpu *c)
{
	return c->reason ? c->reason : c->within ? c->within->name : "hyp";
}

static void open_slice(struct perfetto *pf, struct cpu *c, struct pf_record *r)
{
	uint64_t vcpu;

	c->args.n = c->args.bytes.len = 0;
	c->within = NULL;
	c->reason = pf_hyp_reason(pf, r);
	c->enter = r;
	r->how = PF_LEFT_OUT;
	if (c->reason)
		pf_arg_text(&c->args, "reason", c->reason, strlen(c->reason));
	if (pf_number(&r->event->vcpu, r, &vcpu) && vcpu)
		pf_arg_i64(&c->args, "vcpu", (int64_t)vcpu);
}

/* What it is written as is known now. */
static void pass_enter(struct perfetto *pf, struct cpu *c, enum pf_how how)
{
	c->enter->how = how;
	if (c->enter == &c->waiting)
		pf_chunk_late(pf->chunk, c->enter);
	c->enter = NULL;
}

/* No end was seen: how long it took is unknown. */
static void drop_slice(struct perfetto *pf, struct cpu *c)
{
	uint64_t ts;

	if (!c->enter)
		return;
	ts = c->enter->ts;
	pass_enter(pf, c, PF_GENERIC);
	pf_arg_text(&c->args, "end", "lost", 4);
	pf_instant(pf, c->item.input, c->track, ts, CATEGORY, slice_name(c), &c->args);
}

static void close_slice(struct perfetto *pf, struct cpu *c, struct pf_record *r)
{
	const char *left = pf_hyp_reason(pf, r);
	uint64_t since;

	if (!c->enter || r->ts < c->enter->ts) {
		drop_slice(pf, c);
		r->how = PF_GENERIC;
		return;
	}
	if (left)
		pf_arg_text(&c->args, "left_for", left, strlen(left));
	since = c->enter->ts;
	pass_enter(pf, c, PF_KNOWN);
	pf_begin(pf, c->item.input, c->track, since, CATEGORY, slice_name(c), &c->args);
	pf_end(pf, c->item.input, c->track, r->ts);
}

/* What was handled meanwhile: its fields and what they mean. */
static void add_detail(struct cpu *c, const struct pf_record *r)
{
	char text[ESR_TEXT_MAX > SMCCC_TEXT_MAX ? ESR_TEXT_MAX : SMCCC_TEXT_MAX];
	uint64_t v;

	c->within = r->event;
	pf_arg_fields(&c->args, r);
	if (pf_number(&r->event->esr, r, &v)) {
		esr_text(v, text, sizeof(text));
		pf_arg_text(&c->args, "syndrome", text, strlen(text));
	}
	if (pf_number(&r->event->call, r, &v)) {
		smccc_text((uint32_t)v, text, sizeof(text));
		pf_arg_text(&c->args, "call", text, strlen(text));
	}
}

void pf_hyp_record(struct perfetto *pf, struct pf_record *r)
{
	struct cpu *c = get_cpu(pf, r->input, r->cpu);

	if (!c)
		return;
	if (r->event->role == PF_HYP_ENTER) {
		drop_slice(pf, c);
		open_slice(pf, c, r);
	} else if (r->event->role == PF_HYP_EXIT) {
		close_slice(pf, c, r);
	} else if (c->enter) {
		add_detail(c, r);
	}
	pf->bad |= c->args.bytes.bad;
}

void pf_hyp_lost(struct perfetto *pf, size_t input, unsigned int cpu)
{
	struct cpu *c = pf_map_find(&pf->cpus, input, cpu, 0);

	if (c)
		drop_slice(pf, c);
}

/* ---- all of it ------------------------------------------------------------------------ */

static void keep_enter(void *perfetto, void *cpu)
{
	struct perfetto *pf = perfetto;
	struct cpu *c = cpu;

	if (!c->enter || c->enter == &c->waiting)
		return;
	c->bytes.len = 0;
	buf_add(&c->bytes, c->enter->data, c->enter->len);
	pf->bad |= c->bytes.bad;
	c->waiting = *c->enter;
	c->waiting.data = c->bytes.data;
	c->waiting.lost = false; /* that the chunk tells */
	c->enter = &c->waiting;
}

void pf_hyp_keep(struct perfetto *pf)
{
	pf_map_each(&pf->cpus, keep_enter, pf);
}

/* Recording ended in the hypervisor: such slices stay open. */
static void leave_open(void *perfetto, void *cpu)
{
	struct perfetto *pf = perfetto;
	struct cpu *c = cpu;
	uint64_t since;

	if (!c->enter)
		return;
	since = c->enter->ts;
	pass_enter(pf, c, PF_KNOWN);
	pf_begin(pf, c->item.input, c->track, since, CATEGORY, slice_name(c), &c->args);
}

void pf_hyp_finish(struct perfetto *pf)
{
	pf_map_each(&pf->cpus, leave_open, pf);
}

static void cpu_release(void *cpu)
{
	struct cpu *c = cpu;

	buf_release(&c->args.bytes);
	buf_release(&c->bytes);
}

void pf_hyp_release(struct perfetto *pf)
{
	pf_map_release(&pf->cpus, cpu_release);
}
