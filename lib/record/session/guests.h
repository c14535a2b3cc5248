/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SESSION_GUESTS_H
#define HYPTRACE_SESSION_GUESTS_H

#include "record/guest/guest.h"
#include "record/drain/peer.h"
#include "record/drain/spool-to-dat.h"
#include "record/session/session.h"
#include "base/workers.h"

/*
 * The guests of a recording: found here, asked and started all at once (guests-ask.c), drained here, and each
 * written to its own file next to the host's. Calls return 0 or -errno, and log what a user has to know.
 */

struct session_guest {
	struct guest_spec spec;
	struct guest *vm; /* in `found`, or NULL */
	char *output;	  /* trace-NAME.dat */
	struct strlist args;
	struct spool *spool;
	struct peer *peer; /* NULL until it has answered */
	bool recovered;	   /* there is no peer: its spool is a killed recorder's */
	int error;	   /* asking or starting it failed: it takes no part */
	int not_added;	   /* the recorder could not take it: it takes no part */
	bool dropped;	   /* it takes no part, and that was logged */
	bool kept;	   /* its metadata is in the spool */
	struct counter_log
		so_far; /* of a part of the recording (record/session/session-priv.h): its counter */
	struct sync_result clock;    /* its clock against the host's */
	int clock_error;	     /* the reason for no offset */
	const char *clock_why;	     /* -ENODATA: the same in words */
	int write_error;	     /* of its file */
	uint64_t started;	     /* start of its trace, ns of the host's clock; 0: unknown */
	const struct msg_sent *sent; /* by its agent's account in the end, or NULL */
};

/* It was asked and has answered (or its spool is there to be recovered), and nothing has failed since. */
static inline bool session_guest_takes_part(const struct session_guest *g)
{
	return (g->peer || g->recovered) && !g->error;
}

struct session_guests {
	struct session_guest *v;
	size_t n;
	struct guests found;
	const struct record_plan *plan;
	const struct session_opts *o;
	uint64_t host_trace_id;
	const char *clock;
	uint64_t host_started; /* CLOCK_BOOTTIME, ns; 0: unknown */
	enum tsync_method tsync;
	bool counter;		      /* ask them for their counters */
	struct clock_sampler *clocks; /* the host's counter and clock; NULL: not sampled */
	bool part;		      /* these are copies, of a part of the recording ... */
	uint64_t cut_at;	      /* ... which has all events of the host up to this time (boot ns) ... */
	struct counter_log host_so_far; /* ... with what the host's clocks showed until now */
	struct cntvoff_log cntvoff_so_far;
	const struct log *log;

	/* for guests-ask.c, opened by session_guests_prepare() */
	struct workers *workers; /* one thread for each guest; NULL: none was asked */
	struct log peer_log;	 /* silent once they are cancelled */
	atomic_bool given_up;
	int cancel_fd, clocks_fd;    /* eventfds: cancelled; the host's clocks run */
	int give_up_fd;		     /* readable: cancel_fd or o->stop_fd is */
	struct session_summary *sum; /* of session_guests_write() */
};

/*
 * Makes the spool OUTPUT.spool for one file of a recording and sets the keys that
 * a host's and a guest's have in common: boot_id, version, compression. *out is
 * set even when only a key could not be: the caller removes it.
 */
int session_new_spool(struct spool **out, const char *output, const struct record_plan *plan,
		      const struct log *log);

/*
 * Finds the plan's guests and makes their spools. output: of the host's file. The
 * fields from `plan` up to `log`, but for clocks, are the caller's to fill in before.
 */
int session_guests_prepare(struct session_guests *g, const char *output);
/*
 * Sends CLOSE to all, then takes the rest of their pages; of a guest whose time is over
 * (peer.h) those that are here, within timeout_ms. The first error.
 */
int session_guests_drain(struct session_guests *g, struct recorder *rec, unsigned int timeout_ms);
/*
 * vCPUs may be plugged in while it runs. Looks for their threads in VMs with more or fewer threads
 * than before; at the end in all VMs.
 */
void session_guests_refresh_vcpus(struct session_guests *g, bool end);
/*
 * While recording: the guest's clock, ns, by the counter method as far as the samples reach, or by its
 * answers (guests-sync.c). False: not known yet.
 */
bool session_guest_clock_now(const struct session_guests *all, const struct session_guest *g, int64_t *offset,
			     uint64_t *bound);
/* ... and all guests' for readers of the spool (live.h). */
void session_guests_note_clocks(const struct session_guests *g, struct spool *host);
/* Adds a row for each guest to the summary, as long as it has room. */
void session_guests_sum(const struct session_guests *g, const struct recorder *rec,
			struct session_summary *sum);
/*
 * guests-sync.c. Once all is drained and the host's clocks are stopped: computes
 * the guests' clock offsets (TIME_SHIFT, for the guests' files) and writes down
 * who runs whose vCPUs (GUEST, for the host's). A clock without an offset is a warning.
 */
int session_guests_align_clocks(struct session_guests *g, struct spool *host);
/*
 * After that: compares the bytes that came with those that the agents sent (fewer
 * are a loss, in the summary), and logs how far apart the host and the guests began.
 */
void session_guests_verify_totals(struct session_guests *g, const struct recorder *rec,
				  struct session_summary *sum);
/*
 * Begins to write their files and to remove their spools, and returns at once:
 * their rows of the summary are filled in until session_guests_written() is through.
 */
void session_guests_write(struct session_guests *g, struct session_summary *sum);
/* Waits for that. The first error. */
int session_guests_written(struct session_guests *g, struct session_summary *sum);
/* Nothing was recorded: removes their spools. */
void session_guests_abandon(struct session_guests *g);
/* Ends their threads and frees all. The spools' directories stay. */
void session_guests_release(struct session_guests *g);

/*
 * The guests from the first question to the start of their traces: the calls follow in this order. Each guest
 * has a thread of its own, and a slow one delays only what needs all of them. Calls with best_effort go on
 * without the guests that fail; without it they return the first guest's error.
 */

/* Asks all of them and returns at once: their agents take long to set up, and so does the host. */
int guests_ask_begin(struct session_guests *g);
/* The host's clocks are sampled from now on, or cannot be: the guests' may be, too. */
void guests_ask_clocks(struct session_guests *g);
/* Waits until their CPUs are known, and adds a source for each to the recorder. */
int guests_ask_add(struct session_guests *g, bool best_effort, struct recorder *rec);
/*
 * Waits until each guest is ready, or is one whose agent traces as soon as it is ready (peer_begins_itself())
 * and is about to be. The hypervisor, which takes long to start, is to be started now.
 */
void guests_ask_await(struct session_guests *g);
/* Waits until all of them are ready: only the start is missing; and after that until all are started. */
int guests_ask_finish(struct session_guests *g, bool best_effort);
/* True if some of those that are ready trace already (peer_begins_itself()). */
bool guests_ask_tracing(const struct session_guests *g);
/* Starts them, and keeps their metadata in their spools where that is not done; returns at once. */
void guests_ask_start(struct session_guests *g);
/* Ends all asking and waiting, and logs no more of it. */
void guests_ask_give_up(struct session_guests *g);

#endif
