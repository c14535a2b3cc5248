/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_NVHE_H
#define HYPTRACE_NVHE_H

#include "base/std.h"

/*
 * Repairs the time of hypervisor records taken on a plain-nVHE host.
 *
 * There EL2 reads CNTVCT while a vCPU's CNTVOFF is loaded, so each record between vcpu_load and vcpu_put is
 * stamped early by the guest's CNTVOFF, and each step backwards is stored as a 59-bit delta: times come out
 * too large by multiples of 2^59 ns (facts: "plain nVHE time").
 *
 * Per physical CPU the time is taken modulo 2^59, and CNTVOFF is added back while
 * it is loaded. Evidence of when that is:
 *   - structure: CNTVOFF is written by a hypercall (set_cntvoff of the kernel), so
 *     it changes between a hyp_enter hvc and the record after it, from 0 to a
 *     VM's or back, and nowhere else unless records are missing. A long time
 *     between other records is a long time;
 *   - size: a hypercall is short, so the offset that makes it shortest is the one
 *     loaded: none, that of a VM seen before (a few are remembered), or, when the
 *     time steps back by more than 1 ms and none of these explains it, a new VM's;
 *   - the vCPU's pid, where records were lost, or where two VMs' CNTVOFFs are less
 *     apart than a hypercall may take: they were started, or stopped, together. What
 *     a VM's CNTVOFF is, is learnt at the put, from both ends of the span;
 *   - bounds of the recording (nvhe_bounds).
 * Times without steps (protected mode, cores with VHE) come out as they went in.
 *
 * One pass over a CPU's records does not suffice: a VM's CNTVOFF is known to
 * microseconds only at its first put, and which one was loaded when records began,
 * or began again after a loss, only once a step or a vCPU's pid shows it. So all
 * records are fed to one nvhe, then again to another that has learnt from the
 * first (nvhe_again), and a third time when it was given more in between
 * (nvhe_known, of other CPUs). Still unknown: a vCPU loaded all the time
 * whose CNTVOFF no CPU shows; its times stay early, or with bounds are right to
 * within these. A negative CNTVOFF (a VM that was restored and is older than its
 * host) makes loaded times late, which without bounds looks like the reverse.
 */

/* a - b in ns, of two times as recorded: they are right modulo 2^59 ns. */
int64_t nvhe_diff(uint64_t a, uint64_t b);

struct nvhe_step {
	uint64_t ts;	/* repaired ns of the first record after the step */
	int64_t offset; /* estimate of CNTVOFF in ns */
	/*
	 * Bracket: low <= CNTVOFF <= high, ns, from the records on both sides of this
	 * and earlier steps, widened by what text cuts off. As two's complement when
	 * CNTVOFF is negative. 0 and UINT64_MAX: no bound known yet.
	 */
	uint64_t low, high;
	int vcpu_pid; /* host pid of the vCPU thread, 0 while not known */
	bool loaded;  /* true: vcpu_load (step back); false: vcpu_put */
};

struct nvhe; /* one pass over the records of one physical CPU */

/*
 * step (may be NULL) is called from nvhe_time, before it returns the time of
 * the record that shows the step. NULL: out of memory.
 */
struct nvhe *nvhe_new(void (*step)(void *ctx, const struct nvhe_step *s), void *ctx);
/*
 * For the next pass over the same records: knows what `before` has learnt of
 * CNTVOFFs and of whose they are, and what was loaded when records began; the
 * bounds as well. `before` was fed all records and can be freed. NULL: out of memory.
 */
struct nvhe *nvhe_again(const struct nvhe *before, void (*step)(void *ctx, const struct nvhe_step *s),
			void *ctx);
void nvhe_free(struct nvhe *n);
/*
 * All records were made between `from` (tracing was switched on) and `to` (it was switched off) on the boot
 * clock, ns; 0: not known. Set before the first record. Both are believed to a second only, so that a clock
 * that is slightly off does no harm.
 */
void nvhe_bounds(struct nvhe *n, uint64_t from, uint64_t to);
/*
 * The CNTVOFF of a vCPU's thread (0: of some vCPU) is between low and high, ns:
 * another CPU's steps show it. What this CPU's show holds, and can become narrower.
 */
void nvhe_known(struct nvhe *n, int vcpu_pid, int64_t low, int64_t high);
/* Records were lost before the next one. */
void nvhe_lost(struct nvhe *n);
/*
 * Repaired time (ns) of the next record of this CPU, in order of the buffer.
 * reason: its text ("hvc"...), or NULL for records that have none; vcpu: pid or 0.
 */
uint64_t nvhe_time(struct nvhe *n, uint64_t ts, const char *reason, int vcpu);

#endif
