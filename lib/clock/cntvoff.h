/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_CNTVOFF_H
#define HYPTRACE_CNTVOFF_H

#include "clock/cntvoff-log.h"
#include "tracefs/undo.h"

/*
 * Watches what CNTVOFF KVM gives to each VM: a probe on kvm_timer_vcpu_load
 * (arch/arm64/kvm/arch_timer.c, Linux >= 6.4) in a trace instance of its own, so
 * that nobody else's trace has it. Its times are of that instance's clock.
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
