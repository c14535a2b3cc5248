/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_PRINT_H
#define HYPTRACE_PRINT_H

#include "read/timeline.h"

/*
 * Records as text, by several threads: what depends on the records before, as tasks'
 * names and what stock's plugins print, is found in the order of time; the rest by
 * programs that were made of the print formats (read/text.h).
 */
struct print; /* opaque */

/* A record that is printed. Zero-initialised = none. */
struct print_record {
	const struct merge_record *m;
	const struct merge_stream *at;
	const struct known_event *event; /* NULL: no format has its id */
	const char *comm;		 /* NULL: not known */
	const char *named;		 /* a task that the text names; NULL: none */
	int pid;			 /* -1: it has none */
	unsigned int id;
	/* where in `ready` it is printed already */
	uint32_t text, text_len;
	bool ready;
};

/* raw: fields as numbers. Inputs must be loaded, and outlive it. -ENOMEM. */
int print_open(struct print **out, const struct inputs *in, bool raw);
void print_close(struct print *p);
/*
 * One after the other, in the order in which they are printed: *r, and if libtraceevent has
 * to print it, its text appended to *ready. A loss has no event. -ENOMEM; errors of reader_symbols().
 */
int print_begin(struct print *p, const struct timeline *t, const struct merge_record *m,
		struct print_record *r, struct buf *ready);
/*
 * The text of the fields, without an end of line, appended to *out. By several threads, each with a
 * worker's number of its own, below pipeline_workers().
 */
void print_fields(const struct print *p, const struct print_record *r, const struct buf *ready, size_t worker,
		  struct buf *out);
/* Logs which events libtraceevent had to print, and why. */
void print_explain(const struct print *p, const struct log *log);

#endif
