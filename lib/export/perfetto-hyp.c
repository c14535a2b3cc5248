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
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "decode/esr.h"
#include "export/perfetto-priv.h"
#include "decode/smccc.h"

#define CATEGORY "hyp"

struct cpu {
	struct pf_item item;	      /* number: the CPU */
	struct timeline_record enter; /* its bytes are in `bytes` */
	struct buf bytes;
	bool open;
	uint64_t track;
	/* of the open one */
	struct arena arena;
	struct pf_args args;
	const char *reason;
	const struct tep_event *within; /* the last event in between */
};

const char *pf_hyp_reason(struct arena *a, const struct timeline_record *r)
{
	/* numbers differ from kernel to kernel: the format has the names */
	return tep_find_field(r->event, "reason") ? pf_word(a, r, "reason=") : NULL;
}

static int new_track(struct perfetto *pf, struct cpu *c)
{
	const char *name = arena_printf(&c->arena, "CPU %u", c->item.number);
	uint64_t parent;
	int ret = pf_parent(pf, c->item.input, 0, PF_HYP, "Hypervisor (EL2)", &parent);

	if (ret)
		return ret;
	if (c->arena.bad)
		return -ENOMEM;
	return pf_track(pf, c->item.input, parent, name, (int)c->item.number, &c->track);
}

static int get_cpu(struct perfetto *pf, size_t input, unsigned int cpu, struct cpu **out)
{
	*out = pf_map_find(&pf->cpus, input, cpu, 0);
	if (*out)
		return 0;
	*out = pf_map_add(&pf->cpus, sizeof(**out), input, cpu, 0);
	return *out ? new_track(pf, *out) : -ENOMEM;
}

/* ---- one time in the hypervisor ----------------------------------------------------- */

static const char *slice_name(struct cpu *c)
{
	if (c->reason)
		return c->reason;
	return c->within ? arena_text(&c->arena, c->within->name, strlen(c->within->name)) : "hyp";
}

static int open_slice(struct cpu *c, const struct timeline_record *r)
{
	uint64_t vcpu;

	arena_reset(&c->arena);
	c->args = (struct pf_args){ .arena = &c->arena };
	c->within = NULL;
	c->reason = pf_hyp_reason(&c->arena, r);
	c->bytes.len = 0;
	buf_add(&c->bytes, r->tep.data, (size_t)r->tep.size);
	c->enter = *r;
	c->enter.tep.data = c->bytes.data;
	if (c->reason)
		pf_arg_text(&c->args, "reason", c->reason, strlen(c->reason));
	if (timeline_number(r, "vcpu", &vcpu) && vcpu)
		pf_arg_i64(&c->args, "vcpu", (int64_t)vcpu);
	c->open = true;
	return c->arena.bad ? -ENOMEM : buf_status(&c->bytes);
}

/* No end was seen: how long it took is unknown. */
static int drop_slice(struct perfetto *pf, struct cpu *c)
{
	int ret;

	if (!c->open)
		return 0;
	c->open = false;
	ret = pf_ftrace_add(pf, &c->enter, true);
	if (ret)
		return ret;
	pf_arg_text(&c->args, "end", "lost", 4);
	return pf_instant(pf, c->item.input, c->track, c->enter.ts, CATEGORY, slice_name(c), &c->args);
}

static int close_slice(struct perfetto *pf, struct cpu *c, const struct timeline_record *r)
{
	const char *left = pf_hyp_reason(&c->arena, r);
	int ret;

	if (!c->open || r->ts < c->enter.ts) {
		ret = drop_slice(pf, c);
		return ret ? ret : pf_ftrace_add(pf, r, true);
	}
	c->open = false;
	if (left)
		pf_arg_text(&c->args, "left_for", left, strlen(left));
	ret = pf_ftrace_add(pf, &c->enter, false);
	if (ret)
		return ret;
	ret = pf_ftrace_add(pf, r, false);
	if (ret)
		return ret;
	ret = pf_begin(pf, c->item.input, c->track, c->enter.ts, CATEGORY, slice_name(c), &c->args);
	return ret ? ret : pf_end(pf, c->item.input, c->track, r->ts);
}

/* What was handled meanwhile: its fields and what they mean. */
static int add_detail(struct perfetto *pf, struct cpu *c, const struct timeline_record *r)
{
	char text[ESR_TEXT_MAX > SMCCC_TEXT_MAX ? ESR_TEXT_MAX : SMCCC_TEXT_MAX];
	const char *name = r->event->name;
	uint64_t v;

	if (c->open) {
		c->within = r->event;
		pf_arg_fields(&c->args, r);
		if (timeline_number(r, "esr", &v)) {
			esr_text(v, text, sizeof(text));
			pf_arg_text(&c->args, "syndrome", text, strlen(text));
		}
		if ((!strcmp(name, "host_smc") && timeline_number(r, "id", &v)) ||
		    timeline_number(r, "func_id", &v)) {
			smccc_text((uint32_t)v, text, sizeof(text));
			pf_arg_text(&c->args, "call", text, strlen(text));
		}
	}
	return pf_ftrace_add(pf, r, false);
}

int pf_hyp_record(struct perfetto *pf, const struct timeline_record *r)
{
	struct cpu *c;
	int ret = get_cpu(pf, r->input, r->cpu, &c);

	if (ret)
		return ret;
	if (!strcmp(r->event->name, "hyp_enter")) {
		ret = drop_slice(pf, c);
		return ret ? ret : open_slice(c, r);
	}
	if (!strcmp(r->event->name, "hyp_exit"))
		return close_slice(pf, c, r);
	return add_detail(pf, c, r);
}

int pf_hyp_lost(struct perfetto *pf, size_t input, unsigned int cpu)
{
	struct cpu *c = pf_map_find(&pf->cpus, input, cpu, 0);

	return c ? drop_slice(pf, c) : 0;
}

/* ---- all of it ------------------------------------------------------------------------ */

/* Recording ended in the hypervisor: such slices stay open. */
static int leave_open(void *perfetto, void *cpu)
{
	struct perfetto *pf = perfetto;
	struct cpu *c = cpu;
	int ret;

	if (!c->open)
		return 0;
	ret = pf_ftrace_add(pf, &c->enter, false);
	if (ret)
		return ret;
	return pf_begin(pf, c->item.input, c->track, c->enter.ts, CATEGORY, slice_name(c), &c->args);
}

int pf_hyp_finish(struct perfetto *pf)
{
	return pf_map_each(&pf->cpus, leave_open, pf);
}

static void cpu_release(void *cpu)
{
	struct cpu *c = cpu;

	arena_release(&c->arena);
	buf_release(&c->bytes);
}

void pf_hyp_release(struct perfetto *pf)
{
	pf_map_release(&pf->cpus, cpu_release);
}
