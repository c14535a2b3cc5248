// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Visits to the hypervisor of each CPU. Perfetto itself makes slices of hyp_enter
 * and hyp_exit, gives them a reason by the events between them, and none by
 * mainline's own `reason`. So each visit is written twice: as those events, for
 * Perfetto's pkvm_hypervisor_events, and as a slice of ours that has it all.
 *
 * Perfetto takes every hyp_enter for the begin of a slice. One whose hyp_exit
 * was lost would never end and hold all later ones, so an event is passed on as
 * one that Perfetto knows only when its counterpart is there: a hyp_enter waits
 * for what comes next on its CPU.
 */
#include <stdlib.h>
#include <string.h>

#include "base/decode/esr.h"
#include "base/decode/smccc.h"
#include "convert/export/perfetto-priv.h"

#define CATEGORY "hyp"

struct cpu {
	struct pf_item item;	 /* number: the CPU */
	struct pf_record *enter; /* the open one: in the chunk, or `waiting` */
	struct pf_record waiting;
	struct buf bytes; /* of `waiting` */
	uint64_t track;
	struct visit visit;
	struct pf_args args; /* of the open one */
};

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

/* A visit is over, or has no end: how long that took is unknown. */
static void put_slice(struct perfetto *pf, struct cpu *c, const struct span *v, const char *left)
{
	static const char *const ends[] = { [SPAN_LOST] = "lost", [SPAN_UNENDED] = "open" };
	size_t input = c->item.input;
	const char *name = steps_why(pf->meanings, &pf->job->in->v[input], input, v->why) ?: "hyp";

	if (v->end == SPAN_BEGUN)
		return;
	if (v->vcpu)
		pf_arg_i64(&c->args, "vcpu", v->vcpu);
	/* the form in which hyp_enter is written is known now */
	c->enter->how = v->end == SPAN_PAIRED ? PF_KNOWN : PF_GENERIC;
	if (c->enter == &c->waiting)
		pf_chunk_late(pf->chunk, c->enter);
	c->enter = NULL;
	if (v->end != SPAN_PAIRED) {
		pf_arg_text(&c->args, "end", ends[v->end], 4);
		pf_instant(pf, input, c->track, v->from, CATEGORY, name, &c->args);
		return;
	}
	if (left)
		pf_arg_text(&c->args, "left_for", left, strlen(left));
	pf_begin(pf, input, c->track, v->from, CATEGORY, name, &c->args);
	pf_end(pf, input, c->track, v->to);
}

void pf_hyp_record(struct perfetto *pf, const struct merge_record *m, struct pf_record *r)
{
	struct cpu *c = get_cpu(pf, r->input, r->cpu);
	enum step_kind kind = steps_kind(pf->meanings, r->input, r->id);
	struct span done = { .end = SPAN_BEGUN };
	char text[ESR_TEXT_MAX > SMCCC_TEXT_MAX ? ESR_TEXT_MAX : SMCCC_TEXT_MAX];
	const char *reason = NULL;
	struct span_point p;
	uint64_t v;

	if (!c)
		return;
	if (kind != STEP_HYP_ENTER && kind != STEP_HYP_EXIT && c->visit.open) {
		/* the fields of an event in between, and what they mean */
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
	if (!steps_hyp_point(pf->meanings, r->input, m, 0, &p))
		return;
	if (p.reason != SPAN_UNKNOWN)
		reason = steps_reason(pf->meanings, r->input, kind, p.reason);
	if (visit_take(&c->visit, &p, &done))
		put_slice(pf, c, &done, kind == STEP_HYP_EXIT ? reason : NULL);
	if (kind == STEP_HYP_ENTER) {
		c->args.n = c->args.bytes.len = 0;
		c->enter = r;
		r->how = PF_LEFT_OUT;
		if (reason)
			pf_arg_text(&c->args, "reason", reason, strlen(reason));
	} else if (kind == STEP_HYP_EXIT && done.end != SPAN_PAIRED) {
		r->how = PF_GENERIC;
	}
	pf->bad |= c->args.bytes.bad;
}

void pf_hyp_lost(struct perfetto *pf, size_t input, unsigned int cpu)
{
	struct cpu *c = pf_map_find(&pf->cpus, input, cpu, 0);
	const struct span_point p = { .kind = POINT_LOST };
	struct span done;

	if (c && visit_take(&c->visit, &p, &done))
		put_slice(pf, c, &done, NULL);
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
	c->waiting.lost = false; /* the chunk has it */
	c->enter = &c->waiting;
}

void pf_hyp_keep(struct perfetto *pf)
{
	pf_map_each(&pf->cpus, keep_enter, pf);
}

static void leave_open(void *perfetto, void *cpu)
{
	struct cpu *c = cpu;
	struct span open;

	if (visit_finish(&c->visit, &open))
		put_slice(perfetto, c, &open, NULL);
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
