/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_STATES_PRIV_H
#define HYPTRACE_STATES_PRIV_H

#include "analysis/states.h"
#include "read/names.h"
#include "util/arena.h"

/*
 * What is known at a time of threads, CPUs and vCPUs (states-sched.c, states-kvm.c, states-gap.c), what
 * state follows from it (states-tell.c), and its spans (states-track.c).
 */
enum run_side { RUN_UNKNOWN, RUN_ON, RUN_WAITS, RUN_SLEEPS, RUN_ENDED };
enum kvm_side { KVM_UNKNOWN, KVM_IN, KVM_OUT, KVM_USER };
/* HYP_UNTOLD: the guest again, or the host: hyp_exit without a reason */
enum hyp_side { HYP_UNKNOWN, HYP_HOST, HYP_EL2, HYP_EL3, HYP_GUEST, HYP_UNTOLD };

/* Events that are lost together: what they tell is unknown without one of them. */
enum state_family { FAMILY_SCHED, FAMILY_KVM, FAMILY_HYP, FAMILIES };

#define STATE_CPUS_MAX	  65536
#define STATE_BUFFERS_MAX 64 /* of a file; those beyond count as the last */
#define STATE_REASONS	  256
#define STATE_HYP_STEP	  1000 /* ns: the hypervisor's text has whole us */

/* What a span says but for its ends. */
struct state_view {
	uint8_t state, by, why, coarse;
	uint32_t cpu;
	int32_t other;
	uint16_t other_input;
	uint64_t reason, class;
};

struct state_track {
	struct state_owner owner;
	bool on; /* its spans are wanted */
	struct state_view view;
	uint64_t from, from_bound;
	uint64_t sure; /* from when on all that told the view had certainly happened */
	struct state_event first;
	struct state_span held; /* a guest's task: what comes before the open span; no owner: nothing */
};

struct state_task {
	int32_t pid;
	uint16_t input;
	uint8_t run;
	bool listed;
	struct state_cpu *cpu;	       /* where it runs, waits or ran last; NULL: not known */
	uint64_t sure;		       /* when `run` had certainly begun */
	int32_t thief;		       /* RUN_WAITS: who had the CPU at first */
	struct state_track *track;     /* NULL: not wanted */
	struct state_vcpu *vcpu;       /* NULL: it is none */
	struct state_task *next, **at; /* of the input's, run known */
};

struct state_vcpu {
	struct state_track track;
	struct state_input *in;
	struct state_task *task;
	uint8_t kvm;
	bool halts;   /* its last exit was for WFI or HLT */
	bool entered; /* into the guest, since the last kvm_entry */
	uint8_t why;  /* of being out */
	uint64_t reason, class;
	struct state_cpu *cpu;			   /* of its last event; NULL: none yet */
	struct state_cpu *guest;		   /* the guest's CPU that it is; NULL: not among the files */
	struct state_cpu *inside_on;		   /* whose `inside` it was last */
	struct state_vcpu *next;		   /* of the input's */
	struct state_vcpu *waits_next, **waits_at; /* for a CPU */
};

struct state_cpu {
	uint32_t number;
	struct state_input *in;
	int32_t pid;		 /* who runs; STATE_NO_TASK: not known */
	struct state_task *task; /* NULL: idle, or not known, or none that is kept */
	struct state_vcpu *waiting;
	struct state_vcpu *loaded; /* the last one with an event here */
	struct state_vcpu *vcpu;   /* a guest's CPU: which vCPU it is; NULL: not among the files */
	uint8_t hyp;
	uint8_t hyp_why;
	struct state_vcpu *inside; /* who went into the guest last and not back to the host; NULL: not told */
	uint64_t hyp_reason;
	uint64_t hyp_since;
	uint64_t hyp_sure; /* when `hyp` had certainly begun */
	uint64_t gaps;	   /* buffers in which events are missing now */
	bool gap[FAMILIES];
};

_Static_assert(STEP_KINDS <= 32, "state_input has a bit for each");

struct state_input {
	const struct input *in;
	uint16_t index;
	bool x86;
	bool blind; /* hyp_exit without a reason was seen */
	struct state_input *host;
	uint32_t kinds;			     /* which were seen; 1u << kind */
	uint8_t buffer[STEP_KINDS];	     /* where first: the same events in another buffer add nothing */
	uint64_t live[STATE_BUFFERS_MAX];    /* last step */
	unsigned int gaps[FAMILIES];	     /* CPUs with a gap */
	uint32_t streams[STATE_BUFFERS_MAX]; /* CPUs that still give records */
	uint64_t over;			     /* buffers of which none does */
	struct state_cpu **cpus;
	size_t n_cpus;
	struct state_vcpu *vcpus;
	struct state_task *tasks; /* run known */
	/* filetime_bound() behind raw time bound_from up to bound_to */
	uint64_t bound_from, bound_to, bound;
	uint8_t hyp_exit_to[STATE_REASONS];
	struct names names;
};

struct states {
	const struct steps *steps;
	unsigned int want;
	state_listener *span;
	void *ctx;
	int error;
	bool begun, ended;
	uint64_t from, now;
	struct state_event cause; /* of what changes now */
	uint64_t cause_bound;
	bool amend; /* what is shown replaces the open span, if that began at amend_from or later */
	uint64_t amend_from;
	struct state_input *in;
	size_t n;
	struct arena arena;
	struct state_task **tasks; /* by input and pid; open addressing, at most half full */
	size_t n_tasks, tasks_room, n_vcpus;
	struct state_track **tracks; /* by the owner's index */
	size_t n_tracks;
	uint64_t left_out;
};

/* When what is told now has certainly happened. */
static inline uint64_t state_sure(const struct states *st)
{
	return st->cause_bound < UINT64_MAX - st->now ? st->now + st->cause_bound : UINT64_MAX;
}

static inline bool state_seen(const struct state_input *in, enum step_kind kind)
{
	return in->kinds & 1u << kind;
}

/* kvm_entry and kvm_exit, or neither: one alone does not say when what it began was over. */
static inline bool state_kvm_paired(const struct state_input *in)
{
	return state_seen(in, STEP_KVM_ENTRY) == state_seen(in, STEP_KVM_EXIT);
}

static inline bool state_seen_hyp(const struct state_input *in)
{
	return in->kinds & (1u << STEP_HYP_ENTER | 1u << STEP_HYP_EXIT);
}

static inline bool state_seen_kvm(const struct state_input *in)
{
	return in->kinds & (1u << STEP_KVM_ENTRY | 1u << STEP_KVM_EXIT);
}

/* states-track.c: from now on the track shows this. */
void state_track_show(struct states *st, struct state_track *t, const struct state_view *v);
/* Ends the open span at `at` and opens the next one there. */
void state_track_cut(struct states *st, struct state_track *t, uint64_t at, const struct state_view *v);
/* Who woke it, which is known at the end of a sleep, and whether that is told no finer still. */
void state_track_woken(struct state_track *t, int32_t pid, uint16_t input, bool coarse);
/* Shown until `until` at most, and unknown from there to `end`. */
void state_track_end(struct states *st, struct state_track *t, uint64_t until, uint64_t end);
/* A track that begins with the recording, unknown. -ENOMEM. */
int state_track_begin(struct states *st, struct state_track *t, enum state_kind kind, uint16_t input,
		      int32_t pid);

/* states-table.c: found or made; NULL: none, or no room (states_left_out), or no memory (st->error). */
struct state_task *state_task_find(const struct states *st, const struct state_input *in, int32_t pid);
struct state_task *state_task_of(struct states *st, struct state_input *in, int32_t pid);
struct state_vcpu *state_vcpu_of(struct states *st, struct state_input *in, int32_t pid);
struct state_cpu *state_cpu_new(struct states *st, struct state_input *in, uint64_t number);
static inline struct state_cpu *state_cpu_of(struct states *st, struct state_input *in, uint64_t number)
{
	return number < in->n_cpus && in->cpus[number] ? in->cpus[number] : state_cpu_new(st, in, number);
}

/* states-tell.c: after what is known of it changed. */
void state_task_settle(struct states *st, struct state_task *t);
void state_vcpu_settle(struct states *st, struct state_vcpu *v);
/* Whether a halt may be a block, or a block a halt: no exit, or none to the VMM, is told. */
bool state_halt_coarse(const struct state_vcpu *v);
/* The vCPU whose state depends on what the CPU does; NULL: none. */
struct state_vcpu *state_cpu_vcpu(const struct state_cpu *c);
/* What was shown since the last change cannot be: it becomes unknown. */
void state_task_doubt(struct states *st, struct state_task *t);
void state_vcpu_doubt(struct states *st, struct state_vcpu *v);
/* Until which time what the track shows is proven, if nothing follows. */
uint64_t state_proven(const struct states *st, const struct state_track *t);

/*
 * states-run.c: what a thread does and on which CPU (NULL: as before), with the lists that it is on; unknown
 * where an event that is missing could have changed it. Not yet shown.
 */
void state_run_set(struct states *st, struct state_task *t, enum run_side run, struct state_cpu *c);
/* Likewise what a vCPU does by KVM. */
void state_kvm_set(struct state_vcpu *v, enum kvm_side side);
/* Whether events that are missing now could have changed it. */
bool state_kvm_exposed(const struct state_vcpu *v);

/* A step of these, on that CPU. */
void state_sched_step(struct states *st, struct state_cpu *c, const struct step *s);
void state_kvm_step(struct states *st, struct state_cpu *c, const struct step *s);
void state_hyp_step(struct states *st, struct state_cpu *c, const struct step *s);
/* The host had an event there, and it was not known, or not told, whose the CPU is: the host's. */
void state_hyp_is_host(struct states *st, struct state_cpu *c);
/* An event shows that a task runs there. */
void state_sched_proof(struct states *st, struct state_cpu *c, struct state_task *t);
/* STEP_GAP, STEP_LOST. */
void state_gap_step(struct states *st, struct state_cpu *c, const struct step *s);
/* Nothing comes of a buffer any more: the rest of all its CPUs is a gap. */
void state_gap_over(struct states *st, struct state_input *in, uint8_t buffer);
/* A CPU that has not heard of that. */
void state_gap_tell(struct states *st, struct state_cpu *c);
/* A kind of step was seen for the first time in that buffer. */
void state_gap_learn(struct state_input *in, enum step_kind kind, uint8_t buffer);

#endif
