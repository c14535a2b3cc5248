/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SESSION_GUESTS_H
#define HYPTRACE_SESSION_GUESTS_H

#include "session/guests-state.h"

/*
 * The guests of a recording: found here, asked and started all at once
 * (guests-ask.h), drained here, and written each to a file of its own beside the
 * host's. Calls return 0 or -errno, and log what a user has to know.
 */

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
 * vCPUs may be plugged in while it runs. Looks for their threads in those VMs that
 * have more or fewer threads than before; at the end in all of them.
 */
void session_guests_refresh_vcpus(struct session_guests *g, bool end);
/* While it runs: the guests' clocks as far as their answers tell, for whoever looks at the spool (live.h). */
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

#endif
