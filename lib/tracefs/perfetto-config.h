/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_PERFETTO_CONFIG_H
#define HYPTRACE_PERFETTO_CONFIG_H

#include "tracefs/plan.h"
#include "util/opts.h"

/*
 * Perfetto's configuration as text (TraceConfig of its protos/perfetto/config): the events
 * of linux.ftrace, the size of their buffer, the instance and duration_ms go into the plan; what else
 * it says becomes a note of the plan. -EINVAL with the place and the reason in err, -ENOMEM.
 */
int perfetto_config(struct record_plan *plan, const char *text, size_t len, struct opts_error *err);
/* record --config FILE: ctx is the plan. The kernel then need not have all of the events, as for Perfetto. */
opt_set perfetto_config_option;

#endif
