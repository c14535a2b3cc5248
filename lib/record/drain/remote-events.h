/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_REMOTE_EVENTS_H
#define HYPTRACE_REMOTE_EVENTS_H

#include "record/hyp/hypevents.h"
#include "record/spool/spool.h"

/*
 * The hypervisor's events as the spool keeps them, in two texts:
 *   hyp_formats   "FIRST_ID SYSTEM raw|text", then for each event a line with the
 *                 length of its format file in bytes, and the file
 *   hyp_reasons   reasons beyond the canonical ones, a line each, as they were met
 */

/* Adds an event's format to those for remote_events_save. */
void remote_events_add(struct buf *formats, const struct buf *format);
/* 0 or -errno. */
int remote_events_save(struct spool *spool, unsigned int first_id, const char *system, bool raw,
		       const struct buf *formats);
/* The events with the reasons met, numbered. Free with hypevents_release. -ENOENT: none kept; -EBADMSG. */
int remote_events_load(struct hypevents *e, const struct spool *spool);

/*
 * Format texts for the file: the hypervisor's events, hyp_unknown, and hyp_cntvoff,
 * our own record of what a plain-nVHE host shows of a vCPU's CNTVOFF (repair.h):
 * "vcpu=87 offset=9947588488 low=9947373488 high=9947588488" (ns).
 */
size_t remote_n_formats(const struct hypevents *e);
void remote_format(const struct hypevents *e, size_t i, struct buf *out);

/* A hyp_cntvoff record, packed as in its format. */
struct __attribute__((packed)) cntvoff_record {
	uint16_t type; /* remote_cntvoff_id */
	uint8_t flags, preempt_count;
	int32_t pid;
	int32_t vcpu; /* pid of its thread */
	int64_t offset;
	uint64_t low, high;
};
uint16_t remote_cntvoff_id(const struct hypevents *e);

#endif
