/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SHOWN_H
#define HYPTRACE_SHOWN_H

#include "spans/spans.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Spans of time to be drawn: visits to the hypervisor, exits of x86's guests, crosvm's Enter to Exit, one
 * hypertrace event to the next. Events are given one after the other, in order of time, and only by where and
 * when they were.
 *
 * A machine is any number that the caller gives to a host or guest. Rows are the
 * caller's numbers of events, kept in the spans.
 */

struct mark;

enum { X86_EXIT, X86_HALT };

enum shown_kind { SHOWN_HYP, SHOWN_CROSVM, SHOWN_HYPERTRACE, SHOWN_EXIT, SHOWN_HALT, SHOWN_KINDS };

struct shown {
	enum shown_kind kind;
	int machine, cpu;   /* of its begin */
	int pid;	    /* SHOWN_HYP: the vCPU's thread when one of its ends names it */
	int reason, left;   /* SHOWN_HYP: of entry and exit, enum hyp_reason; -1: not given */
	unsigned int depth; /* of those of its kind and thread, how many it lies in */
	int64_t start, end;
	size_t first, last; /* rows */
	size_t detail;	    /* the row that explains it best; may be first */
};

struct spans; /* opaque */

struct spans *spans_new(void); /* NULL: no memory */
void spans_free(struct spans *s);

/* ---- events; 0 or -ENOMEM ------------------------------------------------------ */

/*
 * An event of the hypervisor or of KVM. Reasons, and ids of events, are enum hyp_reason, HYP_REASONS for
 * none. KVM's event of an exit that the hypervisor returned to the host for is the detail of that visit. An
 * exit with a reason, x86's (row-spans.c), lasts until the entry: SHOWN_HALT where it is X86_HALT.
 */
int spans_point(struct spans *s, const struct span_point *p);

/* A begin or an end of a program's; tags are not the caller's here. */
int spans_mark(struct spans *s, const struct mark *p);
/* Without a description of its numbers, an event lasts until the next one of its source; 0 only ends one. */
int spans_numbered_mark(struct spans *s, const struct mark *p, uint64_t number);
/* Events of that mark's buffer are lost, on its CPU. */
int spans_lost(struct spans *s, const struct mark *at);

/* ---- spans, after the last event ------------------------------------------------- */

/* Sorts them: nothing is added afterwards. 0 or -ENOMEM. */
int spans_finish(struct spans *s);
size_t spans_count(const struct spans *s, enum shown_kind kind);
/* A bit for each reason (enum hyp_reason) that one of the hypervisor's has; HYP_UNKNOWN: not given. */
unsigned int spans_reasons(const struct spans *s);
/* The hypervisor's, sorted by start, which do not overlap. *v is owned by s. */
size_t spans_of_cpu(const struct spans *s, int machine, int cpu, const struct shown *const **v);
/* All kinds, sorted by start. */
size_t spans_of_task(const struct spans *s, int machine, int pid, const struct shown *const **v);

#ifdef __cplusplus
}
#endif

#endif
