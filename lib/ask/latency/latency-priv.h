/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_LATENCY_PRIV_H
#define HYPTRACE_LATENCY_PRIV_H

#include "ask/latency/latency.h"

/* A term in an input. */
struct latency_source {
	unsigned int id; /* of the event */
	size_t term;
	const struct filter *filter; /* NULL: none */
	struct latency_taker look, next, carry, at, row;
};

struct latency_input {
	struct event_match *matches; /* by term; they own the filters */
	struct latency_source *v;    /* by event; later points first */
	size_t n;
	uint32_t *first; /* by the event's id: 1 + index of its first; 0: none */
	uint32_t *wants; /* by the event's id: a bit for each of the group that has it as a point */
	size_t n_ids;
	bool wanted[2];	 /* events of the kernel, of the hypervisor: which losses matter */
	uint32_t points; /* a bit for each that it has events of */
	uint64_t begun;	 /* the first record's time */
	size_t live;	 /* CPUs that have begun, and not ended */
};

/*
 * Interrupts of a guest by KVM's numbers (an SPI, a vector) and by its own: one belongs to the other that
 * alone was handled, on any CPU, after nine of ten injections and before the next, and hardly ever else.
 * Three injections at least show it. scope: of the guest; value: a vCPU, and above its 32 bits the number.
 * Zero-initialised = empty.
 */
struct lines {
	struct line *v;
	size_t n;
};

/* Stretches of time in which events were lost, by place: a number. Zero-initialised = empty. */
struct losses {
	struct latency_keys places;
	struct losses_place *v;
	size_t n; /* there is room for */
};

/* Chains by their results. */
struct latency_rows {
	struct latency_keys keys; /* of v, but for the one of others */
	struct latency_row *v;
	size_t n;
	struct latency_worst *worst; /* the longest first */
	size_t n_worst;
};

struct latency {
	const struct inputs *in;
	const struct latency_plan *plan;
	struct vcpu_map *vcpus;
	struct event_words words[LATENCY_TERMS_MAX];
	struct latency_input *v;
	struct latency_count counts[LATENCY_TERMS_MAX];
	uint64_t reach;	       /* see chain_open; 0: bounds do not matter */
	const char *unbounded; /* see latency_unbounded */
	struct timeline *t;
	struct latency *group[LATENCY_GROUP_MAX]; /* itself, and those that joined it: see latency_join */
	size_t n_group;
	size_t points; /* of those behind it no event can be in a chain yet; SIZE_MAX: all are looked at */
	struct chain *chain;
	struct latency_rows rows;
	struct losses losses;
	bool paused, lost; /* see latency_why_lost */
	bool *losing;	   /* by stream: events are lost there, in l->losses */
	uint8_t *started;  /* by stream: it has begun */
	/* of plan->recalls: the last event of point 0 by key; input UINT32_MAX: none */
	struct latency_keys recalled;
	struct chain_event *recall;
	size_t n_recall;
	struct lines lines;
	struct queues {
		struct queue *v;
		size_t n;
	} queues;     /* of plan->queues */
	bool surveys; /* this reading is for them */
};

/* ---- follow.c: parts of a pass, in each of its two readings -------------------------------------- */

int latency_work(void *ctx, struct pass_run *run);
int latency_after(void *ctx, struct pass_run *run);
void latency_runs_free(void *own);
/* After a reading that surveyed them. */
void lines_settle(struct lines *l);
/* The losses before the first records. -ENOMEM. */
int latency_losses_begin(struct latency *l);
/* As chain_results.lost; ctx is the struct latency. */
bool latency_lost(void *ctx, const struct chain_event *v, size_t n);

#endif
