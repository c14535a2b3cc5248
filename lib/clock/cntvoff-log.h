/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_CNTVOFF_LOG_H
#define HYPTRACE_CNTVOFF_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* From `first` to `last` (ns, host's trace clock) vCPUs of VM `vm` were loaded with this CNTVOFF. */
struct cntvoff_span {
	int32_t vm;	  /* pid of its VMM */
	uint64_t cntvoff; /* ticks: guest = host - cntvoff */
	uint64_t first, last;
	bool vague; /* records were lost before it: it may have begun earlier */
	bool lossy; /* records were lost after `last` */
};

struct cntvoff_vcpu {
	int32_t vm, pid; /* VMM, vCPU's thread */
	unsigned int id;
};

/* What the host saw of its VMs. Zero-initialised = empty: no probe. */
struct cntvoff_log {
	struct cntvoff_span *spans; /* by time */
	size_t n_spans;
	struct cntvoff_vcpu *vcpus;
	size_t n_vcpus;
};

/*
 * One vcpu_load at `time` (ns), in order for each VM; lost: records before it are
 * missing. 0 or -ENOMEM, like cntvoff_log_vcpu.
 */
int cntvoff_log_load(struct cntvoff_log *l, uint64_t time, int32_t vm, uint64_t cntvoff, bool lost);
/* Records of any VM are missing before those that come from now on. */
void cntvoff_log_lost(struct cntvoff_log *l);
/* The thread of vCPU id: the last one counts. */
int cntvoff_log_vcpu(struct cntvoff_log *l, int32_t vm, int32_t pid, unsigned int id);
/* Leaves it empty. */
void cntvoff_log_release(struct cntvoff_log *l);

#endif
