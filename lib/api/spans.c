// SPDX-License-Identifier: LGPL-2.1-or-later
/* The spans of hyptrace.h: visits to the hypervisor and exits of guests, by the trace points of all files. */
#include <errno.h>
#include <stdlib.h>

#include "api/handle-priv.h"
#include "ask/states/exit-threads.h"
#include "base/decode/esr.h"

#define SPAN_STEPS                                                                                           \
	(STEP_SET(STEP_HYP_ENTER) | STEP_SET(STEP_HYP_EXIT) | STEP_SET(STEP_HYP_OTHER) |                     \
	 STEP_SET(STEP_KVM_ENTRY) | STEP_SET(STEP_KVM_EXIT))

struct handle_spans {
	const struct inputs *in;
	struct timeline *t;
	struct steps *steps;
	struct merge_run run;
	struct step_batch batch;
	size_t next;	      /* step of the batch */
	struct visit *visits; /* by stream */
	struct exit_threads threads;
	bool ended;
	size_t last; /* then: of the visits, and after them of the threads */
};

void handle_spans_close(struct handle_spans *s)
{
	if (!s)
		return;
	free(s->visits);
	step_batch_release(&s->batch);
	merge_run_release(&s->run);
	exit_threads_release(&s->threads);
	steps_close(s->steps);
	timeline_close(s->t);
	free(s);
}

int handle_spans_open(struct handle_spans **out, const struct inputs *in, const struct log *log)
{
	struct handle_spans *s = calloc(1, sizeof(*s));
	int ret;

	if (!s)
		return -ENOMEM;
	s->in = in;
	ret = timeline_open(&s->t, in, NULL, NULL, log) ?: steps_open(&s->steps, in) ?: gaps_open(&s->threads.gaps, s->t);
	if (!ret) {
		s->visits = calloc(merge_streams(s->t->merge) + 1, sizeof(*s->visits));
		ret = s->visits ? 0 : -ENOMEM;
	}
	if (ret)
		handle_spans_close(s);
	else
		*out = s;
	return ret;
}

/* 1: *done, of *kind; 0: the step ends no span; -ENOMEM. */
static int take_step(struct handle_spans *s, const struct step *step, enum hyptrace_span_kind *kind,
		     struct span *done)
{
	*kind = HYPTRACE_VISIT;
	switch (step->kind) {
	case STEP_GAP:
		return exit_threads_step(&s->threads, step, 0, done);
	case STEP_LOST:
		exit_threads_step(&s->threads, step, 0, done);
		return step_visit(&s->visits[step->stream], step, 0, done);
	case STEP_HYP_ENTER:
	case STEP_HYP_EXIT:
	case STEP_HYP_OTHER:
		return step_visit(&s->visits[step->stream], step, 0, done);
	case STEP_KVM_ENTRY:
	case STEP_KVM_EXIT:
		*kind = HYPTRACE_EXIT;
		return exit_threads_step(&s->threads, step, 0, done);
	default:
		return 0;
	}
}

/* 1: *done, of *kind, in the order of their ends; then those without one. */
static int spans_next(struct handle_spans *s, enum hyptrace_span_kind *kind, struct span *done)
{
	const size_t n = merge_streams(s->t->merge);

	while (!s->ended) {
		int ret;

		while (s->next < s->batch.n) {
			ret = take_step(s, &s->batch.v[s->next++], kind, done);
			if (ret)
				return ret;
		}
		ret = merge_take(s->t->merge, &s->run);
		if (ret == 1) {
			s->next = 0;
			ret = steps_fill(s->steps, s->t, &s->run, SPAN_STEPS, &s->batch);
		} else {
			s->ended = !ret;
		}
		if (ret < 0)
			return ret;
	}
	while (s->last < n + s->threads.n) {
		size_t i = s->last++;

		*kind = i < n ? HYPTRACE_VISIT : HYPTRACE_EXIT;
		if (i < n ? visit_finish(&s->visits[i], done) : exit_finish(&s->threads.v[i - n].side, done))
			return 1;
	}
	return 0;
}

static void fill_span(const struct handle_spans *s, enum hyptrace_span_kind kind, const struct span *v,
		      struct hyptrace_span *out)
{
	static const enum hyptrace_span_end ends[] = { [SPAN_PAIRED] = HYPTRACE_PAIRED,
						       [SPAN_LOST] = HYPTRACE_LOST,
						       [SPAN_UNENDED] = HYPTRACE_UNFINISHED,
						       [SPAN_BEGUN] = HYPTRACE_NO_BEGIN };
	const struct input *in = &s->in->v[v->machine];
	const struct offset_guest *guest = NULL;
	const struct offset_vcpu *vcpu = v->vcpu ? input_vcpu(in, v->vcpu, &guest) : NULL;

	*out = (struct hyptrace_span){ .kind = kind,
				       .how = ends[v->end],
				       .begin = v->from,
				       .end = v->to,
				       .number = v->why,
				       .machine = in->machine,
				       .guest = vcpu ? guest->name : NULL,
				       .vcpu = vcpu ? vcpu->cpu : 0,
				       .vcpu_thread = v->vcpu,
				       .file = v->machine,
				       .cpu = v->cpu,
				       .pid = v->pid };
	if (kind == HYPTRACE_VISIT) {
		out->reason = steps_why(s->steps, in, v->machine, v->why);
		if (v->why >= SPAN_REASONS) /* Android's: an event instead of a number */
			out->number = HYPTRACE_UNKNOWN;
	} else {
		if (v->why != SPAN_UNKNOWN)
			out->reason = steps_reason(s->steps, v->machine, STEP_KVM_EXIT, v->why)
					      ?: kvm_exit_arm_name((uint32_t)v->why);
		if (v->why == KVM_EXIT_ARM_TRAP && v->ec < 64)
			out->esr_class = esr_ec_name((unsigned int)v->ec);
	}
}

int handle_spans_next(struct handle_spans *s, uint64_t from, struct hyptrace_span *out)
{
	enum hyptrace_span_kind kind = HYPTRACE_VISIT;
	struct span v;
	int ret;

	do
		ret = spans_next(s, &kind, &v);
	while (ret == 1 && v.to < from);
	if (ret == 1)
		fill_span(s, kind, &v, out);
	return ret;
}
