/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SYNC_EVIDENCE_BLIND_H
#define HYPTRACE_SYNC_EVIDENCE_BLIND_H

#include "sync/sync.h"

/*
 * Windows of a hypervisor whose hyp_enter and hyp_exit have no reasons (Android's). The
 * windows follow from their order on a CPU. From kvm_entry to kvm_exit come
 *
 *	hyp_enter (the host's call), hyp_exit (into the guest), hyp_enter (out of it) ... hyp_exit
 *
 * and the last one goes back to the host. What lies between may be the guest again, or
 * the host: that stretch is unknown.
 */
enum blind_what {
	BLIND_KVM_ENTRY,
	BLIND_KVM_EXIT,
	BLIND_HYP_ENTER,
	BLIND_HYP_EXIT,
	BLIND_LOST,  /* from here events are missing, kvm's or the hypervisor's */
	BLIND_FOUND, /* to here */
};

struct blind_point {
	uint64_t time;
	int32_t pid; /* the thread's, of kvm's */
	uint32_t nr; /* order among equal times */
	uint16_t cpu;
	uint8_t what;
};

struct blind {
	struct blind_point *v; /* freed by the owner */
	size_t n;
	uint64_t begin, end;  /* of the hypervisor's events */
	uint64_t slack, step; /* as sync_windows_pair's */
	/* Runs of vCPUs between those without a loss; of them those with another order, which are unknown. */
	uint64_t checked, stray;
	size_t windows; /* that are known */
};

/* 0 or -ENOMEM. Each CPU's events of a buffer in order. */
int blind_add(struct blind *b, uint64_t time, unsigned int cpu, int32_t pid, enum blind_what what);
/* Sorts b->v and appends the windows, of SYNC_HYP. 0 or -ENOMEM. */
int blind_pair(struct blind *b, struct sync_windows *w);

#endif
