/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_COUNTER_METHOD_H
#define HYPTRACE_COUNTER_METHOD_H

#include "record/clock/cntvoff.h"
#include "sync/evidence.h"

/*
 * The counter method: a guest's counter is the host's less CNTVOFF, without any
 * drift; snapshots on both sides tie the trace clocks to their counters. Pure:
 * logs in, a sync_result out. Documentation/clock-sync.md has the maths.
 */

/*
 * The guest's offset. The VM is the one whose CNTVOFF fits the pings; where several
 * do, the one that has one of the n vCPU threads; where none does, an offset of 0 that fits them is taken:
 * protected VMs have that, and no other by chance. -ENODATA with *why: it cannot be had; -ENOMEM. out->class
 * is SYNC_HARD, or SYNC_SOFT where records of CNTVOFF were lost.
 */
int counter_solve(const struct counter_log *host, const struct counter_log *guest,
		  const struct cntvoff_log *cntvoff, const struct offset_vcpu *vcpus, size_t n,
		  struct sync_result *out, const char **why);

/*
 * Without CNTVOFF, but with events: the windows (sync.h) bound it, all of a recording together, since it does
 * not drift; where the pings show that the VM was stopped, all before and all after. -ENODATA: they do not,
 * or it was stopped and no ping shows that; sync_solve_evidence may still find something.
 */
int counter_solve_windows(const struct counter_log *host, const struct counter_log *guest,
			  const struct sync_evidence *events, struct sync_result *out, const struct log *log);

/*
 * Without CNTVOFF: it does not change, so the pings alone bound it, all of them
 * together. out->class is SYNC_PING.
 */
int counter_solve_pings(const struct counter_log *host, const struct counter_log *guest,
			struct sync_result *out, const char **why);

#endif
