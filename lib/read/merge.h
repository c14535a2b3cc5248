/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_MERGE_H
#define HYPTRACE_MERGE_H

#include "read/filetime.h"
#include "dat/reader.h"

/*
 * All records of several trace.dat files by corrected time, in constant memory:
 * a page (or a compressed chunk) of each CPU is held at a time. Of equal times,
 * the top buffers' records come first, in the order of the files, then those of
 * the instances, and in a buffer those of the lower CPU: the order of stock.
 * A CPU's records keep the order of its pages even where its clock goes back.
 */
struct merge; /* opaque */

struct merge_input {
	const char *name; /* for messages */
	const struct reader *reader;
	struct filetime time;
};

struct merge_record {
	size_t input, buffer; /* indices: of the inputs, of the file's buffers */
	size_t index;	      /* of the CPU in the buffer's list */
	unsigned int cpu;     /* as the file numbers it */
	uint64_t ts;	      /* corrected: ns of the host's clock, or ticks */
	uint64_t raw;	      /* as it stands in the page */
	/* The record (may be unaligned) until the next call; NULL: the CPU's end, after a loss. */
	const uint8_t *data;
	size_t len;	/* bytes */
	int64_t missed; /* events lost before it on this CPU; -1: some */
};

/*
 * Which of the CPUs' records are wanted (buffer and cpu as in merge_record); the
 * pages of others are not read at all. NULL: all.
 */
typedef bool merge_want(void *ctx, size_t input, size_t buffer, unsigned int cpu);

/*
 * Inputs (and their readers) stay the caller's and must outlive the merge, which
 * merge_close frees. -ENOMEM, -errno from the files.
 */
int merge_open(struct merge **out, const struct merge_input *inputs, size_t n, merge_want *want, void *ctx,
	       const struct log *log);
void merge_close(struct merge *m);
/*
 * 1: *rec; 0: the end; -ENOMEM. Damaged pages do not end it: what is lost there
 * counts as lost events before the CPU's next record and in merge_damaged.
 */
int merge_next(struct merge *m, struct merge_record *rec);
/*
 * The next record of the buffer that *rec is from, where *rec is the last one
 * that merge_next gave, without taking it: 1, 0 or -ENOMEM. rec->data is not valid after it.
 */
int merge_peek(struct merge *m, const struct merge_record *rec, struct merge_record *next);
/* Damaged places so far; the log said where the first on each CPU is. */
uint64_t merge_damaged(const struct merge *m);

#endif
