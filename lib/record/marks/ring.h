/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_RING_H
#define HYPTRACE_RING_H

#include "base/std.h"

/*
 * The events in a guest's shared memory (file/wire/hypertrace-ring.h), read from the host's file of it while
 * the guest writes. It is the guest's to write what it likes: each value is read once, by copying, and is
 * checked against the file's size; one look takes bounded time.
 */
struct ring;

#define RING_ARGS 4 /* of each event that are kept; the guest's library has so many */

/* Events of a client, one after the other. */
struct ring_block {
	uint64_t from;	   /* boot clock ns: none of them was there yet ... */
	uint64_t seen;	   /* ... and all of them were */
	uint64_t first;	   /* number of the first */
	uint64_t count;	   /* so many */
	uint64_t doorbell; /* guest-physical address, by the guest; 0: not given */
	uint32_t client;
	uint32_t guest;	 /* the taker's */
	uint32_t events; /* that follow: count; 0: they were overwritten unread, or never written */
	uint32_t unused;
};

struct ring_event {
	uint64_t time; /* CLOCK_BOOTTIME of the guest, ns */
	uint64_t arg[RING_ARGS];
};

/* v: b->events of them. 0, or -errno, which ends the look. */
typedef int ring_take(void *ctx, struct ring_block *b, const struct ring_event *v);

/* 0 or -errno; -EINVAL: it is no regular file. Free with ring_close(), which takes NULL. */
int ring_open(struct ring **out, const char *path);
void ring_close(struct ring *r);
/*
 * Takes what is new since the look before; what the first look finds was before the recording. now: boot
 * clock ns, just read. last: what is being written now will not be waited for. 0, -ENOMEM, -errno of the
 * file, or what take returned.
 */
int ring_look(struct ring *r, uint64_t now, bool last, ring_take *take, void *ctx);
/* In place of looks, of a guest that is done: number of the client's last event (0: none), and an event. */
uint64_t ring_newest(struct ring *r, uint32_t client);
bool ring_find(struct ring *r, uint32_t client, uint64_t number, struct ring_event *ev);
/* The first fault in its content, for messages; NULL: none. The ring may have been dropped by then. */
const char *ring_why(const struct ring *r);
/* By the guest at the last look; 0: not yet. */
uint64_t ring_doorbell(const struct ring *r);

#endif
