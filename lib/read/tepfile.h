/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_TEPFILE_H
#define HYPTRACE_TEPFILE_H

#include <traceevent/event-parse.h>

#include "read/merge.h"
#include "base/map.h"
#include "base/decode/event-text.h"

/*
 * Gives libtraceevent what a trace.dat says about its records: the page header,
 * event formats, printk formats and tasks' names. Plugins, and handlers of the caller's, are to be
 * registered before: libtraceevent looks for them as it parses. info outlives tep, which tepfile_release
 * frees.
 *
 * Nothing in it is trusted: formats that libtraceevent could not print soundly are
 * refused (file/dat/print-format.c), which the log says: their records print as their fields,
 * or are unknown. *failed: how many. -ENOMEM.
 */
int tepfile_load(struct tep_handle *tep, const struct reader_info *info, size_t *failed,
		 const struct log *log);
/*
 * Lets libtraceevent know the file's functions, once. To be called before tep_find_function() is: the first
 * call of that sorts those that are known then, and threads may ask for others' names from then on. -ENOMEM;
 * errors of reader_symbols(), the first time.
 */
int tepfile_functions(struct tep_handle *tep);
void tepfile_release(struct tep_handle *tep);

/*
 * libtraceevent reads fields and strings without asking where the record ends: it
 * needs records that lie aligned, with zeros behind them. This is room for one.
 */
struct padded {
	uint8_t *data;
	size_t used; /* bytes; behind them all are 0 */
};

/* Zero-initialised = empty; a second call does nothing. -ENOMEM. */
int padded_init(struct padded *p);
void padded_release(struct padded *p);
/*
 * Bytes that a record of the event must have at least, zeros behind it among them: where the field begins
 * that is all the rest. libtraceevent reads as much as is left, even if that is less than nothing.
 */
int tepfile_least_size(const struct tep_event *e);
/* A record of len bytes at data, without a time or CPU, in p: good until the next call. */
struct tep_record padded_record(struct padded *p, const void *data, size_t len);

/* The tasks' names that libtraceevent knows, by pid: it searches its list for each. */
struct names {
	struct tep_handle *tep;
	struct name *v;
	size_t n;
	struct map by_pid;
	unsigned int age; /* of what libtraceevent knows */
};

/* The name by libtraceevent, which searches its list; NULL: it knows none. */
const char *names_ask(struct tep_handle *tep, int pid);

void names_init(struct names *n, struct tep_handle *tep);
void names_release(struct names *n);
/*
 * The name; NULL: it is not known (yet). One thread at a time, and not while another one prints
 * by libtraceevent, whose plugins learn names.
 */
const char *names_find(struct names *n, int pid);
/* libtraceevent may have learned a name. */
void names_learned(struct names *n);

/*
 * Decoders of events, by libtraceevent's interface for plugins: ours, which are linked into the program, and
 * after them those of others that libtraceevent finds. Files of ours that it finds are passed over. The
 * static file (HYPTRACE_STATIC) loads no others.
 */
struct plugins;

/* The caller unloads *out in any case; one thread at a time (libtraceevent). 0 or -ENOMEM. */
int plugins_load(struct plugins **out, struct tep_handle *tep, const struct log *log);
void plugins_unload(struct plugins *p, struct tep_handle *tep);
/* The file of the program or the plugin that has this address, of a handler say, in memory that stays. */
const char *plugins_file(const void *address);
/* Returns the answer of our plugin about its handler (event_text_ask), EVENT_TEXT_ALONE for others. */
enum event_text_answer plugins_ask(const struct tep_event *event, const struct event_text **rows, size_t *n);

#endif
