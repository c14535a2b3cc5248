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
enum markers_kind { MARKERS_CROSVM, MARKERS_GUEST };

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

struct markers {
	/* For others to read, after markers_finish(). */
	struct markers_row *rows;
	size_t n_rows;
	struct markers_cut {	       /* marks that are in no row */
		uint64_t begins, ends; /* without their counterpart */
		uint64_t others;       /* of threads or names beyond the 4,096th */
	} cut;
	/* Private. */
	const struct mark_desc *desc;
	struct field_load *texts;    /* ftrace:print's, by input */
	struct marks_fields *fields; /* guest_hypertrace's, by input */
	struct map by_name;
	struct marks marks; /* names are 1 + indices of rows; tags: ns of the spans within */
	struct marker_client {
		char name[48]; /* "": a thread */
	} * clients;	       /* by the index of the source */
	size_t n_clients;
	struct gaps gaps;
	markers_listener *ended;
	void *ctx;
};

/* desc: NULL for none. All outlive it. -ENOMEM. */
int markers_open(struct markers **out, const struct inputs *in, const struct timeline *t,
		 const struct mark_desc *desc);
void markers_close(struct markers *m);
/* Before it is read: called with each span as it ends. */
void markers_listen(struct markers *m, markers_listener *ended, void *ctx);
/* In order. */
struct pass_part markers_part(struct markers *m);

/* After the last record: spans that are still open have no end. */
void markers_finish(struct markers *m);

#endif
