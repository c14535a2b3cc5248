/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_CLOCK_SAMPLER_H
#define HYPTRACE_CLOCK_SAMPLER_H

#include "record/clock/cntvoff.h"
#include "record/clock/counter.h"
#include "record/tracefs/undo.h"

/*
 * The host's side of the counter method while a recording runs: snapshots of its
 * counter and trace clock, and what CNTVOFF its VMs have (cntvoff.h), by a thread.
 */
struct clock_sampler;

/*
 * interval_ms: between snapshots; 0: at the start and at the end only. probe:
 * CNTVOFF too. 0, -ENOTSUP: no counter; -ENOMEM, or an error of tracefs or the thread.
 * The caller frees *out.
 */
int clock_sampler_start(struct clock_sampler **out, struct undo *u, const char *clock, int64_t interval_ms,
			bool probe, const struct log *log);
/* The last snapshot; reads nothing of tracefs any more. To be called before the undo. */
void clock_sampler_stop(struct clock_sampler *c);
/* Stops it as well. Takes NULL. */
void clock_sampler_free(struct clock_sampler *c);

/* While it runs: a copy of all up to now into an empty one, the caller's. 0 or -ENOMEM. */
int clock_sampler_copy_cntvoff(struct clock_sampler *c, struct cntvoff_log *out);
/* The sampler owns them; after the stop, but for what a log allows while it grows. */
struct counter_log *clock_sampler_host(struct clock_sampler *c);
const struct cntvoff_log *clock_sampler_cntvoff(const struct clock_sampler *c);

#endif
