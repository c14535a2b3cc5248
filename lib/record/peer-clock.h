/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_PEER_CLOCK_H
#define HYPTRACE_PEER_CLOCK_H

#include "sync/counter-method.h"

/*
 * Asks a guest's agent for its counter and clock (MSG_SYNC_COUNTER) while it is
 * being recorded, in a thread: some questions at the start, one now and then,
 * some at the end. A guest that is stopped answers late: that is no error.
 */
struct peer_clock;

/*
 * Begins to ask. fd: connected to the agent's port, the peer_clock's from now on,
 * closed by it also when this fails. interval_ms: between questions; 0: start and
 * end only. 0 or -errno.
 */
int peer_clock_start(struct peer_clock **out, int fd, int64_t interval_ms);
/*
 * What the last questions say, while it goes on: the guest's clock plus offset is CLOCK_BOOTTIME here,
 * +- bound, where its trace clock is boot; ns. False: nothing yet.
 */
bool peer_clock_look(struct peer_clock *c, int64_t *offset, uint64_t *bound);
/* Sends the last questions; does not wait for their answers. */
void peer_clock_end(struct peer_clock *c);
/* Ends it and waits for the last answers, at most 2 s. The samples, the peer_clock's. */
const struct counter_log *peer_clock_log(struct peer_clock *c);
/* The same while it is asked, to be copied. */
struct counter_log *peer_clock_growing(struct peer_clock *c);
/* Ends it. Takes NULL. */
void peer_clock_free(struct peer_clock *c);

#endif
