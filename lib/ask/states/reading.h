/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_READING_H
#define HYPTRACE_READING_H

#include "ask/states/exit-sums.h"
#include "ask/states/markers.h"
#include "ask/states/states.h"
#include "base/arena.h"

/* One pass for several answers: each adds its parts, and shares the models that others need, too. */
struct reading {
	const struct inputs *in;
	struct timeline *timeline;
	struct steps *steps;
	const struct mark_desc *desc; /* NULL: none */
	struct states *states;	      /* these three are opened by the first who asks for them */
	struct exits *exits;
	struct markers *markers;
	struct pass_part parts[PASS_PARTS_MAX];
	size_t n;
};

/* in: loaded; in and desc outlive it. -ENOMEM, -errno of the files. reading_close also in case of an error.
 */
int reading_open(struct reading *r, const struct inputs *in, const struct mark_desc *desc,
		 const struct log *log);
void reading_close(struct reading *r);
/* reading_run refuses more than PASS_PARTS_MAX. */
void reading_add(struct reading *r, struct pass_part part);
/* Sends the spans of these owners to the listener, as states_open does. -ENOMEM. */
int reading_states(struct reading *r, unsigned int owners, state_listener *span, void *ctx);
/* to: as of exits_open, of the first who asks. -ENOMEM. */
int reading_exits(struct reading *r, struct tally *to);
int reading_markers(struct reading *r);
/* Reads the files for all parts, and ends the models. As pass_read; the result of a listener. */
int reading_run(struct reading *r);
/* Damaged places that it met. */
uint64_t reading_damaged(const struct reading *r);

/* ---- parts of their own: counts.c ------------------------------------------------------------- */

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

/* ---- hyptime.c -------------------------------------------------------------------------------- */

/*
 * The time that CPUs spend in the hypervisor: visits (spans/spans.h), by their reasons.
 *
 * And in the firmware, EL3: the hypervisor emits hyp_exit with the reason smc before it calls, and
 * hyp_enter when that returns: with smc after the call, with psci when the CPU had been off or
 * suspended meanwhile. Android's have no reasons.
 */
struct hyptime {
	/* For others to read, after the last record. */
	struct hyptime_rows {
		struct hyptime_row {
			size_t input;
			uint64_t kind;	       /* for hyptime_name; a visit's `why` */
			struct histogram time; /* ns */
		} * v;
		size_t n;
		uint32_t **slots; /* by input and kind: 0: none yet, else 1 + its index */
	} visits, firmware;	  /* by reason; the firmware's by the reason of coming back */
	uint64_t enters, exits;	  /* unfinished visits: without a hyp_exit, without a hyp_enter */
	struct hyptime_cpu {
		struct visit visit;
		uint64_t since; /* the firmware's call */
		bool calls;	/* from a hyp_exit for smc to the next hyp_enter */
		bool seen;	/* it has the hypervisor's events */
	} * cpus;		/* by stream */
	/* Private. */
	size_t n_cpus;
	const struct inputs *in;
	const struct steps *steps;
	struct tally *to;
	bool (*is_smc)[SPAN_REASONS]; /* by input: of hyp_exit's reasons */
	struct arena names;
};

/* All outlive it; to: NULL, or gets each visit. -ENOMEM. */
int hyptime_open(struct hyptime **out, const struct inputs *in, const struct timeline *t,
		 const struct steps *steps, struct tally *to);
void hyptime_close(struct hyptime *h);
/* In order. */
struct pass_part hyptime_part(struct hyptime *h);

/* After the last record: visits that are still open are unfinished. */
void hyptime_finish(struct hyptime *h);
/* The word of a kind; NULL: the events have none. Valid until hyptime_close. */
const char *hyptime_name(struct hyptime *h, size_t input, uint64_t kind);

/* ---- samples.c -------------------------------------------------------------------------------- */

/*
 * CPU use by samples (record --profile): of each machine's tasks, by name, the number of samples in each mode
 * of the CPU. The modes are the sample's, PERF_RECORD_MISC_CPUMODE_MASK of perf; arm64's
 * hosts see a guest as SAMPLE_GUEST_KERNEL only.
 */
enum sample_mode {
	SAMPLE_UNKNOWN,
	SAMPLE_KERNEL,
	SAMPLE_USER,
	SAMPLE_HYPERVISOR,
	SAMPLE_GUEST_KERNEL,
	SAMPLE_GUEST_USER,
	SAMPLE_MODES
};

struct samples_row {
	size_t input;
	const char *comm; /* "<idle>": no task ran; valid until samples_release */
	uint64_t all, n[SAMPLE_MODES];
};

/* Zero-initialised but for the steps = none. */
struct samples {
	const struct steps *steps;
	struct samples_row *rows;
	size_t n;
	struct map by_comm;
	struct arena names;
};

void samples_release(struct samples *s);
/* In order. */
struct pass_part samples_part(struct samples *s);
/* After the last record: by machine, the most first. */
void samples_sort(struct samples *s);

#endif
