/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_HYPTIME_H
#define HYPTRACE_HYPTIME_H

#include "ask/states/pass.h"
#include "ask/states/tally.h"

/*
 * The time that CPUs spend in the hypervisor: visits (spans/spans.h), by their reasons.
 *
 * And in the firmware, EL3: the hypervisor emits hyp_exit with the reason smc before it calls, and
 * hyp_enter when that returns: with smc after the call, with psci when the CPU had been off or
 * suspended meanwhile. Android's have no reasons.
 */
struct hyptime; /* opaque */

struct hyptime_row {
	size_t input;
	uint64_t kind;	       /* for hyptime_name; a visit's `why` */
	struct histogram time; /* ns */
};

/* Unfinished visits: without a hyp_exit, without a hyp_enter. */
struct hyptime_unpaired {
	uint64_t enters, exits;
};

/* All outlive it; to: NULL, or gets each visit. -ENOMEM. */
int hyptime_open(struct hyptime **out, const struct inputs *in, const struct timeline *t,
		 const struct steps *steps, struct tally *to);
void hyptime_close(struct hyptime *h);
/* In order. */
struct pass_part hyptime_part(struct hyptime *h);

/* After the last record: visits that are still open are unfinished. */
void hyptime_finish(struct hyptime *h);
/* By reason; the firmware's by the reason of coming back. */
const struct hyptime_row *hyptime_rows(const struct hyptime *h, size_t *n);
const struct hyptime_row *hyptime_firmware(const struct hyptime *h, size_t *n);
/* True: the stream, a CPU of a buffer, has the hypervisor's events. */
bool hyptime_seen(const struct hyptime *h, size_t stream);
struct hyptime_unpaired hyptime_unpaired(const struct hyptime *h);
/* The word of a kind; NULL: the events have none. Valid until the next call. */
const char *hyptime_name(struct hyptime *h, size_t input, uint64_t kind);

#endif
