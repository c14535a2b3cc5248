/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_LATENCY_LOSSES_H
#define HYPTRACE_LATENCY_LOSSES_H

#include "latency/keys.h"

/*
 * Stretches of time in which events were lost, by place: a number of the caller's. Where several CPUs
 * share a place, one stretch lasts until none of them has lost any more. Zero-initialised = empty.
 */
struct losses {
	struct latency_keys places;
	struct losses_place *v;
	size_t n;
};

/* From ts on, and until ts, in the order of time. -ENOMEM. */
int losses_open(struct losses *l, uint64_t place, uint64_t ts);
void losses_close(struct losses *l, uint64_t place, uint64_t ts);
/* Whether events were lost there between; of what is long ago perhaps too often. */
bool losses_between(const struct losses *l, uint64_t place, uint64_t from, uint64_t to);
void losses_release(struct losses *l);

#endif
