/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_VIEW_H
#define HYPTRACE_VIEW_H

#include "ask/states/steps.h"

/*
 * JSON that takes a reading of its own: asked for if there are at most VIEW_ANSWERS records, or if the page
 * is full. -ENODATA: the files have none.
 */
struct view_answer {
	const char *key; /* in the page's head */
	int (*ask)(const struct inputs *in, struct buf *out, uint64_t *damaged);
};

/*
 * Recordings as one HTML page to look at: it holds its data and its program, and needs nothing else. All text
 * of recordings lies in the data, none in the page's HTML.
 */
struct view_job {
	const struct inputs *in;
	struct timeline *timeline;	    /* from its begin */
	const struct steps *steps;	    /* of its inputs */
	const char *title;		    /* of the page */
	const char *tables;		    /* JSON of hyptrace stat */
	const char *findings;		    /* JSON of hyptrace why */
	const struct hypertrace_desc *desc; /* names of hypertrace's events; NULL: none */
	const struct view_answer *answers;
	size_t n_answers;
	uint64_t *damaged; /* the greatest number of damaged places that another reading met */
	bool full;	   /* all spans, not the VIEW_SPANS longest and sums of the others */
};

#define VIEW_SPANS   300000
#define VIEW_ANSWERS 1000000

/*
 * A page has the data of one recording, or a comparison as JSON and then two. Each call adds one to data, the
 * caller's. -ENOMEM, -errno of the files.
 */
int view_read(const struct view_job *job, struct buf *data);
int view_pack(const struct buf *json, struct buf *data);
/* Writes the page. -errno of fd. */
int view_write(const struct buf *data, int fd);

#endif
