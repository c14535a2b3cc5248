/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_EXITS_PRIV_H
#define HYPTRACE_EXITS_PRIV_H

#include "analysis/exits.h"
#include "analysis/gaps.h"

/* Shared by exits.c, exits-name.c and exits-rows.c. */

/*
 * info of EXITS_REASON: 0: x86, the key is exit_reason with isa in the upper half; else arm64, the key
 * is ret, and above EXITS_CLASS it is a trap of that ESR class.
 * Of others: bit 0: a write; the rest says what the key is.
 */
enum { EXITS_ARM64 = 1, EXITS_CLASS = 2 };
enum { EXITS_WRITE = 1, EXITS_ESR = 2, EXITS_ENCODED = 4, EXITS_MSR = 8, EXITS_SMCCC = 16 };

/* Of a stay: enough of both to tell exits apart. */
static inline uint64_t exits_kind(uint64_t key, uint32_t info)
{
	return (uint64_t)info << 40 | (key & 0xffffffffff);
}

/* ---- rows: exits-rows.c ------------------------------------------------------------------------ */

#define EXITS_ROWS_MAX 65536

/* By vCPU, table, key and info: open addressing, at most half full. Zero-initialised = empty. */
struct exits_map {
	struct exits_row *v;
	size_t n;
	uint32_t *slots; /* 0: free; else 1 + index in v */
	size_t room;
};

#define EXITS_NO_ROW SIZE_MAX

/* *index of the row, made if need be; EXITS_NO_ROW: there are too many. -ENOMEM. */
int exits_map_row(struct exits_map *m, const struct exits_row *like, size_t *index);
void exits_map_release(struct exits_map *m);

struct exits {
	const struct inputs *in;
	const struct timeline *t;
	const struct steps *steps;
	struct stays *stays;
	struct exits_map rows;
	/* threads, and by (input, pid) which: open addressing, at most half full */
	struct exits_vcpu *vcpus;
	struct exits_now *now;
	size_t n;
	uint16_t *slots;
	struct gaps gaps;
	struct exits_cut cut;
};

#endif
