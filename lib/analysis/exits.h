/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_EXITS_H
#define HYPTRACE_EXITS_H

#include "analysis/pass.h"
#include "analysis/stays.h"
#include "analysis/sums.h"

/*
 * Guests' exits. Handling one takes from a thread's kvm_exit to its next kvm_entry: what perf kvm stat
 * times on x86. What the guest ran before it is from the kvm_entry before: what that times on
 * arm64. As there a thread counts from its first kvm_entry on. From the last event before a loss to
 * the first behind it, on any CPU of the buffer of such events, nothing is known of any thread: the lost
 * events may have been its.
 *
 * What was asked for in an exit has rows of its own. MMIO and I/O ports are timed as by perf
 * --event=mmio and ioport: a read of memory from the exit to kvm_mmio, a write from kvm_mmio to the entry,
 * a port from kvm_pio to the entry; system registers and hypercalls from the exit to the entry.
 */
struct exits; /* opaque */

enum exits_table {
	EXITS_REASON,
	EXITS_MMIO,
	EXITS_IOPORT,
	EXITS_SYSREG, /* x86: MSRs */
	EXITS_HYPERCALL,
	EXITS_TABLES
};

struct exits_row {
	enum exits_table table;
	size_t vcpu; /* index of exits_vcpus */
	uint64_t key;
	uint32_t info; /* which, as exits_name tells them apart; the same for all vCPUs */
	struct sums handled;
	struct sums guest; /* EXITS_REASON: what the guest ran before */
};

struct exits_vcpu {
	size_t input;
	int32_t pid;			  /* its thread */
	const struct offset_guest *guest; /* the input's; NULL: the file does not say */
	const struct offset_vcpu *of;	  /* likewise */
};

/* What is not in the rows. */
struct exits_cut {
	uint64_t lost;	/* stretches that lost events made unknown */
	uint64_t vcpus; /* events of threads beyond the 4,096th */
	uint64_t rows;	/* stretches that are in no row, for there were 65,536 */
};

/* All outlive it; stays: NULL, or who gets each exit. -ENOMEM. */
int exits_open(struct exits **out, const struct inputs *in, const struct timeline *t,
	       const struct steps *steps, struct stays *stays);
void exits_close(struct exits *e);
/* In order. */
struct pass_part exits_part(struct exits *e);

/* When all is read; in no order. */
const struct exits_row *exits_rows(const struct exits *e, size_t *n);
const struct exits_vcpu *exits_vcpus(const struct exits *e, size_t *n);
struct exits_cut exits_cut(const struct exits *e);

#define EXITS_NAME_MAX 96
/* "DABT_LOW", "0x9000018:W", "ICC_SGI1R_EL1 write"; returns out. */
const char *exits_name(const struct exits *e, size_t input, enum exits_table table, uint64_t key,
		       uint32_t info, char out[EXITS_NAME_MAX]);
/* The same of a stay's kind. */
const char *exits_stay_name(const struct exits *e, const struct stay *stay, char out[EXITS_NAME_MAX]);

#endif
