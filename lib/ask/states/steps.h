/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_STEPS_H
#define HYPTRACE_STEPS_H

#include "read/timeline.h"
#include "spans/visits.h"

/*
 * Steps: the trace points of a run, each record of an event that matters for questions about time, and each
 * loss, in the order of the run. The kind of an event is found once in each file, by its name and fields.
 */
enum step_kind {
	STEP_NONE,
	STEP_GAP,	/* from here to the next STEP_LOST of this buffer on this CPU events are missing */
	STEP_LOST,	/* before the next record of this buffer on this CPU; a: events, UINT64_MAX: some,
			 * 0: none were lost, but tracing was off; b: 1: there is no next */
	STEP_KVM_ENTRY, /* pid: the vCPU's thread; a: its program counter */
	STEP_KVM_EXIT,	/* a: the reason's number, arm64's ret or x86's exit_reason (with isa, 1 VMX or
			 * 2 SVM, in the upper half); b: arm64's ESR class */
	STEP_HYP_ENTER, /* a: the reason's number; b: the loaded vCPU's thread, 0: none or unknown */
	STEP_HYP_EXIT,	/* likewise */
	STEP_HYP_OTHER, /* another event of the hypervisor that may be a visit's reason; a: its id */
	STEP_SWITCH,	/* sched_switch: pid: the previous task; a: the next; b: the state of the previous */
	STEP_WAKING,	/* sched_waking: a: the woken task; b: the CPU that it is on */
	STEP_WAKEUP, /* sched_wakeup, sched_wakeup_new: a: the woken task; b: the CPU that it is to run on */
	STEP_USER_EXIT,	    /* kvm_userspace_exit: a: the reason; the thread goes to its VMM */
	STEP_VCPU_WAKEUP,   /* kvm_vcpu_wakeup: the end of a wait for an interrupt; a: ns it took */
	STEP_WFX,	    /* kvm_wfx_arm64: a: 1 for WFE */
	STEP_IRQ_ENTER,	    /* irq_handler_entry, x86's irq_vectors: a: the interrupt's number */
	STEP_IRQ_EXIT,	    /* likewise */
	STEP_SOFTIRQ_RAISE, /* a: the softirq's number */
	STEP_SOFTIRQ_ENTER, /* likewise */
	STEP_SOFTIRQ_EXIT,  /* likewise */
	STEP_TIMER_SET,	    /* hrtimer_start: a: the timer */
	STEP_TIMER_ENTER,   /* hrtimer_expire_entry: a: the timer */
	STEP_TIMER_EXIT,    /* likewise */
	STEP_VIRQ,	    /* an interrupt of a vCPU changes: a: the vCPU; b: the interrupt's number */
	STEP_VTIMER,	    /* kvm_timer_update_irq: likewise, of its timer */
	STEP_MMIO,	    /* kvm_mmio: a: the address; b: its type */
	STEP_PORT,	    /* kvm_pio: a: the port; b: 1: written */
	STEP_FAULT,	    /* kvm_guest_fault, kvm_page_fault: a: the guest's physical address; b: 1: for a
			     * permission that its page lacks */
	STEP_SYSREG,	    /* kvm_handle_sys_reg, kvm_sys_access: a: the register as in an ESR's ISS, without
			     * what it goes to or comes from; b: 1: written */
	STEP_MSR,	    /* kvm_msr: a: the register; b: 1: written */
	STEP_SMCCC,	    /* kvm_hvc_arm64: a: the call */
	STEP_HYPERCALL,	    /* kvm_hypercall: a: the call */
	STEP_PRINT,	    /* ftrace's print, a line of trace_marker; or hypertrace:guest_hypertrace:
			     * a: the client */
	STEP_SAMPLE,	    /* hyptrace:sample: a: the CPU's mode, as in reading.h */
	STEP_NAME,	    /* task_rename, sched_process_exec: a: the task that has another name */
	STEP_END,	    /* this buffer has no further records on this CPU */
	STEP_KINDS
};

/* Of several kinds a set: STEP_SET(KIND) | STEP_SET(KIND) */
#define STEP_SET(kind) (1ull << (kind))
#define STEPS_ALL      UINT64_MAX
#define STEPS_LOSSES   (STEP_SET(STEP_GAP) | STEP_SET(STEP_LOST) | STEP_SET(STEP_END))

/* Value of a field that its event does not have. */
#define STEP_UNKNOWN UINT64_MAX

struct step {
	uint64_t ts; /* as merge_record's */
	uint64_t a, b;
	uint32_t at;		/* the record in the run */
	uint32_t stream;	/* the record's */
	uint32_t cpu;		/* of its machine */
	int32_t pid;		/* common_pid; -1: none */
	uint16_t input, buffer; /* indices, as merge_stream's */
	uint8_t kind;
	bool names; /* its record names a task, and not as those before it in the run did */
};

struct steps; /* opaque */

#define STEPS_SEEN 64

/* Of one run, by one thread at a time. Zero-initialised = empty. */
struct step_batch {
	struct step *v;
	size_t n, room;
	uint64_t set; /* their kinds */
	size_t named; /* steps up to the last one with `names` */
	struct step_seen {
		uint32_t pid, input;
		uint8_t comm[16]; /* the kernel's TASK_COMM_LEN */
	} seen[STEPS_SEEN];	  /* last names in the run, by pid % STEPS_SEEN */
};

/* in: loaded, and outlives it. -ENOMEM. */
int steps_open(struct steps **out, const struct inputs *in);
void steps_close(struct steps *s);
/* The event that a record of that id is; STEP_NONE: none. */
enum step_kind steps_kind(const struct steps *s, size_t input, unsigned int id);
/*
 * Fills b with the steps of the set, all STEPS_LOSSES and STEP_NAME, in place of the run before. Several
 * threads, each with its own batch. -ENOMEM.
 */
int steps_fill(const struct steps *s, const struct timeline *t, const struct merge_run *run, uint64_t set,
	       struct step_batch *b);
void step_batch_release(struct step_batch *b);

/* A task that a record names. */
struct step_named {
	int32_t pid;
	const char *comm; /* the record's, without a NUL */
	size_t len;
};

#define STEP_NAMED 2 /* tasks of a record at most */
/*
 * The tasks that a record of the scheduler names, with the names that they have then: the executed file's, as
 * the kernel names a task after it; of a change the new one. Returns how many.
 */
size_t steps_named(const struct steps *s, size_t input, const struct merge_record *m,
		   struct step_named v[STEP_NAMED]);

/* Names and changes of names of a file that are kept at most. */
#define STEP_NAMES_MAX 65536

/*
 * Learns the names that tasks have by the records of these steps: switches (both tasks), renames, execs. By
 * one thread, the steps of each run in their order (those behind step_batch.named name nobody anew), while no
 * other asks for names.
 */
void steps_learn(const struct steps *s, const struct merge_run *run, const struct step *v, size_t n);
/*
 * The name that the task had at ts, as the last step up to then has it; before the first one as the file's
 * table, which its kernel wrote at the end; NULL: not known. Of a span ask at its end, by when the switches
 * at both ends have named its task. Valid until steps_close.
 */
const char *steps_comm(const struct steps *s, size_t input, int32_t pid, uint64_t ts);

#define STEPS_TASK_MAX 96
/* "Guest:1" of a vCPU's thread that the file names, else the task as it was called then: "hog-620"; in out.
 */
const char *steps_task(const struct steps *s, const struct inputs *in, size_t input, int32_t pid, uint64_t ts,
		       char out[STEPS_TASK_MAX]);

/*
 * The word of a reason's number by the file's own format ("guest_exit", "EPT_VIOLATION"); NULL: the format
 * has no name for it. Numbers differ from kernel to kernel.
 */
const char *steps_reason(const struct steps *s, size_t input, enum step_kind kind, uint64_t number);
/* The class of an arm64 STEP_KVM_EXIT that is a trap ("DABT_LOW"); NULL: another reason, or it has no name.
 */
const char *steps_class(enum step_kind kind, uint64_t number, uint64_t class);

static inline struct span_point step_point(const struct step *s, uint64_t row)
{
	static const enum point_kind kinds[STEP_KINDS] = {
		[STEP_HYP_ENTER] = POINT_HYP_ENTER, [STEP_HYP_EXIT] = POINT_HYP_EXIT,
		[STEP_HYP_OTHER] = POINT_HYP_EVENT, [STEP_KVM_ENTRY] = POINT_KVM_ENTRY,
		[STEP_KVM_EXIT] = POINT_KVM_EXIT,   [STEP_LOST] = POINT_LOST,
	};

	return (struct span_point){ .ts = s->ts,
				    .row = row,
				    .reason = s->a,
				    .ec = s->b,
				    .machine = s->input,
				    .cpu = s->cpu,
				    .event = (uint32_t)s->a,
				    .pid = s->pid,
				    .vcpu = s->b <= INT32_MAX ? (int32_t)s->b : 0,
				    .kind = kinds[s->kind] };
}

/* The record's trace point, without a step: false: it is not of the hypervisor. pid and cpu are not filled.
 */
bool steps_hyp_point(const struct steps *s, size_t input, const struct merge_record *m, uint64_t row,
		     struct span_point *p);
/* visit_take() of a step of that CPU, exit_take() of one of that thread; row: its record, as the caller
 * counts. */
static inline bool step_visit(struct visit *v, const struct step *s, uint64_t row, struct span *done)
{
	const struct span_point p = step_point(s, row);

	return visit_take(v, &p, done);
}

static inline bool step_exit(struct exit_side *e, const struct step *s, uint64_t row, struct span *done)
{
	const struct span_point p = step_point(s, row);

	return exit_take(e, &p, done);
}

/* The word of a visit's `why`: a reason's, or an event's name; NULL: it has none. in: the one of that number.
 */
const char *steps_why(const struct steps *s, const struct input *in, size_t input, uint64_t why);

#endif
