/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_PFTRACE_H
#define HYPTRACE_PFTRACE_H

#include "base/log.h"
#include "base/strings.h"

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

#endif
