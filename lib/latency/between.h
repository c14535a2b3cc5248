/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_LATENCY_BETWEEN_H
#define HYPTRACE_LATENCY_BETWEEN_H

#include "latency/latency.h"

/* What happened meanwhile: the records on the CPUs of a chain's events, from its first to its last. */
#define BETWEEN_LINES 16 /* of a chain: the first half, and the last */

struct between_line {
	uint64_t ts;
	uint32_t input, cpu;
	char *task, *what; /* "vhost-1781-1793", "kvm_entry: PC: 0x..." */
};

struct between {
	uint64_t records; /* that there are */
	struct between_line v[BETWEEN_LINES];
	size_t n; /* in the order of time; where records is more, some are left out in the middle */
};

/* Reads the files once more: of each of the n, an entry in *out, for between_free. -ENOMEM, -errno. */
int between_read(struct between **out, const struct inputs *in, const struct latency_worst *worst, size_t n,
		 size_t n_points);
void between_free(struct between *b, size_t n);

#endif
