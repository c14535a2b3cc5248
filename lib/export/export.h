/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_EXPORT_H
#define HYPTRACE_EXPORT_H

#include "read/inputs.h"

/* The records of all files by corrected time, as those want them who turn them into other forms. */

struct export_record {
	size_t input; /* index of in */
	const struct input *in;
	const struct reader_buffer *buffer;
	unsigned int cpu;
	uint64_t ts;		 /* ns of the host's clock */
	int64_t missed;		 /* events lost before it on this CPU; -1: some */
	struct tep_record tep;	 /* its bytes, with zeros behind them; size 0: none, only a loss */
	struct tep_event *event; /* NULL: no format has its id */
	unsigned int id;
	int pid; /* -1: the record has none */
};

/* -errno of a consumer ends the export. */
typedef int export_fn(void *ctx, const struct export_record *r);

struct export_counts {
	uint64_t records;
	uint64_t unknown; /* among them: of no known event */
	uint64_t damaged; /* places in the files; the log told of them */
};

/* Calls fn with each record. -ENOMEM or what fn returned. */
int export_run(const struct inputs *in, export_fn *fn, void *ctx, struct export_counts *counts,
	       const struct log *log);

/* The task's name by the file's table; NULL: unknown. */
const char *export_comm(const struct export_record *r);
/* A field of the event by name, its integer value; false: no such field, or a short record. */
bool export_number(const struct export_record *r, const char *field, uint64_t *out);
/* Whether it is of the hypervisor's own events. */
bool export_is_hyp(const struct export_record *r);

#endif
