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

/* fd: connected to the agent's port, the peer_clock's from now on. interval_ms 0: start and end only. */
int peer_clock_start(struct peer_clock **out, int fd, int64_t interval_ms);
/* The last questions; does not wait for their answers, peer_clock_log does (at most 2 s). */
void peer_clock_end(struct peer_clock *c);
const struct counter_log *peer_clock_log(struct peer_clock *c);
void peer_clock_free(struct peer_clock *c);

#endif
