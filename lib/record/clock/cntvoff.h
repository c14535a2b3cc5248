/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_CNTVOFF_H
#define HYPTRACE_CNTVOFF_H

#include "record/clock/counter.h"

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
/* Leaves it empty. */
void cntvoff_log_release(struct cntvoff_log *l);

/*
 * Watches the CNTVOFF that KVM gives to each VM: a probe on kvm_timer_vcpu_load
 * (arch/arm64/kvm/arch_timer.c, Linux >= 6.4) in a trace instance of its own, so that no other trace
 * has it. Its times are of that instance's clock.
 */
struct cntvoff_probe;

/*
 * From now on. Both the probe and the instance go with the undo. -EINVAL, -ENOENT: this kernel cannot (it
 * takes fprobe events and BTF), or has no such function; what was made is gone again.
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
int cntvoff_tsc_read(const char *kvm_dir, uint64_t time, struct cntvoff_log *log);

/*
 * The host's side of the counter method while a recording runs: snapshots of its
 * counter and trace clock, and what CNTVOFF its VMs have, by a thread.
 */
struct clock_sampler {
	/* For others to read, after the stop, but for what a log allows while it grows. */
	struct counter_log host;
	struct cntvoff_log cntvoff;
	/* Private. */
	struct clock_marker *marks;  /* NULL: stopped */
	struct cntvoff_probe *probe; /* NULL: this kernel has none */
	bool tsc;		     /* look into debugfs instead */
	pthread_mutex_t lock;	     /* of cntvoff */
	int64_t interval_ms;
	pthread_t thread;
	int stop_fd;
	int error; /* of the thread: what was logged before is good */
	const struct log *log;
};

/*
 * interval_ms: between snapshots; 0: at the start and at the end only. probe: CNTVOFF too. 0, -ENOTSUP: no
 * counter; -ENOMEM, or an error of tracefs or the thread. The caller frees *out.
 */
int clock_sampler_start(struct clock_sampler **out, struct undo *u, const char *clock, int64_t interval_ms,
			bool probe, const struct log *log);
/* The last snapshot; reads nothing of tracefs any more. To be called before the undo. */
void clock_sampler_stop(struct clock_sampler *c);
/* Stops it as well. Takes NULL. */
void clock_sampler_free(struct clock_sampler *c);

/* While it runs: a copy of all up to now into an empty one, the caller's. 0 or -ENOMEM. */
int clock_sampler_copy_cntvoff(struct clock_sampler *c, struct cntvoff_log *out);

#endif
