/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SYNC_MARKS_H
#define HYPTRACE_SYNC_MARKS_H

#include "format.h"
#include "sync.h"

/* The events that anchors are made of, out of pages: shared by sync-{read,source,marks}.c. */

#define MARKS_MAX 3

struct mark_event {
	unsigned int id; /* 0: there is none */
	struct event_place {
		unsigned int offset, size; /* size 0: no such field */
	} field, other, pid;
};

struct marks {
	struct mark_event known[MARKS_MAX];
	bool any;
	struct sync_point *points, *raises;
	size_t n_points, n_raises;
	struct sync_tick *ticks;
	size_t n_ticks;
	uint64_t clear; /* of the CPU at hand: last event with interrupts on */
};

/* Where a field is; size 0 when there is none, or it does not fit 8 bytes. */
struct event_place event_place_of(const struct event_format *f, const char *name);
/* A field of an event, as the place says; 0 beyond the event's end. */
uint64_t event_get(const struct page_event *ev, struct event_place p);

/* Which events are there. -ENOMEM. */
int marks_learn_host(struct marks *m, const struct dat_text *formats, size_t n);
int marks_learn_guest(struct marks *m, const struct dat_text *formats, size_t n);
/* Each event of a page; those of a guest CPU's in order. */
int marks_take_host(struct marks *m, const struct page_event *ev);
int marks_take_guest(struct marks *m, const struct page_event *ev, unsigned int cpu);
/* Events were lost between a and b: of a host's CPU, of a guest's. */
int marks_gap_host(struct marks *m, uint64_t a, uint64_t b);
int marks_gap_guest(struct marks *m, uint64_t a, uint64_t b, unsigned int cpu);
int marks_finish_host(struct marks *m, struct sync_host *h);
int marks_finish_guest(struct marks *m, struct sync_guest *g);
void marks_release(struct marks *m);

#endif
