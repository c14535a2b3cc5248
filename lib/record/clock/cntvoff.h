/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_CNTVOFF_H
#define HYPTRACE_CNTVOFF_H

#include <stdbool.h>
#include <stdint.h>

#include "record/tracefs/undo.h"

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

/* CNTVOFFs of the host's VMs. Zero-initialised = empty: no probe. */
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
/* The thread of vCPU id: the last one counts. */
int cntvoff_log_vcpu(struct cntvoff_log *l, int32_t vm, int32_t pid, unsigned int id);
/* All of it into an empty one. 0 or -ENOMEM. */
int cntvoff_log_copy(struct cntvoff_log *to, const struct cntvoff_log *from);
/* Leaves it empty. */
void cntvoff_log_release(struct cntvoff_log *l);

/*
 * Watches the CNTVOFF that KVM gives to each VM: a probe on kvm_timer_vcpu_load
 * (arch/arm64/kvm/arch_timer.c, Linux >= 6.4) in a trace instance of its own, so that no other trace
 * has it. Its times are of that instance's clock.
 */
struct cntvoff_probe;

/*
 * From now on. Both the probe and the instance go with the undo. -EINVAL,
 * -ENOENT: this kernel cannot (it takes fprobe events and BTF), or has no such
 * function; what was made is gone again.
 */
int cntvoff_probe_open(struct cntvoff_probe **out, struct undo *u, const char *clock);
/* Takes what there is; call it a few times a second. 0 or -errno. */
int cntvoff_probe_drain(struct cntvoff_probe *p, struct cntvoff_log *log);
/* Before the undo: the kernel does not remove an instance that is being read. */
void cntvoff_probe_free(struct cntvoff_probe *p);

/*
 * x86 has no CNTVOFF, but a TSC offset, and shows it in debugfs
 * (/sys/kernel/debug/kvm/PID-FD/vcpuN/tsc-offset). Takes what all VMs have at
 * `time`; vCPUs with a scaled TSC are left out. Without such files: nothing.
 */
#define CNTVOFF_KVM_DIR "/sys/kernel/debug/kvm"
int cntvoff_tsc_read(const char *kvm_dir, uint64_t time, struct cntvoff_log *log);

#endif
