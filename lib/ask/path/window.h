/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_PATH_WINDOW_H
#define HYPTRACE_PATH_WINDOW_H

#include "ask/states/steps.h"

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
	size_t max;		       /* rows at most; 0: PATH_ROWS_MAX */
	uint64_t within;	       /* ns that are kept at least, as far as rows have room */
	uint64_t from;		       /* all rows since then are there */
	bool cut;		       /* older ones were dropped: from is not the recording's begin */
	bool full;		       /* ... as there was no room for them */
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
 * Whether events of the machine's CPU (PATH_ANY_CPU: of one of them) may be missing between two times: the
 * loss, or the time outside of the recording, that ends last; NULL: none. Buffers that show no steps but
 * losses are left out, and so is the hypervisor's.
 */
const struct path_row *path_window_lost(const struct path_window *w, uint16_t input, uint32_t cpu,
					uint64_t from, uint64_t to);
/* Whether the machine's rows have, or had, one of that kind. */
bool path_window_has(const struct path_window *w, uint16_t input, uint8_t kind);
/* The last row before `before` of that kind (STEP_NONE: any but losses and the hypervisor's) on that CPU. */
const struct path_row *path_window_last(const struct path_window *w, size_t before, uint16_t input,
					uint32_t cpu, uint8_t kind);
/* Whether the task comes to a CPU or leaves it. */
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

#endif
