/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_PEER_PRIV_H
#define HYPTRACE_PEER_PRIV_H

#include <stdatomic.h>

#include "record/drain/peer.h"
#include "sync/counter-method.h"

/* Shared by peer.c (the source) and peer-ask.c (the conversation before). */

struct peer {
	struct source source;
	struct peer_profile {
		struct source source;
		struct peer *peer;
	} profile; /* n_cpus is 0 without samples */
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
	uint64_t rest_max;	       /* bytes that may come after CLOSE, set before closing is */
	_Atomic uint64_t rest;	       /* that came after it */
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
/* The reason in words for which a peer failed; some are put into text. */
const char *peer_reason(const struct peer *p, int error, char text[160]);
/* Logs which guest, which step and why; returns the error. */
int peer_failed(const struct peer *p, const char *step, int error);
/* Argument of that option (-C) in args, the last one counting; NULL: none. */
const char *peer_option(const struct strlist *args, const char *option);
/* Connects, sends the request and takes the answer: CPUs, ports, trace id. Errors are logged. */
int peer_converse(struct peer *p);

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
/* Sends the last questions; does not wait for their answers. */
void peer_clock_end(struct peer_clock *c);
/* Ends it and waits for the last answers, at most 2 s. The samples, the peer_clock's. */
const struct counter_log *peer_clock_log(struct peer_clock *c);
/* The same while it is asked, to be copied. */
struct counter_log *peer_clock_growing(struct peer_clock *c);
/* Ends it. Takes NULL. */
void peer_clock_free(struct peer_clock *c);

#endif
