/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SYNC_EVIDENCE_SOURCE_H
#define HYPTRACE_SYNC_EVIDENCE_SOURCE_H

#include "dat/page.h"
#include "dat/writer.h"

/* What evidence is read from: a trace.dat, or the spool of one. */

struct reader;

/* Takes a page of CPU `number`; what it returns, if not 0, ends the walk. */
typedef int (*sync_page_fn)(void *to, unsigned int number, const void *data, size_t len);

struct sync_buffer {
	struct page_layout layout; /* with this buffer's page size */
	unsigned int n_cpus;
};

struct sync_source {
	struct sync_buffer *buffers;
	size_t n_buffers;
	/* Calls `page` for each page of a buffer and CPU (indices), in order. */
	int (*walk)(const struct sync_source *s, size_t buffer, unsigned int cpu, sync_page_fn page, void *to);
	const void *from;	  /* what holds the pages: walk's */
	struct dat_text *formats; /* of all events */
	size_t n_formats;
	bool steady; /* NTP leaves its clock alone, and host and guest read the same counter */
};

/* Makes one of a trace.dat. The reader must outlive it. 0 or -ENOMEM. */
int sync_source_reader(struct sync_source *s, const struct reader *r);
/* Frees what sync_source_reader made. */
void sync_source_release(struct sync_source *s);

#endif
