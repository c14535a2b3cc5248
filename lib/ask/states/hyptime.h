/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_HYPTIME_H
#define HYPTRACE_HYPTIME_H

#include "ask/states/pass.h"
#include "ask/states/tally.h"
#include "base/arena.h"

/*
 * The time that CPUs spend in the hypervisor: visits (spans/spans.h), by their reasons.
 *
 * And in the firmware, EL3: the hypervisor emits hyp_exit with the reason smc before it calls, and
 * hyp_enter when that returns: with smc after the call, with psci when the CPU had been off or
 * suspended meanwhile. Android's have no reasons.
 */
struct hyptime {
	/* For others to read, after the last record. */
	struct hyptime_rows {
		struct hyptime_row {
			size_t input;
			uint64_t kind;	       /* for hyptime_name; a visit's `why` */
			struct histogram time; /* ns */
		} * v;
		size_t n;
		uint32_t **slots; /* by input and kind: 0: none yet, else 1 + its index */
	} visits, firmware;	  /* by reason; the firmware's by the reason of coming back */
	uint64_t enters, exits;	  /* unfinished visits: without a hyp_exit, without a hyp_enter */
	struct hyptime_cpu {
		struct visit visit;
		uint64_t since; /* the firmware's call */
		bool calls;	/* from a hyp_exit for smc to the next hyp_enter */
		bool seen;	/* it has the hypervisor's events */
	} * cpus;		/* by stream */
	/* Private. */
	size_t n_cpus;
	const struct inputs *in;
	const struct steps *steps;
	struct tally *to;
	bool (*is_smc)[SPAN_REASONS]; /* by input: of hyp_exit's reasons */
	struct arena names;
};

/* All outlive it; to: NULL, or gets each visit. -ENOMEM. */
int hyptime_open(struct hyptime **out, const struct inputs *in, const struct timeline *t,
		 const struct steps *steps, struct tally *to);
void hyptime_close(struct hyptime *h);
/* In order. */
struct pass_part hyptime_part(struct hyptime *h);

/* After the last record: visits that are still open are unfinished. */
void hyptime_finish(struct hyptime *h);
/* The word of a kind; NULL: the events have none. Valid until hyptime_close. */
const char *hyptime_name(struct hyptime *h, size_t input, uint64_t kind);

#endif
