/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_PEER_PRIV_H
#define HYPTRACE_PEER_PRIV_H

#include <stdatomic.h>

#include "record/peer-clock.h"
#include "record/peer.h"

/* Shared by peer.c (the source) and peer-ask.c (the conversation before). */

struct peer {
	struct source source;
	struct peer_profile {
		struct source source;
		struct peer *peer;
	} profile; /* its n_cpus is 0 when there is none */
	struct peer_opts o;
	int control;
	int *data; /* one per vCPU, then one per vCPU for its samples; -1 until start() */
	unsigned int n_data;
	uint32_t *ports;     /* theirs */
	uint32_t clock_port; /* of its counter; 0: the agent has none for us */
	int start_fd;	     /* readable once start() is through */
	bool started;
	uint64_t trace_id;
	uint64_t ready;		       /* CLOCK_BOOTTIME, ns */
	_Atomic int64_t heard;	       /* msg_now() at which some of its pages came, from CLOSE on */
	atomic_bool closing;	       /* CLOSE was sent: an end of the stream is no loss */
	_Atomic unsigned int n_unused; /* CPUs whose data ended before it began */
	_Atomic int lost;
	struct peer_clock *clock_link; /* NULL: it is not asked for its counter */
	struct msg_reader reader;
	struct buf metadata;
	bool metadata_whole;
	_Atomic int64_t step_end; /* msg_now() by which the step must be done, set before closing is */
	struct buf pauses;	  /* between regions, as the file has them */
	struct msg_sent sent;	  /* by the agent's account, at its end */
};

/* All of peer-ask.c from here on. How long to wait: in the step that has begun, and in a new one. */
struct msg_wait peer_wait(const struct peer *p);
struct msg_wait peer_step(struct peer *p);
/* Why a peer failed, in words; some are put into text. */
const char *peer_reason(const struct peer *p, int error, char text[96]);
/* Logs which guest, which step and why; returns the error. */
int peer_failed(const struct peer *p, const char *step, int error);
/* The clock that the args name with -C, the last one counting; NULL: none. */
const char *peer_named_clock(const struct strlist *args);
/* Connects, sends the request and takes the answer: CPUs, ports, trace id. Errors are logged. */
int peer_converse(struct peer *p);

#endif
