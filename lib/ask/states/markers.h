/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_MARKERS_H
#define HYPTRACE_MARKERS_H

#include "ask/states/histogram.h"
#include "ask/states/pass.h"
#include "spans/marks.h"

/*
 * Spans that programs mark (spans/marks.h), with hypertrace's events by the names of a description: X_start
 * begins X, and X_end ends it. From the last event before a loss in the buffer to the first after it no span
 * of hypertrace begins.
 */
struct markers; /* opaque */

enum markers_kind { MARKERS_CROSVM, MARKERS_HYPERTRACE };

struct markers_row {
	size_t input;
	enum markers_kind kind;
	char *name;
	struct histogram time; /* ns */
};

/* One that has ended. */
struct markers_span {
	size_t input;
	int32_t pid;	    /* the thread's */
	const char *client; /* "GUEST client N" in its place; NULL: a thread's */
	/* those that are open around it, from the outermost on, and itself */
	const char *names[MARKS_OPEN];
	size_t n;
	uint64_t from, to;
	uint64_t own; /* ns, without those within it */
	uint32_t cpu; /* of its end */
};

/* Not 0: the reading ends with that. */
typedef int markers_listener(void *ctx, const struct markers_span *span);

/* Marks that are in no row. */
struct markers_cut {
	uint64_t begins, ends; /* without their counterpart */
	uint64_t others;       /* of threads or names beyond the 4,096th */
};

/* desc: NULL for none. All outlive it. -ENOMEM. */
int markers_open(struct markers **out, const struct inputs *in, const struct timeline *t,
		 const struct hypertrace_desc *desc);
void markers_close(struct markers *m);
/* Before it is read: called with each span as it ends. */
void markers_listen(struct markers *m, markers_listener *ended, void *ctx);
/* In order. */
struct pass_part markers_part(struct markers *m);

/* After the last record: spans that are still open have no end. */
void markers_finish(struct markers *m);
const struct markers_row *markers_rows(const struct markers *m, size_t *n);
struct markers_cut markers_cut(const struct markers *m);

#endif
