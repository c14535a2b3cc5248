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
	 * A copy of the kernel's events/hypervisor (or events/hyp, or of all of events/): NAME/format, and
	 * header_page for raw pages. NULL: the events that kernels are known to have, for text alone.
	 */
	const char *events;
	const struct log *log;
};

/* -EEXIST: the file has a hypervisor's buffer. Without output on error (logged). */
int import(const struct import_opts *o, struct drain_totals *out);

/* By a file's first bytes, some hundred: the option of hyptrace import that takes it, without dashes; NULL:
 * none. */
const char *import_guess(const void *data, size_t len);

/*
 * The kernel's and the hypervisor's events of a Perfetto trace become trace.dat files: the machine's that
 * recorded, and one for each other machine in it.
 *
 * Packets are read one after the other, and none is kept. Those of a data source are in the order of time
 * on each CPU, which is Perfetto's promise (ftrace_event_bundle.proto); within a bundle its events and
 * those of compact_sched are put into one order. Data sources are in no order among each other: each has a
 * buffer of its own, but for the hypervisor's, which is known by its events.
 */
struct pftrace_opts {
	const char *input;
	const char *output;
	const char *formats; /* a copy of the kernel's events/, or NULL */
	const struct log *log;
};

struct pftrace_result {
	uint64_t events;   /* all that were written */
	uint64_t hyp;	   /* of them the hypervisor's */
	uint64_t lost;	   /* places where events were lost */
	uint64_t overrun;  /* events that the kernel overwrote, by the statistics in the trace */
	bool counted;	   /* it has these */
	uint64_t bad;	   /* packets that make no sense */
	uint64_t left_out; /* events, with those on CPUs that cannot be */
	uint64_t late;	   /* events before others that came earlier on their CPU */
	uint64_t cut;	   /* texts that did not fit */
	struct strlist files;
};

/*
 * Events that are not kept are logged. -errno, logged, too: then there is no file of a machine whose writing
 * failed. Release r->files.
 */
int pftrace_import(const struct pftrace_opts *o, struct pftrace_result *r);

/*
 * Makes a trace.dat of QEMU's own trace events, in the order of time, all on CPU 0: the files do not have
 * the CPU of the host.
 *   - the log back end's lines, those with a time ("PID@SEC.USEC:NAME ..." or "2026-11-21T02:23:57.441296Z
 *     NAME ..."): CLOCK_REALTIME, us
 *   - the simple back end's file of version 4 (little endian): CLOCK_MONOTONIC, ns
 * QEMU describes them in "Tracing" (its developer's manual), and in the code of these back ends.
 */
struct qemu_opts {
	const char *input;
	const char *rings; /* GUEST=FILE, the memory of a guest's marks after the recording; NULL: none */
	const char *output;
	const struct log *log;
};

struct qemu_result {
	uint64_t events;    /* all that were written */
	uint64_t doorbells; /* of them writes to an ivshmem device's doorbell (file/wire/hypertrace-ring.h) */
	uint64_t marks;	    /* of these with the arguments of their mark, which is in the rings */
	uint64_t lost;	    /* that QEMU dropped */
	uint64_t passed;    /* lines that are none of an event, with those without a time */
	uint64_t bad;	    /* records that make no sense */
	uint64_t cut;	    /* texts that did not fit */
	const char *clock;  /* "mono"; "realtime", for which the kernel has no trace clock */
};

/* -errno, logged: then there is no file. -EBADMSG: it is no such file; -ENODATA: it has no events. */
int qemu_import(const struct qemu_opts *o, struct qemu_result *r);

#endif
