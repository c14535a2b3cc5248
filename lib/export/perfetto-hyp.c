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
#define BUCKETS	 256

struct cpu {
	struct cpu *next;
	struct timeline_record enter; /* its bytes are in `bytes` */
	struct buf bytes;
	bool open;
	size_t input;
	unsigned int cpu;
	uint64_t track;
	/* what is known of the open one */
	struct arena arena;
	struct pf_args args;
	const char *reason;
	const struct tep_event *told; /* the last event in between */
};

struct pf_hyp {
	struct pf *pf;
	uint64_t *parents; /* tracks, by input; 0: not yet */
	struct cpu *cpus[BUCKETS];
};

const char *pf_hyp_reason(struct arena *a, const struct timeline_record *r)
{
	static const char key[] = "reason=";
	struct tep_record rec = r->tep;
	const char *at, *reason = NULL;
	struct trace_seq s;

	if (!tep_find_field(r->event, "reason"))
		return NULL;
	trace_seq_init(&s);
	/* numbers differ from kernel to kernel: the format knows the names */
	tep_print_event(r->in->tep, &s, &rec, "%s", TEP_PRINT_INFO);
	trace_seq_terminate(&s);
	at = strstr(s.buffer, key);
	if (at) {
		at += strlen(key);
		reason = arena_text(a, at, strcspn(at, " "));
	}
	trace_seq_destroy(&s);
	return reason;
}

/* ---- CPUs ------------------------------------------------------------------------- */

static int new_track(struct pf_hyp *h, struct cpu *c)
{
	struct pf *pf = h->pf;
	uint32_t machine = pf->machines[c->input];
	const char *name;
	int ret = 0;

	if (!h->parents[c->input])
		ret = pf_track(&pf->tracks, machine, 0, "Hypervisor (EL2)", 0, &h->parents[c->input]);
	name = arena_printf(&c->arena, "CPU %u", c->cpu);
	if (!ret)
		ret = pf_track(&pf->tracks, machine, h->parents[c->input], name, (int)c->cpu, &c->track);
	return c->arena.bad ? -ENOMEM : ret;
}

static struct cpu *find_cpu(struct pf_hyp *h, size_t input, unsigned int cpu)
{
	for (struct cpu *c = h->cpus[cpu % BUCKETS]; c; c = c->next)
		if (c->input == input && c->cpu == cpu)
			return c;
	return NULL;
}

static int add_cpu(struct pf_hyp *h, size_t input, unsigned int cpu, struct cpu **out)
{
	struct cpu *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	c->input = input;
	c->cpu = cpu;
	c->next = h->cpus[cpu % BUCKETS];
	h->cpus[cpu % BUCKETS] = c;
	*out = c;
	return new_track(h, c);
}

/* ---- one time in the hypervisor ----------------------------------------------------- */

static const char *slice_name(struct cpu *c)
{
	if (c->reason)
		return c->reason;
	return c->told ? arena_text(&c->arena, c->told->name, strlen(c->told->name)) : "hyp";
}

static int open_slice(struct cpu *c, const struct timeline_record *r)
{
	uint64_t vcpu;

	arena_reset(&c->arena);
	c->args = (struct pf_args){ .arena = &c->arena };
	c->told = NULL;
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

/* No end was seen: the time it took is not known. */
static int drop_slice(struct pf_hyp *h, struct cpu *c)
{
	struct pf *pf = h->pf;
	int ret;

	if (!c->open)
		return 0;
	c->open = false;
	ret = pf_ftrace_add(pf->ftrace, &c->enter, true);
	pf_arg_text(&c->args, "end", "lost", 4);
	if (!ret)
		ret = pf_instant(&pf->tracks, pf->machines[c->input], c->track, c->enter.ts, CATEGORY,
				 slice_name(c), &c->args);
	return ret;
}

static int close_slice(struct pf_hyp *h, struct cpu *c, const struct timeline_record *r)
{
	struct pf *pf = h->pf;
	uint32_t machine = pf->machines[c->input];
	const char *left = pf_hyp_reason(&c->arena, r);
	int ret;

	if (!c->open || r->ts < c->enter.ts) {
		ret = drop_slice(h, c);
		return ret ? ret : pf_ftrace_add(pf->ftrace, r, true);
	}
	c->open = false;
	if (left)
		pf_arg_text(&c->args, "left_for", left, strlen(left));
	ret = pf_ftrace_add(pf->ftrace, &c->enter, false);
	if (!ret)
		ret = pf_ftrace_add(pf->ftrace, r, false);
	if (!ret)
		ret = pf_begin(&pf->tracks, machine, c->track, c->enter.ts, CATEGORY, slice_name(c),
			       &c->args);
	if (!ret)
		ret = pf_end(&pf->tracks, machine, c->track, r->ts);
	return ret;
}

/* What was handled meanwhile: its fields and what they mean. */
static int add_detail(struct pf_hyp *h, struct cpu *c, const struct timeline_record *r)
{
	char text[ESR_TEXT_MAX > SMCCC_TEXT_MAX ? ESR_TEXT_MAX : SMCCC_TEXT_MAX];
	const char *name = r->event->name;
	uint64_t v;

	if (c->open) {
		c->told = r->event;
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
	return pf_ftrace_add(h->pf->ftrace, r, false);
}

int pf_hyp_record(struct pf_hyp *h, const struct timeline_record *r)
{
	struct cpu *c = find_cpu(h, r->input, r->cpu);
	int ret = c ? 0 : add_cpu(h, r->input, r->cpu, &c);

	if (ret)
		return ret;
	if (!strcmp(r->event->name, "hyp_enter")) {
		ret = drop_slice(h, c);
		return ret ? ret : open_slice(c, r);
	}
	if (!strcmp(r->event->name, "hyp_exit"))
		return close_slice(h, c, r);
	return add_detail(h, c, r);
}

int pf_hyp_lost(struct pf_hyp *h, size_t input, unsigned int cpu)
{
	struct cpu *c = find_cpu(h, input, cpu);

	return c ? drop_slice(h, c) : 0;
}

/* ---- all of it ------------------------------------------------------------------------ */

/* Recording ended in the hypervisor: such slices stay open. */
static int leave_open(struct pf_hyp *h, struct cpu *c)
{
	struct pf *pf = h->pf;
	int ret;

	if (!c->open)
		return 0;
	ret = pf_ftrace_add(pf->ftrace, &c->enter, false);
	if (!ret)
		ret = pf_begin(&pf->tracks, pf->machines[c->input], c->track, c->enter.ts, CATEGORY,
			       slice_name(c), &c->args);
	return ret;
}

int pf_hyp_finish(struct pf_hyp *h)
{
	int ret = 0;

	for (size_t i = 0; i < BUCKETS; i++)
		for (struct cpu *c = h->cpus[i]; c && !ret; c = c->next)
			ret = leave_open(h, c);
	return ret;
}

struct pf_hyp *pf_hyp_new(struct pf *pf)
{
	struct pf_hyp *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->pf = pf;
	h->parents = calloc(pf->in->n + 1, sizeof(*h->parents));
	if (!h->parents) {
		free(h);
		return NULL;
	}
	return h;
}

void pf_hyp_free(struct pf_hyp *h)
{
	if (!h)
		return;
	for (size_t i = 0; i < BUCKETS; i++)
		while (h->cpus[i]) {
			struct cpu *next = h->cpus[i]->next;

			arena_release(&h->cpus[i]->arena);
			buf_release(&h->cpus[i]->bytes);
			free(h->cpus[i]);
			h->cpus[i] = next;
		}
	free(h->parents);
	free(h);
}
