/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_STREAMS_H
#define HYPTRACE_STREAMS_H

#include "read/timeline.h"

/*
 * For each run of records, of one CPU each and in no order among CPUs, by several threads: worker is
 * below pipeline_workers(). What is not 0 ends it.
 */
typedef int streams_job(void *ctx, const struct merge_run *run, size_t worker);

/*
 * All records of a timeline that nothing was taken from, without the merge that pipeline_work()
 * needs: CPUs are read side by side, and a CPU's runs are worked on side by side. 0, what
 * work gave, -ENOMEM.
 */
int streams_work(struct timeline *t, streams_job *work, void *ctx);

#endif
