/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SPOOL_PRIV_H
#define HYPTRACE_SPOOL_PRIV_H

#include "record/spool/spool.h"

/* Shared by spool.c (the directory) and pages.c. */

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
	const struct spool *whole; /* source of a part's pages and missing texts; NULL: no part */
};

#endif
