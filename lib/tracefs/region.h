/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_REGION_H
#define HYPTRACE_REGION_H

#include "tracefs/plan.h"
#include "util/opts.h"

/* Regions of a recording: from an event of --start-on to one of --stop-on, and so on. */

/* Fills a trigger_plan from "SYSTEM:EVENT" or "SYSTEM:EVENT/FILTER". */
opt_set region_option;
/* Whether --start-on or --stop-on was given. */
bool region_asked(const struct record_plan *plan);
/*
 * Whether the first buffer of a plan has the triggers though nothing is recorded in it:
 * the hypervisor's buffer, or samples, are switched after it.
 */
bool region_needs_top(const struct record_plan *plan);
/* -EINVAL with the reason in err: it does not go with the rest of the plan. */
int region_check(const struct record_plan *plan, struct opts_error *err);

#endif
