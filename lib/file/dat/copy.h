/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_DAT_COPY_H
#define HYPTRACE_DAT_COPY_H

#include "file/dat/reader.h"

struct dat_source {
	const char *name; /* for messages */
	const struct reader *reader;
};

/*
 * A trace.dat made of others: version, compression, texts, CPUs and options of the first one, the names of
 * tasks and the records of all, one after the other. Pages are written unchanged where all their records are
 * wanted, and losses stay with the record that follows them.
 */
struct dat_copy {
	const struct dat_source *v; /* one, or pieces of one recording in their order */
	size_t n;
	const struct dat_option *options; /* in place of the file's; NULL: those of the file */
	size_t n_options;
	/* Below 0: a record at that time of a CPU comes before those that are wanted; 0: it is one of them;
	 * above 0: it comes after them. NULL: all are. */
	int (*wanted)(void *ctx, unsigned int cpu, uint64_t ts);
	void *ctx;
	/* For copies of parts one after the other: pages that all come before, by buffers and CPUs of the
	 * first source; zeros at first. NULL: none. */
	uint64_t *passed;
};

/*
 * Writes to fd, as dat_write() does, with pages in an unnamed file beside path meanwhile. -EINVAL (logged):
 * sources are no pieces of one recording, or overlap; -ENOTSUP (logged): an edge lies in a page of a 32-bit
 * kernel; else as dat_write() and the readers.
 */
int dat_copy(const struct dat_copy *c, int fd, const char *path, const struct log *log);

#endif
