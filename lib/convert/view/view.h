/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_VIEW_H
#define HYPTRACE_VIEW_H

#include "ask/states/steps.h"

/*
 * Recordings as one HTML page to look at: it holds its data and its program, and needs nothing else. All text
 * of recordings lies in the data, none in the page's HTML.
 */
struct view_job {
	const struct inputs *in;
	struct timeline *timeline; /* from its begin */
	const struct steps *steps; /* of its inputs */
	const char *title;	   /* of the page */
	const char *tables;	   /* JSON of hyptrace stat */
	/* Latencies of presets as JSON, asked for if there are at most VIEW_ANSWERS records, or if full. */
	int (*latency)(const struct inputs *in, struct buf *out);
	bool full; /* all spans, not the VIEW_SPANS longest and sums of the others */
};

#define VIEW_SPANS   300000
#define VIEW_ANSWERS 1000000

/* Reads the timeline and writes the page. -ENOMEM, -errno of fd. */
int view_write(const struct view_job *job, int fd);

#endif
