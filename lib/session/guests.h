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
#include "sync/result.h"

/*
 * The guests of a recording: found here, asked and started all at once
 * (guests-ask.h), drained here, and written each to a file of its own beside the
 * host's. Calls return 0 or -errno, and log what a user has to know.
 */
struct session_guest {
	struct guest_spec spec;
	struct guest *vm; /* in `found`, or NULL */
	char *output;	  /* trace-NAME.dat */
	struct strlist args;
	struct spool *spool;
	struct peer *peer;	     /* NULL until it has answered */
	int error;		     /* asking or starting it failed: it takes no part */
	int not_added;		     /* the recorder could not take it: it takes no part */
	bool dropped;		     /* it takes no part, and that was logged */
	bool kept;		     /* its metadata is in the spool */
	struct sync_result clock;    /* its clock against the host's */
	int clock_error;	     /* why there is none */
	const char *clock_why;	     /* -ENODATA: the same in words */
	int write_error;	     /* of its file */
	uint64_t started;	     /* when its trace began, ns of the host's clock; 0: unknown */
	const struct msg_sent *sent; /* by its agent's account in the end, or NULL */
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
	const struct record_plan *plan;
	const struct session_opts *o;
	uint64_t host_trace_id;
	const char *clock;
	uint64_t host_started; /* CLOCK_BOOTTIME, ns; 0: unknown */
	enum tsync_method tsync;
	bool counter;		      /* ask them for their counters */
	struct clock_sampler *clocks; /* the host's counter and clock; NULL: not sampled */
	const struct log *log;

	/* of guests-ask.c */
	struct workers *workers; /* one thread for each guest; NULL: none was asked */
	struct log peer_log;	 /* silent once they are given up */
	atomic_bool given_up;
	int cancel_fd, clocks_fd;    /* eventfds: give up; the host's clocks run */
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
/* Sends CLOSE to all, then takes the rest of their pages, for each at most timeout_ms. The first error. */
int session_guests_drain(struct session_guests *g, struct recorder *rec, unsigned int timeout_ms);
/*
 * vCPUs may be plugged in while it runs. Looks for their threads in those VMs that
 * have more or fewer threads than before; at the end in all of them.
 */
void session_guests_refresh_vcpus(struct session_guests *g, bool end);
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

#endif
