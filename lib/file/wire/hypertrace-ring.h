/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_HYPERTRACE_RING_H
#define HYPTRACE_HYPERTRACE_RING_H

#ifdef __KERNEL__ /* a guest's kernel module */
#include <linux/types.h>
#else
#include <stdint.h>
#endif

/*
 * The memory that a guest's programs and the host's recorder share: BAR 2 of an
 * ivshmem-plain device (QEMU's docs/specs/ivshmem-spec), a file for the host. Little endian.
 *
 *   struct hypertrace_area
 *   struct hypertrace_client[clients]
 *   from rings_at on, for each client `slots` slots of hypertrace_slot_size() bytes
 *
 * An event of client c is number n = 1, 2, ... of its own (`next` is fetched and
 * increased), in slot (n - 1) % slots: seq is set to 0, then time and arguments are
 * written, then seq = n. Then hypertrace_doorbell(c, n) goes to the device's Doorbell
 * register: that write leaves the guest, and the host's kvm_mmio event of it has the time.
 *
 * It is another party's memory for the host: it reads each value once, and believes none.
 */
#define HYPERTRACE_AREA_MAGIC	((uint64_t)0x31656361727470) /* "ptrace1" */
#define HYPERTRACE_AREA_SETTING ((uint64_t)1)		     /* magic while one is setting it up */

struct hypertrace_area {
	uint64_t magic;	   /* 0: not set up yet; written last */
	uint32_t clients;  /* at least 1 */
	uint32_t args;	   /* 64-bit numbers of an event, arg1 included; at least 1 */
	uint32_t slots;	   /* of each client; a power of two */
	uint32_t rings_at; /* bytes from the start */
	uint64_t doorbell; /* guest-physical address of that register, by the guest; 0: not known */
	uint64_t unused[4];
};

struct hypertrace_client {
	uint64_t next; /* events so far */
	uint64_t unused[7];
};

struct hypertrace_slot {
	uint64_t seq;  /* 0: being written */
	uint64_t time; /* CLOCK_BOOTTIME of the guest, ns */
	uint64_t arg[];
};

#define HYPERTRACE_CLIENTS_MAX 65536 /* the doorbell's upper half */

static inline uint64_t hypertrace_slot_size(uint32_t args)
{
	return sizeof(struct hypertrace_slot) + (uint64_t)args * sizeof(uint64_t);
}

/* The event's lower 16 bits are enough where the host knows roughly how far a client is. */
static inline uint32_t hypertrace_doorbell(uint32_t client, uint64_t seq)
{
	return client << 16 | (uint32_t)(seq & 0xffff);
}

/* Of the device: vendor, device, and the register's offset in BAR 0. */
#define HYPERTRACE_IVSHMEM_VENDOR   0x1af4
#define HYPERTRACE_IVSHMEM_DEVICE   0x1110
#define HYPERTRACE_IVSHMEM_DOORBELL 12

#endif
