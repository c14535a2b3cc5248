// SPDX-License-Identifier: LGPL-2.1-or-later
/* Pairs hyp_enter and hyp_exit of each CPU, and tells apart why it was entered. */
#include "analysis/hyptime.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/array.h"

#define REASONS 256 /* the kernels' is a u8; what is above counts as the last */

/*
 * A kind is a reason, or REASONS + the id of the event that says it, or NO_REASON.
 * A window is open between hyp_enter and hyp_exit; a call between the hyp_exit and
 * the hyp_enter around the firmware's work.
 */
#define NO_REASON UINT32_MAX

struct hyp_cpu {
	uint64_t since;
	uint32_t kind;
	int32_t pid; /* of the vCPU that was loaded; 0: none, or nobody says */
	enum hyp_now { HYP_OUT, HYP_IN, HYP_CALL } now;
	bool seen; /* it has such events */
};

/* Rows of an input, by kind; 0: none yet, else 1 + its index. */
struct hyp_input {
	uint32_t *stays, *firmware;
	size_t n_kinds;
	bool is_smc[REASONS];
};

struct hyp_rows {
	struct hyptime_row *v;
	size_t n;
};

struct hyptime {
	const struct inputs *in;
	const struct steps *steps;
	struct stays *to;
	struct hyp_input *inputs;
	struct hyp_cpu *cpus; /* by stream */
	size_t n_cpus;
	struct hyp_rows stays, firmware;
	struct hyptime_cut cut;
	char number[24];
};

/* ---- opening ------------------------------------------------------------------------------------- */

static int hyp_input_open(struct hyptime *h, size_t input)
{
	struct hyp_input *i = &h->inputs[input];

	i->n_kinds = REASONS + h->in->v[input].n_known + 1;
	i->stays = calloc(i->n_kinds, sizeof(*i->stays));
	i->firmware = calloc(i->n_kinds, sizeof(*i->firmware));
	if (!i->stays || !i->firmware)
		return -ENOMEM;
	for (unsigned int r = 0; r < REASONS; r++) {
		const char *word = steps_reason(h->steps, input, STEP_HYP_EXIT, r);

		i->is_smc[r] = word && !strcmp(word, "smc");
	}
	return 0;
}

int hyptime_open(struct hyptime **out, const struct inputs *in, const struct timeline *t,
		 const struct steps *steps, struct stays *stays)
{
	struct hyptime *h = calloc(1, sizeof(*h));
	int ret = -ENOMEM;

	if (!h)
		return ret;
	*h = (struct hyptime){ .in = in, .steps = steps, .to = stays, .n_cpus = timeline_streams(t) };
	h->inputs = calloc(in->n + 1, sizeof(*h->inputs));
	h->cpus = calloc(h->n_cpus + 1, sizeof(*h->cpus));
	if (!h->inputs || !h->cpus)
		goto fail;
	for (size_t i = 0; i < in->n; i++) {
		ret = hyp_input_open(h, i);
		if (ret)
			goto fail;
	}
	*out = h;
	return 0;
fail:
	hyptime_close(h);
	return ret;
}

static void hyp_rows_release(struct hyp_rows *r)
{
	for (size_t i = 0; i < r->n; i++)
		histogram_release(&r->v[i].time);
	free(r->v);
}

void hyptime_close(struct hyptime *h)
{
	if (!h)
		return;
	for (size_t i = 0; h->inputs && i < h->in->n; i++) {
		free(h->inputs[i].stays);
		free(h->inputs[i].firmware);
	}
	hyp_rows_release(&h->stays);
	hyp_rows_release(&h->firmware);
	free(h->inputs);
	free(h->cpus);
	free(h);
}

/* ---- steps ------------------------------------------------------------------------------------------- */

static uint32_t hyp_kind(const struct step *s)
{
	if (s->kind == STEP_HYP_OTHER)
		return REASONS + (uint32_t)s->a;
	return s->a == STEP_UNKNOWN ? NO_REASON : s->a < REASONS ? (uint32_t)s->a : REASONS - 1;
}

/* ---- in order ---------------------------------------------------------------------------------------- */

static int hyp_row(struct hyp_rows *rows, uint32_t *slot, size_t input, uint64_t kind,
		   struct histogram **time)
{
	if (!*slot) {
		const struct hyptime_row new = { .input = input, .kind = kind };

		if (array_push(&rows->v, &rows->n, &new, sizeof(new)))
			return -ENOMEM;
		*slot = (uint32_t)rows->n;
	}
	*time = &rows->v[*slot - 1].time;
	return 0;
}

static int hyp_add(struct hyp_rows *rows, uint32_t *slots, size_t n_kinds, size_t input, uint32_t kind,
		   uint64_t ns)
{
	size_t at = kind < n_kinds - 1 ? kind : n_kinds - 1;
	struct histogram *time;
	int ret = hyp_row(rows, &slots[at], input, kind, &time);

	return ret ? ret : histogram_add(time, ns);
}

static void hyp_cut_off(struct hyptime *h, struct hyp_cpu *c)
{
	h->cut.enters += c->now == HYP_IN;
	c->now = HYP_OUT;
}

static int hyptime_enter(struct hyptime *h, struct hyp_cpu *c, const struct step *s)
{
	struct hyp_input *i = &h->inputs[s->input];
	uint32_t kind = hyp_kind(s);
	int ret = 0;

	if (c->now == HYP_CALL && s->ts >= c->since)
		ret = hyp_add(&h->firmware, i->firmware, i->n_kinds, s->input, kind, s->ts - c->since);
	hyp_cut_off(h, c);
	c->now = HYP_IN;
	c->since = s->ts;
	c->kind = kind;
	c->pid = s->b <= INT32_MAX ? (int32_t)s->b : 0;
	return ret;
}

static int hyp_stay(struct hyptime *h, const struct hyp_cpu *c, const struct step *s)
{
	struct hyp_input *i = &h->inputs[s->input];
	const struct stay stay = { .from = c->since,
				   .to = s->ts,
				   .kind = c->kind,
				   .input = s->input,
				   .pid = c->pid,
				   .cpu = s->cpu,
				   .what = STAY_HYP };
	int ret = hyp_add(&h->stays, i->stays, i->n_kinds, s->input, c->kind, s->ts - c->since);

	return ret || !h->to ? ret : stays_add(h->to, &stay);
}

static int hyptime_exit(struct hyptime *h, struct hyp_cpu *c, const struct step *s)
{
	uint32_t kind = hyp_kind(s);
	int ret = 0;

	if (c->now == HYP_IN && s->ts >= c->since) {
		ret = hyp_stay(h, c, s);
	} else {
		h->cut.exits++;
		h->cut.enters += c->now == HYP_IN;
	}
	c->now = kind < REASONS && h->inputs[s->input].is_smc[kind] ? HYP_CALL : HYP_OUT;
	c->since = s->ts;
	return ret;
}

static int hyp_step(struct hyptime *h, const struct step *s)
{
	struct hyp_cpu *c = &h->cpus[s->stream];

	switch (s->kind) {
	case STEP_LOST:
		hyp_cut_off(h, c);
		return 0;
	case STEP_HYP_ENTER:
		c->seen = true;
		return hyptime_enter(h, c, s);
	case STEP_HYP_EXIT:
		c->seen = true;
		return hyptime_exit(h, c, s);
	case STEP_HYP_OTHER:
		c->seen = true;
		/* the last of them says why; a reason says more */
		if (c->now == HYP_IN && c->kind >= REASONS)
			c->kind = hyp_kind(s);
		return 0;
	}
	return 0;
}

static int hyptime_after(void *ctx, struct pass_run *run)
{
	struct hyptime *h = ctx;
	int ret = 0;

	if (h->to && run->records->n)
		stays_begin(h->to, run->records->v[0].ts);
	for (size_t i = 0; i < run->n_steps && !ret; i++)
		ret = hyp_step(h, &run->steps[i]);
	return ret;
}

struct pass_part hyptime_part(struct hyptime *h)
{
	return (struct pass_part){ .ctx = h,
				   .steps = STEP_SET(STEP_HYP_ENTER) | STEP_SET(STEP_HYP_EXIT) |
					    STEP_SET(STEP_HYP_OTHER),
				   .after = hyptime_after };
}

/* ---- the whole ------------------------------------------------------------------------------------------
 */

void hyptime_finish(struct hyptime *h)
{
	for (size_t i = 0; i < h->n_cpus; i++)
		hyp_cut_off(h, &h->cpus[i]);
}

const struct hyptime_row *hyptime_rows(const struct hyptime *h, size_t *n)
{
	*n = h->stays.n;
	return h->stays.v;
}

const struct hyptime_row *hyptime_firmware(const struct hyptime *h, size_t *n)
{
	*n = h->firmware.n;
	return h->firmware.v;
}

bool hyptime_seen(const struct hyptime *h, size_t stream)
{
	return h->cpus[stream].seen;
}

struct hyptime_cut hyptime_cut(const struct hyptime *h)
{
	return h->cut;
}

const char *hyptime_name(struct hyptime *h, size_t input, uint64_t kind)
{
	const struct known_event *e;
	const char *word;

	if (kind == NO_REASON)
		return NULL;
	if (kind >= REASONS) {
		e = input_event(&h->in->v[input], (unsigned int)(kind - REASONS));
		return e ? e->event->name : NULL;
	}
	word = steps_reason(h->steps, input, STEP_HYP_ENTER, kind);
	if (!word)
		snprintf(h->number, sizeof(h->number), "reason %" PRIu64, kind);
	return word ?: h->number;
}
