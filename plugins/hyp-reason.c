// SPDX-License-Identifier: LGPL-2.1-or-later
/* Names of the reasons why the hypervisor was entered or left. */
#include "hyp-reason.h"

const char *const hyp_reason_names[HYP_REASONS] = { "smc",	 "hvc",	       "sys",
						    "psci",	 "host_abort", "guest_exit",
						    "eret_host", "eret_guest", "unknown" };

const char *print_symbol(const struct tep_event *event, const char *field, uint64_t value)
{
	const struct tep_print_arg *arg;

	for (arg = event->print_fmt.args; arg; arg = arg->next) {
		if (arg->type != TEP_PRINT_SYMBOL || !arg->symbol.field ||
		    arg->symbol.field->type != TEP_PRINT_FIELD ||
		    strcmp(arg->symbol.field->field.name, field) != 0)
			continue;
		for (struct tep_print_flag_sym *f = arg->symbol.symbols; f; f = f->next)
			if (f->value && f->str && strtoull(f->value, NULL, 0) == value)
				return f->str;
	}
	return NULL;
}

const char *hyp_reason_name(const struct tep_event *event, uint64_t reason)
{
	const char *text = print_symbol(event, "reason", reason);

	if (!text && reason < HYP_REASONS)
		text = hyp_reason_names[reason];
	return text;
}
