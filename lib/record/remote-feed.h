/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_REMOTE_FEED_H
#define HYPTRACE_REMOTE_FEED_H

#include "record/remote.h"

/*
 * Writes what was read from a hypervisor's buffer before, text or raw pages,
 * into a spool's buffer, as a recording would have: rewritten, times as they were.
 */
struct remote_feed;

/* r: of remote_import; buffer: its number in the spool. */
int remote_feed_open(struct remote_feed **out, struct remote *r, struct spool *spool, size_t buffer);
/* Lines of trace_pipe or trace, of one CPU or of all, in pieces of any length. */
int remote_feed_text(struct remote_feed *f, const void *text, size_t len);
/* One page of trace_pipe_raw. */
int remote_feed_page(struct remote_feed *f, unsigned int cpu, const void *page, size_t len);

struct remote_fed {
	uint64_t events, lost, bad; /* bad: lines, pages or records that made no sense */
};
/* Ends it and frees f; ret: what failed before, and is returned then. */
int remote_feed_close(struct remote_feed *f, int ret, struct remote_fed *out);

#endif
