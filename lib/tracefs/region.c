// SPDX-License-Identifier: LGPL-2.1-or-later
/* --start-on and --stop-on in a plan: their words, and what they go with. */
#include "tracefs/region.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* A name that becomes a part of a path. Its length; 0: none is here. */
static size_t region_name(const char *s)
{
	size_t n = 0;

	while (isalnum((unsigned char)s[n]) || s[n] == '_')
		n++;
	return n;
}

static bool region_is_system(const char *event, const char *system)
{
	size_t n = strlen(system);

	return !strncmp(event, system, n) && event[n] == ':';
}

int region_option(void *ctx, const struct opt *o, const char *arg, struct opts_error *err)
{
	struct trigger_plan *t = (struct trigger_plan *)((char *)ctx + o->off);
	size_t system = region_name(arg), event = arg[system] == ':' ? region_name(arg + system + 1) : 0;
	const char *end = arg + system + 1 + event;

	if (region_is_system(arg, "hyp") || region_is_system(arg, "hypervisor"))
		return opts_wrong(err, o, arg, "the hypervisor's events have no triggers");
	if (!system || !event || (*end && (*end != '/' || !end[1])))
		return opts_wrong(err, o, arg,
				  "not SYSTEM:EVENT or SYSTEM:EVENT/FILTER (for marks of a guest's code see "
				  "hypertrace(7))");
	if (t->event)
		return opts_wrong(err, o, arg, "there is one already");
	t->event = str_printf("%.*s/%.*s", (int)system, arg, (int)event, arg + system + 1);
	t->filter = *end ? strdup(end + 1) : NULL;
	return t->event && (t->filter || !*end) ? 0 : -ENOMEM;
}

bool region_asked(const struct record_plan *plan)
{
	return plan->start_on.event || plan->stop_on.event;
}

static bool region_has_buffer(const struct record_plan *plan)
{
	bool has = plan->buffers[0].n_events || plan->buffers[0].tracer;

	for (size_t i = 1; i < plan->n_buffers; i++)
		has |= !plan->buffers[i].is_hyp;
	return has;
}

bool region_needs_top(const struct record_plan *plan)
{
	return region_asked(plan) && !region_has_buffer(plan);
}

static bool region_is_same(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

int region_check(const struct record_plan *plan, struct opts_error *err)
{
	const char *name = plan->start_on.event ? "--start-on" : "--stop-on";

	if (!region_asked(plan))
		return 0;
	if (plan->take_over)
		return opts_error(err, "%s with --take-over: a buffer that runs already has no region", name);
	if (!region_has_buffer(plan) && !plan->profile_hz && plan->n_buffers == 1)
		return opts_error(err, "%s: nothing of the host is recorded (after -A it is the guest's)",
				  name);
	if (region_is_same(plan->start_on.event, plan->stop_on.event) &&
	    region_is_same(plan->start_on.filter, plan->stop_on.filter))
		return opts_error(err, "--start-on and --stop-on name the same events");
	return 0;
}
