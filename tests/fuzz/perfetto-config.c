// SPDX-License-Identifier: LGPL-2.1-or-later
/* Perfetto's text configuration: every event has a name and a buffer, every refusal a reason. */
#include <stdlib.h>
#include <string.h>

#include "record/plan/plan.h"
#include "base/opts.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool ok)
{
	if (!ok)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct record_plan plan = { 0 };
	struct opts_error err = { "" };

	must(record_plan_add_buffer(&plan, ""));
	if (perfetto_config(&plan, (const char *)data, size, &err))
		must(*err.text);
	for (size_t i = 0; i < plan.n_buffers; i++) {
		must(!strchr(plan.buffers[i].name, '/'));
		for (size_t k = 0; k < plan.buffers[i].n_events; k++)
			must(*plan.buffers[i].events[k].name);
	}
	record_plan_release(&plan);
	return 0;
}
