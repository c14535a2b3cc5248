/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_VIEW_H
#define HYPTRACE_VIEW_H

#include "ask/states/reading.h"

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
	struct reading *reading; /* which others may join, too */
	const char *title;	 /* of the page */
	const char *tables;	 /* JSON of hyptrace stat, once the files are read */
	const char *findings;	 /* JSON of hyptrace why, likewise */
	const struct view_answer *answers;
	size_t n_answers;
	uint64_t *damaged; /* the greatest number of damaged places that another reading met */
	bool full;	   /* all spans, not the VIEW_SPANS longest and sums of the others */
};

#define VIEW_SPANS   300000
#define VIEW_ANSWERS 1000000

struct view_reader; /* opaque */

/* Joins the job's reading, which outlives it, as the job does. view_leave takes NULL. -ENOMEM. */
int view_join(struct view_reader **out, const struct view_job *job);
void view_leave(struct view_reader *r);
/*
 * A page has the data of one recording, or a comparison as JSON and then two. Each call adds one to data, the
 * caller's; view_data after the reading, once. -ENOMEM, -errno of the files.
 */
int view_data(struct view_reader *r, struct buf *data);
int view_pack(const struct buf *json, struct buf *data);
/* Writes the page. -errno of fd. */
int view_write(const struct buf *data, int fd);

#endif
