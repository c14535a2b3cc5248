/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HYPTRACE_RECORD_OPTS_H
#define HYPTRACE_RECORD_OPTS_H

#include "opts.h"
#include "tracefs/plan.h"

/* The command line of `hyptrace record`: the grammar of trace-cmd-record(1), 3.1.6. */

enum { RECORD_OPTS_HELP = 1 };

/*
 * argv[0] is the command's own name. Fills the plan, which must be zeroed, and
 * which the caller releases in any case; plan->command points into argv.
 * 0, RECORD_OPTS_HELP when -h was given, or -errno with the reason in err.
 * Prints nothing.
 */
int record_opts_parse(int argc, char **argv, struct record_plan *plan, struct opts_error *err);

/* The text for -h, from the table that drives the parser. */
void record_opts_usage(struct buf *out);

#endif
