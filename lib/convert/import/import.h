/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_IMPORT_H
#define HYPTRACE_IMPORT_H

#include "record/drain/remote.h"

/*
 * Adds what was read from a hypervisor's trace buffer without hyptrace to a
 * host's trace.dat, as the buffer "hyp" that a recording would have had.
 */
struct import_opts {
	const char *input;  /* the host's file; NULL: there is none */
	const char *output; /* must not be the input */
	/* One of the two: */
	const char *text; /* file of lines: cat trace_pipe, cat trace */
	const char *raw;  /* directory of files cpuN, whole pages of per_cpu/cpuN/trace_pipe_raw */
	/*
	 * A copy of the kernel's events/hypervisor (or events/hyp, or of all of
	 * events/): NAME/format, and header_page for raw pages. NULL: the events that
	 * kernels are known to have, for text alone.
	 */
	const char *events;
	const struct log *log;
};

/* -EEXIST: the file has a hypervisor's buffer. Without output on error (logged). */
int import(const struct import_opts *o, struct remote_fed *out);

/* By a file's first bytes, some hundred: the option of hyptrace import that takes it, without dashes; NULL:
 * none. */
const char *import_guess(const void *data, size_t len);

#endif
