/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_COUNTS_H
#define HYPTRACE_COUNTS_H

#include "analysis/pass.h"

/* How many records there are of each event in each buffer, and what was lost on each CPU. */
struct counts; /* opaque */

/* A CPU of a buffer; as the timeline's streams. */
struct counts_cpu {
	size_t input, buffer;
	unsigned int cpu;
	uint64_t events, lost; /* lost: those whose number is known */
	uint64_t gaps;	       /* losses whose number is not known */
	uint64_t first, last;  /* times; of no record: UINT64_MAX and 0 */
};

/* in: loaded; both outlive it. -ENOMEM. */
int counts_open(struct counts **out, const struct inputs *in, const struct timeline *t);
void counts_close(struct counts *c);
/* Needs no order. */
struct pass_part counts_part(struct counts *c);

/* When all is read: puts together what each thread counted. */
void counts_finish(struct counts *c);
const struct counts_cpu *counts_cpus(const struct counts *c, size_t *n);
/*
 * Records with that id in the buffer of a CPU, all of its CPUs'; an id beyond all that have a format:
 * input->n_known for all of these.
 */
uint64_t counts_of(const struct counts *c, size_t cpu, size_t id);

#endif
