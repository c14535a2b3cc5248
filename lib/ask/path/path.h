/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_PATH_H
#define HYPTRACE_PATH_H

#include "ask/latency/latency.h"
#include "base/answer.h"

/*
 * The chain of causes from a moment back to where nothing waited, across guest, host and hypervisor.
 *
 *  - A task that acts has been running since it came to its CPU. Before that it could run while others
 *    had the CPU, since it was preempted, where the chain ends, or since it was woken: then its waker acts.
 *  - What a guest's task does takes its vCPU's thread on the host. Where that one was not running, the
 *    time is the thread's: runnable, or asleep; if it fell asleep on the way, its waker acts.
 *  - A host's interrupt waits for nothing: the end. A guest's interrupt was raised on the host: the
 *    task that raised it acts, or that woke the halted vCPU. A softirq was raised: the task that raised it
 * acts.
 *  - A vCPU's thread that acts while it handles a trap of its guest acts for the task of the guest.
 *  - The first sleep that the chain meets bounds it: what was under way as that began is not
 *    followed further.
 *
 * Nothing is guessed: events that were lost, or not recorded, end it, and so does an order of two clocks
 * nearer than the bound.
 */
enum path_state {
	PATH_RUNS,
	PATH_RUNNABLE, /* by: who had the CPU that it then got; 0: it was idle */
	PATH_ASLEEP,   /* a vCPU's thread, whose guest had work; by: who woke it */
	PATH_PENDING,  /* number: of the interrupt, raised but not yet handled */
	PATH_SOFTIRQ_PENDING,
	PATH_HANDLES, /* a vCPU's thread, a trap; number: the reason, as of STEP_KVM_EXIT */
	PATH_STATES
};

/* ---- the steps before a moment: window.c ------------------------------------------------------------ */

/*
 * The last stretch of all files' steps, as rows in the order in which they were read: what a chain of causes
 * is searched in. Of one machine that order is the true one; of two, it is as good as the guest's bound.
 */
enum path_flags { PATH_HARDIRQ = 1, PATH_SOFTIRQ = 2 };

/* STEP_IRQ_ENTER: the interrupt by its name. STEP_VIRQ: PATH_VECTOR is x86's. */
enum path_irq { PATH_DEVICE, PATH_TIMER, PATH_IPI, PATH_VECTOR };

#define PATH_BORN STEP_KINDS /* a row's kind: sched_wakeup_new, which steps do not set apart */

struct path_row {
	uint64_t ts, a, b; /* as a step's. STEP_LOST: a events were lost since b */
	uint64_t nr;	   /* the record among all, from 0 */
	int32_t pid;
	uint32_t cpu;
	uint32_t bound; /* of a guest's clock, ns; UINT32_MAX: unknown; 0: the host's */
	uint16_t input, buffer;
	uint8_t kind, flags, irq;
	bool guest;
};

#define PATH_ROWS_MAX (1u << 21)
#define PATH_ANY_CPU  UINT32_MAX

/* One file as a source of rows. Before its begin and after its end nothing is known of its machine. */
struct path_machine {
	uint64_t kinds;		       /* 1u << kind: those seen, dropped rows included */
	struct path_row before, after; /* STEP_LOST, up to the begin and from the end; ts 0: not known */
};

/* Zero-initialised but for within = empty. */
struct path_window {
	struct path_row *v;
	size_t n, room;
	size_t max;	 /* rows at most; 0: PATH_ROWS_MAX */
	uint64_t within; /* ns before `asked` that are kept at least, as far as rows have room */
	uint64_t asked;	 /* up to when moments have been asked for */
	uint64_t from;	 /* all rows since then are there */
	bool cut;	 /* older ones were dropped: from is not the recording's begin */
	bool full;	 /* ... as there was no room for them */
	struct path_machine *machines; /* by input */
	size_t n_machines;
};

/* In the order of nr. -ENOMEM. */
int path_window_add(struct path_window *w, const struct path_row *row);
/* Drops what is older. */
void path_window_keep(struct path_window *w, uint64_t since);
void path_window_release(struct path_window *w);
/* The rows since then as a window of their own, which is not to be released. */
struct path_window path_window_since(const struct path_window *w, uint64_t since);
/* The first row after a record, or after a time, that may not be in order by that much. */
size_t path_window_after(const struct path_window *w, uint64_t nr);
size_t path_window_at(const struct path_window *w, uint64_t ts);

/*
 * True if events of the machine's CPU (PATH_ANY_CPU: of one of them) may be missing between two times: the
 * loss, or the time outside of the recording, that ends last; NULL: none. Buffers that show no steps but
 * losses are left out, and so is the hypervisor's.
 */
const struct path_row *path_window_lost(const struct path_window *w, uint16_t input, uint32_t cpu,
					uint64_t from, uint64_t to);
/* True if the machine's rows have, or had, one of that kind. */
bool path_window_has(const struct path_window *w, uint16_t input, uint8_t kind);
/* The last row before `before` of that kind (STEP_NONE: any but losses and the hypervisor's) on that CPU. */
const struct path_row *path_window_last(const struct path_window *w, size_t before, uint16_t input,
					uint32_t cpu, uint8_t kind);
/* True if the task comes to a CPU or leaves it. */
bool path_row_switches(const struct path_row *r, uint16_t input, int32_t pid);
/* The last before it by which the task comes to a CPU or leaves it. */
const struct path_row *path_window_switch(const struct path_window *w, size_t before, uint16_t input,
					  int32_t pid);

/* Reasons why a task had not been running when it came to a CPU, by the rows before that. */
struct path_rest {
	const struct path_row *out;    /* it left its CPU; NULL: before the window */
	const struct path_row *waking; /* it was woken; NULL: it had not been asleep */
	bool born;		       /* ... or begun: waking is where */
	const struct path_row *lost;   /* NULL: nothing was lost that matters */
	bool known;		       /* false: the rows do not say */
};
struct path_rest path_window_rest(const struct path_window *w, const struct path_row *in);

/* ---- causes ---------------------------------------------------------------------------------------- */

#define PATH_NOBODY (-1)

struct path_cause {
	enum path_state state;
	uint16_t input; /* the machine */
	uint32_t cpu;
	int32_t pid;
	uint64_t from, to; /* ns of the host's clock; from < to; from of one is to of the next */
	/* Greatest error of from - to, if they are of two clocks; UINT64_MAX: unknown; 0: one clock. */
	uint64_t bound;
	int32_t by; /* on the same machine; PATH_NOBODY */
	uint64_t number;
	struct path_row event; /* by which it began; kind STEP_NONE: before the window */
	/* Of a guest's: how often it was left, and for how many ns it did not run; exits STEP_UNKNOWN: not
	 * known. */
	uint64_t exits, outside;
};

enum path_end {
	PATH_OPEN,
	PATH_INTERRUPT, /* an interrupt of a host */
	PATH_OWN,	/* it had been running since before the first sleep: it acted on its own */
	PATH_UNDER_WAY, /* ... it was to run, or handled, then already */
	PATH_PREEMPTED, /* it was running until another took its CPU */
	PATH_BEGAN,	/* the task began */
	PATH_IDLE,	/* nothing ran */
	PATH_UNKNOWN,
	PATH_UNDECIDED,
	PATH_LONG, /* there are as many causes as are wanted */
	PATH_ENDS
};

/* The moment that is asked for. */
struct path_moment {
	uint64_t ts, nr; /* nr: rows up to this record are before it */
	uint32_t bound;	 /* as a row's */
	uint16_t input;
	uint32_t cpu;
	int32_t pid;
	uint8_t flags;
	bool runs; /* why the task runs is asked for, not why it did something */
};

struct path {
	struct path_cause *v;
	size_t n;
	size_t max; /* causes; 0: 50 */
	enum path_end end;
	char why[200];	       /* description of the end */
	struct path_row event; /* that shows it; kind STEP_NONE: none */
	bool vcpu_unknown;     /* it is not known whether a vCPU ran */
};

/*
 * w: with what came some time after the moment, at least its bound; in: its guests say which thread runs
 * which vCPU. *p zero-initialised but for max; path_release in any case. -ENOMEM.
 */
int path_find(struct path *p, const struct path_window *w, const struct inputs *in,
	      const struct path_moment *m);
void path_release(struct path *p);
/* "runs", ...; "interrupt", ... */
const char *path_state_name(enum path_state state);
const char *path_end_name(enum path_end end);

/* ---- reading files: read.c -------------------------------------------------------------------- */

/* The moment in question. */
struct path_ask {
	const struct event_words *event; /* NULL: a time */
	uint64_t nth;			 /* of the events that match, from 1 */
	uint64_t time;			 /* ns of the host's clock */
	size_t input;			 /* whose; SIZE_MAX: any machine's event */
	int64_t cpu, pid;		 /* of a time: one of them; -1: not that one */
};

struct path_found {
	struct path_window window; /* within is the caller's */
	struct path_moment moment;
	bool found;
	uint64_t matches; /* events: how many there were */
};

/*
 * Reads a fresh timeline once: the moment, and the steps before it, which have learned tasks' names until
 * then. Of an event: its task, of a sched_switch the next one. Of a time: the task that runs on the CPU; the
 * task, where it runs then or as soon as it runs again. found false: there is no such moment. -EINVAL: the
 * filter does not fit (logged); -ENOMEM. The window is the caller's to release.
 */
int path_read(struct path_found *f, const struct inputs *in, struct timeline *t, const struct steps *steps,
	      const struct path_ask *ask, const struct log *log);

/* A reading in which moments are asked for as it goes on: part of a pass, not its first. */
struct path_reading;

/*
 * in, t: outlive it. Rows are kept for three times `within`, so that moments of twice that time have theirs,
 * but at most max (0: PATH_ROWS_MAX). *out is to be closed in any case. -ENOMEM.
 */
int path_reading_open(struct path_reading **out, const struct inputs *in, struct timeline *t, uint64_t within,
		      size_t max);
void path_reading_close(struct path_reading *r);
struct pass_part path_reading_part(struct path_reading *r);
const struct path_window *path_reading_window(const struct path_reading *r);
/* True if all rows up to that time are read, and all losses that began before it. */
bool path_reading_reached(const struct path_reading *r, uint64_t ts);
/*
 * The chain of a task that waits at that time, as it comes to a CPU: the one of path_read() of that time.
 * False in *found: it does not wait, or the rows end before. -ENOMEM.
 */
int path_reading_find(struct path_reading *r, size_t input, int32_t pid, uint64_t ts, struct path_moment *m,
		      struct path *p, bool *found);

/* A record as `hyptrace report` prints it. */
struct path_text {
	uint64_t nr;
	char *name, *text; /* NULL: it was not found */
};

/* Zero-initialised = empty. */
struct path_texts {
	struct path_text *v; /* path_texts() orders them by nr, each once */
	size_t n;
};

/* Adds the record of that nr; those of the moment and of the events that prove its chain. -ENOMEM. */
int path_texts_add(struct path_texts *x, uint64_t nr);
int path_texts_want(struct path_texts *x, const struct path_moment *m, const struct path *p);
/* Another reading, which fills all but nr. -ENOMEM. */
int path_texts(const struct inputs *in, struct timeline *t, struct path_texts *x);
/* NULL: it is not among them. */
const struct path_text *path_texts_find(const struct path_texts *x, uint64_t nr);
void path_texts_release(struct path_texts *x);

/* ---- a chain as tables: path-answer.c ----------------------------------------------------------- */

struct path_answer {
	const struct inputs *in;
	const struct steps *steps; /* they have learned tasks' names */
	const struct path_moment *moment;
	const struct path *path;
	const struct path_texts *texts;
};

/* As hyptrace path prints it. */
void path_answer_write(const struct path_answer *a, enum answer_form form, struct buf *out);

#endif
