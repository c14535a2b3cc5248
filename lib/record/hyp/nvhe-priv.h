/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_NVHE_PRIV_H
#define HYPTRACE_NVHE_PRIV_H

#include "record/hyp/nvhe.h"

/* Shared by nvhe.c (which offset is loaded, and when) and nvhe-vms.c (which there are). */

#define USEC	1000ll
#define MSEC	1000000ll
#define SEC	1000000000ll
#define JITTER	MSEC /* time may go back by less */
#define HOP_MAX (MSEC / 10)
#define N_VMS	16
#define N_PIDS	64

/* One CNTVOFF. */
struct vm {
	bool used;
	bool guess;	/* from bounds only */
	int64_t offset; /* estimate */
	int64_t low, high;
	uint64_t stamp; /* of its last use */
};

/* VM whose offset a vCPU's thread has. */
struct owner {
	int pid;
	struct vm *vm; /* NULL: 0, as protected guests have */
	bool owned;    /* in this pass */
	bool moved;    /* ... one, and then another: the VM was stopped and resumed, or one was wrong */
	bool doubtful; /* moved in the pass before: the pid is no evidence */
};

/*
 * CNTVOFF that was loaded when records began (0), or began again after a loss (1...), by later
 * evidence: before the first load or put.
 */
struct start {
	bool shown;
	bool loaded;
	int64_t offset, low, high;
};

/* Points at which CNTVOFF may have been written since the previous record. */
enum change {
	CHANGE_NO,
	CHANGE_HVC, /* inside a hypercall: load or put */
	CHANGE_ANY, /* records are missing */
};

enum kind {
	KIND_OTHER, /* no reason: an event of its own */
	KIND_HVC,
	KIND_ERET_HOST,
	KIND_GUEST, /* eret_guest, guest_exit */
	KIND_REST,
};

struct nvhe {
	unsigned int cpu;
	void (*step)(void *ctx, const struct nvhe_step *s);
	void *ctx;

	int64_t from, to;
	uint64_t raw;	/* time as recorded, modulo 2^59, of the last record */
	int64_t last;	/* repaired time of it */
	enum kind kind; /* of it */
	bool any;	/* there was one */
	bool in_hvc;	/* a hypercall is being handled */
	bool lost;
	int64_t slop; /* error of the recorded time: text is truncated to microseconds */
	int64_t hop;  /* duration of a short hypercall */

	struct vm *cur;	  /* loaded; NULL: none */
	int64_t span_low; /* CNTVOFF is at least that since it was loaded; INT64_MIN: not known */
	bool sure;	  /* structure shows that cur is right */
	bool at_start; /* nothing was loaded or put since records began: evidence of cur is one of its start
			*/
	struct start *starts; /* of this pass */
	size_t n_starts;      /* fewer than begun: no memory for more */
	size_t begun;
	struct start *earlier; /* of the pass before */
	size_t n_earlier;
	bool settled;  /* the first step is no longer one of a span begun before the recording */
	int64_t first; /* time of the first record */
	int pid;       /* last vCPU seen in this span */
	uint64_t stamp;
	struct vm vms[N_VMS];
	struct owner owners[N_PIDS];
	size_t n_owners; /* taken in turn when full */
};

/* ---- nvhe-vms.c */

/* Its middle is better than an end. */
bool vm_is_narrow(const struct vm *vm);
/* Tolerance of a CNTVOFF around its observed value. */
int64_t vm_tolerance(const struct vm *vm);
/* Can it be the one that is between low and high? */
bool vm_fits_bracket(const struct vm *vm, int64_t low, int64_t high);
/* Takes the place of the one that was used longest ago, if it must. */
struct vm *vm_new(struct nvhe *n, int64_t offset);
/* NULL: of that vCPU nothing is known. */
struct owner *vm_owner(struct nvhe *n, int pid);
void vm_own(struct nvhe *n, int pid, struct vm *vm);
/*
 * The offset is at least (at most) this. What does not agree with the other side
 * is newer: in ns the offset moves when the kernel fits its clock again. The
 * estimate is the middle of a narrow bracket, else `pad` from the newer end.
 */
void vm_at_least(struct vm *vm, int64_t low, int64_t pad);
void vm_at_most(struct vm *vm, int64_t high, int64_t pad);
/* Copies the CNTVOFFs and vCPUs that `before` has learnt into the empty n. */
void vm_learn(struct nvhe *n, const struct nvhe *before);
/* The nearest that is less than `within` away; NULL: none. */
struct vm *vm_near(struct nvhe *n, int64_t offset, int64_t within);
/* The one that is between low and high, and nearest to `offset`; NULL: none. */
struct vm *vm_between(struct nvhe *n, int64_t low, int64_t high, int64_t offset);

#endif
