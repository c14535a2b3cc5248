// SPDX-License-Identifier: LGPL-2.1-or-later
/* The crosvm plugin over lines of any content. */
#include "../../plugins/plugin.c"
#include "../../plugins/relay.c"
#include "../../plugins/crosvm.c"

#include "plugin-events.h"

static struct rig_event events[] = {
	{ .sys = "ftrace", .name = "print", .fields = "unsigned long ip; char buf[]" },
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	return fuzz_record(events, ARRAY_SIZE(events), data, size);
}
