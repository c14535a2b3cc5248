/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SAMPLES_H
#define HYPTRACE_SAMPLES_H

#include "ask/states/pass.h"

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
	const char *comm; /* "<idle>": no task ran; valid until samples_close */
	uint64_t all, n[SAMPLE_MODES];
};

struct samples; /* opaque */

/* steps: outlives it. -ENOMEM. */
int samples_open(struct samples **out, const struct steps *steps);
void samples_close(struct samples *s);
/* In order. */
struct pass_part samples_part(struct samples *s);
/* After the last record: by machine, the most first. */
const struct samples_row *samples_rows(const struct samples *s, size_t *n);

#endif
