/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_QEMU_PRIV_H
#define HYPTRACE_QEMU_PRIV_H

#include "convert/import/pftrace-priv.h"
#include "record/marks/ring.h"

/* The first words of the simple back end's file. */
#define SIMPLE_HEADER UINT64_MAX
#define SIMPLE_MAGIC  UINT64_C(0xf2b177cb0aa429b4)

/* Shared by the files of QEMU's events. */

/* An event, where it lies in the file. */
struct qemu_event {
	uint64_t ts; /* ns */
	const char *name;
	const uint8_t *args; /* text, or the simple back end's arguments */
	size_t name_len, args_len;
	uint32_t pid;  /* thread, or of the simple back end the process; 0: unknown */
	uint64_t lost; /* not 0: it is no event, but so many were lost here */
	uint64_t mark; /* of a doorbell: its client's number; 0: unknown, or no doorbell */
};

/* Describes the known events to the source. -ENOMEM. */
int qemu_describe(struct pft_source *s);
/* One of these, or NULL. */
const struct qemu_kind *qemu_kind_of(const char *name, size_t len);
/*
 * The item's number and values, at most PFT_VALUES of them in v: of a known event, of an ivshmem device's
 * doorbell, else of ftrace:print with all of the text (which is in buf, the caller's). simple: by the back
 * end. Returns how many values; 0: out of memory.
 */
size_t qemu_values(const struct qemu_event *e, bool simple, struct pft_item *item, struct pft_value *v,
		   struct buf *buf);
/* Whether that is the doorbell. */
bool qemu_is_doorbell(const struct pft_item *item);
/* Values of a doorbell. */
enum { DOORBELL_CLIENT, DOORBELL_SEQ, DOORBELL_VCPU };
/* Makes the doorbell the mark that it announced, with all values. Returns how many. */
size_t qemu_mark_values(const struct ring_event *mark, const char *guest, struct pft_item *item,
			struct pft_value *v);

#endif
