// SPDX-License-Identifier: LGPL-2.1-or-later
/* Adds visits to the hypervisor up by their reasons, and the firmware's calls between them. */
#include "ask/states/reading.h"

int hyptime_open(struct hyptime **out, const struct inputs *in, const struct timeline *t,
		 const struct steps *steps, struct tally *to)
{
	struct hyptime *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	*h = (struct hyptime){ .in = in, .steps = steps, .to = to, .n_cpus = merge_streams(t->merge) };
	h->is_smc = calloc(in->n + 1, sizeof(*h->is_smc));
	h->visits.slots = inputs_table(in, SPAN_REASONS + 1, sizeof(**h->visits.slots));
	h->firmware.slots = inputs_table(in, SPAN_REASONS + 1, sizeof(**h->firmware.slots));
	h->cpus = calloc(h->n_cpus + 1, sizeof(*h->cpus));
	if (!h->is_smc || !h->visits.slots || !h->firmware.slots || !h->cpus) {
		hyptime_close(h);
		return -ENOMEM;
	}
	for (size_t i = 0; i < in->n; i++)
		for (unsigned int r = 0; r < SPAN_REASONS; r++) {
			const char *word = steps_reason(steps, i, STEP_HYP_EXIT, r);

			h->is_smc[i][r] = word && !strcmp(word, "smc");
		}
	*out = h;
	return 0;
}

static void hyp_rows_release(struct hyptime_rows *r)
{
	for (size_t i = 0; i < r->n; i++)
		histogram_release(&r->v[i].time);
	free(r->v);
	free(r->slots);
}

void hyptime_close(struct hyptime *h)
{
	if (!h)
		return;
	hyp_rows_release(&h->visits);
	hyp_rows_release(&h->firmware);
	arena_release(&h->names);
	free(h->is_smc);
	free(h->cpus);
	free(h);
}

static int hyp_add(const struct hyptime *h, struct hyptime_rows *rows, size_t input, uint64_t kind,
		   uint64_t ns)
{
	size_t last = SPAN_REASONS + h->in->v[input].n_known;
	uint32_t *slot = &rows->slots[input][kind < last ? kind : last];
	const struct hyptime_row new = { .input = input, .kind = kind };

	if (!*slot) {
		if (array_push(&rows->v, &rows->n, &new, sizeof(new)))
			return -ENOMEM;
		*slot = (uint32_t)rows->n;
	}
	return histogram_add(&rows->v[*slot - 1].time, ns);
}

#define HYPTIME_STEPS (STEP_SET(STEP_HYP_ENTER) | STEP_SET(STEP_HYP_EXIT) | STEP_SET(STEP_HYP_OTHER))

static int hyptime_first(void *ctx, struct pass_run *run)
{
	struct hyptime *h = ctx;
	int ret = 0;

	if (h->to && run->records->n)
		tally_begin(h->to, run->records->v[0].ts);
	for (const struct step *s = run->steps, *end = s + run->n_steps; s < end && !ret; s++) {
		struct hyptime_cpu *c = &h->cpus[s->stream];
		struct span done;

		if (!(STEP_SET(s->kind) & (HYPTIME_STEPS | STEP_SET(STEP_LOST))))
			continue;
		c->seen |= s->kind != STEP_LOST;
		if (s->kind != STEP_HYP_OTHER) {
			if (s->kind == STEP_HYP_ENTER && c->calls && s->ts >= c->since)
				ret = hyp_add(h, &h->firmware, s->input, span_why(s->a), s->ts - c->since);
			c->calls =
				s->kind == STEP_HYP_EXIT && s->a < SPAN_REASONS && h->is_smc[s->input][s->a];
			c->since = s->ts;
		}
		if (ret || !step_visit(&c->visit, s, 0, &done))
			continue;
		if (done.end != SPAN_PAIRED) {
			h->exits += done.end == SPAN_BEGUN;
			h->enters += done.end != SPAN_BEGUN;
			continue;
		}
		ret = hyp_add(h, &h->visits, s->input, done.why, done.to - done.from);
		if (!ret && h->to)
			ret = tally_add(h->to, &done);
	}
	return ret;
}

struct pass_part hyptime_part(struct hyptime *h)
{
	return (struct pass_part){ .ctx = h, .steps = HYPTIME_STEPS, .first = hyptime_first, .uses = h->to };
}

void hyptime_finish(struct hyptime *h)
{
	struct span open;

	for (size_t i = 0; i < h->n_cpus; i++)
		h->enters += visit_finish(&h->cpus[i].visit, &open);
}

const char *hyptime_name(struct hyptime *h, size_t input, uint64_t kind)
{
	const char *word = steps_why(h->steps, &h->in->v[input], input, kind);

	if (word || kind >= SPAN_REASONS)
		return word;
	return arena_printf(&h->names, "reason %" PRIu64, kind);
}
