/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SESSION_GUESTS_H
#define HYPTRACE_SESSION_GUESTS_H

#include "guest.h"
#include "peer.h"
#include "recorder.h"
#include "session-clocks.h"
#include "session.h"
#include "sync.h"

/*
 * The guests of a recording: found, asked and started all at once, drained, and
 * written each to a file of its own beside the host's.
 */
struct session_guest {
	struct guest_spec spec;
	struct guest *vm; /* in `found`, or NULL */
	char *output;		/* trace-NAME.dat */
	struct strlist args;
	struct spool *spool;
	struct peer *peer; /* NULL until it has answered */
	int error;	   /* of asking or starting it: it takes no part */
	bool dropped;	   /* and that was said */
	struct sync_result clock; /* its clock against the host's */
	uint64_t started;	  /* by the host's clock, ns; 0: not known */
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
	const char *root; /* session_opts.root */
	uint64_t host_started; /* CLOCK_BOOTTIME, ns; 0: not known */
	int stop_fd;
	int timeout_ms; /* session_opts.guest_timeout_ms */
	enum tsync_method tsync;
	int64_t tsync_interval_ms;
	struct session_clocks *clocks; /* the host's; NULL: guests are not asked for their counters */
	const struct log *log;
};

/* Who they are and where; makes their spools. output: of the host's file. */
int session_guests_prepare(struct session_guests *g, const struct record_plan *plan, const char *output);
/*
 * Asks all of them, in parallel, which takes as long as the slowest guest takes
 * to be set up. The first error, unless best_effort. The recorder gets one
 * source for each.
 */
int session_guests_ask(struct session_guests *g, bool best_effort, struct recorder *rec);
/* Starts those that have answered, in parallel. The first error, unless best_effort. */
int session_guests_start(struct session_guests *g, bool best_effort);
/* CLOSE to all, then the rest of their pages. The first error of the disk. */
int session_guests_drain(struct session_guests *g, struct recorder *rec, unsigned int timeout_ms);
/*
 * While it runs: vCPUs may be plugged in. Looks for their threads in those VMs that
 * have more or fewer threads than before; at the end in all of them.
 */
void session_guests_look(struct session_guests *g, bool end);
/* Rows of the summary, from *n on. */
void session_guests_sum(const struct session_guests *g, const struct recorder *rec,
			struct session_summary *sum);
/*
 * session-guests-sync.c. Once all is drained and the host's clocks are stopped:
 * ties the guests' clocks to the host's (TIME_SHIFT, for the guests' files) and
 * says who runs whose vCPUs (GUEST, for the host's). What cannot be told is a
 * warning.
 */
int session_guests_note(struct session_guests *g, struct spool *host);
/*
 * After that: compares what has come with what the agents say that they sent,
 * which may tell of a loss, and says how far apart all began.
 */
void session_guests_settle(struct session_guests *g, const struct recorder *rec,
			   struct session_summary *sum);
/* Writes their files and removes their spools. */
int session_guests_write(struct session_guests *g, struct session_summary *sum,
			 void (*writing)(void *ctx, uint64_t done, uint64_t total), void *ctx);
/* Nothing was recorded: their spools go. */
void session_guests_abandon(struct session_guests *g);
void session_guests_release(struct session_guests *g);

#endif
