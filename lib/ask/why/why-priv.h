/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_WHY_PRIV_H
#define HYPTRACE_WHY_PRIV_H

#include "ask/why/why.h"
#include "base/map.h"

/* The part of an instance from one of its points to the next. */
struct why_stage {
	uint64_t from, to, from_bound, to_bound;
	uint32_t instance;
	bool pending; /* an interrupt is: the vCPU's guest does not know of it */
};

/*
 * Stages that wait for spans of one vCPU, task, or CPU of a guest. Spans come in order; stages that begin
 * before the last one's end are active.
 */
struct why_lane {
	struct why_stage *v; /* by begin */
	size_t n, next;
	struct why_stage *active;
	size_t n_active;
};

struct why {
	const struct inputs *in;
	const struct latency_preset *preset;
	const struct vcpu_map *vcpus;
	struct steps *steps;
	uint64_t *widest; /* bound of each input; UINT64_MAX: it has none */
	struct why_instance *v;
	size_t n;
	uint64_t seen, stride; /* every stride-th was kept */
	size_t n_stretches;
	struct why_cause *causes;
	size_t n_causes;
	struct map by_cause;
	struct latency_keys keys; /* of lanes */
	struct why_lane *lanes;
	size_t n_lanes;
	uint32_t scopes; /* of their keys, a bit each */
};

/* Puts the instance's stages into the lanes of their subjects; all are placed before why_lanes_sort. -ENOMEM.
 */
int why_stages_place(struct why *w, uint32_t instance);
void why_lanes_sort(struct why *w);
void why_lanes_release(struct why *w);
/* A state_listener; ctx: struct why. -E2BIG, -ENOMEM. */
int why_stages_span(void *ctx, const struct state_span *s);

/* Reads the files for the spans of owners (STATES_VCPUS ...); damaged: NULL, or places in them. */
int why_states(struct why *w, unsigned int owners, state_listener *span, void *ctx, const struct log *log,
	       uint64_t *damaged);

/* Numbers of causes that are always there. */
enum { CAUSE_OTHERS, CAUSE_UNKNOWN, CAUSE_UNDECIDED };
/* Its number; beyond WHY_CAUSES_MAX that of others; UINT32_MAX: no memory. */
uint32_t why_cause_of(struct why *w, const struct why_cause *c);
/* A cause without further members. */
struct why_cause why_cause_plain(unsigned int kind);
/* Of its pid: "hog-620"; a vCPU's thread by its guest: "Guest:0". */
void why_task_text(const struct why *w, const struct why_cause *c, struct buf *out);
struct why_cause why_cause_span(const struct why *w, const struct state_span *s, bool pending);

#endif
