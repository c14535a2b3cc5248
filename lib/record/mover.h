/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_MOVER_H
#define HYPTRACE_MOVER_H

#include "record/source.h"

/*
 * Moves pages from a descriptor to the spool, by splice: they never come through
 * user space. Where the kernel or the spool's file system cannot splice, they
 * are copied.
 */
struct mover {
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
 * From `in`, which stays the caller's, to d->out. size: bytes of a page, which are
 * padded with zeros to it, or (padded false) of a piece of a stream. 0 or -errno;
 * to be closed in either case.
 */
int mover_open(struct mover *m, int in, size_t size, bool padded, const struct drain *d);
void mover_close(struct mover *m);
/* Bytes moved, 0: the end, -EAGAIN, -EINTR or another -errno. Counts stats->bytes. */
ssize_t mover_move(struct mover *m);
/* The same, but always by copying one page. */
ssize_t mover_copy(struct mover *m);

#endif
