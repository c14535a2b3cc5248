/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_QEMU_H
#define HYPTRACE_QEMU_H

#include <stdint.h>

#include "base/log.h"

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

/* -errno, which is logged: then there is no file. -EBADMSG: it is no such file; -ENODATA: it has no events.
 */
int qemu_import(const struct qemu_opts *o, struct qemu_result *r);

#endif
