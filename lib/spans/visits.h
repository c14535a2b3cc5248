/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_VISITS_H
#define HYPTRACE_VISITS_H

#include "spans/spans.h"

/*
 * A visit to the hypervisor lasts from hyp_enter to the next hyp_exit of the same CPU. Its reason is
 * hyp_enter's own field. Where that has none (Android), it is the last event in between: nVHE's handlers of
 * hypercalls, SMCs and aborts emit host_hcall, host_smc and host_mem_abort when all is done, just before
 * hyp_exit, and what happened meanwhile (host_ffa_call, iommu_idmap, ...) comes before. Inline: there are
 * millions.
 *
 * Of one CPU of a buffer. Zero-initialised = before its first trace point.
 */
struct visit {
	bool open;
	struct span span;
};

static inline bool visit_give(struct visit *v, enum span_end end, struct span *done)
{
	if (!v->open)
		return false;
	v->open = false;
	*done = v->span; /* and then what is new in it: a copy waits for stores that it overlaps */
	done->end = end;
	return true;
}

static inline void visit_begin(struct visit *v, const struct span_point *p)
{
	v->open = true;
	v->span = (struct span){
		.from = p->ts,
		.to = p->ts,
		.why = span_why(p->reason),
		.ec = SPAN_UNKNOWN,
		.before = SPAN_UNKNOWN,
		.left = SPAN_UNKNOWN,
		.first = p->row,
		.last = p->row,
		.detail = p->row,
		.machine = p->machine,
		.cpu = p->cpu,
		.event = SPAN_NO_EVENT,
		.pid = p->pid,
		.vcpu = p->vcpu,
		.kind = SPAN_VISIT,
		.end = SPAN_PAIRED,
	};
}

/* True: *done is over by that trace point. */
static inline bool visit_take(struct visit *v, const struct span_point *p, struct span *done)
{
	bool made;

	switch (p->kind) {
	case POINT_LOST:
		return visit_give(v, SPAN_LOST, done);
	case POINT_HYP_ENTER:
		made = visit_give(v, SPAN_LOST, done);
		visit_begin(v, p);
		return made;
	case POINT_HYP_EVENT:
		if (v->open && (v->span.why == SPAN_UNKNOWN || v->span.why >= SPAN_REASONS))
			v->span.why = SPAN_REASONS + (uint64_t)p->event;
		v->span.event = p->event;
		v->span.detail = p->row;
		return false;
	case POINT_HYP_EXIT:
		if (v->open && p->ts < v->span.from)
			return visit_give(v, SPAN_LOST, done);
		made = v->open;
		if (!made)
			visit_begin(v, p);
		visit_give(v, made ? SPAN_PAIRED : SPAN_BEGUN, done);
		done->to = p->ts;
		done->last = p->row;
		done->left = p->reason;
		if (!done->vcpu)
			done->vcpu = p->vcpu;
		return true;
	default:
		return false;
	}
}

/* No more trace points. True: *done has no end. */
static inline bool visit_finish(struct visit *v, struct span *done)
{
	return visit_give(v, SPAN_UNENDED, done);
}

/* False of functions, of what is printed and of hyptrace's own: they happen in any visit. */
bool visit_event_tells(const char *event);
/* The reason, in mainline's words, of a visit that ends with such an event (Android's); NULL: none. */
const char *visit_event_reason(const char *event);
/* The event by which Perfetto and Android call visits of that reason; NULL: there is none. */
const char *visit_reason_event(const char *reason);

#endif
