/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_PATH_H
#define HYPTRACE_PATH_H

#include "path/window.h"

/*
 * Why then: the chain of causes from a moment back to where nothing waited, across guest, host and
 * hypervisor.
 *
 *  - A task that acts has been running since it came to its CPU. Before that it could run while others
 *    had the CPU, since it was preempted, where the chain ends, or since it was woken: then whoever
 *    woke it acts.
 *  - What a guest's task does takes its vCPU's thread on the host. Where that one was not running, the
 *    time is the thread's: runnable, or asleep; if it fell asleep on the way, whoever woke it acts.
 *  - A host's interrupt waits for nothing: the end. A guest's interrupt was raised on the host: whoever
 *    raised it acts, or woke the halted vCPU. A softirq was raised: whoever raised it acts.
 *  - A vCPU's thread that acts while it handles a trap of its guest acts for the task of the guest.
 *  - The first sleep that the chain meets bounds it: what was under way as that began is not
 *    followed further.
 *
 * Nothing is guessed: events that were lost, or not recorded, end it, and so does an order of two clocks
 * nearer than the bound.
 */
enum path_state {
	PATH_RUNS,
	PATH_RUNNABLE, /* by: who had the CPU that it then got; 0: it was idle */
	PATH_ASLEEP,   /* a vCPU's thread, whose guest had work; by: who woke it */
	PATH_PENDING,  /* number: of the interrupt, raised but not yet handled */
	PATH_SOFTIRQ_PENDING,
	PATH_HANDLES, /* a vCPU's thread, a trap; number: the reason, as of STEP_KVM_EXIT */
	PATH_STATES
};

#define PATH_NOBODY (-1)

struct path_hop {
	enum path_state state;
	uint16_t input; /* the machine */
	uint32_t cpu;
	int32_t pid;
	uint64_t from, to; /* ns of the host's clock; from < to; from of one is to of the next */
	/* How far wrong from - to can be, where they are of two clocks; UINT64_MAX: unknown; 0: one clock. */
	uint64_t bound;
	int32_t by; /* on the same machine; PATH_NOBODY */
	uint64_t number;
	struct path_row event; /* by which it began; kind STEP_NONE: before the window */
	/* Of a guest's: how often it was left, and for how many ns it did not run; exits STEP_UNKNOWN: not
	 * told. */
	uint64_t exits, outside;
};

enum path_end {
	PATH_OPEN,
	PATH_INTERRUPT, /* an interrupt of a host */
	PATH_OWN,	/* it had been running since before the first sleep: it acted on its own */
	PATH_UNDER_WAY, /* ... it was to run, or handled, then already */
	PATH_PREEMPTED, /* it was running until another took its CPU */
	PATH_BEGAN,	/* the task began */
	PATH_IDLE,	/* nothing ran */
	PATH_UNKNOWN,
	PATH_UNDECIDED,
	PATH_LONG, /* there are as many hops as are wanted */
	PATH_ENDS
};

/* The moment that is asked for. */
struct path_moment {
	uint64_t ts, nr; /* nr: rows up to this record are before it */
	uint32_t bound;	 /* as a row's */
	uint16_t input;
	uint32_t cpu;
	int32_t pid;
	uint8_t flags;
	bool runs; /* why the task runs is asked for, not why it did something */
};

struct path {
	struct path_hop *v;
	size_t n;
	size_t max; /* hops; 0: 50 */
	enum path_end end;
	char why[200];	       /* what the end is */
	struct path_row event; /* that shows it; kind STEP_NONE: none */
	bool blind;	       /* whether a vCPU ran could not be told */
};

/*
 * w: with what came some time after the moment, at least its bound; in: its guests say which thread runs
 * which vCPU. *p zero-initialised but for max; path_release in any case. -ENOMEM.
 */
int path_find(struct path *p, const struct path_window *w, const struct inputs *in,
	      const struct path_moment *m);
void path_release(struct path *p);
/* "runs", ...; "interrupt", ... */
const char *path_state_name(enum path_state state);
const char *path_end_name(enum path_end end);

#endif
