/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SESSION_CLOCKS_H
#define HYPTRACE_SESSION_CLOCKS_H

#include "clock/cntvoff-log.h"
#include "clock/counter-log.h"
#include "tracefs/undo.h"

/*
 * The host's side of the exact method while a recording runs: snapshots of its
 * counter and trace clock, and what CNTVOFF its VMs have (voff.h), by a thread.
 */
struct clock_sampler;

/*
 * interval_ms: between snapshots; 0: at the start and at the end only. probe:
 * CNTVOFF too. -ENOTSUP: no counter.
 */
int clock_sampler_start(struct clock_sampler **out, struct undo *u, const char *clock, int64_t interval_ms,
			bool probe, const struct log *log);
/* The last snapshot; reads nothing of tracefs any more. To be called before the undo. */
void clock_sampler_stop(struct clock_sampler *c);
void clock_sampler_free(struct clock_sampler *c);

/* After the stop. */
const struct counter_log *clock_sampler_host(const struct clock_sampler *c);
const struct cntvoff_log *clock_sampler_cntvoff(const struct clock_sampler *c);

#endif
