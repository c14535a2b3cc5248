/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_PATH_PRIV_H
#define HYPTRACE_PATH_PRIV_H

#include "ask/path/path.h"

/* A search on its way back. */
struct path_search {
	const struct path_window *w;
	const struct inputs *in;
	struct path *path;
	bool bad; /* no memory */
	uint64_t now;
	struct path_row edge; /* the event at now */
	uint64_t wait;	      /* when the first sleep began; 0: none yet */
	struct path_row wait_row;
	/* the actor at now, on that machine: the rows before pos came before */
	uint16_t input;
	uint32_t cpu;
	int32_t pid;
	uint8_t flags;
	size_t pos;
	bool runs; /* it does nothing but run */
};

/* A stretch of the chain, back from now. */
struct path_span {
	enum path_state state;
	uint16_t input;
	uint32_t cpu;
	int32_t pid;
	uint64_t number;
	int32_t by; /* PATH_RUNNABLE: who has the CPU at now */
	size_t pos; /* ... by the rows before */
};

/* ---- path-chain.c ---- */

/* From the event, or from now where that is later, to now; bound: at least. */
void path_cause_add(struct path_search *s, const struct path_span *sp, const struct path_row *from,
		    uint64_t bound);
/* The span from there to now, in as many causes as others had the CPU. */
void path_span_add(struct path_search *s, struct path_span *sp, const struct path_row *from, uint64_t bound);
/* The chain ends; event: NULL, or what shows it. */
void path_stop(struct path_search *s, enum path_end end, const struct path_row *event, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
void path_stop_lost(struct path_search *s, const struct path_row *lost);
/* Rows do not reach back to what is wanted. */
void path_stop_begin(struct path_search *s, const char *wanted);
/* A row that stands for no event. */
struct path_row path_no_row(uint16_t input, uint64_t ts);
/* The actor is the task of that row from now on. */
void path_follow(struct path_search *s, const struct path_row *row);
/* The first sleep of the chain began there; row NULL: before the window. */
void path_sleeps(struct path_search *s, const struct path_row *row);
/* True if that certainly came before it. */
bool path_before_wait(const struct path_search *s, const struct path_row *row);

/* ---- vcpu.c ---- */

/* The host's file and the thread of a guest's CPU. */
struct path_thread {
	uint16_t host;
	int32_t tid;
};
bool path_thread_of(const struct path_search *s, uint16_t guest, uint32_t cpu, struct path_thread *t);
/*
 * Adds the span from there to now; of a guest that of its vCPU's thread where this was not running. False:
 * the chain continues elsewhere, or ended.
 */
bool path_span_take(struct path_search *s, struct path_span *sp, const struct path_row *from);
/* A host's thread may act for its guest. True: it does, or the chain ended. */
bool path_vcpu_acts(struct path_search *s);

/* ---- irq.c ---- */

/* An interrupt, a softirq or an idle CPU acts. */
void path_interrupt(struct path_search *s);

#endif
