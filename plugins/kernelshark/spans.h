/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SPANS_H
#define HYPTRACE_SPANS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Pairs events into spans of time: the hypervisor's entries and exits, crosvm's
 * Enter and Exit, one hypertrace event and the next. Pure: events are given one
 * after the other, in order of time, and only by where and when they were.
 *
 * A machine is any number that the caller gives to a host or guest. Rows are the
 * caller's numbers of events, kept in the spans.
 */

struct spot {
	size_t row;
	int64_t ts; /* ns */
	int machine, cpu, pid;
};

enum span_kind { SPAN_HYP, SPAN_CROSVM, SPAN_HYPERTRACE };

struct span {
	enum span_kind kind;
	int machine, cpu;   /* of its begin */
	int pid;	    /* SPAN_HYP: the vCPU's thread when one of its ends names it */
	int reason, left;   /* SPAN_HYP: of entry and exit, enum hyp_reason; -1: not given */
	unsigned int depth; /* of those of its kind and thread, how many it lies in */
	int64_t start, end;
	size_t first, last; /* rows */
	size_t detail;	    /* the row that says most about it; may be first */
};

struct spans; /* opaque */

struct spans *spans_new(void); /* NULL: no memory */
void spans_free(struct spans *s);

/* ---- events; 0 or -ENOMEM ------------------------------------------------------ */

/* vcpu: the pid of its thread, 0: not given. An entry twice forgets the first one. */
int spans_hyp_enter(struct spans *s, const struct spot *at, int reason, int vcpu);
int spans_hyp_exit(struct spans *s, const struct spot *at, int left, int vcpu);
/*
 * Another event of the hypervisor, which happens between the two: the detail, and
 * the reason where the entry has none.
 */
int spans_hyp_event(struct spans *s, const struct spot *at, int reason);
/*
 * What the host's KVM says of the exit that the hypervisor just came back with,
 * until it enters the guest again: the detail of that span.
 */
int spans_kvm_says(struct spans *s, const struct spot *at);
int spans_kvm_entry(struct spans *s, const struct spot *at);
/* Events were lost on that CPU: what is open there has no end. */
int spans_lost(struct spans *s, const struct spot *at);

/*
 * crosvm's ids are unique in a process, which the events do not name: an end goes with
 * the begin of the same id and name, of the same thread if there is one.
 */
int spans_begin(struct spans *s, const struct spot *at, uint64_t id, const char *name, size_t len);
int spans_end(struct spans *s, const struct spot *at, uint64_t id, const char *name, size_t len);
/* An event lasts until the next one of its source; number 0 only ends one. */
int spans_hypertrace(struct spans *s, const struct spot *at, uint64_t source, uint64_t number);

/* ---- spans, after the last event ------------------------------------------------- */

/* Sorts them: nothing is added afterwards. 0 or -ENOMEM. */
int spans_finish(struct spans *s);
size_t spans_count(const struct spans *s, enum span_kind kind);
/* A bit for each reason (enum hyp_reason) that one of the hypervisor's has; HYP_UNKNOWN: not given. */
unsigned int spans_reasons(const struct spans *s);
/* The hypervisor's, sorted by start, which do not overlap. *v is owned by s. */
size_t spans_of_cpu(const struct spans *s, int machine, int cpu, const struct span *const **v);
/* All kinds, sorted by start. */
size_t spans_of_task(const struct spans *s, int machine, int pid, const struct span *const **v);

#ifdef __cplusplus
}
#endif

#endif
