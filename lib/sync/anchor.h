/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_SYNC_ANCHOR_H
#define HYPTRACE_SYNC_ANCHOR_H

#include "sync/problem.h"

/* Shared by sync-anchor.c and what makes anchors: sync-deeds.c, sync-ticks.c. */

/* What is known of the offset at a guest time. */
struct known {
	int64_t low, high;
};

/* False: nothing is. */
bool anchors_know(const struct sync_result *r, uint64_t guest, struct known *k);
/* One end of the offset's range, kept where it tells more than is known. */
int anchors_put(struct anchors *all, const struct sync_result *r, const struct anchor *one);
/*
 * Those from `from` on are of one sort. So many that do not fit mean that they are not
 * what they are taken for.
 */
void anchors_judge(struct anchors *all, size_t from, size_t offered, size_t dropped);
/* The host's thread of the input's CPU at that place; 0: not known. */
int32_t anchors_thread(const struct problem *p, size_t cpu);

/* Of sleeps, calls and accesses; of interrupts. */
int anchors_deeds(const struct problem *p, const struct sync_result *r, struct anchors *all);
int anchors_ticks(const struct problem *p, const struct sync_result *r, struct anchors *all);

#endif
