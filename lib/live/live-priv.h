/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_LIVE_PRIV_H
#define HYPTRACE_LIVE_PRIV_H

#include "dat/writer.h"
#include "record/finish.h"
#include "live/live.h"
#include "spool/spool.h"

/* Shared by live.c and live-*.c. */

/* Pages of a buffer on their way into the file. */
struct live_trim {
	const struct live *of;
	const struct page_layout *layout;
	/* of the page that is made */
	uint8_t *to;
	unsigned int made;
};

struct live {
	struct spool *spool;
	struct dat_job *job;
	struct dat_file *file; /* the job's */
	struct page_layout *layouts;
	uint64_t **taken;	 /* by buffer and CPU: of the records from the file's offset on */
	uint8_t *page;		 /* room for the largest */
	uint64_t from;		 /* live_cut: records before that are left out */
	struct live_trim *trims; /* by buffer */
	struct buf cmdlines;
};

/* A dat_buffer's fix_page, of a struct live_trim: leaves out what is before of->from. */
int live_trim_page(void *trim, unsigned int cpu, void *page, size_t size);

#endif
