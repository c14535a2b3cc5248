/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_STATES_PRIV_H
#define HYPTRACE_STATES_PRIV_H

#include <sys/queue.h>

#include "ask/states/states.h"
#include "base/arena.h"
#include "base/workers.h"

/*
 * Threads, CPUs and vCPUs as they are known at a time (states-events.c), and the states that
 * follow from that, with their spans (states-derive.c).
 */
enum run_side { RUN_UNKNOWN, RUN_ON, RUN_WAITS, RUN_SLEEPS, RUN_ENDED };
enum kvm_side { KVM_UNKNOWN, KVM_IN, KVM_OUT, KVM_USER };
/* HYP_UNTOLD: the guest again, or the host: hyp_exit without a reason */
enum hyp_side { HYP_UNKNOWN, HYP_HOST, HYP_EL2, HYP_EL3, HYP_GUEST, HYP_UNTOLD };

/* Events that are lost together: without one of them what the others show is unknown. */
enum state_family { FAMILY_SCHED, FAMILY_KVM, FAMILY_HYP, FAMILIES };

#define STATE_SCHED_KINDS (STEP_SET(STEP_SWITCH) | STEP_SET(STEP_WAKING) | STEP_SET(STEP_WAKEUP))
#define STATE_HYP_KINDS	  (STEP_SET(STEP_HYP_ENTER) | STEP_SET(STEP_HYP_EXIT))

#define STATE_CPUS_MAX	  65536
#define STATE_BUFFERS_MAX 64 /* of a file; those beyond count as the last */
#define STATE_REASONS	  256
#define STATE_HYP_STEP	  1000 /* ns: the hypervisor's text has whole us */

struct state_track {
	struct state_owner *owner;
	struct state_input *in; /* the owner's */
	bool on;		/* its spans are wanted */
	struct state_span open; /* without its end */
	struct state_span held; /* a guest's task: what comes before the open span; no owner: nothing */
	uint64_t sure;		/* all events that prove what is open had certainly happened by then */
};

struct state_task {
	int32_t pid;
	uint16_t input;
	uint8_t run;
	bool listed;
	struct state_cpu *cpu;		/* where it runs, waits or ran last; NULL: not known */
	uint64_t sure;			/* when `run` had certainly begun */
	int32_t preempter;		/* RUN_WAITS: the task that had the CPU at first */
	struct state_track *track;	/* NULL: not wanted */
	struct state_vcpu *vcpu;	/* NULL: it is none */
	LIST_ENTRY(state_task) in_list; /* of the input's, run known */
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
	struct state_cpu *cpu;	      /* of its last event; NULL: none yet */
	struct state_cpu *guest;      /* the guest's CPU that it is; NULL: not among the files */
	struct state_cpu *inside_on;  /* whose `inside` it was last */
	struct state_vcpu *next;      /* of the input's */
	LIST_ENTRY(state_vcpu) waits; /* for a CPU; le_prev NULL: for none */
};

struct state_cpu {
	uint32_t number;
	struct state_input *in;
	int32_t pid;		 /* of the task that runs; STATE_NO_TASK: not known */
	struct state_task *task; /* NULL: idle, unknown, or not kept */
	LIST_HEAD(state_waiting, state_vcpu) waiting;
	struct state_vcpu *loaded; /* the last one with an event here */
	struct state_vcpu *vcpu;   /* a guest's CPU: which vCPU it is; NULL: not among the files */
	uint8_t hyp;
	uint8_t hyp_why;
	struct state_vcpu *inside; /* went into the guest last and not back to the host; NULL: not known */
	uint64_t hyp_reason;
	uint64_t hyp_since;
	uint64_t hyp_sure; /* when `hyp` had certainly begun */
	uint64_t guest_at; /* HYP_UNTOLD: when an event of the guest had certainly followed; 0: none did */
	uint64_t gaps;	   /* buffers in which events are missing now */
	bool gap[FAMILIES];
};

_Static_assert(STEP_KINDS <= 64, "state_input has a bit for each");

struct state_input {
	const struct input *in;
	uint16_t index;
	bool x86;
	bool without_reasons; /* hyp_exit without a reason was seen */
	struct state_input *host;
	uint64_t kinds;		    /* which were seen; STEP_SET(kind) */
	uint8_t buffer[STEP_KINDS]; /* where first: in another buffer they add nothing; not seen: none's */
	uint64_t live[STATE_BUFFERS_MAX];    /* last step */
	unsigned int gaps[FAMILIES];	     /* CPUs with a gap */
	uint32_t streams[STATE_BUFFERS_MAX]; /* CPUs that still give records */
	uint64_t over;			     /* buffers of which none does */
	uint64_t needed;		     /* buffers that have shown states */
	uint64_t begun, over_at;	     /* when all of them had begun, when the first was over */
	uint64_t covered_from, covered_to; /* the same with those of its hosts, from the recording's begin */
	uint64_t lost;			   /* the end of the last loss of events; 0: none yet */
	uint64_t bound;			   /* of a guest's clock at its last event, or 0 */
	struct state_cpu **cpus;
	size_t n_cpus;
	struct state_vcpu *vcpus;
	LIST_HEAD(state_known, state_task) tasks; /* run known */
	uint64_t widest;			  /* the greatest of all; UINT64_MAX: some are not known */
	uint8_t hyp_exit_to[STATE_REASONS];
};

struct states {
	const struct steps *steps;
	unsigned int want; /* by any of them */
	struct state_listening {
		unsigned int want;
		state_listener *span;
		void *ctx;
	} * listeners;
	size_t n_listeners;
	struct state_input *in;
	size_t n;
	struct state_cpu **streams; /* a guest's: its CPU; NULL: a host's */
	size_t n_streams;	    /* 0: none is a guest's */
	OWN_LINE struct buf *spans; /* that takes them; NULL: listeners get them at once */
	bool later;		    /* some listeners do more than add up, and wait for states_after() */
	int error;
	bool begun, ended, without_reasons; /* without_reasons: of any input */
	uint64_t from, now;
	uint64_t cause_bound; /* of the time of what changes now: as a span's */
	uint16_t cause_input; /* the input of that */
	bool amend;	      /* what is shown replaces the open span, if that began at amend_from or later */
	uint64_t amend_from;
	struct arena arena;
	struct arena owners; /* not beside what changes: listeners read them meanwhile */
	struct state_task **tasks;
	struct map by_task; /* of them, by input and pid */
	size_t n_tasks, n_vcpus;
	struct state_track **tracks; /* by the owner's index */
	size_t n_tracks;
	/* tracks with a held span, in the order of its end; from `given` on */
	struct state_holding {
		struct state_track *track;
		uint64_t to;
	} * holding;
	size_t n_holding, given;
	uint64_t left_out;
};

/* The time by which the step that is taken had certainly happened. */
static inline uint64_t state_sure(const struct states *st)
{
	return st->cause_bound < UINT64_MAX - st->now ? st->now + st->cause_bound : UINT64_MAX;
}

static inline bool state_seen(const struct state_input *in, enum step_kind kind)
{
	return in->kinds & STEP_SET(kind);
}

/* kvm_entry and kvm_exit, or neither: one without the other does not say when what it began was over. */
static inline bool state_kvm_paired(const struct state_input *in)
{
	return state_seen(in, STEP_KVM_ENTRY) == state_seen(in, STEP_KVM_EXIT);
}

static inline bool state_seen_hyp(const struct state_input *in)
{
	return in->kinds & STATE_HYP_KINDS;
}

/* states-derive.c. Ends the open span at `at` and opens the next one there, with that view. */
void state_track_cut(struct states *st, struct state_track *t, uint64_t at, const struct state_span *v);
/* The task that woke it, which is known at the end of a sleep, and whether that is still coarse. */
void state_track_woken(struct state_track *t, int32_t pid, uint16_t input, bool coarse);
/* The recording ended: shown as far as it is proven, and unknown from there on. */
void state_track_end(struct states *st, struct state_track *t);
/* Gives held spans that no event to come can change. */
void state_tracks_give(struct states *st);
/* Calls the listeners that want it. The first result other than 0. */
int states_tell(const struct states *st, const struct state_span *span);

/* To be called after what an input and its host cover has changed. */
void states_cover(struct states *st);

/* states-derive.c: found or made; NULL: none, or no room (states_left_out), or no memory (st->error). */
struct state_task *state_task_of(struct states *st, struct state_input *in, int32_t pid);
struct state_vcpu *state_vcpu_of(struct states *st, struct state_input *in, int32_t pid);
struct state_cpu *state_cpu_new(struct states *st, struct state_input *in, uint64_t number);
static inline struct state_cpu *state_cpu_of(struct states *st, struct state_input *in, uint64_t number)
{
	return number < in->n_cpus && in->cpus[number] ? in->cpus[number] : state_cpu_new(st, in, number);
}

/* states-derive.c. To be called after what is known of it changed. */
void state_task_settle(struct states *st, struct state_task *t);
void state_vcpu_settle(struct states *st, struct state_vcpu *v);
/* True if a halt may be a block, or a block a halt: no exit, or none to the VMM, was recorded. */
bool state_halt_coarse(const struct state_vcpu *v);
/* The vCPU whose state depends on what the CPU does; NULL: none. */
static inline struct state_vcpu *state_cpu_vcpu(const struct state_cpu *c)
{
	if (c->task)
		return c->task->vcpu;
	return c->pid == STATE_NO_TASK && c->loaded && c->loaded->cpu == c ? c->loaded : NULL;
}

/* The view since the last change cannot be right: it becomes unknown. */
void state_task_doubt(struct state_task *t);
void state_vcpu_doubt(struct state_vcpu *v);

/* states-events.c. A step of these kinds, on that CPU. */
void state_sched_step(struct states *st, struct state_cpu *c, const struct step *s);
void state_kvm_step(struct states *st, struct state_cpu *c, const struct step *s);
void state_hyp_step(struct states *st, struct state_cpu *c, const struct step *s);
/* STEP_GAP, STEP_LOST. */
void state_gap_step(struct states *st, struct state_cpu *c, const struct step *s);
/* No more records come of a buffer: the rest of all its CPUs is a gap. */
void state_gap_over(struct states *st, struct state_input *in, uint8_t buffer);
/* The same of a CPU that is new since. */
void state_gap_apply(struct states *st, struct state_cpu *c);
/* A kind of step was seen for the first time in that buffer. */
void state_gap_learn(struct state_input *in, enum step_kind kind, uint8_t buffer);
/* The host had an event there while it was not known who has the CPU: the host has. */
void state_hyp_is_host(struct states *st, struct state_cpu *c);
/*
 * The vCPU's guest had an event at that time, +- bound. After a hyp_exit without a reason the CPU is the
 * host's or the guest's until the next event there: if that was in between, it is the guest's.
 */
void state_hyp_shown(struct states *st, const struct state_vcpu *v, uint64_t ts, uint64_t bound);
/* It was, if it had come by now. */
void state_hyp_is_guest(struct states *st, struct state_cpu *c);

#endif
