/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_WHY_H
#define HYPTRACE_WHY_H

#include "ask/latency/latency.h"
#include "ask/states/reading.h"
#include "base/decode/mark-lines.h"

/*
 * Causes of slow instances: chains of ask/latency, each cut into disjoint stretches by the states
 * (ask/states) of what it waited for. Of a stage of a preset that is the vCPU that has the interrupt or the
 * exit, or the worker of a device; of --from and --to the vCPU, or the host's task, of the event that ends
 * the pair.
 *
 * The stretches of an instance join without a gap: their sum is the instance, to the nanosecond. Where the
 * causes on both sides of a border differ, what lies within the border's bound is undecided.
 */
enum why_kind {
	/* besides enum state, of which PREEMPTED is of tasks, too, and RUNNING and SLEEPING are of a host's
	 */
	WHY_UNDECIDED = STATES, /* within the clocks' bounds */
	WHY_INJECTION,		/* the guest runs, and does not know of the interrupt yet */
	WHY_LOST,		/* unknown, and events were lost meanwhile */
	WHY_OTHERS,		/* all causes beyond WHY_CAUSES_MAX */
	WHY_TOTAL,
	WHY_KINDS
};

struct why_cause {
	uint32_t kind;	/* enum state, or why_kind */
	uint16_t input; /* the machine of pid and cpu, or of the reason */
	uint16_t why;	/* as a state_span's */
	uint32_t cpu;	/* STATE_NO_CPU: it does not matter */
	int32_t pid;	/* STATE_NO_TASK; of PREEMPTED who had the CPU */
	uint64_t reason, class;
	char comm[16]; /* of PREEMPTED by no vCPU; tasks of that name are one cause, and have no pid */
};

struct why_stretch {
	uint64_t from, to; /* ns of the host's clock */
	uint64_t from_bound, to_bound;
	uint32_t cause; /* index of struct why's */
};

struct why_instance {
	struct latency_worst chain;
	size_t n_points;
	struct latency_key row;
	uint64_t from, to;     /* of a timer since it fired: it was set to the time before */
	struct why_stretch *v; /* in order */
	size_t n;
	struct why_stretch *tasks; /* while reading: what its guest ran */
	size_t n_tasks;
};

/* A cause in the middle (p40 to p60) and in the tail. */
struct why_row {
	struct why_cause cause;
	double typical, tail;		    /* ns of an instance, mean */
	double share;			    /* of the difference of both means */
	double low, high;		    /* ... 95 % of resamplings */
	size_t in;			    /* instances of the tail that have it */
	const struct why_instance *example; /* the one of the tail that has most of it */
	uint64_t example_ns;
};

#define WHY_CAUSES_MAX 256
#define WHY_TAIL_MIN   3 /* instances, else there is no tail */

struct why_comparison {
	uint64_t seen; /* instances, of which n_all were kept, evenly */
	size_t n_all;
	uint64_t p50, p_tail; /* ns: the shortest of the tail; 0: there is none */
	size_t n_typical, n_tail;
	bool stands_out; /* there is a tail, and it is longer than the middle */
	struct why_row v[WHY_CAUSES_MAX + 1];
	size_t n; /* the largest share first; v[n]: the total */
};

struct why; /* opaque */

/* in: loaded, and outlives it. preset: NULL of --from and --to. *out is to be closed in any case. -ENOMEM. */
int why_open(struct why **out, const struct inputs *in, const struct latency_preset *preset);
void why_close(struct why *w);
/* A plan's `each`; ctx: struct why. -ENOMEM. */
int why_chain(void *ctx, const struct latency_worst *chain, const struct latency_key *row, size_t n_points);
/*
 * Reads the files for the spans of that name that programs mark (ask/states/markers.h), and keeps them as
 * why_chain does. desc: NULL for none. -ENOENT: no span of that name has ended; -ENOMEM, -errno.
 */
int why_marks(struct why *w, const char *name, const struct mark_desc *desc, const struct log *log,
	      uint64_t *damaged);
/*
 * After the instances are kept: reads the files once more, and cuts all instances that were kept. -E2BIG:
 * they have too many stretches; -ENOMEM, -errno.
 */
int why_cut(struct why *w, const struct vcpu_map *vcpus);
/*
 * tail: the share, 0 to 1, of instances that are not in it. n_tail 0: it would have too few, and the means of
 * all are the typical ones. -ENOMEM.
 */
int why_compare(const struct why *w, double tail, struct why_comparison *c);

/* "preempted by hog-620 on CPU 2", "hypervisor (host_abort)". */
void why_cause_text(const struct why *w, const struct why_cause *c, struct buf *out);
/* Kinds of time: without a price; exits, and those after which the guest halts; wake-ups of CPUs, other parts
 * of exits, and accesses to devices, of which the VMM may handle some. */
enum finding_class { OF_ALL, OF_EXITS, OF_HALTS, OF_WAKES, OF_PARTS, OF_ACCESSES };

const struct why_kind_words {
	const char *name;   /* "preempted", "hypervisor": one word */
	const char *advice; /* its meaning, or events to record; NULL: it needs no word */
	const char *next;   /* a finding's; NULL: it takes no time from a vCPU */
	enum finding_class class;
} * why_kind(unsigned int kind);

/* ---- without a question --------------------------------------------------------------------------- */

struct finding_stretch {
	uint64_t from, to; /* ns of the host's clock; to 0: there is none */
};

/*
 * Something that took time from vCPUs. What an exit takes ordinarily on that machine is no loss, unless
 * there are FINDING_STORM a second of one kind.
 */
#define FINDING_STORM 2000
struct finding {
	char what[320];
	uint64_t lost, n;		/* ns, and stretches, of all vCPUs */
	double share;			/* of the time of the vCPU that lost the greatest */
	char vcpu[64];			/* that one */
	struct state_owner on;		/* ... its names are the inputs' */
	double rate;			/* stretches a second there */
	struct finding_stretch example; /* the longest there */
	const char *next;		/* a command that shows more, without its files */
	bool context;			/* no cause: for struct findings' n_context */
};

/* Zero-initialised; v: the caller's to free; those that took most first. */
struct findings {
	struct finding *v;
	size_t n;
	uint64_t wall;	  /* ns of all vCPUs; 0: the files show none, or */
	bool apart;	  /* ... the buffers that show them have no time in common */
	size_t n_context; /* after these: what exits cost ordinarily, and what the recorder took */
};

/* Reads the files once. -ENOMEM, -errno. */
int findings_read(struct findings *f, const struct inputs *in, const struct log *log, uint64_t *damaged);

/*
 * The same by a reading that others share: joined before it, ended after it, once. findings_close in any
 * case, which takes NULL. -ENOMEM.
 */
struct finding_job; /* opaque */
int findings_join(struct finding_job **out, struct reading *r);
int findings_end(struct finding_job *j, struct findings *f);
void findings_close(struct finding_job *j);

#endif
