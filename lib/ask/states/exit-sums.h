/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_EXIT_SUMS_H
#define HYPTRACE_EXIT_SUMS_H

#include "ask/states/pass.h"
#include "ask/states/tally.h"

/*
 * Guests' exits. Handling one takes from a thread's kvm_exit to its next kvm_entry: what perf kvm stat times
 * on x86. What the guest ran before it is from the kvm_entry before: what that times on arm64. As there a
 * thread counts from its first kvm_entry on. From the last event before a loss to the first after it, on any
 * CPU of the buffer of such events, nothing is known of any thread: the lost events may have been its.
 *
 * Accesses and calls that a guest exits for have rows of their own. MMIO and I/O ports are timed as by perf
 * --event=mmio and ioport: a read of memory from the exit to kvm_mmio, a write from kvm_mmio to the entry,
 * a port from kvm_pio to the entry; system registers, hypercalls and stage-2 faults, which are no accesses to
 * a device, from the exit to the entry.
 */
enum exits_table {
	EXITS_REASON,
	EXITS_MMIO,
	EXITS_IOPORT,
	EXITS_SYSREG, /* x86: MSRs */
	EXITS_HYPERCALL,
	EXITS_FAULT, /* by page of EXITS_PAGE bytes, those for a permission apart; key EXITS_PAGES: all beyond
		      * half of the rows */
	EXITS_TABLES
};

#define EXITS_PAGE  4096ull
#define EXITS_PAGES UINT64_MAX

struct exits_row {
	enum exits_table table;
	size_t vcpu; /* index of exits_vcpus */
	uint64_t key;
	uint32_t info; /* distinguishes keys, for exits_name; the same for all vCPUs */
	struct sums handled;
	uint64_t calls;	   /* EXITS_FAULT: those of them in which the host called its hypervisor */
	uint64_t longest;  /* when the longest of these began */
	struct sums guest; /* EXITS_REASON: what the guest ran before */
};

struct exits_vcpu {
	size_t input;
	int32_t pid;			  /* its thread */
	const struct offset_guest *guest; /* the input's; NULL: the file does not name it */
	const struct offset_vcpu *of;	  /* likewise */
};

/* Exits that are in no row. */
struct exits_cut {
	uint64_t lost;	/* stretches that lost events made unknown */
	uint64_t vcpus; /* events of threads beyond the 4,096th */
	uint64_t rows;	/* stretches that are in no row, for there were 65,536 */
};

/* By vCPU, table, key and info. Zero-initialised = empty. */
struct exits_map {
	struct exits_row *v;
	size_t n;
	struct map map;
};

struct states;
struct exits {
	/* For others to read, after the last record; rows in no order. */
	struct exits_map rows;
	struct exits_vcpu *vcpus;
	size_t n; /* vCPUs */
	struct exits_cut cut;
	/* Private. */
	const struct inputs *in;
	const struct steps *steps;
	const struct states *within; /* NULL: rows are of the whole recording */
	struct tally *to;
	struct exits_now *now; /* by vCPU */
	struct map by_thread;  /* vCPUs by (input, pid) */
	struct gaps gaps;
	bool faults; /* there was one */
};

/*
 * All outlive it; to: NULL, or gets each exit, its `why` for exits_kind_name. within: NULL, or rows are of
 * what inputs cover (states_covered), and its part of the pass comes first. -ENOMEM.
 */
int exits_open(struct exits **out, const struct inputs *in, const struct timeline *t,
	       const struct steps *steps, const struct states *within, struct tally *to);
void exits_close(struct exits *e);
/* In order. */
struct pass_part exits_part(struct exits *e);

#define EXITS_NAME_MAX 96
/* "DABT_LOW", "0x9000018:W", "ICC_SGI1R_EL1 write"; returns out. */
const char *exits_name(const struct exits *e, size_t input, enum exits_table table, uint64_t key,
		       uint32_t info, char out[EXITS_NAME_MAX]);
/* The same of an exit's `why` as a tally has it. */
const char *exits_kind_name(const struct exits *e, size_t input, uint64_t kind, char out[EXITS_NAME_MAX]);

/* ---- rows and keys, for exit-sums.c and its test ------------------------------------------------------ */

/*
 * info of EXITS_REASON: 0: x86, the key is exit_reason with isa in the upper half; else arm64, the key
 * is ret, and above EXITS_CLASS it is a trap of that ESR class.
 * Of faults: 1: for a permission. Of others: bit 0: a write; the rest is the kind of key.
 */
enum { EXITS_ARM64 = 1, EXITS_CLASS = 2 };
enum { EXITS_WRITE = 1, EXITS_ESR = 2, EXITS_MSR = 8, EXITS_SMCCC = 16 };

/* The reason of an exit in a tally: enough of both. */
static inline uint64_t exits_kind(uint64_t key, uint32_t info)
{
	return (uint64_t)info << 40 | (key & 0xffffffffff);
}

#define EXITS_ROWS_MAX 65536

#define EXITS_NO_ROW MAP_NONE

/* *index of the row, made if need be; EXITS_NO_ROW: there are too many. -ENOMEM. */
int exits_map_row(struct exits_map *m, const struct exits_row *like, size_t *index);
void exits_map_release(struct exits_map *m);

/* A thread in a buffer. */
struct exit_thread {
	uint32_t buffer; /* as gaps_buffer() */
	int32_t pid;
	struct exit_side side;
};

/* Exits of all threads. A loss on any CPU of a buffer may be of any of its threads. */
struct exit_threads {
	struct gaps gaps;
	struct exit_thread *v;
	size_t n;
	struct map by_thread;
};

/* 1: *done is over by that step, row: its record as the caller counts; 0; -ENOMEM. Takes STEP_GAP, too. */
int exit_threads_step(struct exit_threads *e, const struct step *s, uint64_t row, struct span *done);
void exit_threads_release(struct exit_threads *e);

#endif
