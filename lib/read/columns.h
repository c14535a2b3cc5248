/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_COLUMNS_H
#define HYPTRACE_COLUMNS_H

#include "read/timeline.h"
#include "util/field.h"

/*
 * Runs of records as columns: who wants them names events and fields once, and gets of each run, event
 * by event, the times, CPUs and values as arrays.
 */
struct columns; /* opaque */

struct columns_want {
	const char *system; /* NULL: any */
	const char *event;  /* NULL: each */
	const char *const *fields;
	size_t n_fields;
};

/* An event of an input that is wanted. */
struct columns_event {
	size_t input, want; /* indices */
	const struct tep_event *event;
	struct field_load *fields; /* as wanted; FIELD_NONE: it has none of that name */
	size_t n_fields;
};

struct columns_bytes {
	const uint8_t *data; /* in the record */
	size_t len;
};

/* By the field's kind. What a record does not have is 0, or no bytes. */
union column {
	uint64_t *numbers; /* sign-extended where the field is signed */
	struct columns_bytes *bytes;
};

/* The records of one event in a run, in the order of the run. */
struct columns_rows {
	const struct columns_event *of;
	size_t n;
	const uint64_t *ts;			   /* as merge_record's */
	const struct merge_record *const *records; /* timeline_stream() tells which CPU */
	const union column *fields;
};

/* What runs become, by one thread at a time. Zero-initialised = empty. */
struct columns_batch {
	struct columns_rows *v; /* of events that have records in the run */
	size_t n;
	/* its own */
	size_t room, cells;
	uint32_t *which;
	size_t *first;
	uint64_t *ts;
	const struct merge_record **records;
	union column *columns;
	struct columns_bytes *values;
};

/* The first want that names an event has it. in: loaded, and outlives it. -ENOMEM. */
int columns_open(struct columns **out, const struct inputs *in, const struct columns_want *wants, size_t n);
void columns_close(struct columns *c);
/* The events that are wanted, by their places in the inputs. */
const struct columns_event *columns_events(const struct columns *c, size_t *n);
/*
 * In place of the run before, and as long as the run's records are good. Several threads, each with its
 * own batch. -ENOMEM.
 */
int columns_fill(const struct columns *c, const struct timeline *t, const struct merge_run *run,
		 struct columns_batch *b);
void columns_batch_release(struct columns_batch *b);

#endif
