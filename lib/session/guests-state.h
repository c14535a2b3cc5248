/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_GUESTS_STATE_H
#define HYPTRACE_GUESTS_STATE_H

#include <stdatomic.h>

#include "util/workers.h"
#include "guest/guest.h"
#include "record/peer.h"
#include "record/recorder.h"
#include "clock/sampler.h"
#include "session/session.h"
#include "sync/result.h"

/* The guests of a recording: what guests.c, guests-ask.c and guests-sync.c share. */

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
	struct counter_log so_far;   /* of a part of the recording (session/rotate.h): its counter */
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
	bool counter;			/* ask them for their counters */
	struct clock_sampler *clocks;	/* the host's counter and clock; NULL: not sampled */
	bool part;			/* these are copies, of a part of the recording ... */
	struct counter_log host_so_far; /* ... with what the host's clocks showed until now */
	struct cntvoff_log cntvoff_so_far;
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

#endif
