/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_PEER_H
#define HYPTRACE_PEER_H

#include "sync/counter-method.h"
#include "file/wire/msg.h"
#include "record/drain/source.h"
#include "record/spool/spool.h"
#include "file/wire/transport.h"

/*
 * A guest's buffer through its agent (trace-cmd's or ours), as a source. The conversation:
 * TRACE_REQ, TRACE_RESP, metadata, one connection per vCPU with raw pages, CLOSE, the rest of the
 * pages, CLOSE_RESP (msg.h). Every wait ends: a message names the guest and the step that it was
 * waiting for. Calls that fail give -ETIMEDOUT, -ECONNREFUSED ..., -ENOTSUP: the agent refuses.
 *
 * start() connects to the data of the vCPUs. Our agent begins to trace then, so that all guests
 * begin together; trace-cmd's begins on its own once it has sent the metadata (its start_threads(),
 * tracecmd_enable_tracing()).
 */
struct peer;

/* The strings and args must live as long as the peer. */
struct peer_opts {
	const char *name;	    /* of the guest, for messages */
	struct transport_addr addr; /* of the agent's control port */
	const struct strlist *args; /* trace-cmd record's options for the guest: "-e", "sched" ... */
	const char *clock;	    /* asked for with -C unless args name one */
	uint64_t trace_id;	    /* of the host's file */
	bool counter;		    /* ask for its counter all the while (peer-clock.c) */
	int64_t counter_interval_ms;
	uint64_t profile_hz; /* ask for samples; 0: do not */
	int64_t timeout_ms;  /* it may be silent for so long */
	int stop_fd;	     /* readable: opening is cancelled; -1: none */
	const struct log *log;
};

/*
 * A peer that sends anything is alive. But a step (connecting, an answer, all of the metadata, all
 * data connections together, all that comes after CLOSE) takes at most so many timeouts: a peer that
 * sends a little for ever is dropped, too.
 */
#define PEER_PATIENCE 5

/*
 * Connects, asks, and takes the answer: its CPUs are known. The source may be
 * added to a recorder then: its threads wait for start().
 */
int peer_open(struct peer **out, const struct peer_opts *o);
/* Asks for its counter from now on, if its agent has that protocol; a failure is a warning. */
void peer_counter_begin(struct peer *p);
/* Waits for the beginning of its metadata: by then its agent has set up all that takes long. */
int peer_await(struct peer *p);
/* Waits for the rest of the metadata: only start() is missing then. */
int peer_receive(struct peer *p);
/* Checks what was received and keeps it in the spool: header_page, formats, names, options. */
int peer_keep(struct peer *p, struct spool *spool);
/* Closes its connections. The recorder must have finished with its source. Takes NULL. */
void peer_free(struct peer *p);

/* Longest duration of one step, ms: after stop() its pages come to an end within that time. */
int64_t peer_patience_ms(const struct peer *p);
/* Whether it traces once all of its metadata is sent, as trace-cmd's does, and not from start() on. */
bool peer_begins_itself(const struct peer *p);

/* The peer's; lives as long. */
struct source *peer_source(struct peer *p);
/*
 * Its samples, recorded as a second source; NULL: none were asked for, or its agent has none. Start
 * and stop are the peer's own.
 */
struct source *peer_profile(struct peer *p);
/* Of the guest's file. */
uint64_t peer_trace_id(const struct peer *p);
/* CLOCK_BOOTTIME when all of its metadata was there, ns; 0: not yet. Its agent was not tracing before. */
uint64_t peer_ready(const struct peer *p);
/* After stop(): the last questions about its counter go out. */
void peer_counter_end(struct peer *p);
/* The samples of its counter, the peer's, once the last answers are there; NULL: it was not asked. */
const struct counter_log *peer_counter(const struct peer *p);
/* The same while it is asked, to be copied (counter_log_copy). */
struct counter_log *peer_counter_growing(const struct peer *p);
/* 0 while it lives; else the -errno for which it was lost before it was to stop. */
int peer_lost(const struct peer *p);
/*
 * Once all its pages are there: waits until the agent is done. What it sent by its
 * own account, the peer's; NULL: it does not report it (trace-cmd's), or is lost.
 */
const struct msg_sent *peer_finish(struct peer *p);
/* Then: the body of its file's option DAT_PAUSES, the peer's; empty: none. */
const struct buf *peer_pauses(const struct peer *p);

#endif
