/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_PEER_H
#define HYPTRACE_PEER_H

#include "sync/evidence.h"
#include "record/drain/source.h"
#include "file/wire/transport.h"

/*
 * A guest's buffer through its agent (trace-cmd's or ours), as a source. The conversation:
 * TRACE_REQ, TRACE_RESP, metadata, one connection per vCPU with raw pages, CLOSE, the rest of the
 * pages, CLOSE_RESP (msg.h). Every wait ends: a message names the guest and the step that it was
 * waiting for. Calls that fail give -ETIMEDOUT, -ECONNREFUSED ..., -ENOTSUP: the agent refuses.
 *
 * start() connects to the data of the vCPUs. Our agent begins to trace then, so that all guests
 * begin together; trace-cmd's begins on its own once it has sent the metadata (its start_threads(), *
 * tracecmd_enable_tracing()).
 */

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

struct peer {
	/* for others to read */
	struct source source; /* the guest's buffer, for the recorder */
	/* Its samples, as a second source, which starts and stops with the first. n_cpus 0: it has none */
	struct source profile;
	uint64_t trace_id; /* of the guest's file */
	uint64_t ready;	  /* CLOCK_BOOTTIME when all of its metadata was there, ns: it did not trace before */
	_Atomic int lost; /* -errno: it was lost before it was to stop */
	struct buf pauses; /* after peer_finish(): the body of its file's option DAT_PAUSES; empty: none */

	/* private */
	struct peer_opts o;
	int control;
	int *data; /* one per vCPU, then one per vCPU for its samples; -1 until start() */
	unsigned int n_data;
	uint32_t *ports;     /* theirs */
	uint32_t clock_port; /* of its counter; 0: the agent has none for us */
	int start_fd;	     /* readable once start() is through */
	bool started;
	_Atomic int64_t heard;	       /* msg_now() at which some of its pages came, from CLOSE on */
	atomic_bool closing;	       /* CLOSE was sent: an end of the stream is no loss */
	uint64_t rest_max;	       /* bytes that may come after CLOSE, set before closing is */
	_Atomic uint64_t rest;	       /* that came after it */
	_Atomic unsigned int n_unused; /* CPUs whose data ended before it began */
	struct peer_clock *clock_link; /* NULL: it is not asked for its counter */
	struct msg_reader reader;
	struct buf metadata;
	bool metadata_whole;
	_Atomic int64_t step_end; /* msg_now() by which the step must be done, set before closing is */
	struct msg_sent sent;	  /* by the agent's account, at its end */
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
/* True if it traces once all of its metadata is sent, as trace-cmd's does, and not from start() on. */
bool peer_begins_itself(const struct peer *p);

/* Its samples as a source; NULL: none were asked for, or its agent has none. */
static inline struct source *peer_profile(struct peer *p)
{
	return p->profile.n_cpus ? &p->profile : NULL;
}

/* The samples of its counter while it is asked, to be copied (counter_log_copy); NULL: it is not. */
struct counter_log *peer_counter_growing(const struct peer *p);
/*
 * Once all its pages are there: waits until the agent is done. What it sent by its
 * own account, the peer's; NULL: it does not report it (trace-cmd's), or is lost.
 */
const struct msg_sent *peer_finish(struct peer *p);

/* ---- peer-clock.c ------------------------------------------------------------------------------ */

/*
 * Asks a guest's agent for its counter and clock (MSG_SYNC_COUNTER) while it is
 * being recorded, in a thread: some questions at the start, one now and then,
 * some at the end. A guest that is stopped answers late: that is no error.
 */
struct peer_clock {
	struct counter_log log; /* to be copied (counter_log_copy) while it is asked */
	/* private */
	int fd;
	int end_fd; /* readable: the recording is over */
	int64_t interval_ms;
	int64_t last_end; /* msg_now() by which the last answers must be here; 0: it is not */
	uint32_t number;
	pthread_t thread;
	bool running;
	struct msg_reader reader;
};

/*
 * Begins to ask. fd: connected to the agent's port, the peer_clock's from now on, closed by it also when this
 * fails. interval_ms: between questions; 0: start and end only. 0 or -errno.
 */
int peer_clock_start(struct peer_clock **out, int fd, int64_t interval_ms);
/* Sends the last questions, after stop(); does not wait for their answers. Takes NULL. */
void peer_clock_end(struct peer_clock *c);
/* Ends it and waits for the last answers, at most 2 s. The samples, the peer_clock's; NULL for NULL. */
const struct counter_log *peer_clock_log(struct peer_clock *c);
/* Ends it. Takes NULL. */
void peer_clock_free(struct peer_clock *c);

#endif
