/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SPANS_H
#define HYPTRACE_SPANS_H

#include "base/std.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Trace points become spans of time, by one rule for all that show them. A maker takes one trace point at a
 * time, in order, and gives at most one span. It reads no records: the caller knows its events.
 */

#define SPAN_UNKNOWN UINT64_MAX

enum span_kind { SPAN_EXIT, SPAN_VISIT, SPAN_MARK };

/* End of a span. */
enum span_end {
	SPAN_PAIRED,  /* by its counterpart */
	SPAN_LOST,    /* its end is missing: events were lost, it begins again, or time goes back */
	SPAN_UNENDED, /* the recording ended first */
	SPAN_BEGUN,   /* its begin is missing: there is an end alone */
};

enum point_kind {
	POINT_NONE,
	POINT_LOST, /* events are missing before this one */
	POINT_HYP_ENTER,
	POINT_HYP_EXIT,
	POINT_HYP_EVENT, /* another event of the hypervisor for which visit_event_tells() */
	POINT_KVM_ENTRY,
	POINT_KVM_EXIT,
};

/* A trace point. Numbers of machines, CPUs, events and rows are the caller's. */
struct span_point {
	uint64_t ts;
	uint64_t row;	 /* the record */
	uint64_t reason; /* by its own field; SPAN_UNKNOWN: it has none */
	uint64_t ec;	 /* POINT_KVM_EXIT: arm64's ESR class; SPAN_UNKNOWN: it has none */
	uint32_t machine, cpu;
	uint32_t event; /* POINT_HYP_EVENT: its id */
	int32_t pid;
	int32_t vcpu; /* the thread of the loaded vCPU by its own field; 0: none */
	enum point_kind kind;
};

struct span {
	uint64_t from, to; /* of one without an end both are its begin, and the other way round */
	uint64_t why; /* of a visit span_why() of its begin, of an exit its reason; SPAN_UNKNOWN: not recorded
		       */
	uint64_t ec;  /* of an exit: as the trace point's */
	uint64_t before;	      /* of an exit: ns that the guest had run; SPAN_UNKNOWN: not recorded */
	uint64_t left;		      /* of a visit: the reason of its end; SPAN_UNKNOWN: not recorded */
	uint64_t first, last, detail; /* rows: its begin, its end, and the event that explains it best */
	uint32_t machine; /* not beside cpu: compilers copy the two as one, which waits for both stores */
	uint32_t event;	  /* of a visit: the last one within it; SPAN_NO_EVENT: none */
	uint32_t cpu;
	int32_t pid;   /* the task of its begin */
	int32_t vcpu;  /* the vCPU's thread; 0: not recorded */
	uint16_t kind; /* enum span_kind */
	uint16_t end;  /* enum span_end */
};

#define SPAN_NO_EVENT UINT32_MAX

/*
 * Reasons of visits: a number of hyp_enter's own field is itself, at most SPAN_REASONS - 1, and an event is
 * SPAN_REASONS + its id.
 */
#define SPAN_REASONS 256

static inline uint64_t span_why(uint64_t reason)
{
	return reason == SPAN_UNKNOWN || reason < SPAN_REASONS ? reason : SPAN_REASONS - 1;
}

/* ---- exits of guests: exits.c ----------------------------------------------------------------- */

/*
 * An exit lasts from kvm_exit to the next kvm_entry of the same thread, and the guest had run from the
 * kvm_entry before it. Threads change CPUs: a loss on any CPU of the buffer may have been theirs.
 *
 * Of one thread in a buffer. Zero-initialised = before its first trace point.
 */
struct exit_side {
	bool in;   /* the guest runs, since then */
	bool open; /* it has been left */
	bool lost; /* events since kvm_exit */
	uint64_t since;
	struct span span;
};

/*
 * True: *done is over by that trace point. POINT_LOST: events of the buffer are missing here; while they are,
 * after each trace point.
 */
bool exit_take(struct exit_side *e, const struct span_point *p, struct span *done);
/* No more trace points. True: *done has no end. */
bool exit_finish(struct exit_side *e, struct span *done);

#ifdef __cplusplus
}
#endif

#endif
