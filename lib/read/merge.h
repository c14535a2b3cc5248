/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_MERGE_H
#define HYPTRACE_MERGE_H

#include "read/filetime.h"

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
	uint64_t from, to; /* records at from <= corrected time < to are taken; to 0: all */
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
	uint32_t len; /* bytes */
	union {
		struct {
			uint32_t stream : 29; /* merge_stream() returns the CPU */
			uint32_t gap : 1;     /* events were lost, or not recorded, after it on this CPU */
			uint32_t paused : 1;  /* events may not have been recorded before it on this CPU
						 (file/dat/options.h) */
			uint32_t end : 1;     /* nothing comes after it on this CPU */
		};
		uint32_t bits; /* all of them: a record's stream alone, where nothing else is to be said */
	};
	int64_t missed; /* events lost before it on this CPU; -1: some */
};

#define MERGE_RUN_MAX 2048 /* of a run whose `most` says nothing else */

/* Records one after the other, with what they point into. Zero-initialised = empty. */
struct merge_run {
	size_t most; /* records that are taken at once; 0: MERGE_RUN_MAX; the same at each take */
	struct merge_record *v;
	size_t n;
	struct reader_block **blocks;
	size_t n_blocks, blocks_room;
};

/*
 * Selects the CPUs whose records are wanted (buffer and cpu as in merge_record); the
 * pages of others are not read. NULL: all.
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
/* Of a number below merge_streams. */
const struct merge_stream *merge_stream_at(const struct merge *m, size_t stream);
/*
 * Skips records before a time; call it before anything is taken. Pages that end before it, by the
 * begin of the next page, are not parsed; other earlier records may still come.
 */
void merge_from(struct merge *m, uint64_t ts);
/*
 * Before anything is taken: of that input, only events whose wanted[id] is not 0 (an array of n that stays
 * the caller's) have to come, also from merge_ahead(). Of others the first and last of a CPU, and those
 * beside a loss or a pause, do as well, and further ones may.
 */
void merge_events(struct merge *m, size_t input, const uint32_t *wanted, size_t n);
/*
 * Before anything is taken: both ends of a pause between two records of a CPU come by themselves, as records
 * of no bytes, at their time: one with `gap`, one with `paused`. Else the two records have these.
 */
void merge_tell_pauses(struct merge *m);
/*
 * The next records, at most run->most, in place of those in the run: 1; 0: the end; -ENOMEM.
 * Damaged pages do not end it: what is lost there counts as lost events before the
 * CPU's next record and in merge_damaged.
 */
int merge_take(struct merge *m, struct merge_run *run);
/* Before anything is taken: lets threads that have time (errands_help()) unpack what comes next. */
void merge_unpack_beside(struct merge *m);
/*
 * Takes the next records of one CPU (below merge_streams()) without the order of time; 0: its end.
 * Several threads may do so at a time, each for other CPUs. Not for a merge that is taken from in order.
 */
size_t merge_streams(const struct merge *m);
int merge_take_stream(struct merge *m, size_t stream, struct merge_run *run);
/* Goes on with the page that has byte `at` of that CPU's pages: 1; 0: there is none; -errno. */
int merge_seek(struct merge *m, size_t stream, uint64_t at);
/*
 * The byte of its CPU's pages, unpacked, at which a record of the run begins; false: it has no bytes.
 * block: where to begin looking, which is quick when it is kept from one record of a CPU to the next.
 */
bool merge_run_place(const struct merge_run *run, const struct merge_record *rec, size_t *block,
		     uint64_t *at);
/* Gives the memory back; any thread. */
void merge_run_release(struct merge_run *run);
/*
 * The first record of a buffer behind those that were taken, without taking it: 1, or 0. Its bytes
 * are good until the next merge_take.
 */
int merge_ahead(const struct merge *m, size_t input, size_t buffer, struct merge_record *rec);
/* Fraction of the pages that has been read, 0 to 1. Any thread. */
double merge_fraction(const struct merge *m);
/* Damaged places so far; the log said where the first on each CPU is. */
uint64_t merge_damaged(const struct merge *m);
/* Places that an earlier reading met: there are at least so many. */
void merge_damage_known(struct merge *m, uint64_t places);
/* Of several readings of the same files: the greatest number of those places. */
static inline void merge_damage_join(uint64_t *damaged, uint64_t met)
{
	*damaged = met > *damaged ? met : *damaged;
}

#endif
