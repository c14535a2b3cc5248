/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_TEPFILE_H
#define HYPTRACE_TEPFILE_H

#include <traceevent/event-parse.h>

#include "read/merge.h"
#include "file/dat/reader.h"

/*
 * Gives libtraceevent what a trace.dat says about its records: the page header,
 * event formats, symbols, printk formats and tasks' names. Plugins, and handlers
 * of the caller's, are to be registered before: libtraceevent looks for them as it parses.
 *
 * Nothing in it is trusted: formats that libtraceevent could not print soundly are
 * refused (file/dat/print-format.h), which the log says: their records print as their fields,
 * or are unknown. *failed: how many. -ENOMEM.
 */
int tepfile_load(struct tep_handle *tep, const struct reader_info *info, size_t *failed,
		 const struct log *log);

/*
 * libtraceevent reads fields and strings without asking where the record ends: it
 * needs records that lie aligned, with zeros behind them. This is room for one.
 */
struct padded {
	uint8_t *data;
	size_t used; /* bytes; behind them all are 0 */
};

/* Zero-initialised = empty. -ENOMEM. */
int padded_init(struct padded *p);
void padded_release(struct padded *p);
/*
 * Bytes that a record of the event must have at least, zeros behind it among them: where the
 * field begins that is all the rest. libtraceevent reads as much as is left, even if that is
 * less than nothing.
 */
int tepfile_least_size(const struct tep_event *e);
/* A record of len bytes at data, without a time or CPU, in p: good until the next call. */
struct tep_record padded_record(struct padded *p, const void *data, size_t len);

#endif
