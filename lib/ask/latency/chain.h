/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_LATENCY_CHAIN_H
#define HYPTRACE_LATENCY_CHAIN_H

#include "base/map.h"

/* Key that events must have in common: a value, and its scope. */
struct latency_key {
	uint64_t scope, value;
};

/* Keys with numbers from 0 on, in the order in which they came. Zero-initialised = empty. */
struct latency_keys {
	struct latency_key *v;
	size_t n;
	struct map map;
};

/* MAP_NONE: it is not there. */
size_t latency_keys_find(const struct latency_keys *k, const struct latency_key *key);
/* *i: its number, of a new one if it is not there. -ENOMEM. */
int latency_keys_reach(struct latency_keys *k, const struct latency_key *key, size_t *i);
/* One that is not there yet; its number is n - 1 then. -ENOMEM. */
int latency_keys_add(struct latency_keys *k, const struct latency_key *key);
void latency_keys_release(struct latency_keys *k);

/*
 * From one event to the next: a chain of points, of which each event that comes is one. A chain begins with
 * point 0 and waits below a key for the event of the next point with that key; of two that wait for the same
 * event the later one continues, so that with two points a pair is the last begin before an end.
 *
 * Clocks: the order of two events of different machines is certain when they lie further apart than both
 * bounds together. A chain counts when its order is certain and no other event of the same key may have come
 * between two of its points.
 */
#define CHAIN_POINTS_MAX 8

struct chain_event {
	uint64_t ts;	/* ns of the host's clock */
	uint64_t bound; /* of the machine's clock at that time, ns; 0: the host's; UINT64_MAX: unknown */
	uint32_t input; /* a machine: events of the same one are in order as they come */
	uint32_t cpu;
	int32_t pid; /* the task that the event is about: common_pid, or next_pid where that is the key */
};

/* As scopes of `next`: the chain's `carry` instead of the key; its scope with the key's value. */
#define CHAIN_CARRIED	    UINT64_MAX
#define CHAIN_CARRIED_SCOPE (UINT64_MAX - 1)

/* An event as one of the points. Scopes of keys are below 2^56. */
struct chain_step {
	size_t point;
	struct chain_event event;
	struct latency_key look;  /* not at point 0: below this the chain waits */
	struct latency_key next;  /* not at the last: below this it waits from now on */
	struct latency_key carry; /* point 0: a key for later points */
	/*
	 * Not at point 0, where its scope is not 0: the event is the chain's only if this was `look` of the
	 * chain's event before, and if no event of this point came since the chain began; else the chain
	 * stops.
	 */
	struct latency_key at;
	const struct chain_event
		*before; /* at the last: an event that comes first in the chain; NULL: none */
	uint32_t row;	 /* the caller's: point 0's goes with the chain */
	bool moves;	 /* from this point on the chain counts in `row` */
	bool shares;	 /* of chains of several rows that wait for the same event, all are undecided */
};

enum chain_fate {
	CHAIN_DONE,
	CHAIN_UNDECIDED, /* complete, but not in an order that is certain */
	CHAIN_LOST,	 /* complete, but events were lost in between */
	CHAIN_STOPPED,	 /* n points came, and then none: not complete */
	CHAIN_STRAY,	 /* the last point came without the ones before: n is 1, it is v[0] */
	CHAIN_REFUSED	 /* CHAIN_KEYS_MAX keys are known: v[n - 1] was not taken further */
};

#define CHAIN_KEYS_MAX (1u << 18)

struct chain_results {
	/* In no order. A result other than 0 ends chain_take. */
	int (*add)(void *ctx, enum chain_fate fate, uint32_t row, const struct chain_event *v, size_t n);
	/* True if events between v[0] and v[n - 1] that could have been points were lost. NULL: no. */
	bool (*lost)(void *ctx, const struct chain_event *v, size_t n);
	void *ctx;
};

struct chain; /* opaque */

/*
 * reach: the greatest bound that is known, ns; 0 where all events of a key are of one machine. *out is to be
 * closed in any case. -ENOMEM.
 */
int chain_open(struct chain **out, size_t n_points, uint64_t reach, const struct chain_results *to);
void chain_close(struct chain *c);
/* In the order of ts. -ENOMEM, or the result of add. */
int chain_take(struct chain *c, const struct chain_step *step);
/* The chain that waits for the step's point below its `look` stops. */
int chain_cancel(struct chain *c, const struct chain_step *step);
/* There are no more events. */
int chain_end(struct chain *c);

#endif
