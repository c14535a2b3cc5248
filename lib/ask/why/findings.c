// SPDX-License-Identifier: LGPL-2.1-or-later
/* Findings without a question: the causes that took most of the vCPUs' time, by one reading of the files. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask/why/why-priv.h"
#include "base/array.h"

#define FINDING_LEAST 0.01 /* of a vCPU's time */
#define MOVES_LEAST   20   /* of a vCPU, a second */

/* A vCPU's time by cause. */
struct finding_vcpu {
	struct state_owner owner;
	uint64_t wall, undecided;
	bool known;    /* there was a span that is known */
	uint64_t open; /* ns that are not known since the last of these */
	struct state_sum by[WHY_CAUSES_MAX];
	struct state_sum moves; /* to another CPU, with the waits for it */
	uint64_t waits;		/* ns that it has waited for a CPU since it last ran */
	uint32_t cpu;		/* on which it ran */
};

struct finding_job {
	struct why *why;
	struct finding_vcpu *v; /* by the owner's index */
	size_t n;
};

/* ---- sums ---------------------------------------------------------------------------------------- */

static void finding_move(struct finding_vcpu *v, const struct state_span *s)
{
	if (s->state == STATE_PREEMPTED || s->state == STATE_WAKING) {
		v->waits += s->to - s->from;
	} else if (s->state >= STATE_GUEST && s->state <= STATE_VMM && s->cpu != STATE_NO_CPU) {
		if (v->cpu != s->cpu && v->cpu != STATE_NO_CPU) {
			v->moves.ns += v->waits;
			v->moves.n++;
		}
		v->cpu = s->cpu;
		v->waits = 0;
	} else if (s->state == STATE_UNKNOWN) {
		v->cpu = STATE_NO_CPU;
	}
}

/* Time that is unknown before the first known span, or after the last one, was not recorded on purpose. */
static int finding_span(void *ctx, const struct state_span *s)
{
	static const struct finding_vcpu none = { .cpu = STATE_NO_CPU };
	struct finding_job *j = ctx;
	struct why_cause cause = why_cause_span(j->why, s, false);
	uint64_t ns = s->to - s->from, bound = s->from_bound + s->to_bound;
	struct finding_vcpu *v;
	uint32_t i;

	while (j->n <= s->owner->index)
		if (array_push(&j->v, &j->n, &none, sizeof(none)))
			return -ENOMEM;
	v = &j->v[s->owner->index];
	v->owner = *s->owner;
	finding_move(v, s);
	v->known |= cause.kind != STATE_UNKNOWN;
	if (!v->known || cause.kind == STATE_ENDED)
		return 0;
	v->open = cause.kind == STATE_UNKNOWN ? v->open + ns : 0;
	v->undecided += bound < ns && bound >= s->from_bound ? bound : ns;
	cause.cpu = STATE_NO_CPU; /* wherever it was */
	i = why_cause_of(j->why, &cause);
	if (i == UINT32_MAX)
		return -ENOMEM;
	v->by[i].ns += ns;
	v->by[i].n++;
	v->wall += ns;
	return 0;
}

/* ---- findings -------------------------------------------------------------------------------------- */

/* Causes that take time from a vCPU, by the command that shows more of them. */
static const char *const finding_next[WHY_KINDS] = {
	[STATE_UNKNOWN] = "hyptrace stat --show lost,vcpus",
	[STATE_HYP] = "hyptrace stat --show hyp,longest",
	[STATE_FIRMWARE] = "hyptrace stat --show firmware",
	[STATE_HOST] = "hyptrace stat --show exits,mmio,ioport,sysreg,hypercall",
	[STATE_VMM] = "hyptrace stat --show exits,mmio,ioport,hypercall",
	[STATE_PREEMPTED] = "hyptrace stat --show steal",
	[STATE_WAKING] = "hyptrace why --preset irq",
	[STATE_BLOCKED] = "hyptrace stat --show vcpus",
	[STATE_OUTSIDE] = "hyptrace stat --show vcpus",
};

/* Arm64's aborts of a guest, x86's EPT violations and nested page faults. */
static bool finding_is_fault(const char *reason)
{
	return strstr(reason, "ABT_LOW") || strstr(reason, "EPT_VIOLATION") || strstr(reason, "npf");
}

static int finding_push(const struct why *w, struct findings *to, struct finding *f,
			const struct state_owner *vcpu, const char *what)
{
	struct why_cause task = why_cause_plain(STATE_GUEST);
	struct buf who = { 0 };

	task.input = vcpu->input;
	task.pid = vcpu->pid;
	why_task_text(w, &task, &who);
	snprintf(f->vcpu, sizeof(f->vcpu), "%s", buf_str(&who) ?: "");
	snprintf(f->what, sizeof(f->what), "%s", what);
	buf_release(&who);
	return array_push(&to->v, &to->n, f, sizeof(*f));
}

/* Of all vCPUs; the one that lost the greatest share of its time is named. */
static int finding_cause(const struct finding_job *j, uint32_t cause, struct findings *to)
{
	const struct why_cause *c = &j->why->causes[cause];
	struct finding f = { .next = finding_next[c->kind] };
	const struct finding_vcpu *worst = NULL;
	const struct offset_guest *guest;
	struct buf what = { 0 };
	int ret;

	for (const struct finding_vcpu *v = j->v; v < j->v + j->n && f.next; v++) {
		f.lost += v->by[cause].ns;
		f.n += v->by[cause].n;
		if (v->by[cause].ns && (double)v->by[cause].ns > f.share * (double)v->wall) {
			worst = v;
			f.share = (double)v->by[cause].ns / (double)v->wall;
		}
	}
	if (f.share < FINDING_LEAST)
		return 0;
	why_cause_text(j->why, c, &what);
	if (why_kind_advice(c->kind))
		buf_printf(&what, ": %s", why_kind_advice(c->kind));
	if (c->kind == STATE_PREEMPTED && input_vcpu(&j->why->in->v[c->input], c->pid, &guest))
		buf_addstr(&what, ", overcommit");
	if (c->kind == STATE_HOST && buf_str(&what) && finding_is_fault(buf_str(&what))) {
		buf_addstr(&what, ", stage-2 faults");
		f.next = "hyptrace why --preset abort";
	}
	ret = finding_push(j->why, to, &f, &worst->owner, buf_str(&what) ?: "");
	buf_release(&what);
	return ret;
}

/* The vCPU that moves most; its time is that of its waits before a move. */
static int finding_moves(const struct finding_job *j, struct findings *to)
{
	struct finding f = { .next = "hyptrace stat --show vcpus,steal" };
	const struct finding_vcpu *worst = NULL;
	char what[64];
	double rate, most = MOVES_LEAST;

	for (const struct finding_vcpu *v = j->v; v < j->v + j->n; v++) {
		f.lost += v->moves.ns;
		f.n += v->moves.n;
		rate = v->wall ? (double)v->moves.n * 1e9 / (double)v->wall : 0;
		if (rate >= most) {
			worst = v;
			most = rate;
			f.share = (double)v->moves.ns / (double)v->wall;
		}
	}
	snprintf(what, sizeof(what), "moves to another CPU, %.0f a second, and waits before them", most);
	return worst ? finding_push(j->why, to, &f, &worst->owner, what) : 0;
}

static int finding_order(const void *a, const void *b)
{
	const struct finding *x = a, *y = b;

	if (x->lost != y->lost)
		return x->lost < y->lost ? 1 : -1;
	return strcmp(x->what, y->what);
}

int findings_read(struct findings *f, const struct inputs *in, const struct log *log, uint64_t *damaged)
{
	struct finding_job j = { 0 };
	int ret = why_open(&j.why, in, NULL);

	ret = ret ?: why_states(j.why, STATES_VCPUS, finding_span, &j, log, damaged);
	for (struct finding_vcpu *v = j.v; v < j.v + j.n && !ret; v++) {
		struct finding open = { .lost = v->undecided, .n = 1, .next = "hyptrace sync" };

		v->by[CAUSE_UNKNOWN].ns -= v->open;
		v->by[CAUSE_UNKNOWN].n -= v->open > 0;
		v->wall -= v->open;
		f->wall += v->wall;
		open.share = v->wall ? (double)v->undecided / (double)v->wall : 0;
		if (open.share >= FINDING_LEAST)
			ret = finding_push(j.why, f, &open, &v->owner, why_kind_advice(WHY_UNDECIDED));
	}
	ret = ret ?: finding_moves(&j, f);
	for (uint32_t i = 0; j.why && i < j.why->n_causes && !ret; i++)
		ret = finding_cause(&j, i, f);
	array_sort(f->v, f->n, sizeof(*f->v), finding_order);
	free(j.v);
	why_close(j.why);
	return ret;
}
