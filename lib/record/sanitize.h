/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SANITIZE_H
#define HYPTRACE_SANITIZE_H

#include "spool/spool.h"

/*
 * Pages that came from a guest's agent are foreign, and one that contradicts
 * itself would spoil the file: trace-cmd and KernelShark refuse to read it at all.
 */

struct sanitized {
	uint64_t events;  /* that the file will show */
	uint64_t lost;	  /* by what the pages say; a loss of unknown number counts as 1 */
	uint64_t unknown; /* such losses */
	uint64_t bad;	  /* pages emptied, or cut short */
};

/*
 * Goes through the pages of a spool's buffer, in place: one whose header cannot
 * be true is emptied, one with an event that cannot be is cut before it, and the
 * page after either says that events were lost. A part of a page at the end is
 * dropped. To do it twice, or to be killed on the way, does no harm. 0 or -errno.
 */
int sanitize_buffer(const struct spool *s, size_t buffer, struct sanitized *out);
/* All buffers of a spool that a guest filled; logs how many pages made no sense, and errors. 0 or -errno. */
int sanitize_spool(const struct spool *s, const struct log *log);

#endif
