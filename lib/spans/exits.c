// SPDX-License-Identifier: LGPL-2.1-or-later
/* Pairs each kvm_exit of a vCPU's thread with its next kvm_entry. */
#include "spans/spans.h"

static bool exit_give(struct exit_side *e, enum span_end end, uint64_t to, struct span *done)
{
	if (!e->open)
		return false;
	e->open = false;
	*done = e->span;
	done->end = e->lost || to < done->from ? SPAN_LOST : end;
	if (done->end == SPAN_PAIRED)
		done->to = to;
	return true;
}

bool exit_take(struct exit_side *e, const struct span_point *p, struct span *done)
{
	bool over;

	switch (p->kind) {
	case POINT_LOST:
		e->in = false;
		e->lost = true;
		return false;
	case POINT_KVM_ENTRY:
		over = exit_give(e, SPAN_PAIRED, p->ts, done);
		e->in = true;
		e->since = p->ts;
		return over;
	case POINT_KVM_EXIT:
		over = exit_give(e, SPAN_LOST, p->ts, done);
		e->open = true;
		e->lost = false;
		e->span = (struct span){
			.from = p->ts,
			.to = p->ts,
			.why = p->reason,
			.ec = p->ec,
			.before = e->in && p->ts >= e->since ? p->ts - e->since : SPAN_UNKNOWN,
			.first = p->row,
			.machine = p->machine,
			.cpu = p->cpu,
			.event = SPAN_NO_EVENT,
			.pid = p->pid,
			.vcpu = p->pid,
			.kind = SPAN_EXIT,
		};
		e->in = false;
		return over;
	default:
		return false;
	}
}

bool exit_finish(struct exit_side *e, struct span *done)
{
	return exit_give(e, SPAN_UNENDED, UINT64_MAX, done);
}
