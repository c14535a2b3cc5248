/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_IMPORT_PRIV_H
#define HYPTRACE_IMPORT_PRIV_H

#include "record/spool/spool.h"

/* Shared by import.c, pftrace-kind.c and pftrace-machine.c. */

#define IMPORT_PAGE 4096

/* A new trace id, and 64-bit kernels' description of records and of pages of IMPORT_PAGE bytes. */
int import_begin(struct spool *spool);

/* The print format of an event that hypervisors are known to have; NULL: it is not known. */
const char *import_known_print(const char *name);

/*
 * The begin of a trace's text in a line of *len bytes, and its length without the line's end in *len:
 * behind printk's "[   80.929138] ", if that is there. NULL: a message of the kernel.
 */
const char *import_trace_line(const char *line, size_t *len);

#endif
