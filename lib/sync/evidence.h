/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SYNC_MARKS_H
#define HYPTRACE_SYNC_MARKS_H

#include "dat/format.h"
#include "sync/sync.h"

/* The events that anchors are made of, out of pages: shared by sync-{read,source,marks}.c. */

#define MARKS_MAX   16
#define MARK_FIELDS 4

/* What a guest's CPU or task, or a host's thread, began or ended. */
struct mark {
	uint64_t time, key;
	int32_t who;
	uint8_t call; /* two of different calls do not end each other */
	uint8_t kind;
	bool enter;
	bool other; /* of the same call, but no deed */
};

struct mark_event {
	unsigned int id;
	uint8_t what;
	struct event_place {
		unsigned int offset, size; /* size 0: no such field */
	} field[MARK_FIELDS], pid;
};

struct marks {
	struct mark_event known[MARKS_MAX];
	size_t n_known; /* 0: there is nothing to be taken */
	struct mark *v;
	size_t n;
	struct sync_raise *raises;
	size_t n_raises;
	struct sync_tick *ticks;
	size_t n_ticks;
	struct sync_gap *gaps;
	size_t n_gaps;
	uint64_t clear; /* of the CPU at hand: last event with interrupts on */
	uint64_t taken; /* ... last handler of a vector */
};

/* Where a field is; size 0 when there is none, or it does not fit 8 bytes. */
struct event_place event_place_of(const struct event_format *f, const char *name);
/* A field of an event, as the place says; 0 beyond the event's end. */
uint64_t event_get(const struct page_event *ev, struct event_place p);

/* Which events are there. -ENOMEM. */
int marks_learn_host(struct marks *m, const struct dat_text *formats, size_t n);
int marks_learn_guest(struct marks *m, const struct dat_text *formats, size_t n);
/* Each event of a page; those of a guest CPU's in order, and one CPU after the other. */
int marks_take_host(struct marks *m, const struct page_event *ev);
int marks_take_guest(struct marks *m, const struct page_event *ev, unsigned int cpu);
void marks_next_cpu(struct marks *m);
/* Events were lost between a and b. */
int marks_gap(struct marks *m, uint64_t a, uint64_t b);
/* What is left of it goes to the host, or the guest. */
int marks_finish_host(struct marks *m, struct sync_host *h);
int marks_finish_guest(struct marks *m, struct sync_guest *g);
void marks_release(struct marks *m);

#endif
