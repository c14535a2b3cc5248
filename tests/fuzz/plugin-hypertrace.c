// SPDX-License-Identifier: LGPL-2.1-or-later
/* The hypertrace plugin over lines and records of any content. */
#include "../../plugins/plugin.c"
#include "../../plugins/relay.c"
#include "../../plugins/hypertrace.c"

#include "plugin-events.h"

static struct rig_event events[] = {
	{ .sys = "ftrace", .name = "print", .fields = "unsigned long ip; char buf[]" },
	{ .sys = "qemu", .name = "guest_hypertrace", .fields = "u64 cpu; u64 arg1; u64 arg2" },
};

/* The other form of the event: libtraceevent gives a handler to the first of a name. */
static struct rig_event arrays[] = {
	{ .sys = "qemu", .name = "guest_hypertrace", .fields = "u32 client; __data_loc u64[] args" },
};

static void array(const uint8_t *data, size_t size)
{
	struct tep_record rec = { .data = malloc(size ? size : 1), .size = (int)size };
	static struct rig r;
	struct tep_event *event;
	struct trace_seq s;

	if (!r.tep) {
		r.tep = tep_alloc();
		arrays[0].id = 300;
		rig_add(&r, &arrays[0]);
	}
	event = tep_find_event(r.tep, 300);
	memcpy(rec.data, data, size);
	trace_seq_init(&s);
	if (decode_record(&s, &rec, event, NULL) < 0 && s.len)
		abort();
	trace_seq_destroy(&s);
	free(rec.data);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	array(data, size);
	return fuzz_record(events, ARRAY_SIZE(events), data, size);
}
