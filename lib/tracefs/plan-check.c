// SPDX-License-Identifier: LGPL-2.1-or-later
/* What only a whole plan can show to be wrong. */
#include "tracefs/plan.h"

#include <string.h>

#include "tracefs/region.h"
#include "util/opts.h"

static bool anything_to_record(const struct record_plan *plan)
{
	if (plan->n_guests || plan->profile_hz || plan->take_over)
		return true;
	for (size_t i = 0; i < plan->n_buffers; i++) {
		const struct buffer_plan *b = &plan->buffers[i];

		if (b->n_events || b->tracer || b->is_hyp)
			return true;
	}
	return false;
}

/* A trigger works for an event that is off too; the hypervisor's are all on when none is named. */
static bool stays_empty(const struct buffer_plan *b)
{
	for (size_t i = 0; i < b->n_events; i++)
		if (!b->events[i].negate || b->events[i].triggers.n)
			return false;
	return b->n_events && !b->tracer && !b->is_hyp;
}

static int only_off(struct opts_error *err, const char *what, const char *name)
{
	return opts_error(err,
			  "-v switches off the only events of %s%s, so nothing would be recorded "
			  "there: leave it out (it does not mean verbose)",
			  what, name);
}

/* -v alone makes an empty recording, and -v is what other programs call verbose. */
static int check_negated(const struct record_plan *plan, struct opts_error *err)
{
	for (size_t i = 0; i < plan->n_buffers; i++)
		if (stays_empty(&plan->buffers[i]))
			return only_off(err, i ? "the buffer " : "the top buffer", plan->buffers[i].name);
	for (size_t i = 0; i < plan->n_guests; i++)
		if (plan->guests[i].events && !plan->guests[i].on)
			return only_off(err, "the guest ", plan->guests[i].spec);
	return 0;
}

/* A ring's events are tied to doorbells by the boot clock, and vCPUs' threads are who ring. */
static int check_hypertrace(const struct record_plan *plan, struct opts_error *err)
{
	if (plan->filter_command || plan->pids.n)
		return opts_error(
			err, "--hypertrace: with -F or -P doorbells are not seen, for they are rung by the "
			     "threads of vCPUs");
	for (size_t i = 0; i < plan->n_buffers; i++)
		if (plan->buffers[i].clock && strcmp(plan->buffers[i].clock, "boot"))
			return opts_error(err, "-C %s: --hypertrace has times of the clock boot",
					  plan->buffers[i].clock);
	return 0;
}

/* What of a long recording does not go together. */
static int check_long(const struct record_plan *p, struct opts_error *err)
{
	const bool rotate = p->rotate_bytes || p->rotate_ms, numbered = record_plan_numbered(p);

	if (rotate + (p->max_cpu_kb > 0) + (p->flight_ms > 0) > 1)
		return opts_error(err, "--rotate, -m and --flight: each is another way, take one");
	if (p->keep_files && !numbered)
		return opts_error(err, "--keep goes with --rotate or --flight only");
	if (p->dump_on.event && !p->flight_ms)
		return opts_error(err, "--dump-on goes with --flight only");
	if (p->hypertrace && (numbered || p->max_cpu_kb))
		return opts_error(err, "--hypertrace is joined with doorbells at the end of a recording: "
				       "not with --rotate, -m or --flight");
	if (numbered && p->n_guests && !p->tsync_interval_ms && p->tsync != TSYNC_NONE)
		return opts_error(
			err, "--tsync-interval 0: each file needs looks at the guests' clocks of its own");
	return 0;
}

int record_plan_check(const struct record_plan *plan, struct opts_error *err)
{
	if (plan->follow_children && !plan->filter_command && !plan->pids.n)
		return opts_error(err, "-c goes with -F or -P only");
	if (plan->filter_command && !plan->command && !plan->pids.n)
		return opts_error(err, "-F needs a command to trace, or -P");
	if (plan->user && !plan->command)
		return opts_error(err, "--user needs a command to run");
	if (plan->proc_map && !plan->command && !plan->pids.n)
		return opts_error(err, "--proc-map needs a command, or -P");
	if (plan->func_stack && !plan->buffers[0].funcs.n)
		return opts_error(err, "--func-stack needs -l before any -B: the stacks of all functions "
				       "can bring the machine to a stop");
	if (plan->file_version == 6 && plan->compression && strcmp(plan->compression, "none"))
		return opts_error(err, "--compression %s: files of version 6 are not compressed",
				  plan->compression);
	for (size_t i = 1; i < plan->n_buffers && plan->profile_hz; i++)
		if (!strcmp(plan->buffers[i].name, "profile"))
			return opts_error(err, "-B profile: --profile has a buffer of that name");
	if (!anything_to_record(plan))
		return opts_error(err,
				  "nothing to record: give events (-e), a tracer (-p), -B hyp or --profile");
	return (plan->hypertrace ? check_hypertrace(plan, err) : 0) ?: check_long(plan, err) ?: check_negated(plan, err) ?: region_check(plan, err);
}
