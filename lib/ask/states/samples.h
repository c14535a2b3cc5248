/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SAMPLES_H
#define HYPTRACE_SAMPLES_H

#include "ask/states/pass.h"
#include "base/arena.h"

/*
 * CPU use by samples (record --profile): of each machine's tasks, by name, the number of samples in each mode
 * of the CPU. The modes are the sample's, PERF_RECORD_MISC_CPUMODE_MASK of perf; arm64's
 * hosts see a guest as SAMPLE_GUEST_KERNEL only.
 */
enum sample_mode {
	SAMPLE_UNKNOWN,
	SAMPLE_KERNEL,
	SAMPLE_USER,
	SAMPLE_HYPERVISOR,
	SAMPLE_GUEST_KERNEL,
	SAMPLE_GUEST_USER,
	SAMPLE_MODES
};

struct samples_row {
	size_t input;
	const char *comm; /* "<idle>": no task ran; valid until samples_release */
	uint64_t all, n[SAMPLE_MODES];
};

/* Zero-initialised but for the steps = none. */
struct samples {
	const struct steps *steps;
	struct samples_row *rows;
	size_t n;
	struct map by_comm;
	struct arena names;
};

void samples_release(struct samples *s);
/* In order. */
struct pass_part samples_part(struct samples *s);
/* After the last record: by machine, the most first. */
void samples_sort(struct samples *s);

#endif
