/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPERTRACE_AREA_H
#define HYPERTRACE_AREA_H

/*
 * A guest's side of the shared memory (file/wire/hypertrace-ring.h), for the library and the kernel
 * module: its set-up, by the first program to come, and the writing of events.
 */
#ifdef __KERNEL__
#include <linux/errno.h>
#include <linux/string.h>
#else
#include <errno.h>
#include <string.h>
#endif

#include "file/wire/hypertrace-ring.h"

#define HYPERTRACE_ARGS_LIMIT 32 /* the decoders' (base/decode/mark-lines.h) */
/* As the original's: --with-hypertrace-args=4, max-clients as a small machine's CPUs. */
#define HYPERTRACE_CLIENTS 16
#define HYPERTRACE_ARGS	   4

#define AREA_PAGE	   4096
#define AREA_SETTING_TRIES 100000 /* of somebody else who sets the memory up */

struct area {
	struct hypertrace_area *at;
	struct hypertrace_client *client;
	uint8_t *rings;
	uint32_t clients, args, slots;
};

static inline uint32_t area_rings_at(uint32_t clients)
{
	uint64_t end = sizeof(struct hypertrace_area) + (uint64_t)clients * sizeof(struct hypertrace_client);

	return (uint32_t)((end + AREA_PAGE - 1) / AREA_PAGE * AREA_PAGE);
}

/* As many slots as there is room for. */
static inline uint32_t area_slots(uint64_t size, uint32_t clients, uint32_t args)
{
	uint64_t from = area_rings_at(clients), each, slots = 1;

	if (size <= from)
		return 0;
	each = (size - from) / clients / hypertrace_slot_size(args);
	while (slots * 2 <= each && slots < 1u << 20)
		slots *= 2;
	return each ? (uint32_t)slots : 0;
}

static inline int area_set_up(struct hypertrace_area *at, uint64_t size)
{
	uint32_t slots = area_slots(size, HYPERTRACE_CLIENTS, HYPERTRACE_ARGS);

	if (!slots) {
		__atomic_store_n(&at->magic, 0, __ATOMIC_RELEASE);
		return -ENOSPC;
	}
	at->clients = HYPERTRACE_CLIENTS;
	at->args = HYPERTRACE_ARGS;
	at->slots = slots;
	at->rings_at = area_rings_at(at->clients);
	/* not memset(): it may use what faults on a device's memory, as programs map it (arm64: dc zva) */
	for (uint64_t i = sizeof(*at) / sizeof(uint64_t); i < size / sizeof(uint64_t); i++)
		((volatile uint64_t *)at)[i] = 0;
	__atomic_store_n(&at->magic, HYPERTRACE_AREA_MAGIC, __ATOMIC_RELEASE);
	return 0;
}

/* Set up by another of this guest, maybe just now. The host may write there too: read once. */
static inline int area_join(struct area *a, uint64_t size, void (*rest)(void))
{
	uint64_t magic = HYPERTRACE_AREA_SETTING;
	struct hypertrace_area h;

	for (int i = 0; i < AREA_SETTING_TRIES && magic == HYPERTRACE_AREA_SETTING; i++) {
		magic = __atomic_load_n(&a->at->magic, __ATOMIC_ACQUIRE);
		if (magic == HYPERTRACE_AREA_SETTING)
			rest();
	}
	memcpy(&h, a->at, sizeof(h));
	if (magic != HYPERTRACE_AREA_MAGIC || !h.clients || h.clients > HYPERTRACE_CLIENTS_MAX || !h.args ||
	    h.args > HYPERTRACE_ARGS_LIMIT || h.rings_at != area_rings_at(h.clients) || !h.slots ||
	    h.slots & (h.slots - 1) || h.slots > area_slots(size, h.clients, h.args))
		return -EBADMSG;
	a->clients = h.clients;
	a->args = h.args;
	a->slots = h.slots;
	a->client = (struct hypertrace_client *)(a->at + 1);
	a->rings = (uint8_t *)a->at + area_rings_at(h.clients);
	return 0;
}

/*
 * a->at: the memory, of size bytes; doorbell: that register's guest-physical address, 0: not known; rest:
 * called between two looks at what another one sets up. 0, -ENOSPC: too small, -EBADMSG: it holds something
 * else.
 */
static inline int area_open(struct area *a, uint64_t size, uint64_t doorbell, void (*rest)(void))
{
	uint64_t nobody = 0;
	int ret = size < sizeof(*a->at) ? -ENOSPC : 0;

	if (!ret && __atomic_compare_exchange_n(&a->at->magic, &nobody, HYPERTRACE_AREA_SETTING, 0,
						__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
		ret = area_set_up(a->at, size);
	if (!ret)
		ret = area_join(a, size, rest);
	if (!ret)
		__atomic_store_n(&a->at->doorbell, doorbell, __ATOMIC_RELAXED);
	return ret;
}

/*
 * An event, from any thread; time: CLOCK_BOOTTIME, ns; arg: a->args of them. Returns the value for
 * the doorbell, to be written after a barrier.
 */
static inline uint32_t area_put(const struct area *a, uint32_t client, uint64_t time, const uint64_t *arg)
{
	uint64_t seq = __atomic_add_fetch(&a->client[client].next, 1, __ATOMIC_RELAXED);
	uint64_t at =
		((uint64_t)client * a->slots + ((seq - 1) & (a->slots - 1))) * hypertrace_slot_size(a->args);
	struct hypertrace_slot *s = (struct hypertrace_slot *)(a->rings + at);

	__atomic_store_n(&s->seq, 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	s->time = time;
	for (uint32_t i = 0; i < a->args; i++)
		s->arg[i] = arg[i];
	__atomic_store_n(&s->seq, seq, __ATOMIC_RELEASE);
	return hypertrace_doorbell(client, seq);
}

#endif
