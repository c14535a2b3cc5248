/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_STATES_H
#define HYPTRACE_STATES_H

#include "ask/states/pass.h"

/*
 * States of each vCPU, each task of a host and each task of a guest from the recording's first record to its
 * last, as spans with the events that prove them. The spans of an owner follow each other without a gap.
 *
 * The state of a vCPU follows from its host thread, the CPU of that thread and KVM:
 *
 *   guest       the guest's code runs: from hyp_exit for eret_guest to hyp_enter for guest_exit; of a file
 *               without these, from kvm_entry to kvm_exit (coarse on arm64: the hypervisor is in it)
 *   hypervisor  EL2, by hyp_enter's reason, on the CPU of the vCPU's thread, for any caller
 *   firmware    EL3: from hyp_exit to hyp_enter for smc or psci, which wrap the hypervisor's own calls
 *   host        the host's kernel handles the exit or prepares the entry, interrupts included
 *               (coarse: the VMM, the hypervisor or the firmware may be in it)
 *   VMM         user space: from kvm_userspace_exit to the next kvm_entry, the way back into the kernel
 *               included
 *   preempted   the thread could run and another one has the CPU (coarse, of waking too: not known which)
 *   waking      the thread could run and its CPU is idle: it wakes up, or is about to switch
 *   halted      the thread sleeps, or KVM polls, for an interrupt: after WFI or HLT
 *   blocked     the thread sleeps for any other reason (coarse, of both: without an exit's reason, or
 *               without the wake-up at its end)
 *   outside     host, VMM, preempted, waking, halted or blocked: without sched_switch they cannot be set
 * apart
 *
 * `coarse`: the files show no more. It ends where events that would show more are seen for the first time.
 *
 * A task of a guest that its guest runs while its vCPU is not in `guest` is stolen, `by` one of these.
 * A task that a guest runs on a vCPU whose host is not in the files is running, and coarse.
 *
 * After a hyp_exit without a reason the CPU is the guest's if an event of the guest lies certainly before
 * the next event there, the host's if that is the host's own, else unknown.
 *
 * Nothing is guessed: from the first of lost events to the last, what they could have changed is unknown,
 * and so is what precedes the first event of its kind or follows the last.
 */
enum state {
	STATE_UNKNOWN,
	STATE_GUEST, /* of vCPUs */
	STATE_HYP,
	STATE_FIRMWARE,
	STATE_HOST,
	STATE_VMM,
	STATE_PREEMPTED,
	STATE_WAKING,
	STATE_HALTED,
	STATE_BLOCKED,
	STATE_OUTSIDE,
	STATE_RUNNING, /* of tasks */
	STATE_STOLEN,
	STATE_RUNNABLE,
	STATE_SLEEPING,
	STATE_ENDED, /* the task is no more */
	STATES
};

/* An unknown CPU, task, or index of inputs. */
#define STATE_NO_CPU   UINT32_MAX
#define STATE_NO_TASK  (-1)
#define STATE_NO_INPUT UINT16_MAX

enum state_kind { STATE_OF_VCPU, STATE_OF_TASK, STATE_OF_GUEST_TASK };

struct state_owner {
	enum state_kind kind;
	uint32_t index; /* among all owners, from 0, in the order of their appearance */
	uint16_t input; /* index of the file that has its scheduler: a vCPU's host's */
	int32_t pid;	/* a vCPU's: its thread's */
	/* of a vCPU */
	uint16_t guest;		/* index of its guest's file; STATE_NO_INPUT: not among the files */
	uint32_t vcpu;		/* its number; STATE_NO_CPU: unknown */
	const char *guest_name; /* NULL: unknown */
};

struct state_span {
	const struct state_owner *owner; /* good until states_close */
	union {
		struct {
			uint8_t state; /* enum state */
			uint8_t by;    /* STATE_STOLEN: the vCPU's state; else STATE_UNKNOWN */
			bool coarse;   /* see above: the files show no more */
			/*
			 * Why: of STATE_HYP and FIRMWARE the reason of the STEP_HYP_ENTER or STEP_HYP_EXIT
			 * that `why` names; of HOST, VMM, HALTED, BLOCKED, PREEMPTED, WAKING and OUTSIDE that
			 * of the last STEP_KVM_EXIT (or STEP_USER_EXIT of a VMM). STEP_NONE: not known. Also
			 * when stolen by them. See states_reason.
			 */
			uint8_t why;  /* enum step_kind */
			uint32_t cpu; /* of the owner's machine (of a vCPU: the host's), where it ran last */
			/*
			 * A task of other_input. PREEMPTED (or stolen by it): had the CPU; RUNNABLE: had it
			 * at first. HALTED, BLOCKED and SLEEPING: the waker, 0: an interrupt on an idle CPU.
			 * STATE_NO_TASK: not known.
			 */
			int32_t other;
			uint16_t other_input;
			uint16_t unused; /* 0 */
			uint64_t reason, class;
		};
		struct state_view {
			uint64_t v[4];
		} view; /* all of these */
	};
	uint64_t from, to; /* ns of the host's clock; from < to */
	/*
	 * Greatest errors of from and to, ns; UINT64_MAX: not known. 0 between events of one clock. Events
	 * of two clocks nearer than the bound have no order: the state is certain from from + from_bound to
	 * to - to_bound.
	 */
	uint64_t from_bound, to_bound;
	bool lost;			   /* STATE_UNKNOWN: events of its machine were lost meanwhile */
	uint64_t covered_from, covered_to; /* states_covered() so far */
};

/* A result other than 0 ends states_run and states_end. */
typedef int state_listener(void *ctx, const struct state_span *span);

/* Owners whose spans are wanted, bits by enum state_kind; work that only others need is not done. */
enum { STATES_VCPUS = 1, STATES_TASKS = 2, STATES_GUEST_TASKS = 4 };

/* Owners beyond these are left out (states_left_out): memory stays bounded. */
#define STATES_VCPUS_MAX 4096
#define STATES_TASKS_MAX 65536 /* of all machines; vCPUs' threads included */

/* The steps that show them. */
#define STATES_STEPS                                                                                         \
	(STEP_SET(STEP_KVM_ENTRY) | STEP_SET(STEP_KVM_EXIT) | STEP_SET(STEP_USER_EXIT) |                     \
	 STEP_SET(STEP_VCPU_WAKEUP) | STEP_SET(STEP_WFX) | STEP_SET(STEP_HYP_ENTER) |                        \
	 STEP_SET(STEP_HYP_EXIT) | STEP_SET(STEP_SWITCH) | STEP_SET(STEP_WAKING) | STEP_SET(STEP_WAKEUP))

struct states; /* opaque */

/*
 * in, steps: outlive it. t: the records to come, for the CPUs on which events were lost before the first
 * record; not kept; NULL: on none. -ENOMEM.
 */
int states_open(struct states **out, const struct inputs *in, const struct timeline *t,
		const struct steps *steps, unsigned int want, state_listener *span, void *ctx);
void states_close(struct states *st);
/* Before anything is read: one more listener, and the owners that it wants. -ENOMEM. */
int states_listen(struct states *st, unsigned int want, state_listener *span, void *ctx);

/* A part of a pass: all spans but those of states_end. */
struct pass_part states_part(struct states *st);
/* The same for one run, in order. The listener's result, -ENOMEM. */
int states_run(void *states, struct pass_run *run);
/* After the last run, once: open spans end at the last record. The listener's result. */
int states_end(struct states *st);

/*
 * For callers with steps but no records: the recording's begin, each step in order, its end (states_end
 * then). raw: the time as it stands in the page, by which filetime_bound knows a guest's.
 */
int states_begin(struct states *st, uint64_t ts);
int states_step(struct states *st, const struct step *step, uint64_t raw);
void states_until(struct states *st, uint64_t ts);

/* The recording: its first and last record; ns of the host's clock. */
uint64_t states_from(const struct states *st);
uint64_t states_to(const struct states *st);
/*
 * The time that all buffers cover which show the states of the input's owners, of their machine and of its
 * host's: from the first event of the one that begins last to the last of the one that ends first. Known when
 * all is read; before that *from only grows.
 */
void states_covered(const struct states *st, size_t input, uint64_t *from, uint64_t *to);
/* The span where its input covers it, or *part, cut to what it covers; a cut has no bound. NULL: no part. */
static inline const struct state_span *states_cut(const struct state_span *s, struct state_span *part)
{
	if (s->from >= s->covered_to || s->to <= s->covered_from)
		return NULL;
	if (s->from >= s->covered_from && s->to <= s->covered_to)
		return s;
	*part = *s;
	if (s->from < s->covered_from) {
		part->from = s->covered_from;
		part->from_bound = 0;
	}
	if (s->to > s->covered_to) {
		part->to = s->covered_to;
		part->to_bound = 0;
	}
	return part;
}
/* Count of tasks, vCPUs and CPUs for which there was no room, as often as each was met. */
uint64_t states_left_out(const struct states *st);

/* "guest", "stolen", ... */
const char *state_name(enum state state);
/* The word of a span's reason; NULL: none. */
const char *states_reason(const struct states *st, const struct state_span *span);

/* ---- sums --------------------------------------------------------------------------------- */

struct state_sum {
	uint64_t ns, n;	    /* n: spans */
	uint64_t undecided; /* of the ns: what lies within the bound of a border */
};

/* A thief: the task that had the CPU, of the preempted and the stolen time. */
struct state_thief {
	int32_t pid; /* STATE_NO_TASK: unknown, or all for which there was no room */
	uint16_t input;
	struct state_sum sum;
};

#define STATE_THIEVES_MAX 64 /* of an owner */

/* Of the time in a state that with one reason, as states_reason has it. */
struct state_cause {
	enum state state;
	uint8_t why;
	uint64_t reason;
	struct state_sum sum;
};

struct state_total {
	const struct state_owner *owner; /* NULL: it has no span */
	uint64_t from;			 /* what came before does not count */
	struct state_sum all[STATES];
	struct state_sum stolen[STATES]; /* STATE_STOLEN by what: `by` */
	struct state_thief *thieves;
	size_t n_thieves;
	struct state_cause *causes; /* with `with_causes`; all of the time */
	size_t n_causes;
};

/* By the owners' index. Zero-initialised = empty. */
struct state_totals {
	const struct states *st; /* sums are of the time that it covers; NULL: of all */
	bool with_causes;
	struct state_total *v;
	size_t n;
};

/* A state_listener; ctx: struct state_totals. -ENOMEM. */
int state_totals_span(void *totals, const struct state_span *span);
void state_totals_release(struct state_totals *t);

#endif
