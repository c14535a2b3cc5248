/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SESSION_CLOCKS_H
#define HYPTRACE_SESSION_CLOCKS_H

#include "exact.h"
#include "undo.h"

/*
 * The host's side of the exact method while a recording runs: snapshots of its
 * counter and trace clock, and what CNTVOFF its VMs have (voff.h), by a thread.
 */
struct session_clocks;

/*
 * interval_ms: between snapshots; 0: at the start and at the end only. probe:
 * CNTVOFF too. -ENOTSUP: no counter.
 */
int session_clocks_start(struct session_clocks **out, struct undo *u, const char *clock,
			 int64_t interval_ms, bool probe, const struct log *log);
/* The last snapshot; reads nothing of tracefs any more. To be called before the undo. */
void session_clocks_stop(struct session_clocks *c);
void session_clocks_free(struct session_clocks *c);

/* After the stop. */
const struct counter_log *session_clocks_host(const struct session_clocks *c);
const struct voff_log *session_clocks_voff(const struct session_clocks *c);

#endif
