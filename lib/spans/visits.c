// SPDX-License-Identifier: LGPL-2.1-or-later
/* Events of the hypervisor as reasons of visits, and the other way round. */
#include "spans/visits.h"
#include "base/array.h"

bool visit_event_tells(const char *event)
{
	return strncmp(event, "func", 4) != 0 && strncmp(event, "hyp_", 4) != 0 &&
	       strcmp(event, "__hyp_printk") != 0;
}

/* `each`: the handler of that reason emits it in each visit. */
static const struct visit_event {
	const char *event, *reason;
	bool each;
} visit_events[] = {
	{ "host_hcall", "hvc", true },
	{ "host_smc", "smc", true },
	{ "host_mem_abort", "host_abort", true },
	{ "host_ffa_call", "smc", false },
	{ "psci_mem_protect", "psci", false },
	{ "guest_ffa_call", "guest_exit", false },
	{ "vcpu_illegal_trap", "guest_exit", false },
};

const char *visit_event_reason(const char *event)
{
	for (size_t i = 0; i < ARRAY_SIZE(visit_events); i++)
		if (!strcmp(visit_events[i].event, event))
			return visit_events[i].reason;
	return NULL;
}

const char *visit_reason_event(const char *reason)
{
	for (size_t i = 0; i < ARRAY_SIZE(visit_events); i++)
		if (visit_events[i].each && !strcmp(visit_events[i].reason, reason))
			return visit_events[i].event;
	return NULL;
}
