/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SPLICE_H
#define HYPTRACE_SPLICE_H

#include "file/dat/page.h"
#include <sys/types.h>
#include "record/drain/source.h"

/*
 * Moves pages from a descriptor to the spool, by splice: they never come through user space. Where the kernel
 * or the spool's file system cannot splice, they are copied.
 */
struct splice {
	int in;
	int out;
	int pipe[2];
	size_t room; /* of the pipe, bytes */
	uint8_t *page;
	size_t size;  /* of page, bytes */
	bool padded;  /* in gives pages that may be filled in part: each is written in full */
	bool copying; /* splice is not possible here, or not wanted */
	struct drain_stats *stats;
};

/*
 * From `in`, which stays the caller's, to d->out. size: bytes of a page, which are padded with zeros to it,
 * or (padded false) of a piece of a stream. 0 or -errno; to be closed in either case.
 */
int splice_open(struct splice *m, int in, size_t size, bool padded, const struct drain *d);
void splice_close(struct splice *m);
/* Bytes moved, 0: the end, -EAGAIN, -EINTR or another -errno. Counts stats->bytes. */
ssize_t splice_move(struct splice *m);
/* The same, but always by copying one page: also one that is filled in part, which is not spliced. */
ssize_t splice_copy(struct splice *m);

/* Pages of records that are made here: into d->out from its end on, counted in d->stats. */
struct drain_writer {
	struct page_writer w;
	struct drain *d;
	uint64_t at; /* in the spool's file, of the page that is filled */
};

/* 0 or -errno; w is to be released (page_writer_release()) in either case. */
int drain_writer_open(struct drain_writer *o, size_t page_size, struct drain *d);
/* Writes the page that is being filled, too: a kill -9 then costs nothing that was read. */
int drain_writer_sync(struct drain_writer *o);

/*
 * Waits d->sleep_us (of a ring: for a signal), or when that is 0 until fd is readable or 100 ms have passed
 * (the kernel wakes no reader of a buffer that is filled below its mark); ends at
 * once when d is stopping. 0 or -errno.
 */
int rawpipe_wait(int fd, const struct drain *d);

#endif
