/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_MERGE_H
#define HYPTRACE_MERGE_H

#include "read/filetime.h"
#include "dat/reader.h"

/*
 * All records of several trace.dat files by corrected time, in constant memory:
 * some pages (or a compressed chunk) of each CPU are held at a time. Of equal times,
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

/* A CPU of a buffer of an input. */
struct merge_stream {
	size_t input, buffer,
		index;	  /* of the inputs, of the file's buffers, of the CPU in the buffer's list */
	unsigned int cpu; /* as the file numbers it */
	bool gap;	  /* events were lost before its first record */
};

struct merge_record {
	uint64_t ts;  /* corrected: ns of the host's clock, or ticks */
	uint64_t raw; /* as it stands in the page */
	/* The record (may be unaligned); NULL: the CPU's end, after a loss, or an end of a pause. */
	const uint8_t *data;
	uint32_t len;	      /* bytes */
	uint32_t stream : 29; /* merge_stream() tells which CPU */
	uint32_t gap : 1;     /* events were lost, or not recorded, behind it on this CPU */
	uint32_t paused : 1;  /* events may not have been recorded before it on this CPU (dat/pauses.h) */
	uint32_t end : 1;     /* nothing comes behind it on this CPU */
	int64_t missed;	      /* events lost before it on this CPU; -1: some */
};

#define MERGE_RUN_MAX 2048

/* At most so many records one after the other, with what they point into. Zero-initialised = empty. */
struct merge_run {
	struct merge_record *v;
	size_t n;
	struct reader_block **blocks;
	size_t n_blocks;
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
const struct merge_stream *merge_stream(const struct merge *m, const struct merge_record *rec);
/*
 * Before anything is taken: records before that time are not wanted. Pages that end before it, as the next
 * one's begin tells, are not looked into, where they were read along with that; what else is before it comes.
 */
void merge_from(struct merge *m, uint64_t ts);
/*
 * Before anything is taken: both ends of a pause between two records of a CPU come by themselves, as records
 * of no bytes, at their time: one with `gap`, one with `paused`. Else the two records have these.
 */
void merge_tell_pauses(struct merge *m);
/*
 * The next records, some thousand at most, in place of those in the run: 1; 0: the end; -ENOMEM.
 * Damaged pages do not end it: what is lost there counts as lost events before the
 * CPU's next record and in merge_damaged.
 */
int merge_take(struct merge *m, struct merge_run *run);
/*
 * For whoever needs no order: the next records of one CPU, below merge_streams(), likewise; 0: its end. By
 * several threads at a time, of other CPUs each. A merge that was taken from in order is not taken from so.
 */
size_t merge_streams(const struct merge *m);
int merge_take_stream(struct merge *m, size_t stream, struct merge_run *run);
/* Gives the memory back; any thread. */
void merge_run_release(struct merge_run *run);
/*
 * The first record of a buffer behind those that were taken, without taking it: 1, or 0. Its bytes
 * are good until the next merge_take.
 */
int merge_ahead(const struct merge *m, size_t input, size_t buffer, struct merge_record *rec);
/* How much of the pages has been read: 0 to 1. Not while records are taken. */
double merge_fraction(const struct merge *m);
/* Damaged places so far; the log said where the first on each CPU is. */
uint64_t merge_damaged(const struct merge *m);

#endif
