/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_API_HANDLE_PRIV_H
#define HYPTRACE_API_HANDLE_PRIV_H

#include "api/handle.h"
#include "read/filter.h"
#include "read/print.h"

/* Shared by the files of lib/api. */

/* The caller's callback, the ctx of a struct log with logger_call. */
struct logger {
	hyptrace_log_fn *fn;
	void *ctx;
};
void logger_call(void *ctx, enum log_level level, const char *message);

struct hyptrace {
	struct logger logger;
	struct log log;
	struct strlist paths;
	struct inputs in;
	bool loaded;		      /* formats and plugins */
	bool raw, align;	      /* HYPTRACE_RAW_TIMES, HYPTRACE_ALIGN */
	uint64_t from;		      /* hyptrace_seek */
	const struct time_part *part; /* the caller's; NULL: all */
	struct filter **filters;      /* by file, NULL: it gives no events; NULL: all events are given */
	struct timeline *timeline;    /* NULL: not begun */
	struct handle_spans *spans;   /* likewise */
	bool has_record;
	struct timeline_record record;
	struct print *print; /* NULL: not asked for */
	struct buf text, ready;
};

/* Iteration begins anew, at h->from. */
void handle_rewind(struct hyptrace *h);

#endif
