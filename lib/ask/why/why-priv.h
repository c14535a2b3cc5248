/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_WHY_PRIV_H
#define HYPTRACE_WHY_PRIV_H

#include "ask/why/why.h"
#include "base/map.h"

/* Meaning of a subject's states for who waits. */
enum why_role {
	WHY_PLAIN,
	WHY_PENDING, /* an interrupt for the vCPU is pending: its guest does not know of it */
	WHY_WAITS,   /* a worker could run: what else has the CPU */
	WHY_WORKS    /* a worker */
};

/* The part of an instance from one of its points to the next. */
struct why_stage {
	uint64_t from, to, from_bound, to_bound;
	uint32_t instance;
	uint16_t point; /* the chain's, by which it begins */
	uint16_t role;	/* enum why_role */
};

/*
 * Stages that wait for spans of one subject. Spans come in order; those of its stages that a span may touch
 * are active.
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
	struct why_instance *v;
	size_t n;
	size_t tail; /* the first instance of the tail */
	uint64_t seen, stride;
	size_t n_stretches, left_out;
	struct why_cause *causes;
	size_t n_causes;
	struct map by_cause;
	struct latency_keys keys; /* of lanes */
	struct why_lane *lanes;
	size_t n_lanes;
	uint32_t kinds; /* of lanes that there are, a bit each */
};

/* ---- stages: lib/ask/why/stages.c ---- */

/* The point at which the preset's instances begin. */
size_t why_first_point(const struct why *w);
/* Stages of the instance: they join without a gap. */
size_t why_stages(const struct why *w, uint32_t instance, struct why_stage out[CHAIN_POINTS_MAX]);
/* Puts each of them into the lane of its subject. -ENOMEM. */
int why_stages_place(struct why *w, uint32_t instance);
/* A state_listener; ctx: struct why. */
int why_stages_span(void *ctx, const struct state_span *s);
/* All are placed: before the first span. */
void why_lanes_sort(struct why *w);
void why_lanes_release(struct why *w);

/* ---- causes: lib/ask/why/causes.c ---- */

/* Its number; UINT32_MAX: no memory. */
uint32_t why_cause_of(struct why *w, const struct why_cause *c);
/* The cause of a span for that role. */
struct why_cause why_cause_span(const struct state_span *s, enum why_role role);

#endif
