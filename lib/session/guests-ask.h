/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_GUESTS_ASK_H
#define HYPTRACE_GUESTS_ASK_H

#include "session/guests-state.h"

/*
 * The guests from the first question to the start of their traces: the calls
 * follow in this order. Each guest has a thread of its own, and a slow one delays
 * only what needs all of them. Calls with best_effort go on without the guests
 * that fail; without it they return the first guest's error.
 */

/* Opens what the threads need. session_guests_prepare() calls it; release() closes. 0 or -errno. */
int guests_ask_open(struct session_guests *g);
/* Ends the threads. */
void guests_ask_close(struct session_guests *g);

/* Asks all of them and returns at once: their agents take long to set up, and so does the host. */
int guests_ask_begin(struct session_guests *g);
/* The host's clocks are sampled from now on, or cannot be: the guests' may be, too. */
void guests_ask_clocks(struct session_guests *g);
/* Waits until their CPUs are known, and adds a source for each to the recorder. */
int guests_ask_add(struct session_guests *g, bool best_effort, struct recorder *rec);
/*
 * Waits until each guest is ready, or is one whose agent traces as soon as it is
 * ready (peer_begins_itself()) and is about to be. The hypervisor, which takes
 * long to start, is to be started now.
 */
void guests_ask_await(struct session_guests *g);
/* Waits until all of them are ready: only the start is missing. */
int guests_ask_ready(struct session_guests *g, bool best_effort);
/* Whether some of those that are ready trace already (peer_begins_itself()). */
bool guests_ask_tracing(const struct session_guests *g);
/* Starts them and returns at once. */
void guests_ask_start(struct session_guests *g);
/* Waits until all are started, and their metadata is in their spools. */
int guests_ask_started(struct session_guests *g, bool best_effort);
/* Ends all asking and waiting, and logs no more of it. */
void guests_ask_give_up(struct session_guests *g);

#endif
