/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_HYP_REASON_H
#define HYPTRACE_HYP_REASON_H

#include <traceevent/event-parse.h>

#include "base/std.h"

/*
 * Reason for an entry into the hypervisor or a return from it, by its events.
 *
 * Mainline 7.1's order (arch/arm64/include/asm/kvm_hypevents.h), and the one of
 * hyptrace's files; a format with its own table of them is believed first.
 */
enum hyp_reason {
	HYP_SMC,
	HYP_HVC,
	HYP_SYS,
	HYP_PSCI,
	HYP_HOST_ABORT,
	HYP_GUEST_EXIT,
	HYP_ERET_HOST,
	HYP_ERET_GUEST,
	HYP_UNKNOWN,
	HYP_REASONS
};

extern const char *const hyp_reason_names[HYP_REASONS];

/* The text that the event's print format gives to a value of that field; NULL: none. */
const char *print_symbol(const struct tep_event *event, const char *field, uint64_t value);
/* The name of the field `reason`; NULL: a number that nothing names. */
const char *hyp_reason_name(const struct tep_event *event, uint64_t reason);

#endif
