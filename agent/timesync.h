/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HYPTRACE_AGENT_SYNC_H
#define HYPTRACE_AGENT_SYNC_H

#include "serving-state.h"

/*
 * The guest's side of time synchronisation: answers the recorder's requests on
 * a connection and in a thread of its own, until it says STOP or goes away.
 *
 * hyptrace's recorder asks for the counter (msg.h). In stock's "ptp" it is the
 * guest that probes, chooses and tells the offset. Nothing better than its probes
 * can go in there: KVM's PTP call gives the guest the host's CLOCK_REALTIME, and
 * of the host's trace clock a guest knows no more than when it saw each probe.
 */
struct sync;

/* The protocol to be used with a recorder that offers these; "": none. */
const char *sync_protocol(const struct strlist *offered);
/*
 * On the port behind those of the CPUs, by s, which outlives it. The clock is read
 * by trace_marker_raw, in an instance of its own, unless it is one of the system's.
 */
int sync_start(struct sync **out, const struct serving *s);
/* Waits for the recorder's last pass, at most the agent's timeout without a message. */
void sync_finish(struct sync *s);
void sync_free(struct sync *s);

#endif
