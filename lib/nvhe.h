/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_NVHE_H
#define HYPTRACE_NVHE_H

#include "base.h"

/*
 * Repairs the time of hypervisor records taken on a plain-nVHE host.
 *
 * There EL2 reads CNTVCT while a vCPU's CNTVOFF is loaded, so each record
 * between vcpu_load and vcpu_put is stamped early by the guest's CNTVOFF, and
 * each step backwards is stored as a 59-bit delta: times come out too large by
 * multiples of 2^59 ns (facts: "plain nVHE time"). Per physical CPU:
 *   - take the time modulo 2^59;
 *   - a step back by more than the threshold at a hyp_exit eret_host or a record
 *     with a vcpu starts a loaded span: CNTVOFF = the step, bracketed by the
 *     records on both sides; a step forward by the same amount ends it.
 * Within a span CNTVOFF is added back.
 */

struct nvhe_step {
	uint64_t ts;	  /* repaired ns of the first record after the step */
	int64_t offset;	  /* estimate of CNTVOFF in ns */
	uint64_t low, high; /* bracket: low <= CNTVOFF <= high, ns */
	int vcpu_pid;	  /* host pid of the vCPU thread, 0 while not known */
	unsigned int cpu;
	bool loaded;	  /* true: vcpu_load (step back); false: vcpu_put */
};

struct nvhe; /* the state of one physical CPU */
struct nvhe *nvhe_new(unsigned int cpu, void (*step)(void *ctx, const struct nvhe_step *s), void *ctx);
void nvhe_free(struct nvhe *n);
/*
 * Repaired time of the next record of this CPU, in order of the buffer.
 * enter: hyp_enter or not; reason: its text ("hvc"...) or NULL; vcpu: pid or 0.
 */
uint64_t nvhe_time(struct nvhe *n, uint64_t ts, const char *reason, int vcpu);

#endif
