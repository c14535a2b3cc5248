/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_VOFF_H
#define HYPTRACE_VOFF_H

#include "exact.h"
#include "undo.h"

/*
 * Watches what CNTVOFF KVM gives to each VM: a probe on kvm_timer_vcpu_load
 * (arch/arm64/kvm/arch_timer.c, Linux >= 6.4) in a trace instance of its own, so
 * that nobody else's trace has it. Its times are of that instance's clock.
 */
struct voff_probe;

/*
 * From now on. Both the probe and the instance go with the undo. -EINVAL,
 * -ENOENT: this kernel cannot (it takes fprobe events and BTF), or has no such
 * function; what was made is gone again.
 */
int voff_probe_open(struct voff_probe **out, struct undo *u, const char *clock);
/* Takes what there is; call it a few times a second. 0 or -errno. */
int voff_probe_drain(struct voff_probe *p, struct voff_log *log);
/* Before the undo: the kernel does not remove an instance that is being read. */
void voff_probe_free(struct voff_probe *p);

/*
 * x86 has no CNTVOFF, but a TSC offset, and shows it in debugfs
 * (/sys/kernel/debug/kvm/PID-FD/vcpuN/tsc-offset). Takes what all VMs have at
 * `time`; vCPUs with a scaled TSC are left out. Without such files: nothing.
 */
#define VOFF_KVM_DIR "/sys/kernel/debug/kvm"
int voff_tsc_read(const char *kvm_dir, uint64_t time, struct voff_log *log);

#endif
