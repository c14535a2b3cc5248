/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_TIMELINE_H
#define HYPTRACE_TIMELINE_H

#include "read/inputs.h"
#include "read/merge.h"

/* The records of all inputs by corrected time, each with its event as libtraceevent knows it. */
struct timeline; /* opaque */

struct timeline_record {
	const struct merge_record *m; /* good until the next call */
	size_t input;		      /* index of in */
	const struct input *in;
	const struct reader_buffer *buffer;
	size_t index; /* of the CPU in the buffer's list */
	unsigned int cpu;
	uint64_t ts;		 /* ns of the host's clock; ticks where they are not converted */
	uint64_t raw;		 /* as it stands in the page */
	int64_t missed;		 /* events lost before it on this CPU; -1: some */
	struct tep_record tep;	 /* its bytes, with zeros behind them; size 0: none, only a loss */
	struct tep_event *event; /* NULL: no format has its id */
	bool hyp;		 /* of the hypervisor's own events */
	unsigned int id;
	int pid; /* -1: the record has none */
};

/*
 * want, ctx: as of merge_open. Inputs must be loaded and outlive the timeline, which
 * timeline_close frees (NULL is fine). -ENOMEM, -errno from the files.
 */
int timeline_open(struct timeline **out, const struct inputs *in, merge_want *want, void *ctx,
		  const struct log *log);
void timeline_close(struct timeline *t);
/* 1: *r, whose bytes are the timeline's until the next call; 0: the end; -ENOMEM. */
int timeline_next(struct timeline *t, struct timeline_record *r);

/*
 * The same, run by run: timeline_take is merge_take; timeline_fill makes *r of one of its
 * records, by any thread, with bytes in room, which is the thread's own. timeline_ahead is the
 * record behind run->v[i] in its buffer, perhaps behind the run: 1, or 0.
 */
int timeline_take(struct timeline *t, struct merge_run *run);
/* merge_tell_pauses. */
void timeline_tell_pauses(struct timeline *t);
/* merge_from. */
void timeline_from(struct timeline *t, uint64_t ts);
/* In no order: merge_streams and merge_take_stream. */
size_t timeline_streams(const struct timeline *t);
int timeline_take_stream(struct timeline *t, size_t stream, struct merge_run *run);
void timeline_fill(const struct timeline *t, const struct merge_record *m, struct padded *room,
		   struct timeline_record *r);
int timeline_ahead(const struct timeline *t, const struct merge_run *run, size_t i,
		   struct merge_record *next);
/* The event's id, which comes first in every kernel's records; 0: the record is too short for one. */
static inline unsigned int timeline_id(const struct merge_record *m)
{
	return m->len < 2 ? 0 : (unsigned int)m->data[0] | (unsigned int)m->data[1] << 8;
}

/* The event of a record; NULL: no format has its id, which is 0 where the record is too short for one. */
const struct known_event *timeline_event(const struct timeline *t, const struct merge_record *m,
					 unsigned int *id);
/* Whose task it is by that field; -1: the record has none. */
int timeline_pid(const struct field_load *pid, const struct merge_record *m);
const struct merge_stream *timeline_stream(const struct timeline *t, const struct merge_record *m);
/* Of a number below timeline_streams. */
const struct merge_stream *timeline_stream_at(const struct timeline *t, size_t stream);
/* How much of the files has been read: 0 to 1. Not while records are taken. */
double timeline_fraction(const struct timeline *t);
/* Damaged places in the files so far; the log said where the first on each CPU is. */
uint64_t timeline_damaged(const struct timeline *t);

/* The task's name by the file's table; NULL: unknown. */
const char *timeline_comm(const struct timeline_record *r);

#endif
