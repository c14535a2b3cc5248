/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SESSION_GUESTS_H
#define HYPTRACE_SESSION_GUESTS_H

#include <stdatomic.h>

#include "util/workers.h"
#include "guest/guest.h"
#include "record/peer.h"
#include "record/recorder.h"
#include "clock/sampler.h"
#include "session/session.h"
#include "sync/sync.h"

/*
 * The guests of a recording: found, asked and started all at once, drained, and
 * written each to a file of its own beside the host's.
 */
struct session_guest {
	struct guest_spec spec;
	struct guest *vm; /* in `found`, or NULL */
	char *output;	  /* trace-NAME.dat */
	struct strlist args;
	struct spool *spool;
	struct peer *peer;	     /* NULL until it has answered */
	int error;		     /* of asking or starting it: it takes no part */
	int not_added;		     /* the same, of the recorder */
	bool dropped;		     /* and that was said */
	bool kept;		     /* its metadata is in the spool */
	struct sync_result clock;    /* its clock against the host's */
	int clock_error;	     /* why there is none */
	const char *clock_why;	     /* -ENODATA: the same in words */
	int write_error;	     /* of its file */
	uint64_t started;	     /* by the host's clock, ns; 0: not known */
	const struct msg_sent *told; /* by its agent in the end, or NULL */
};

/* It was asked and has answered, and nothing has failed since. */
static inline bool session_guest_takes_part(const struct session_guest *g)
{
	return g->peer && !g->error;
}

struct session_guests {
	struct session_guest *v;
	size_t n;
	struct guests found;
	uint64_t host_trace_id;
	const char *clock;
	const char *root;      /* session_opts.root */
	uint64_t host_started; /* CLOCK_BOOTTIME, ns; 0: not known */
	int stop_fd;
	int timeout_ms; /* session_opts.guest_timeout_ms */
	enum tsync_method tsync;
	int64_t tsync_interval_ms;
	bool counter;		      /* ask them for their counters */
	struct clock_sampler *clocks; /* the host's, beside those; NULL: it has none */
	const struct log *log;

	/* session-guests-ask.c */
	struct workers *workers; /* one thread for each guest; NULL: none was asked */
	struct log peer_log;	 /* silent once they are given up */
	atomic_bool given_up;
	int cancel_fd, clocks_fd;    /* eventfds: give up; the host's clocks run */
	int give_up_fd;		     /* readable: cancel_fd or stop_fd is */
	struct session_summary *sum; /* of session_guests_write() */
};

/* Who they are and where; makes their spools. output: of the host's file. */
int session_guests_prepare(struct session_guests *g, const struct record_plan *plan, const char *output);

/*
 * session-guests-ask.c. In this order; each with a thread per guest, and nothing
 * waits for one guest that could wait for all. What is said to return errors
 * gives the first guest's, or 0 with best_effort, when the others go on.
 */
/* Asks all of them and returns: their agents take long to set up, and so does the host. */
int session_guests_ask(struct session_guests *g);
/* The host's clocks are read from now on (or cannot be): so may theirs. */
void session_guests_clocks_run(struct session_guests *g);
/* Waits until their CPUs are known. The recorder gets a source for each. Errors are the recorder's. */
int session_guests_add(struct session_guests *g, bool best_effort, struct recorder *rec);
/* Waits until only those are not ready that begin to trace once they are: what takes long is to be begun now.
 */
void session_guests_await(struct session_guests *g);
/* Waits until all of them are as far as they go before the start. Errors. */
int session_guests_ready(struct session_guests *g, bool best_effort);
/* Some of those that are ready trace already (peer_begins_itself()). */
bool session_guests_trace(const struct session_guests *g);
/* Starts them and returns. */
void session_guests_start(struct session_guests *g);
/* Waits until all are started, and what they told is in their spools. Errors. */
int session_guests_started(struct session_guests *g, bool best_effort);
/* Whatever they are being asked or waited for ends, without a word. */
void session_guests_give_up(struct session_guests *g);

/* What session_guests_prepare() and _release() have of it. */
int session_guests_open(struct session_guests *g);
void session_guests_close(struct session_guests *g);

/* CLOSE to all, then the rest of their pages. The first error of the disk. */
int session_guests_drain(struct session_guests *g, struct recorder *rec, unsigned int timeout_ms);
/*
 * While it runs: vCPUs may be plugged in. Looks for their threads in those VMs that
 * have more or fewer threads than before; at the end in all of them.
 */
void session_guests_refresh_vcpus(struct session_guests *g, bool end);
/* Rows of the summary, from *n on. */
void session_guests_sum(const struct session_guests *g, const struct recorder *rec,
			struct session_summary *sum);
/*
 * session-guests-sync.c. Once all is drained and the host's clocks are stopped:
 * ties the guests' clocks to the host's (TIME_SHIFT, for the guests' files) and
 * says who runs whose vCPUs (GUEST, for the host's). What cannot be told is a
 * warning.
 */
int session_guests_align_clocks(struct session_guests *g, struct spool *host);
/*
 * After that: compares what has come with what the agents say that they sent,
 * which may tell of a loss, and says how far apart all began.
 */
void session_guests_verify_totals(struct session_guests *g, const struct recorder *rec,
				  struct session_summary *sum);
/* Writes their files and removes their spools, and returns at once: fills in their rows of the summary. */
void session_guests_write(struct session_guests *g, struct session_summary *sum);
/* Waits for that. The first error. */
int session_guests_written(struct session_guests *g, struct session_summary *sum);
/* Nothing was recorded: their spools go. */
void session_guests_abandon(struct session_guests *g);
void session_guests_release(struct session_guests *g);

#endif
