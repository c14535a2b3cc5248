/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_HYPTIME_H
#define HYPTRACE_HYPTIME_H

#include "analysis/histogram.h"
#include "analysis/pass.h"
#include "analysis/stays.h"

/*
 * The time that CPUs spend in the hypervisor: from a hyp_enter to the next hyp_exit of the same CPU,
 * by the reason of the hyp_enter. Android's say none: there it is the last event between the two,
 * as in Perfetto's pkvm_hypervisor_events.
 *
 * And in the firmware, EL3: the hypervisor says hyp_exit with the reason smc before it calls, and
 * hyp_enter when that returns: with smc after the call, with psci when the CPU had been off or
 * suspended meanwhile. Android's do not say.
 */
struct hyptime; /* opaque */

struct hyptime_row {
	size_t input;
	uint64_t kind;	       /* for hyptime_name; as of the stays */
	struct histogram time; /* ns */
};

/* What began or ended without its counterpart: events were lost, or the recording began or ended there. */
struct hyptime_cut {
	uint64_t enters, exits;
};

/* All outlive it; stays: NULL, or who gets each stay. -ENOMEM. */
int hyptime_open(struct hyptime **out, const struct inputs *in, const struct timeline *t,
		 const struct steps *steps, struct stays *stays);
void hyptime_close(struct hyptime *h);
/* In order. */
struct pass_part hyptime_part(struct hyptime *h);

/* When all is read: windows that are still open are cut. */
void hyptime_finish(struct hyptime *h);
/* By reason; the firmware's by the reason of coming back. */
const struct hyptime_row *hyptime_rows(const struct hyptime *h, size_t *n);
const struct hyptime_row *hyptime_firmware(const struct hyptime *h, size_t *n);
/* Whether a stream, a CPU of a buffer, has the hypervisor's events. */
bool hyptime_seen(const struct hyptime *h, size_t stream);
struct hyptime_cut hyptime_cut(const struct hyptime *h);
/* The word of a kind; NULL: the events do not say. Good until the next call. */
const char *hyptime_name(struct hyptime *h, size_t input, uint64_t kind);

#endif
