/* SPDX-License-Identifier: LGPL-2.1-or-later */
#ifndef HYPTRACE_FUZZ_PLUGIN_EVENTS_H
#define HYPTRACE_FUZZ_PLUGIN_EVENTS_H

/*
 * A plugin's handlers with records of any content. The fuzzer includes the
 * plugin's source, names the events and calls fuzz_record: the first byte chooses
 * the event, the rest is the record.
 */
#include <stdlib.h>

#define assert_true(x)                                                                                       \
	do {                                                                                                 \
		if (!(x))                                                                                    \
			abort();                                                                             \
	} while (0)
#define assert_non_null(x)     assert_true((x) != NULL)
#define assert_int_equal(a, b) assert_true((a) == (b))
#define fail_msg(...)	       abort()

#include "../unit/plugin-rig.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The plugins' warnings about options have no place here: there are no options. */
static inline struct tep_event *fuzz_event(struct rig_event *events, size_t n, size_t i)
{
	static struct rig r;

	if (!r.tep) {
		r.tep = tep_alloc();
		assert_non_null(r.tep);
		tep_set_long_size(r.tep, 8);
		TEP_PLUGIN_LOADER(r.tep);
		for (size_t k = 0; k < n; k++) {
			events[k].id = 300 + (int)k;
			rig_add(&r, &events[k]);
		}
	}
	return tep_find_event(r.tep, 300 + (int)(i % n));
}

static inline int fuzz_record(struct rig_event *events, size_t n, const uint8_t *data, size_t size)
{
	struct tep_record rec = { 0 };
	struct tep_event *event;
	struct trace_seq s;
	uint8_t *copy;

	if (!size)
		return 0;
	event = fuzz_event(events, n, data[0]);
	if (!event->handler)
		return 0;
	copy = malloc(size); /* a byte too far is out of bounds */
	memcpy(copy, data + 1, size - 1);
	rec.data = realloc(copy, size > 1 ? size - 1 : 1);
	rec.size = (int)size - 1;
	trace_seq_init(&s);
	if (event->handler(&s, &rec, event, event->context) < 0)
		assert_int_equal(s.len, 0);
	trace_seq_destroy(&s);
	free(rec.data);
	return 0;
}

#endif
