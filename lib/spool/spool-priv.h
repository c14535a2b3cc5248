/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SPOOL_PRIV_H
#define HYPTRACE_SPOOL_PRIV_H

#include "spool/spool.h"

/* Shared by spool.c (the directory), texts.c and range.c (parts of it). */

struct spool {
	char *dir;
	int dirfd;
	int session_fd; /* locked */
	int reserve_fd;
	bool read_only; /* somebody else's, who records into it */
	uint64_t reserved;
	struct strlist keys, values;
	struct spool_buffer *buffers;
	size_t n_buffers;
	const struct spool *whole; /* whose pages, and missing texts, a part has; NULL: no part */
};

/* spool.c: as spool_pages_fd(), at no place in particular; *rewritten: not those that were recorded. */
int spool_pages_find(const struct spool *s, size_t buffer, unsigned int cpu, bool *rewritten);

#endif
