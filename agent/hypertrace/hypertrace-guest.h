/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPERTRACE_GUEST_H
#define HYPERTRACE_GUEST_H

#ifdef __KERNEL__
#include <linux/types.h>
#else
#include <stdint.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

/*
 * Marks of a guest's code on the host's timeline: hypertrace(7).
 *
 * An event has a client (a thread, a CPU: one that shall not wait for others), a number (arg1) and
 * further arguments (arg2, arg3, ...), which are kept from event to event. Events of several threads
 * need no lock, of one client neither, but then the last thread's arguments count.
 *
 * Their destination is found at hypertrace_init(), or set by its argument or by the environment
 * variable HYPERTRACE, which wins:
 *   ivshmem[:DIR]  rings in the memory of an ivshmem-plain device and its doorbell; DIR: of
 *                  the device, /sys/bus/pci/devices/... (default: the first; needs root)
 *   vmcall         x86 under KVM: a hypercall with the client and the first three arguments
 *   marker[:FILE]  lines in trace_marker: of the guest's own trace, no exit; under
 *                  qemu-user and in containers it is the host's
 *   none           nowhere
 * The first available one is taken, in that order; vmcall only on request.
 */

/* `where`: as above; NULL or any other text: the first available. 0, or -1 with errno. Once for a process. */
int hypertrace_init(const char *where);
/* 0, or -1 with errno. No thread may be in hypertrace_emit(). */
int hypertrace_fini(void);
/* Clients are 0 to this - 1. */
uint64_t hypertrace_max_clients(void);
/* Arguments of an event, arg1 included. */
uint64_t hypertrace_num_args(void);
/* arg2, arg3, ... of the client's next events; NULL: no such client. */
uint64_t *hypertrace_data(uint64_t client);
/* An event; nothing for a client that is not, or before hypertrace_init(). */
void hypertrace_emit(uint64_t client, uint64_t arg1);
/* The way in use: "ivshmem", "vmcall", "marker" or "none". */
const char *hypertrace_where(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif

#endif
