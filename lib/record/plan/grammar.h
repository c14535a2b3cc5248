/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_GRAMMAR_H
#define HYPTRACE_GRAMMAR_H

#include "record/plan/plan.h"
#include "base/opts.h"
#include "base/log.h"

/*
 * The words of record, in one table: the command line of `hyptrace record` (the
 * grammar of trace-cmd-record(1), 3.1.6), and what a recorder sends to an agent.
 * Both fill a plan, which must be zeroed, and which the caller releases in any
 * case. argv[0] is the command's own name, argv[argc] is NULL; argv is changed.
 */

extern const struct opts_table grammar_table; /* for the usage text */

/*
 * `hyptrace record`: plan->command points into argv. 0, OPTS_STOP when -h was
 * given, or -errno with the reason in err. Prints nothing.
 */
int grammar_parse_line(struct record_plan *plan, int argc, char **argv, struct opts_error *err);

/*
 * An agent's request: takes what makes sense in a guest, ignores what else stock recorders send,
 * refuses the rest and any command (-EINVAL). Names are not looked at: what may pass is for the
 * caller to judge by the plan.
 */
int grammar_parse_request(struct record_plan *plan, int argc, char **argv, const struct log *log,
			  struct opts_error *err);

/*
 * Perfetto's configuration as text (TraceConfig of its protos/perfetto/config): the events of
 * linux.ftrace, the size of their buffer, the instance and duration_ms go into the plan; all else
 * becomes a note of the plan. -EINVAL with the place and the reason in err, -ENOMEM.
 */
int perfetto_config(struct record_plan *plan, const char *text, size_t len, struct opts_error *err);
/* record --config FILE: ctx is the plan. The kernel then need not have all of the events, as for Perfetto. */
opt_set perfetto_config_option;

#endif
