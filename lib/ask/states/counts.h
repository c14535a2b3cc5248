/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_COUNTS_H
#define HYPTRACE_COUNTS_H

#include "ask/states/pass.h"

/* A CPU of a buffer; as the timeline's streams. */
struct counts_cpu {
	size_t input, buffer;
	unsigned int cpu;
	uint64_t events, lost; /* lost: those whose number is known */
	uint64_t gaps;	       /* losses whose number is not known */
	uint64_t first, last;  /* times; of no record: UINT64_MAX and 0 */
};

/* Counts of records of each event in each buffer by slices of time, and of lost ones on each CPU. */
struct counts {
	struct counts_cpu *cpus; /* by stream; for others to read, after counts_finish() */
	size_t n_cpus;
	/* Private. */
	const struct inputs *in;
	uint64_t from, width; /* of the first slice, ns; the last one has what is later, too */
	size_t slices, n_workers;
	struct counts_events {
		size_t from; /* where its buffer's events begin */
		size_t ids;  /* all ids that have no format count there */
	} * at;		     /* by stream */
	struct counts_worker {
		uint64_t *events; /* by buffer, event and slice; what is never seen costs no memory */
		struct counts_cpu *cpus;
	} * workers; /* by thread */
};

/* in: loaded; both outlive it. from, width: of slices; if there is one, all is in it. -ENOMEM. */
int counts_open(struct counts *c, const struct inputs *in, const struct timeline *t, size_t slices,
		uint64_t from, uint64_t width);
void counts_release(struct counts *c);
/* Needs no order. */
struct pass_part counts_part(struct counts *c);

static inline size_t counts_slice(const struct counts *c, uint64_t ts)
{
	uint64_t slice = c->slices > 1 && ts > c->from ? (ts - c->from) / c->width : 0;

	return slice < c->slices ? (size_t)slice : c->slices - 1;
}

/* To be called after reading: adds up the CPUs of all threads. */
void counts_finish(struct counts *c);
/* Adds the counts of another CPU. */
void counts_add_cpu(struct counts_cpu *to, const struct counts_cpu *from);
/*
 * Records with that id in the buffer of a CPU, all of its CPUs', in a slice; an id beyond all that have a
 * format: input->n_known for all of these.
 */
uint64_t counts_of(const struct counts *c, size_t cpu, size_t id, size_t slice);

#endif
