/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_ENTRIES_H
#define HYPTRACE_ENTRIES_H

#include "hypertrace/ring.h"
#include "spool/spool.h"

/* What a spool has of guests' rings (rings.h), and which event a doorbell belongs to. */

struct entries_guest {
	char *name;
	bool has_vcpus;	   /* that are known */
	uint64_t doorbell; /* the last that it said; 0: none */
	uint64_t joined;   /* events with their doorbell */
	uint64_t orphans;  /* doorbells whose event was not read in time, or is none */
};

struct entries_vcpu {
	int tid, cpu;
	size_t guest;
};

struct entry_block; /* where a block is, and which of its events were joined */

struct entries {
	struct entries_guest *guests;
	size_t n_guests;
	struct entries_vcpu *vcpus;
	size_t n_vcpus;

	/* private */
	const uint8_t *map;
	size_t size;
	struct entry_block *blocks; /* by guest, client and number */
	size_t n_blocks;
	uint8_t *taken; /* a bit for each event */
};

/* -ENOENT: none were recorded; -EBADMSG, -ENOMEM. *e is to be released in any case. */
int entries_load(struct entries *e, const struct spool *spool);
void entries_release(struct entries *e);

/* A write to a guest's device, as kvm_mmio has it. */
struct entry_bell {
	uint64_t ts; /* boot clock, ns */
	int tid;
	uint64_t gpa;
	uint32_t value; /* hypertrace_doorbell() */
};

enum entry_found {
	ENTRY_NO_BELL, /* no guest's doorbell */
	ENTRY_MISSING, /* one whose event is not there: counted */
	ENTRY_JOINED,  /* counted; no other doorbell gets that event */
};

/* *guest, and with ENTRY_JOINED *vcpu (-1: not known), *ev and *client are filled in. */
enum entry_found entries_find(struct entries *e, const struct entry_bell *b, size_t *guest, int *vcpu,
			      uint32_t *client, struct ring_event *ev);

/* Of those that were there for certain between from and to (0: no end): not joined, and not read in time. */
void entries_left(const struct entries *e, size_t guest, uint64_t from, uint64_t to, uint64_t *alone,
		  uint64_t *missed);

#endif
