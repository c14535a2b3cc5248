/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_PLAN_VALUES_H
#define HYPTRACE_PLAN_VALUES_H

#include "util/opts.h"

/* Each fills a record_plan by one option's value; plan_cpumask the field of a buffer_plan. */
opt_set plan_cpumask, plan_pids, plan_compression, plan_tsync, plan_tsync_interval, plan_rotate,
	plan_max_size;

#endif
